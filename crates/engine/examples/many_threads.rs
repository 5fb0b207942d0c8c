//! A hundred threads transfer money between accounts on a real file, while others check that the sum is
//! constant.

use fulgurite_base::Prng;
use fulgurite_engine::blocking::{Db, Table};
use fulgurite_engine::{Direction, Durability, Error, Options};
use fulgurite_uring::{DriveOptions, PsyncDevice};
use std::ops::Bound;

const ACCOUNTS: u64 = 1000;

fn money(value: &[u8]) -> i64 {
    value.try_into().map_or(0, i64::from_le_bytes)
}

fn transfer(db: &Db, accounts: &Table, prng: &mut Prng) -> Result<(), Error> {
    let (from, to) = (prng.below(ACCOUNTS), prng.below(ACCOUNTS - 1));
    let to = if to >= from { to + 1 } else { to };
    db.transact(|transaction| {
        for (account, change) in [(from, -5), (to, 5)] {
            let key = account.to_be_bytes();
            let balance = transaction.get_for_update(accounts, &key)?.map_or(0, |value| money(&value));
            transaction.put(accounts, &key, &i64::to_le_bytes(balance + change))?;
        }
        Ok(())
    })
}

fn sum(db: &Db, accounts: &Table) -> Result<i64, Error> {
    let snapshot = db.snapshot()?;
    let all = (Bound::Unbounded, Bound::Unbounded);
    snapshot.scan(accounts, all, Direction::Forward).map(|record| Ok(money(&record?.1))).sum()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    // On Linux, `UringDevice` with `many_threads: true` executes many commands concurrently. This device
    // works on every system.
    let drive = DriveOptions { pages: Some(8192), ..DriveOptions::default() };
    let drive = PsyncDevice::open(&folder.path().join("accounts"), &drive)?;
    let db = Db::create(vec![drive], Options { log_bytes: 8 << 20, ..Options::default() })?;
    let accounts = db.create_table("accounts")?;
    for account in 0..ACCOUNTS {
        db.put_with(&accounts, &account.to_be_bytes(), &i64::to_le_bytes(100), Durability::Relaxed)?;
    }
    std::thread::scope(|scope| {
        for thread in 0..100 {
            let (db, accounts) = (&db, &accounts);
            scope.spawn(move || {
                let mut prng = Prng::new(thread, "transfers");
                for _ in 0..5 {
                    transfer(db, accounts, &mut prng).expect("the transfer succeeds");
                }
                if thread % 20 == 0 {
                    assert_eq!(sum(db, accounts).expect("the scan succeeds"), 100_000);
                }
            });
        }
    });
    let statistics = &db.statistics()?[0];
    println!("{} commits in {} flushes of the log", statistics.commits, statistics.log_flushes);
    assert_eq!(sum(&db, &accounts)?, 100_000);
    db.close()?;
    Ok(())
}
