//! Ranges of keys, indexes read in parts, single records that change, and tables that are renamed and dropped, on a
//! drive in memory.

use fulgurite_base::Nanos;
use fulgurite_device::MemDevice;
use fulgurite_engine::blocking::{Db, Extract};
use fulgurite_engine::{Direction, Error, Options, prefix};
use std::sync::Arc;

/// An error of the program, beside those of the store.
#[derive(Debug)]
enum ShopError {
    Store(Error),
    SoldOut,
}

impl From<Error> for ShopError {
    fn from(error: Error) -> ShopError {
        ShopError::Store(error)
    }
}

fn main() -> Result<(), Error> {
    let drive = MemDevice::new(4096, 4096, 64, Nanos::from_micros(10));
    let db = Db::create(vec![drive], Options { log_bytes: 2 << 20, ..Options::default() })?;
    let stock = db.create_table("stock")?;
    let bought = db.transact(|transaction| match transaction.get_for_update(&stock, b"pen")?.as_deref() {
        None | Some([0]) => Err(ShopError::SoldOut),
        Some(left) => Ok(transaction.put(&stock, b"pen", &[left[0] - 1])?),
    });
    match bought {
        Err(ShopError::SoldOut) => println!("no pen is left"),
        Err(ShopError::Store(error)) => return Err(error),
        Ok(()) => unreachable!("there was no pen"),
    }

    db.update(&stock, b"pen", |old| Some(vec![old.map_or(1, |old| old[0] + 1)]))?;
    assert!(db.compare_and_swap(&stock, b"pen", Some(&[1]), Some(&[0]))?);

    let events = db.create_table("events")?;
    for (key, city) in [("user:1:a", "Oslo"), ("user:1:b", "Rome"), ("user:2:a", "Oslo")] {
        db.put(&events, key.as_bytes(), city.as_bytes())?;
    }
    let by_city: Extract = Arc::new(|_, value, keys| keys.push(value.to_vec()));
    let cities = db.create_index(&events, "by city", by_city)?;

    let user = prefix(b"user:1:");
    assert_eq!(db.scan(&events, user.range(), Direction::Forward).count(), 2);
    let deleted = db.transact(|transaction| transaction.delete_range(&events, user.range()))?;
    assert_eq!(deleted, 2);

    for row in db.index_rows(&cities, prefix(b"O").range(), Direction::Backward) {
        println!("{}", String::from_utf8_lossy(&row?.key));
    }

    db.rename_table("stock", "goods")?;
    db.drop_index("by city")?;
    db.drop_table("events")?;
    assert_eq!(db.tables()?, ["goods"]);
    db.close()
}
