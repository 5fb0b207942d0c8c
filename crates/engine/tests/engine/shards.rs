//! Tests several shards in one handle: scans in order over all of them, indexes, reopening, and drives of
//! different stores.

use fulgurite_base::Nanos;
use fulgurite_device::{Caps, Command, Completion, Device, MemDevice, QueueFull};
use fulgurite_engine::blocking::{Db, Extract, PAGE_RECORDS};
use fulgurite_engine::{Direction, Durability, Error, IndexRow, Options, Prefix, prefix};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

fn options() -> Options {
    Options { memory_bytes: 2 << 20, log_bytes: 2 << 20, ..Options::default() }
}

fn mem() -> MemDevice {
    MemDevice::new(8192, 4096, 64, Nanos::from_micros(10))
}

/// Returns a function that extracts one index key from each record: its value.
fn by_value() -> Extract {
    Arc::new(|_, value, keys| keys.push(value.to_vec()))
}

#[test]
fn the_internal_table_of_shards_is_hidden() {
    for shards in [1, 2] {
        let db = Db::create((0..shards).map(|_| mem()).collect(), options()).unwrap();
        let table = db.create_table("records").unwrap();
        let refused = [
            db.create_table("fulgurite.shards").map(drop),
            db.create_index(&table, "fulgurite.shards", Arc::new(|_, _, _| ())).map(drop),
        ];
        for refused in refused {
            let Err(Error::Options(what)) = refused else { panic!("{refused:?}") };
            assert!(what.contains("another name"), "{what}");
        }
        assert_eq!(db.tables().unwrap(), ["records"]);
    }
}

#[test]
fn a_scan_gives_all_shards_in_order() {
    for shards in [1, 3] {
        let db = Db::create((0..shards).map(|_| mem()).collect(), options()).unwrap();
        let table = db.create_table("records").unwrap();
        let keys: Vec<Vec<u8>> =
            (0..4 * PAGE_RECORDS as u32).map(|number| number.to_be_bytes().to_vec()).collect();
        for part in keys.chunks(50) {
            db.transact(|transaction| part.iter().try_for_each(|key| transaction.put(&table, key, key)))
                .unwrap();
        }
        let snapshot = db.snapshot().unwrap();
        db.delete(&table, &keys[3]).unwrap();
        for (low, high) in [(0, keys.len() - 1), (5, 900), (PAGE_RECORDS, 2 * PAGE_RECORDS)] {
            let range = (Bound::Included(&keys[low][..]), Bound::Excluded(&keys[high][..]));
            let scan = |direction| -> Vec<Vec<u8>> {
                snapshot.scan(&table, range, direction).map(|record| record.unwrap().0).collect()
            };
            assert_eq!(scan(Direction::Forward), &keys[low..high]);
            let mut backward = scan(Direction::Backward);
            backward.reverse();
            assert_eq!(backward, &keys[low..high]);
        }
        let wanted: Vec<&[u8]> = [3, 900, 17].iter().map(|place| &keys[*place][..]).collect();
        let expected: Vec<Option<Vec<u8>>> = wanted.iter().map(|key| Some(key.to_vec())).collect();
        assert_eq!(snapshot.get_many(&table, &wanted).unwrap(), expected);
        assert_eq!(db.get_many(&table, &wanted).unwrap()[..2], [None, expected[1].clone()]);
    }
}

#[test]
fn a_limit_gives_the_first_records_and_reads_no_more() {
    let db = Db::create(vec![mem()], options()).unwrap();
    let table = db.create_table("records").unwrap();
    db.bulk_load(&table, (0..1000u32).map(|number| (number.to_be_bytes().to_vec(), vec![0; 900]))).unwrap();
    let all = (Bound::Unbounded, Bound::Unbounded);
    let snapshot = db.snapshot().unwrap();
    let requests = || {
        let pool = db.statistics().unwrap()[0].pool;
        pool.hits + pool.misses
    };
    let before = requests();
    let found: Vec<Vec<u8>> =
        snapshot.scan(&table, all, Direction::Backward).limit(3).map(|record| record.unwrap().0).collect();
    assert_eq!(found, [999u32, 998, 997].map(|number| number.to_be_bytes().to_vec()));
    // A leaf has four records, and the tree has three levels, so a scan of three records reads few pages.
    assert!(requests() - before <= 4 * 3, "{} pages for three records", requests() - before);
    assert_eq!(snapshot.scan(&table, all, Direction::Forward).limit(0).count(), 0);
}

