//! Tests the cancellation of calls: a thread that waits for long is asked whether to continue. If it does not
//! want to, its call ends without any effect.

use fulgurite_base::Nanos;
use fulgurite_device::{Device, MemDevice};
use fulgurite_engine::blocking::{Db, Table};
use fulgurite_engine::{Direction, Error, Options};
use fulgurite_uring::{DriveOptions, PsyncDevice};
use std::ops::Bound::Unbounded;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

fn with_a_table<D: Device + Send + 'static>(drive: D) -> (Db, Table) {
    let options = Options { memory_bytes: 1 << 20, log_bytes: 4 << 20, ..Options::default() };
    let db = Db::create(vec![drive], options).unwrap();
    let table = db.create_table("records").unwrap();
    (db, table)
}

/// Returns a drive whose virtual clock stands still while threads wait for each other.
fn mem() -> MemDevice {
    MemDevice::new(16_384, 4096, 64, Nanos::from_micros(10))
}

fn file(folder: &tempfile::TempDir) -> PsyncDevice {
    let options = DriveOptions { pages: Some(16_384), many_threads: true, ..DriveOptions::default() };
    PsyncDevice::open(&folder.path().join("store"), &options).unwrap()
}

/// Returns a handle whose calls are cancelled at the third question, and the count of questions.
fn impatient(db: &Db) -> (Db, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    (db.asking(move || count.fetch_add(1, Relaxed) + 1 < 3), asked)
}

/// Tests that all calls that request a lock are cancelled while one transaction holds this lock.
fn given_up<D: Device + Send + 'static>(drive: D) {
    let (db, table) = with_a_table(drive);
    let mut holder = db.begin();
    holder.get_for_update(&table, b"held").unwrap();
    holder.put(&table, b"held", b"by the holder").unwrap();

    let (own, asked) = impatient(&db);
    assert_eq!(own.put(&table, b"held", b"by nobody"), Err(Error::GivenUp));
    assert_eq!(asked.load(Relaxed), 3, "asked until it says no");

    // A transaction can continue after a cancelled call.
    let (own, _) = impatient(&db);
    let mut transaction = own.begin();
    transaction.put(&table, b"free", b"kept").unwrap();
    assert_eq!(transaction.get_for_update(&table, b"held"), Err(Error::GivenUp));
    transaction.put(&table, b"free too", b"kept").unwrap();
    transaction.commit().unwrap();

    holder.commit().unwrap();
    assert_eq!(db.statistics().unwrap()[0].locks, 0, "who gave up has no lock and wants none");
    let (own, asked) = impatient(&db);
    for (key, value) in [(&b"held"[..], &b"by the holder"[..]), (b"free", b"kept"), (b"free too", b"kept")] {
        assert_eq!(own.get(&table, key).unwrap().as_deref(), Some(value));
    }
    own.put(&table, b"held", b"by me").unwrap();
    assert_eq!(asked.load(Relaxed), 0, "who does not wait for long is not asked");
    own.close().unwrap();
}

#[test]
fn a_call_that_waits_for_a_lock_is_cancelled() {
    given_up(mem());
    given_up(file(&tempfile::tempdir().unwrap()));
}

/// The rule: if one of the writes that are buffered in the handle of a transaction fails, none takes effect.
#[test]
fn a_failed_write_ends_its_transaction() {
    let (db, table) = with_a_table(mem());
    let mut holder = db.begin();
    holder.get_for_update(&table, b"held").unwrap();

    let (own, _) = impatient(&db);
    let mut transaction = own.begin();
    transaction.put(&table, b"free", b"lost").unwrap();
    transaction.put(&table, b"held", b"never").unwrap();
    assert_eq!(transaction.get(&table, b"other"), Err(Error::GivenUp), "its writes come before its read");
    assert_eq!(transaction.put(&table, b"free too", b"lost"), Err(Error::GivenUp));
    assert_eq!(transaction.commit(), Err(Error::GivenUp));
    drop(holder);
    assert_eq!(db.scan(&table, (Unbounded, Unbounded), Direction::Forward).count(), 0);
    assert_eq!(db.statistics().unwrap()[0].locks, 0);
}

/// The rule: many writes that are sent to the shard in several batches are still one transaction. An error
/// that the handle can detect is returned at once.
#[test]
fn many_writes_are_one_transaction() {
    let (db, table) = with_a_table(mem());
    let mut transaction = db.begin();
    let key = |number: u32| number.to_be_bytes();
    for number in 0..1000 {
        transaction.put(&table, &key(number), b"first").unwrap();
    }
    assert_eq!(db.get(&table, &key(0)), Ok(None), "nobody else sees it");
    assert_eq!(transaction.get(&table, &key(999)).unwrap().as_deref(), Some(&b"first"[..]));
    for number in 0..500 {
        transaction.put(&table, &key(number), b"second").unwrap();
        transaction.delete(&table, &key(number)).unwrap();
    }
    let outcome = transaction.put(&table, &[0; 5000], b"");
    assert!(matches!(outcome, Err(Error::KeyTooLong { bytes: 5000, .. })), "{outcome:?}");
    transaction.commit().unwrap();
    let found = db.scan(&table, (Unbounded, Unbounded), Direction::Forward);
    let keys: Vec<Vec<u8>> = found.map(|record| record.unwrap().0.to_vec()).collect();
    let expected: Vec<Vec<u8>> = (500..1000).map(|number| key(number).to_vec()).collect();
    assert_eq!(keys, expected);
}

/// Tests that a thread which waits for a lock is asked even if it drives the shard for others.
fn given_up_beside_others<D: Device + Send + 'static>(drive: D) {
    let (db, table) = with_a_table(drive);
    let mut holder = db.begin();
    holder.get_for_update(&table, b"held").unwrap();
    holder.put(&table, b"held", b"").unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let (db, table, stop) = (&db, &table, &stop);
            scope.spawn(move || {
                while !stop.load(Relaxed) {
                    db.put(table, &[thread], b"").unwrap();
                }
            });
        }
        let (own, _) = impatient(&db);
        let began = Instant::now();
        let outcome = own.put(&table, b"held", b"");
        stop.store(true, Relaxed);
        assert_eq!(outcome, Err(Error::GivenUp));
        assert!(began.elapsed() < Duration::from_secs(5), "asked after {:?}", began.elapsed());
    });
    drop(holder);
    db.close().unwrap();
}

#[test]
fn a_call_is_cancelled_while_others_work() {
    given_up_beside_others(mem());
    given_up_beside_others(file(&tempfile::tempdir().unwrap()));
}

/// The rule: a panic in the function that is asked cancels the call, and does not affect other threads.
#[test]
fn a_panic_in_the_question_cancels_the_call() {
    let (db, table) = with_a_table(mem());
    let mut holder = db.begin();
    holder.get_for_update(&table, b"held").unwrap();
    holder.put(&table, b"held", b"").unwrap();
    let own = db.asking(|| panic!("it does not say yes"));
    assert_eq!(own.put(&table, b"held", b""), Err(Error::GivenUp));
    holder.commit().unwrap();
    assert_eq!(db.get(&table, b"held").unwrap().as_deref(), Some(&b""[..]));
}
