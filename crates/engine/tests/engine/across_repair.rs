//! Tests the repair of one shard of several.

use crate::across::in_each;
use crate::common::powered::{Medium, Power};
use fulgurite_base::Prng;
use fulgurite_device::Executor;
use fulgurite_engine::blocking::Db;
use fulgurite_engine::{Direction, Error, MemImage, Options, RepairReport, Store, repair};
use std::ops::Bound::Unbounded;

fn options() -> Options {
    Options { memory_bytes: 1 << 20, log_bytes: 1 << 20, ..Options::default() }
}

fn open(media: &[Medium]) -> Result<Db, Error> {
    let power = Power::new(u64::MAX);
    Db::open(media.iter().map(|medium| medium.drive(&power)).collect(), options())
}

/// Repairs the store of a drive into a new one.
fn repaired(medium: &Medium) -> (RepairReport, Medium) {
    let (image, new) = (MemImage::new(medium.bytes()), Medium::empty());
    let executor = Executor::new(new.drive(&Power::new(u64::MAX)));
    let handle = executor.handle();
    let work = async move {
        // The new store differs from the old one in its identity, because another store was on its drive.
        Store::create(handle.clone(), options()).await?.close().await?;
        repair(&image, handle, options()).await
    };
    let report = executor.block_on(work).unwrap().unwrap();
    drop(executor);
    new.cut(0, &mut Prng::new(0, "repaired"));
    (report, new)
}

/// The rule: a repaired shard takes the place of the old one beside the other shards, and no other place. The tables,
/// and changes of names that a crash has interrupted, are there as before.
#[test]
fn a_repaired_shard_takes_its_place() {
    let mut media: Vec<Medium> = (0..3).map(|_| Medium::empty()).collect();
    let power = Power::new(u64::MAX);
    let db = Db::create(media.iter().map(|medium| medium.drive(&power)).collect(), options()).unwrap();
    let table = db.create_table("records").unwrap();
    let names: Vec<String> = (0..100).map(|number| format!("name {number}")).collect();
    for name in &names {
        db.transact(|transaction| {
            in_each(&db, name).iter().try_for_each(|key| transaction.put(&table, key, name.as_bytes()))
        })
        .unwrap();
    }
    db.put(&table, b"large", &[7; 50_000]).unwrap();
    db.close().unwrap();
    drop(db);
    for shard in [1, 0, 2, 0] {
        let (report, new) = repaired(&media[shard]);
        assert!(report.is_whole(), "{report:?}");
        media[shard] = new;
        assert!(matches!(open(&[&media[1..], &media[..1]].concat()), Err(Error::Options(_))));
        let db = open(&media).unwrap();
        let table = db.table("records").unwrap();
        let records = db.scan(&table, (Unbounded, Unbounded), Direction::Forward).map(Result::unwrap);
        assert_eq!(records.count(), 301);
        assert_eq!(db.get(&table, b"large").unwrap(), Some(vec![7; 50_000]));
        for name in &names {
            let keys = in_each(&db, name);
            assert!(keys.iter().all(|key| db.get(&table, key).unwrap().as_deref() == Some(name.as_bytes())));
        }
        db.transact(|transaction| {
            in_each(&db, "name 1").iter().try_for_each(|key| transaction.put(&table, key, b"name 1"))
        })
        .unwrap();
        assert_eq!(db.tables().unwrap(), ["records"]);
        db.close().unwrap();
    }
}