#[test]
fn a_scan_without_a_snapshot_sees_one_state_of_each_shard() {
    for shards in [1, 3] {
        let db = Db::create((0..shards).map(|_| mem()).collect(), options()).unwrap();
        let table = db.create_table("records").unwrap();
        let records = 8 * PAGE_RECORDS as u32;
        db.bulk_load(&table, (0..records).map(|number| (number.to_be_bytes().to_vec(), vec![0; 8]))).unwrap();
        let all = (Bound::Unbounded, Bound::Unbounded);
        let mut scan = db.scan(&table, all, Direction::Forward);
        let mut expected = 0u32;
        while let Some(row) = scan.next_row() {
            let (key, value) = row.unwrap();
            assert_eq!((key, value), (&expected.to_be_bytes()[..], &[0; 8][..]));
            if expected == 0 {
                db.delete(&table, &(records - 1).to_be_bytes()).unwrap();
                db.put(&table, &(records - 2).to_be_bytes(), &[1; 8]).unwrap();
            }
            expected += 1;
        }
        assert_eq!(expected, records, "{shards} shards");
        drop(scan);
        // A scan of few records needs no snapshot, and sees the newest state.
        let last = db.scan(&table, all, Direction::Backward).limit(2).map(|record| record.unwrap().1);
        assert_eq!(last.collect::<Vec<_>>(), [vec![1; 8], vec![0; 8]], "{shards} shards");
    }
}

#[test]
fn a_bulk_load_fills_all_shards() {
    for shards in [1, 3] {
        let db = Db::create((0..shards).map(|_| mem()).collect(), options()).unwrap();
        let table = db.create_table("records").unwrap();
        // Some values are large, and the records are more than one transaction can hold.
        let value = |number: u32| vec![number as u8; if number % 50 == 7 { 5_000 } else { 100 }];
        let records = (0..5000u32).map(|number| (number.to_be_bytes().to_vec(), value(number)));
        assert_eq!(db.bulk_load(&table, records.clone()).unwrap(), 5000 * 104 + 100 * 4900);
        let all = (Bound::Unbounded, Bound::Unbounded);
        let snapshot = db.snapshot().unwrap();
        let found = snapshot.scan(&table, all, Direction::Forward).map(Result::unwrap);
        assert!(found.eq(records.clone()), "the records in order");
        let refused = db.bulk_load(&table, records);
        assert_eq!(refused, Err(Error::BulkLoad("the table is not empty")));
        db.put(&table, b"another", b"value").unwrap();
    }
}

#[test]
fn a_failed_bulk_load_leaves_nothing() {
    let db = Db::create(vec![MemDevice::new(2048, 4096, 64, Nanos::from_micros(10))], options()).unwrap();
    let table = db.create_table("records").unwrap();
    // Each attempt takes a third of the pages, so ten attempts succeed only if a failed one frees its pages.
    for _ in 0..10 {
        let numbers = (0..10_000u32).chain([0]);
        let records = numbers.map(|number| (number.to_be_bytes().to_vec(), vec![1; 100]));
        let refused = db.bulk_load(&table, records);
        assert_eq!(refused, Err(Error::BulkLoad("the keys are not in ascending order")));
        let all = (Bound::Unbounded, Bound::Unbounded);
        assert_eq!(db.snapshot().unwrap().scan(&table, all, Direction::Forward).count(), 0);
    }
    db.put(&table, b"key", b"value").unwrap();
    db.close().unwrap();
}

#[test]
fn an_index_leads_to_rows_of_all_shards() {
    let db = Db::create(vec![mem(), mem()], options()).unwrap();
    let table = db.create_table("people").unwrap();
    for number in 0..100u8 {
        db.put(&table, &[number], &[number % 7]).unwrap();
    }
    let extract = by_value();
    let index = db.create_index(&table, "by class", extract).unwrap();
    db.put(&table, &[200], &[5]).unwrap();
    db.delete(&table, &[5]).unwrap();
    let class = [5];
    let range = (Bound::Included(&class[..]), Bound::Included(&class[..]));
    let rows = db.snapshot().unwrap().index_scan(&index, range, Direction::Forward, 100).unwrap();
    let found: Vec<u8> = rows.iter().map(|row| row.key[0]).collect();
    let expected: Vec<u8> = (6..100).filter(|number| number % 7 == 5).chain([200]).collect();
    assert_eq!(found, expected);
    let last = db.snapshot().unwrap().index_scan(&index, range, Direction::Backward, 2).unwrap();
    assert_eq!(last.iter().map(|row| row.key[0]).collect::<Vec<u8>>(), [200, 96]);
}

