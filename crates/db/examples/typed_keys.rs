//! Orders of customers by day: keys of a text and a signed number, and an index by a price.
//!
//! Run it with `cargo run --release -p fulgurite-db --example typed_keys`.

use fulgurite_db::{Db, Direction, Extract, Options, keys};
use std::error::Error;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let db = Db::open(folder.path().join("shop.store"), Options::default())?;
    let orders = db.create_table("orders")?;
    // The value of an order is its price, which the index takes as it is.
    let by_price: Extract = Arc::new(|_, price, index_keys| index_keys.push(price.to_vec()));
    let by_price = db.create_index(&orders, "by price", by_price)?;
    for (customer, day, price) in [("ada", -3, 9.5), ("ada", 12, 120.0), ("bob", 5, -1.25)] {
        db.put(&orders, &keys::encode(&(customer, day)), &keys::encode(&price))?;
    }

    for order in db.scan(&orders, keys::prefix(&"ada").range(), Direction::Forward) {
        let (_, day) = keys::decode::<(String, i32)>(&order?.0).ok_or("not an order")?;
        println!("ada ordered on day {day}");
    }
    let cheap = keys::range(..10.0);
    for row in db.index_rows(&by_price, cheap.range(), Direction::Forward) {
        let (customer, day) = keys::decode::<(String, i32)>(&row?.key).ok_or("not an order")?;
        println!("cheap: {customer} on day {day}");
    }
    db.close()?;
    Ok(())
}
