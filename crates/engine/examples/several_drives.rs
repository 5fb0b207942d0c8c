//! One store on two drives: transfers between accounts on both of them, and snapshots that sum the accounts meanwhile.
//!
//! Run it with `cargo run --release -p fulgurite-engine --example several_drives`.

use fulgurite_base::Nanos;
use fulgurite_device::MemDevice;
use fulgurite_engine::blocking::Db;
use fulgurite_engine::{Direction, Error, Options};
use std::ops::Bound::Unbounded;

const ACCOUNTS: u32 = 20;
const EACH: u32 = 100;

fn amount(value: Option<Vec<u8>>) -> u32 {
    value.and_then(|value| value.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn main() -> Result<(), Error> {
    let drive = || MemDevice::new(4096, 4096, 64, Nanos::from_micros(10));
    let db = Db::create(vec![drive(), drive()], Options { log_bytes: 2 << 20, ..Options::default() })?;
    let accounts = db.create_table("accounts")?;
    db.transact(|transaction| {
        let mut keys = 0..ACCOUNTS;
        keys.try_for_each(|key| transaction.put(&accounts, &key.to_be_bytes(), &EACH.to_le_bytes()))
    })?;
    std::thread::scope(|scope| {
        let transfers = scope.spawn(|| {
            (0..1_000u32).try_for_each(|number| {
                let (from, to) = (number % ACCOUNTS, number * 7 % ACCOUNTS);
                db.transact(|transaction| {
                    let left = amount(transaction.get_for_update(&accounts, &from.to_be_bytes())?);
                    if from == to || left == 0 {
                        return Ok::<(), Error>(());
                    }
                    let there = amount(transaction.get_for_update(&accounts, &to.to_be_bytes())?);
                    transaction.put(&accounts, &from.to_be_bytes(), &(left - 1).to_le_bytes())?;
                    transaction.put(&accounts, &to.to_be_bytes(), &(there + 1).to_le_bytes())
                })
            })
        });
        while !transfers.is_finished() {
            // A snapshot is one state of both drives.
            let snapshot = db.snapshot()?;
            let all = snapshot.scan(&accounts, (Unbounded, Unbounded), Direction::Forward);
            let sum: u32 = all.map(|record| Ok(amount(Some(record?.1)))).sum::<Result<u32, Error>>()?;
            assert_eq!(sum, ACCOUNTS * EACH);
        }
        transfers.join().expect("it does not panic")
    })?;
    let on_first = (0..ACCOUNTS).filter(|key| db.shard_of(&key.to_be_bytes()) == 0).count();
    println!("{on_first} of {ACCOUNTS} accounts are on the first drive; every snapshot had the whole sum");
    db.close()
}