/// A set of drives that keep their contents when they are opened again.
struct Drives(tempfile::TempDir);

impl Drives {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn open(&self, names: &[&str]) -> Vec<fulgurite_uring::PsyncDevice> {
        let open = |path: &Path| {
            let options = fulgurite_uring::DriveOptions { pages: Some(2048), ..Default::default() };
            fulgurite_uring::PsyncDevice::open(path, &options).unwrap()
        };
        names.iter().map(|name| open(&self.path(name))).collect()
    }
}

#[test]
fn shards_are_opened_together_and_in_order() {
    let drives = Drives(tempfile::tempdir().unwrap());
    let db = Db::create(drives.open(&["a", "b"]), options()).unwrap();
    let table = db.create_table("records").unwrap();
    for number in 0..200u32 {
        db.put(&table, &number.to_be_bytes(), b"value").unwrap();
    }
    db.close().unwrap();
    drop(db);
    let other = Db::create(drives.open(&["c", "d"]), options()).unwrap();
    other.close().unwrap();
    drop(other);
    for wrong in [&["a"][..], &["b"], &["b", "a"], &["a", "b", "c"], &["a", "d"]] {
        let refused = Db::open(drives.open(wrong), options()).err();
        assert!(matches!(refused, Some(Error::Options(_))), "{wrong:?}: {refused:?}");
    }
    let db = Db::open(drives.open(&["a", "b"]), options()).unwrap();
    let table = db.table("records").unwrap();
    for number in 0..200u32 {
        assert_eq!(db.get(&table, &number.to_be_bytes()).unwrap(), Some(b"value".to_vec()));
    }
    assert_eq!(db.table("nothing").err(), Some(Error::NoTable("nothing".to_owned())));
}

/// The rule: a device that is bound to one thread is refused by the handle for threads, but can be opened as
/// a plain store.
#[test]
#[cfg(target_os = "linux")]
fn a_device_of_one_thread_is_refused() {
    use fulgurite_uring::{DriveOptions, OpenError, UringDevice};
    let drives = Drives(tempfile::tempdir().unwrap());
    let options_of_drive = DriveOptions { pages: Some(2048), ..DriveOptions::default() };
    match UringDevice::open(&drives.path("a"), &options_of_drive) {
        Err(OpenError::NoUring(error)) => println!("skipped: io_uring cannot be used here: {error}"),
        drive => {
            let refused = Db::create(vec![drive.unwrap()], options()).err();
            assert!(matches!(refused, Some(Error::Options(_))), "{refused:?}");
        }
    }
}

