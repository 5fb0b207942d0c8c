//! Tests scans of several shards whose pages are read long after each other.

use crate::across::in_each;
use crate::common::powered::{LATENCY, Medium, Power};
use fulgurite_device::Operation;
use fulgurite_engine::blocking::{Db, Extract, Table};
use fulgurite_engine::{Direction, Durability, Options};
use std::ops::Bound::{Included, Unbounded};
use std::sync::{Arc, Mutex};

fn options() -> Options {
    Options {
        memory_bytes: 1 << 20,
        log_bytes: 1 << 20,
        durability: Durability::Relaxed,
        ..Options::default()
    }
}

/// The rule: a scan that has returned nothing yet does not fail because the old versions of one shard were dropped
/// while another shard was read. It reads one newer state then.
#[test]
fn a_scan_begins_again_before_its_first_record() {
    let media: Vec<Medium> = (0..2).map(|_| Medium::empty()).collect();
    let power = Power::new(u64::MAX);
    let db = Db::create(media.iter().map(|medium| medium.drive(&power)).collect(), options()).unwrap();
    let table = db.create_table("records").unwrap();
    let keys = in_each(&db, "key");
    keys.iter().for_each(|key| db.put(&table, key, &[0; 1000]).unwrap());
    let by_key: Extract = Arc::new(|key, _, keys| keys.push(key.to_vec()));
    db.create_index(&table, "by key", by_key.clone()).unwrap();
    db.close().unwrap();
    drop(db);
    for is_index in [false, true] {
        // The first read of the first shard writes so much in the second one that it drops its old versions.
        let busy: Arc<Mutex<Option<(Db, Table)>>> = Arc::default();
        let own = Arc::clone(&busy);
        let key = keys[1].clone();
        let mut hook = Some(move |operation: &Operation| {
            let is_read = matches!(operation, Operation::Read { .. });
            if let Some((db, table)) = is_read.then(|| own.lock().unwrap().take()).flatten() {
                (0..4_000u32).for_each(|round| db.put(&table, &key, &[round as u8; 1000]).unwrap());
            }
            LATENCY
        });
        let drives = media.iter().map(|medium| match hook.take() {
            Some(hook) => medium.drive(&power).with_hook(hook),
            None => medium.drive(&power),
        });
        let db = Db::open(drives.collect(), options()).unwrap();
        let table = db.table("records").unwrap();
        let index = db.create_index(&table, "by key", by_key.clone()).unwrap();
        *busy.lock().unwrap() = Some((db.clone(), table.clone()));
        let range = (Included(&b"key"[..]), Unbounded);
        let found: Vec<(Vec<u8>, Vec<u8>)> = if is_index {
            let rows = db.index_rows(&index, range, Direction::Forward).limit(5);
            rows.map(|row| row.map(|row| (row.key, row.value)).unwrap()).collect()
        } else {
            db.scan(&table, range, Direction::Forward).limit(5).map(Result::unwrap).collect()
        };
        assert!(busy.lock().unwrap().is_none(), "the first shard was read");
        let expected = keys.iter().cloned().zip([vec![0; 1000], vec![3_999u32 as u8; 1000]]);
        let mut expected: Vec<_> = expected.collect();
        expected.sort();
        assert_eq!(found, expected);
        drop(db);
    }
}
