//! Tests a hundred threads on one handle: on a drive in memory, on a file through io_uring, and on several
//! shards. All of them finish, none starves, and the invariants of transactions hold.

use fulgurite_base::{Nanos, Prng};
use fulgurite_device::{Caps, Command, Completion, Device, Fault, FaultDevice, MemDevice, QueueFull};
use fulgurite_engine::blocking::{Db, Table};
use fulgurite_engine::{Direction, Durability, Error, Options};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

const THREADS: u64 = 100;
const ACCOUNTS: u64 = 500;
const EACH: i64 = 1000;

fn options() -> Options {
    // The memory is smaller than the data, so that threads wait for the drive as well.
    Options { memory_bytes: 1 << 20, log_bytes: 4 << 20, ..Options::default() }
}

fn mem() -> MemDevice {
    MemDevice::new(16_384, 4096, 64, Nanos::from_micros(10))
}

fn account(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn amount(value: &[u8]) -> i64 {
    i64::from_le_bytes(value[..8].try_into().unwrap())
}

/// Returns the value of an account, which takes a large part of a page.
fn value(amount: i64) -> Vec<u8> {
    let mut value = vec![0; 600];
    value[..8].copy_from_slice(&amount.to_le_bytes());
    value
}

fn fill(db: &Db) -> Table {
    let table = db.create_table("accounts").unwrap();
    for number in 0..ACCOUNTS {
        db.put_with(&table, &account(number), &value(EACH), Durability::Relaxed).unwrap();
    }
    table
}

/// Moves an amount between two accounts, which may be in two shards. Returns how often the transaction was aborted
/// before it committed.
fn transfer(db: &Db, table: &Table, prng: &mut Prng) -> u64 {
    let from = account(prng.below(ACCOUNTS));
    let to = loop {
        let to = account(prng.below(ACCOUNTS));
        if to != from {
            break to;
        }
    };
    let moved = prng.below(10) as i64;
    let mut attempts = 0;
    db.transact(|transaction| {
        attempts += 1;
        // Shared locks are taken first, so that deadlocks happen.
        let left = amount(&transaction.get(table, &from)?.unwrap()) - moved;
        let right = amount(&transaction.get(table, &to)?.unwrap()) + moved;
        transaction.put(table, &from, &value(left))?;
        transaction.put(table, &to, &value(right))
    })
    .unwrap();
    attempts - 1
}

fn sum(db: &Db, table: &Table) -> i64 {
    let snapshot = db.snapshot().unwrap();
    let all = (Bound::Unbounded, Bound::Unbounded);
    snapshot.scan(table, all, Direction::Forward).map(|record| amount(&record.unwrap().1)).sum()
}

/// The number of operations of the slowest thread after which all threads stop.
const SHARE: u64 = 1_000;

/// The maximum time until then. A thread that starves exceeds it.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs a hundred threads that start together, until the slowest has done its share. Returns the number of
/// operations of the slowest and of the fastest.
fn crowd(db: &Db, table: &Table) -> (u64, u64) {
    let stop = AtomicBool::new(false);
    // The barrier waits for the threads and for the one that watches them.
    let start = Barrier::new(THREADS as usize + 1);
    let done: Vec<AtomicU64> = (0..THREADS).map(|_| AtomicU64::new(0)).collect();
    let deadlocks = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (stop, start, done, deadlocks) = (&stop, &start, &done, &deadlocks);
            scope.spawn(move || {
                let mut prng = Prng::new(thread, "threads");
                start.wait();
                while !stop.load(Ordering::Relaxed) {
                    match prng.below(10) {
                        0 => drop(deadlocks.fetch_add(transfer(db, table, &mut prng), Ordering::Relaxed)),
                        1 => {
                            let own = [&b"own"[..], &thread.to_be_bytes()].concat();
                            db.put(table, &own, &value(0)).unwrap();
                            assert_eq!(
                                db.get(table, &own).unwrap(),
                                Some(value(0)),
                                "one's own commit is seen"
                            );
                        }
                        _ => drop(db.get(table, &account(prng.below(ACCOUNTS))).unwrap().unwrap()),
                    }
                    done[thread as usize].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        start.wait();
        let patience = Instant::now() + PATIENCE;
        while done.iter().any(|done| done.load(Ordering::Relaxed) < SHARE) && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Ordering::Relaxed);
    });
    let done: Vec<u64> = done.into_iter().map(AtomicU64::into_inner).collect();
    let (least, most) = (*done.iter().min().unwrap(), *done.iter().max().unwrap());
    println!(
        "{} operations, {least} to {most} a thread, {} deadlocks",
        done.iter().sum::<u64>(),
        deadlocks.into_inner()
    );
    assert_eq!(sum(db, table), ACCOUNTS as i64 * EACH);
    (least, most)
}

/// Checks that no thread starves: the slowest has done its share while all others continued. The lead of the
/// fastest says nothing about the store, because a thread that has a core for 10 ms reads 16,000 times from
/// memory.
fn nobody_starves((least, most): (u64, u64)) {
    assert!(least >= SHARE, "{least} and {most}");
}

#[test]
fn a_hundred_threads_on_a_drive_in_memory() {
    let db = Db::create(vec![mem()], options()).unwrap();
    let table = fill(&db);
    nobody_starves(crowd(&db, &table));
    assert_eq!(db.statistics().unwrap()[0].locks, 0, "no transaction is left");
    db.close().unwrap();
    assert_eq!(db.get(&table, &account(0)), Err(Error::Closed));
}

#[test]
#[cfg(target_os = "linux")]
fn a_hundred_threads_on_a_file() {
    use fulgurite_uring::{DriveOptions, OpenError, UringDevice};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let drive = || {
        UringDevice::open(
            &path,
            &DriveOptions { pages: Some(16_384), many_threads: true, ..DriveOptions::default() },
        )
    };
    let first = match drive() {
        Err(OpenError::NoUring(error)) => return println!("skipped: io_uring cannot be used here: {error}"),
        first => first.unwrap(),
    };
    let db = Db::create(vec![first], options()).unwrap();
    let keepers: Vec<_> =
        db.keepers().into_iter().map(|keeper| std::thread::spawn(|| keeper.run())).collect();
    let table = fill(&db);
    nobody_starves(crowd(&db, &table));
    // The handle is dropped without a close: calls in progress are completed, and the rest is recovered.
    drop(db);
    keepers.into_iter().for_each(|keeper| keeper.join().unwrap());
    let db = Db::open(vec![drive().unwrap()], options()).unwrap();
    let table = db.table("accounts").unwrap();
    assert_eq!(sum(&db, &table), ACCOUNTS as i64 * EACH);
    db.close().unwrap();
}

#[test]
fn a_hundred_threads_on_three_shards() {
    let db = Db::create(vec![mem(), mem(), mem()], options()).unwrap();
    let table = fill(&db);
    nobody_starves(crowd(&db, &table));
}

/// The rule: a keeper writes a relaxed commit within its window without any call.
#[test]
#[cfg(target_os = "linux")]
fn a_keeper_writes_relaxed_commits() {
    use fulgurite_uring::{DriveOptions, OpenError, UringDevice};
    let folder = tempfile::tempdir().unwrap();
    let drive = DriveOptions { pages: Some(16_384), many_threads: true, ..DriveOptions::default() };
    let drive = match UringDevice::open(&folder.path().join("store"), &drive) {
        Err(OpenError::NoUring(error)) => return println!("skipped: io_uring cannot be used here: {error}"),
        drive => drive.unwrap(),
    };
    let db = Db::create(vec![drive], options()).unwrap();
    let keepers: Vec<_> =
        db.keepers().into_iter().map(|keeper| std::thread::spawn(|| keeper.run())).collect();
    let table = db.create_table("records").unwrap();
    let before = db.statistics().unwrap()[0].log_flushes;
    db.put_with(&table, b"key", b"value", Durability::Relaxed).unwrap();
    let patience = Instant::now() + Duration::from_secs(20);
    while db.statistics().unwrap()[0].log_flushes == before {
        assert!(Instant::now() < patience, "the commit was not written");
        std::thread::sleep(Duration::from_millis(5));
    }
    db.close().unwrap();
    keepers.into_iter().for_each(|keeper| keeper.join().unwrap());
}

/// The rule: if a device loses a completion, every call ends with an error instead of waiting forever. The
/// lost command is a write of the log or, if the schedule of threads leads to this, of a page. In the latter
/// case a checkpoint cannot free log space, and no other checkpoint is started.
#[test]
fn a_device_that_loses_a_completion_stops_the_shard() {
    let lossy = FaultDevice::new(mem(), vec![Fault::LoseCompletion(400)]);
    let db = Db::create(vec![lossy], options()).unwrap();
    let table = db.create_table("records").unwrap();
    let failed = Arc::new(AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let (db, table, failed) = (&db, &table, Arc::clone(&failed));
            scope.spawn(move || {
                // The records are more than fits into the log.
                for step in 0..2_000u64 {
                    if let Err(error) = db.put(table, &(thread << 32 | step).to_be_bytes(), &[1; 500]) {
                        assert!(matches!(error, Error::Fatal(_)), "{error}");
                        failed.fetch_add(1, Ordering::Relaxed);
                        return;
                    }
                }
            });
        }
    });
    assert_eq!(failed.load(Ordering::Relaxed), 8, "every thread is told");
}