/// The rule: a table or an index belongs to the handle that returned it and to the clones of this handle. Any
/// other store refuses it in every call, and reads and writes nothing: a similar store, one with another
/// number of shards, and the same store opened again.
#[test]
fn a_table_of_another_store_is_refused() {
    let made = |drives: Vec<MemDevice>| {
        let db = Db::create(drives, options()).unwrap();
        // The tables have other identifiers here than in the first store.
        let other = db.create_table("other").unwrap();
        db.put(&other, b"key", b"other").unwrap();
        let table = db.create_table("table").unwrap();
        let index = db.create_index(&table, "index", by_value()).unwrap();
        (db, table, index)
    };
    let first = Db::create(vec![mem()], options()).unwrap();
    let table = first.create_table("table").unwrap();
    let index = first.create_index(&table, "index", by_value()).unwrap();
    first.clone().put(&table, b"key", b"value").unwrap();
    for drives in [vec![mem()], vec![mem(), mem()]] {
        let (db, own, own_index) = made(drives);
        let all = (Bound::Unbounded, Bound::Unbounded);
        let refused = Some(Error::OtherStore);
        assert_eq!(db.put(&table, b"key", b"lost").err(), refused);
        assert_eq!(db.put_with(&table, b"key", b"lost", Durability::Relaxed).err(), refused);
        assert_eq!(db.delete(&table, b"key").err(), refused);
        assert_eq!(db.get(&table, b"key").err(), refused);
        assert_eq!(db.get_many(&table, &[b"key"]).err(), refused);
        assert_eq!(db.scan(&table, all, Direction::Forward).next().and_then(Result::err), refused);
        assert_eq!(db.create_index(&table, "second", by_value()).err(), refused);
        assert_eq!(db.bulk_load(&table, [(b"key".to_vec(), b"lost".to_vec())]).err(), refused);
        let snapshot = db.snapshot().unwrap();
        assert_eq!(snapshot.get(&table, b"key").err(), refused);
        assert_eq!(snapshot.get_many(&table, &[b"key"]).err(), refused);
        assert_eq!(snapshot.scan(&table, all, Direction::Backward).next().and_then(Result::err), refused);
        assert_eq!(snapshot.index_scan(&index, all, Direction::Forward, 1).err(), refused);
        let mut transaction = db.begin();
        assert_eq!(transaction.get(&table, b"key").err(), refused);
        assert_eq!(transaction.get_for_update(&table, b"key").err(), refused);
        assert_eq!(transaction.get_many(&table, &[b"key"]).err(), refused);
        assert_eq!(transaction.put(&table, b"key", b"lost").err(), refused);
        assert_eq!(transaction.delete(&table, b"key").err(), refused);
        assert_eq!(transaction.scan(&table, all, Direction::Forward).err(), refused);
        assert_eq!(transaction.index_rows(&index, all, Direction::Forward).err(), refused);
        assert_eq!(transaction.index_scan(&index, all, Direction::Forward, 1).err(), refused);
        assert_eq!(transaction.delete_range(&table, all).err(), refused);
        // The transaction can continue after the refused call.
        transaction.put(&own, b"key", b"own").unwrap();
        transaction.commit().unwrap();
        assert_eq!(db.get(&own, b"key").unwrap(), Some(b"own".to_vec()));
        let rows = db.snapshot().unwrap().index_scan(&own_index, all, Direction::Forward, 9).unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(db.get(&db.table("other").unwrap(), b"key").unwrap(), Some(b"other".to_vec()));
    }
    assert_eq!(first.get(&table, b"key").unwrap(), Some(b"value".to_vec()));
}

/// The rule: after reopening, tables must be looked up again, because a table of an earlier opening may
/// belong to another store on the same drive.
#[test]
fn a_table_of_an_earlier_opening_is_refused() {
    let drives = Drives(tempfile::tempdir().unwrap());
    let db = Db::create(drives.open(&["a"]), options()).unwrap();
    let table = db.create_table("table").unwrap();
    db.put(&table, b"key", b"value").unwrap();
    db.close().unwrap();
    drop(db);
    let db = Db::open(drives.open(&["a"]), options()).unwrap();
    assert_eq!(db.get(&table, b"key").err(), Some(Error::OtherStore));
    assert_eq!(db.get(&db.table("table").unwrap(), b"key").unwrap(), Some(b"value".to_vec()));
}

/// A drive on a file that loses power after a number of commands, which all drives share.
struct Dies {
    inner: fulgurite_uring::PsyncDevice,
    left: Arc<AtomicU64>,
}

impl Device for Dies {
    fn caps(&self) -> &Caps {
        self.inner.caps()
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        let left = self.left.load(Relaxed);
        if left == 0 {
            return Ok(());
        }
        self.left.store(left - 1, Relaxed);
        self.inner.submit(command)
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        if self.left.load(Relaxed) > 0 {
            self.inner.wait(deadline, completions);
        }
    }
}

