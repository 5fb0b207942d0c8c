//! One shard is passed between threads. The test is small enough for Miri, which checks every memory access:
//!
//! `MIRIFLAGS=-Zmiri-ignore-leaks cargo +nightly miri test -p fulgurite-engine --test engine confined`

use fulgurite_base::Nanos;
use fulgurite_device::MemDevice;
use fulgurite_engine::blocking::Db;
use fulgurite_engine::{Direction, Durability, Options};
use std::ops::Bound;

#[test]
fn threads_take_turns_with_one_shard() {
    let drive = MemDevice::new(320, 4096, 16, Nanos::from_micros(10));
    let options = Options { memory_bytes: 256 << 10, log_bytes: 256 << 10, ..Options::default() };
    let db = Db::create(vec![drive], options).unwrap();
    let keepers: Vec<_> =
        db.keepers().into_iter().map(|keeper| std::thread::spawn(|| keeper.run())).collect();
    let table = db.create_table("records").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3u8 {
            let (db, table) = (&db, &table);
            scope.spawn(move || {
                db.put_with(table, &[thread], &[1; 300], Durability::Relaxed).unwrap();
                db.transact(|transaction| {
                    let value = transaction.get_for_update(table, b"shared")?.unwrap_or_default();
                    transaction.put(table, b"shared", &[&value[..], &[thread]].concat())
                })
                .unwrap();
                assert_eq!(db.get(table, &[thread]).unwrap(), Some(vec![1; 300]));
            });
        }
    });
    let snapshot = db.snapshot().unwrap();
    let all = (Bound::Unbounded, Bound::Unbounded);
    assert_eq!(snapshot.scan(&table, all, Direction::Forward).count(), 4);
    assert_eq!(snapshot.get(&table, b"shared").unwrap().map(|value| value.len()), Some(3));
    // The handle is dropped by a thread that did not create it.
    std::thread::spawn(move || drop((snapshot, db))).join().unwrap();
    keepers.into_iter().for_each(|keeper| keeper.join().unwrap());
}
