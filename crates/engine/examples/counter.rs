//! Several threads increment a counter in transactions. No increment is lost.

use fulgurite_base::Nanos;
use fulgurite_device::MemDevice;
use fulgurite_engine::blocking::{Db, Table};
use fulgurite_engine::{Error, Options};

fn number(value: Option<Vec<u8>>) -> u64 {
    value.and_then(|value| value.try_into().ok()).map_or(0, u64::from_le_bytes)
}

fn raise(db: &Db, counters: &Table) -> Result<(), Error> {
    // Retries if two threads deadlock.
    db.transact(|transaction| {
        let before = number(transaction.get_for_update(counters, b"visits")?);
        transaction.put(counters, b"visits", &(before + 1).to_le_bytes())
    })
}

fn main() -> Result<(), Error> {
    // A drive of 16 MiB in memory, on which every command takes 10 µs of simulated time.
    let drive = MemDevice::new(4096, 4096, 64, Nanos::from_micros(10));
    let db = Db::create(vec![drive], Options { log_bytes: 4 << 20, ..Options::default() })?;
    let counters = db.create_table("counters")?;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..250).try_for_each(|_| raise(&db, &counters)).expect("the commits succeed"));
        }
    });
    let visits = number(db.get(&counters, b"visits")?);
    println!("{visits} visits");
    assert_eq!(visits, 1000);
    db.close()
}