/// The rule: a crash between two shards leaves a dropped or renamed table the same in all shards.
#[test]
fn a_crash_leaves_the_same_names_in_all_shards() {
    let folder = Drives(tempfile::tempdir().unwrap());
    let files = ["a", "b", "c"];
    let (mut dropped, mut renamed) = (0, 0);
    for commands in 0.. {
        for file in files {
            let _ = std::fs::remove_file(folder.path(file));
        }
        let db = Db::create(folder.open(&files), options()).unwrap();
        for name in ["old", "gone"] {
            let table = db.create_table(name).unwrap();
            db.create_index(&table, &format!("{name} by value"), by_value()).unwrap();
            for key in 0..40u8 {
                db.put(&table, &[key], b"value").unwrap();
            }
        }
        db.close().unwrap();
        drop(db);
        let left = Arc::new(AtomicU64::new(u64::MAX));
        let drives = folder.open(&files).into_iter().map(|inner| Dies { inner, left: Arc::clone(&left) });
        let db = Db::open(drives.collect(), options()).unwrap();
        // Some steps are enough to meet every shard.
        left.store(commands * 2, Relaxed);
        let outcome = db.rename_table("old", "new").and_then(|()| db.drop_table("gone"));
        left.store(0, Relaxed);
        drop(db);
        let db = Db::open(folder.open(&files), options()).unwrap();
        let names = db.tables().unwrap();
        for name in &names {
            let table = db.table(name).unwrap();
            let rows = db.scan(&table, (Bound::Unbounded, Bound::Unbounded), Direction::Forward).count();
            assert_eq!(rows, 40, "{name} after {commands}");
        }
        dropped += usize::from(!names.contains(&"gone".to_owned()));
        renamed += usize::from(names.contains(&"new".to_owned()));
        // Names that are free are free in all shards.
        let again = db.create_table("gone").unwrap();
        let rows = db.scan(&again, (Bound::Unbounded, Bound::Unbounded), Direction::Forward).count();
        assert_eq!(rows, if names.contains(&"gone".to_owned()) { 40 } else { 0 });
        db.close().unwrap();
        if outcome.is_ok() {
            assert!(names == ["new"]);
            assert!(dropped > 1 && renamed > dropped, "{dropped} and {renamed} of {commands}");
            return;
        }
    }
}

/// The rule: names are changed in all shards, and a handle of a dropped table gives a clear error.
#[test]
fn tables_are_dropped_and_renamed_in_all_shards() {
    for shards in [1, 3] {
        let db = Db::create((0..shards).map(|_| mem()).collect(), options()).unwrap();
        let table = db.create_table("old").unwrap();
        db.create_index(&table, "by value", by_value()).unwrap();
        (0..100u8).for_each(|key| db.put(&table, &[key], &[key]).unwrap());
        db.rename_table("old", "new").unwrap();
        db.rename_index("by value", "values").unwrap();
        assert_eq!(db.indexes(&table).unwrap(), ["values"]);
        assert_eq!(db.rename_table("old", "other"), Err(Error::NoTable("old".to_owned())));
        assert!(matches!(db.rename_table("new", "values"), Err(Error::Options(_))));
        assert_eq!(db.get(&table, &[7]).unwrap(), Some(vec![7]));
        db.drop_index("values").unwrap();
        assert!(db.indexes(&table).unwrap().is_empty());
        let old = db.snapshot().unwrap();
        db.drop_table("new").unwrap();
        assert!(db.tables().unwrap().is_empty());
        assert_eq!(db.drop_table("new"), Err(Error::NoTable("new".to_owned())));
        for outcome in [db.put(&table, &[1], &[2]), db.get(&table, &[1]).map(drop)] {
            assert_eq!(outcome, Err(Error::NoTable("new".to_owned())));
        }
        let everything = (Bound::Unbounded, Bound::Unbounded);
        assert_eq!(old.scan(&table, everything, Direction::Forward).count(), 100);
        drop(old);
        let table = db.create_table("new").unwrap();
        assert_eq!(db.scan(&table, everything, Direction::Forward).count(), 0);
        let refused = db.drop_table("fulgurite.shards");
        assert!(matches!(refused, Err(Error::Options(_))), "{refused:?}");
    }
}