/// A drive that panics at the next command when it is told to.
struct Panics {
    inner: MemDevice,
    is_told: Arc<AtomicBool>,
}

impl Device for Panics {
    fn caps(&self) -> &Caps {
        self.inner.caps()
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        assert!(!self.is_told.load(Ordering::Relaxed), "a fault of the drive");
        self.inner.submit(command)
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        self.inner.wait(deadline, completions);
    }
}

/// The rule: a panic inside a shard is propagated to its caller. The other threads get an error that says that the
/// shard has stopped.
#[test]
fn a_panic_inside_is_reported_to_other_threads() {
    let is_told = Arc::new(AtomicBool::new(false));
    let db = Db::create(vec![Panics { inner: mem(), is_told: Arc::clone(&is_told) }], options()).unwrap();
    let table = db.create_table("records").unwrap();
    db.put(&table, b"good", b"").unwrap();
    is_told.store(true, Ordering::Relaxed);
    let panicked = std::thread::scope(|scope| scope.spawn(|| db.put(&table, b"bad", b"")).join());
    assert!(panicked.is_err());
    assert!(matches!(db.get(&table, b"good"), Err(Error::Fatal(_))));
}

/// The rule: transactions that abort each other are repeated one after the other. All read the same keys, and
/// write one of them only when all have read, so most first attempts are aborted. Only one is repeated at a time,
/// so it is aborted again only by the write of an older first attempt, and each of these writes once. So there
/// are at most three attempts for each transaction on average, however many there are. The keys are one key, or a
/// range into which each inserts a key.
#[test]
fn aborted_transactions_are_repeated_in_turn() {
    const CROWD: u64 = 32;
    for is_range in [false, true] {
        let db = Db::create(vec![mem()], options()).unwrap();
        let table = db.create_table("contended").unwrap();
        let have_read = Barrier::new(CROWD as usize);
        let attempts: u64 = std::thread::scope(|scope| {
            let attempts = (0..CROWD).map(|thread| {
                let (db, table, have_read) = (&db, &table, &have_read);
                scope.spawn(move || {
                    let mut attempts = 0;
                    db.transact(|transaction| {
                        attempts += 1;
                        let all = (Bound::Unbounded, Bound::Unbounded);
                        let count = match is_range {
                            true => transaction.scan(table, all, Direction::Forward)?.count() as u64,
                            false => {
                                transaction.get(table, &account(0))?.map_or(0, |value| amount(&value) as u64)
                            }
                        };
                        if attempts == 1 {
                            have_read.wait();
                        }
                        let key = if is_range { thread } else { 0 };
                        transaction.put(table, &account(key), &value(count as i64 + 1))
                    })
                    .unwrap();
                    attempts
                })
            });
            // All threads are started before the first is waited for.
            let attempts: Vec<_> = attempts.collect();
            attempts.into_iter().map(|attempts| attempts.join().unwrap()).sum()
        });
        assert!(attempts <= 3 * CROWD, "{attempts} attempts of {CROWD}, over a range: {is_range}");
        let counts = db.scan(&table, (Bound::Unbounded, Bound::Unbounded), Direction::Forward);
        let last = counts.map(|record| amount(&record.unwrap().1)).max();
        assert_eq!(last, Some(CROWD as i64), "every transaction has seen the ones before it");
        assert_eq!(db.statistics().unwrap()[0].locks, 0);
        db.close().unwrap();
    }
}
