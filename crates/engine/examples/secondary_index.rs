//! An index over a table: people by city. Every commit keeps it consistent with the table.

use fulgurite_base::Nanos;
use fulgurite_device::MemDevice;
use fulgurite_engine::blocking::{Db, Extract};
use fulgurite_engine::{Direction, Error, Options};
use std::ops::Bound;
use std::sync::Arc;

fn main() -> Result<(), Error> {
    let drive = MemDevice::new(4096, 4096, 64, Nanos::from_micros(10));
    let db = Db::create(vec![drive], Options { log_bytes: 4 << 20, ..Options::default() })?;
    let people = db.create_table("people")?;
    db.put(&people, b"ada", b"London")?;
    db.put(&people, b"emmy", b"Erlangen")?;
    // The value is the city, and the city is the index key. Existing people are indexed now.
    let extract: Extract = Arc::new(|_name, city, keys| keys.push(city.to_vec()));
    let by_city = db.create_index(&people, "people by city", extract)?;
    db.put(&people, b"alan", b"London")?;
    db.put(&people, b"emmy", b"Bryn Mawr")?;

    let london = (Bound::Included(&b"London"[..]), Bound::Included(&b"London"[..]));
    let rows = db.snapshot()?.index_scan(&by_city, london, Direction::Forward, 10)?;
    let names: Vec<String> = rows.iter().map(|row| String::from_utf8_lossy(&row.key).into_owned()).collect();
    println!("in London: {}", names.join(", "));
    assert_eq!(names, ["ada", "alan"]);

    let all = (Bound::Unbounded, Bound::Unbounded);
    let first = db.snapshot()?.index_scan(&by_city, all, Direction::Forward, 1)?;
    assert_eq!(first[0].index_key, b"Bryn Mawr", "the entry moved with the record");
    db.close()
}