/// The rule: a range is deleted in all shards, in many transactions or in one.
#[test]
fn a_range_is_deleted_in_all_shards() {
    for shards in [1, 3] {
        let db = Db::create((0..shards).map(|_| mem()).collect(), options()).unwrap();
        let table = db.create_table("records").unwrap();
        let key = |user: u32, number: u32| format!("user:{user}:{number:03}").into_bytes();
        for number in 0..300 {
            db.put_with(&table, &key(number % 3, number), b"x", Durability::Relaxed).unwrap();
        }
        let (one, two) = (prefix(b"user:1:"), prefix(b"user:2:"));
        assert_eq!(db.delete_range(&table, one.range()).unwrap(), 100);
        let at_once = db.transact(|transaction| transaction.delete_range(&table, two.range()));
        assert_eq!(at_once, Ok(100));
        let left = |prefix: &Prefix| db.scan(&table, prefix.range(), Direction::Forward).count();
        assert_eq!([left(&one), left(&two)], [0, 0]);
        assert_eq!(left(&prefix(b"user:0:")), 100);
    }
}

/// The rule: an iterator over an index gives every row of its range once, in the order of the index over all shards, in
/// both directions, however many rows have one index key.
#[test]
fn rows_of_an_index_come_in_order_and_lazily() {
    for shards in [1, 3] {
        let db = Db::create((0..shards).map(|_| mem()).collect(), options()).unwrap();
        let table = db.create_table("records").unwrap();
        let index = db.create_index(&table, "by value", by_value()).unwrap();
        let mut expected = Vec::new();
        for number in 0..3_000u32 {
            // A third of the rows have one value, with zero bytes.
            let value = if number % 3 == 0 { vec![1, 0, 0] } else { vec![(number % 7) as u8, 0] };
            db.put_with(&table, &number.to_be_bytes(), &value, Durability::Relaxed).unwrap();
            expected.push((value, number.to_be_bytes().to_vec()));
        }
        expected.sort_unstable();
        let (low, high) = ([1, 0], [5, 0]);
        let range = (Bound::Excluded(&low[..]), Bound::Included(&high[..]));
        expected.retain(|(value, _)| value[..] > low[..] && value[..] <= high[..]);
        let snapshot = db.snapshot().unwrap();
        db.delete(&table, &3u32.to_be_bytes()).unwrap();
        let pair = |row: Result<IndexRow, Error>| row.map(|row| (row.index_key, row.key)).unwrap();
        let forward: Vec<_> = snapshot.index_rows(&index, range, Direction::Forward).map(pair).collect();
        assert!(forward == expected, "{} rows of {}", forward.len(), expected.len());
        let mut backward: Vec<_> =
            snapshot.index_rows(&index, range, Direction::Backward).map(pair).collect();
        backward.reverse();
        assert!(backward == expected, "{} rows of {}", backward.len(), expected.len());
        let newest: Vec<_> = db.index_rows(&index, range, Direction::Forward).map(pair).collect();
        assert_eq!(newest.len(), expected.len() - 1);
        let some: Vec<_> =
            snapshot.index_rows(&index, range, Direction::Forward).limit(300).map(pair).collect();
        assert!(some == expected[..300]);
        let mut transaction = db.begin();
        let rows = transaction.index_rows(&index, range, Direction::Backward).unwrap().map(pair);
        assert!(rows.eq(newest.into_iter().rev()));
    }
}

/// The rule: an error of a closure is returned as it is, and undoes the transaction.
#[test]
fn an_error_of_a_closure_comes_back_as_it_is() {
    #[derive(Debug, PartialEq)]
    enum Own {
        Store(Error),
        Poor(u8),
    }
    impl From<Error> for Own {
        fn from(error: Error) -> Own {
            Own::Store(error)
        }
    }
    let db = Db::create(vec![mem()], options()).unwrap();
    let table = db.create_table("records").unwrap();
    let outcome: Result<(), Own> = db.transact(|transaction| {
        transaction.put(&table, b"a", b"1")?;
        transaction.get(&table, b"a")?;
        Err(Own::Poor(7))
    });
    assert_eq!(outcome, Err(Own::Poor(7)));
    assert_eq!(db.get(&table, b"a"), Ok(None));
    let outcome: Result<(), Own> =
        db.transact(|transaction| Ok(transaction.put(&table, &[0; 5_000], b"1")?));
    assert!(matches!(outcome, Err(Own::Store(Error::KeyTooLong { .. }))), "{outcome:?}");
}

/// The rule: a transaction that was aborted to resolve a deadlock is repeated, whatever error its closure makes of it.
#[test]
fn an_aborted_transaction_is_repeated_under_any_error() {
    #[derive(Debug, PartialEq)]
    struct Opaque;
    impl From<Error> for Opaque {
        fn from(_: Error) -> Opaque {
            Opaque
        }
    }
    let db = Db::create(vec![mem()], options()).unwrap();
    let table = db.create_table("records").unwrap();
    let tries = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    // Each reads the key before it writes, so two of them wait for each other.
                    let outcome: Result<(), Opaque> = db.transact(|transaction| {
                        tries.fetch_add(1, Relaxed);
                        let old = transaction.get(&table, b"count")?.map_or(0, |value| value[0]);
                        std::thread::yield_now();
                        Ok(transaction.put(&table, b"count", &[old + 1])?)
                    });
                    assert_eq!(outcome, Ok(()));
                }
            });
        }
    });
    assert_eq!(db.get(&table, b"count"), Ok(Some(vec![80])));
    assert!(tries.load(Relaxed) > 80, "no transaction was aborted");
}

/// The rule: a change of a record that depends on its value is not lost beside others.
#[test]
fn records_are_updated_and_swapped() {
    let db = Db::create(vec![mem(), mem()], options()).unwrap();
    let table = db.create_table("records").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let raise = |old: Option<&[u8]>| {
                        std::thread::yield_now();
                        Some(vec![old.map_or(0, |old| old[0]) + 1])
                    };
                    db.update(&table, b"count", raise).unwrap();
                }
            });
        }
    });
    assert_eq!(db.get(&table, b"count"), Ok(Some(vec![200])));
    let swap =
        |expected: Option<&[u8]>, new: Option<&[u8]>| db.compare_and_swap(&table, b"key", expected, new);
    assert_eq!(swap(Some(b"a"), Some(b"b")), Ok(false));
    assert_eq!(swap(None, Some(b"a")), Ok(true));
    assert_eq!(swap(None, Some(b"c")), Ok(false));
    assert_eq!(swap(Some(b"a"), Some(b"b")), Ok(true));
    assert_eq!(db.get(&table, b"key"), Ok(Some(b"b".to_vec())));
    assert_eq!(swap(Some(b"b"), None), Ok(true));
    assert_eq!(db.update(&table, b"key", |old| old.map(<[u8]>::to_vec)), Ok(None));
    assert_eq!(db.get(&table, b"key"), Ok(None));
}

/// The rule: a panic in the function of an index fails the call that needed it, and no other. Closing a store twice
/// does no harm.
#[test]
fn a_panic_of_an_index_function_fails_one_call() {
    let db = Db::create(vec![mem()], options()).unwrap();
    let table = db.create_table("records").unwrap();
    let picky: Extract = Arc::new(|_, value, keys| {
        keys.push(vec![1]);
        assert!(value != b"bad", "a bad value");
        keys.push(value.to_vec());
    });
    let index = db.create_index(&table, "picky", Arc::clone(&picky)).unwrap();
    let panicked = Error::IndexPanicked { index: "picky".to_owned() };
    db.put(&table, b"a", b"good").unwrap();
    assert_eq!(db.put(&table, b"b", b"bad"), Err(panicked.clone()));
    assert_eq!(db.put(&table, b"a", b"bad"), Err(panicked.clone()));
    let outcome = db.transact(|transaction| {
        transaction.put(&table, b"c", b"good")?;
        transaction.put(&table, b"d", b"bad")
    });
    assert_eq!(outcome, Err(panicked.clone()));
    db.put(&table, b"e", b"good").unwrap();
    let everything = (Bound::Unbounded, Bound::Unbounded);
    let keys: Vec<_> =
        db.scan(&table, everything, Direction::Forward).map(|record| record.unwrap().0).collect();
    assert_eq!(keys, [b"a", b"e"]);
    let rows = db.snapshot().unwrap().index_scan(&index, everything, Direction::Forward, 10);
    assert_eq!(rows.unwrap().len(), 4);
    // The function of an index that is made later meets the records of the table.
    let other = db.create_table("other").unwrap();
    db.put(&other, b"a", b"bad").unwrap();
    let refused = db.create_index(&other, "late", picky).map(drop);
    assert_eq!(refused, Err(Error::IndexPanicked { index: "late".to_owned() }));
    db.close().unwrap();
    db.close().unwrap();
    assert_eq!(db.get(&table, b"a"), Err(Error::Closed));
}
