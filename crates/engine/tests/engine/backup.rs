//! Tests backups during transactions: each backup opens, passes the check, and contains a prefix of the
//! commits.

use crate::common::{fill, mem, options, run};
use fulgurite_base::{Nanos, Prng};
use fulgurite_device::{Executor, Handle, IoError, MemDevice};
use fulgurite_engine::{
    BackupReport, Direction, Durability, Error, MemImage, Options, Sink, Store, StoreFuture, Table, restore,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;
/// The writes of a transaction. A delete has no value.
type Changes = Vec<(Vec<u8>, Option<Vec<u8>>)>;

const WRITERS: usize = 3;
/// The key of the record in which a transaction stores its number, and the number of commits that were
/// acknowledged before it began.
const LAST: &[u8] = b"\0last";

/// A client that writes to its own table, with the changes of every transaction that it has committed or
/// tried to commit. The first transaction has number 1.
struct Writer {
    issued: RefCell<Vec<Changes>>,
    acknowledged: Cell<usize>,
}

impl Writer {
    /// Returns the contents of the table after transaction `number`.
    fn state(&self, number: u64) -> Model {
        let mut state = Model::new();
        for (key, value) in self.issued.borrow()[..number as usize].iter().flatten() {
            match value {
                Some(value) => state.insert(key.clone(), value.clone()),
                None => state.remove(key),
            };
        }
        state
    }
}

fn writers() -> Rc<Vec<Writer>> {
    let writer = |_| Writer { issued: RefCell::default(), acknowledged: Cell::new(0) };
    Rc::new((0..WRITERS).map(writer).collect())
}

fn acknowledged(writers: &[Writer]) -> Vec<usize> {
    writers.iter().map(|writer| writer.acknowledged.get()).collect()
}

/// Commits transactions of a writer, one after the other, until `done`.
async fn work(store: Store, writers: Rc<Vec<Writer>>, own: usize, done: Rc<Cell<bool>>, seed: u64) {
    let table = store.table(&format!("table {own}")).await.unwrap();
    let mut prng = Prng::new(seed, &format!("writer {own}"));
    while !done.get() {
        let before: Vec<u8> = acknowledged(&writers).iter().flat_map(|count| count.to_be_bytes()).collect();
        let number = writers[own].issued.borrow().len() as u64 + 1;
        let transaction = store.begin();
        let note = [&number.to_be_bytes()[..], &before].concat();
        let mut put = vec![(LAST.to_vec(), Some(note))];
        for _ in 0..=prng.below(6) {
            let key = prng.below(300).to_be_bytes().to_vec();
            let len = if prng.below(30) == 0 { 9000 } else { prng.below(300) };
            let value = (prng.below(3) > 0).then(|| vec![number as u8; len as usize]);
            put.push((key, value));
        }
        for (key, value) in &put {
            match value {
                Some(value) => transaction.put(table, key, value).await.unwrap(),
                None => transaction.delete(table, key).await.unwrap(),
            }
        }
        writers[own].issued.borrow_mut().push(put);
        let durability = if prng.below(4) == 0 { Durability::Relaxed } else { Durability::Flush };
        transaction.commit_with(durability).await.unwrap();
        writers[own].acknowledged.set(number as usize);
    }
}

async fn contents(store: &Store, table: Table) -> Model {
    let all = (Bound::Unbounded, Bound::Unbounded);
    store.snapshot().scan(table, all, Direction::Forward).all().await.unwrap().into_iter().collect()
}

/// An image whose writes are slow.
struct Slow {
    image: MemImage,
    handle: Handle,
    pause: Nanos,
}

impl Sink for Slow {
    fn write<'a>(&'a self, at: u64, bytes: &'a [u8]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.handle.sleep_until(self.handle.now() + self.pause).await;
            self.image.write(at, bytes).await
        })
    }

    fn clear(&self, at: u64, bytes: u64) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.image.clear(at, bytes).await })
    }

    fn sync(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.image.sync().await })
    }
}

/// Opens an image and checks that it contains a valid state: at least the commits that were acknowledged
/// before the backup, at most those that were issued, and with each commit all earlier ones.
fn verify(image: &MemImage, writers: &Rc<Vec<Writer>>, before: Vec<usize>) {
    let executor = Executor::new(mem());
    let (image, writers) = (image.clone(), Rc::clone(writers));
    run(&executor, |handle| async move {
        restore(&image, handle.clone()).await.unwrap();
        let store = Store::open(handle, options()).await.unwrap();
        let mut found = Vec::new();
        let mut came_after = Vec::new();
        for own in 0..WRITERS {
            let table = store.table(&format!("table {own}")).await.unwrap();
            let state = contents(&store, table).await;
            let note = state.get(LAST).cloned();
            let number = note.as_ref().map_or(0, |note| u64::from_be_bytes(note[..8].try_into().unwrap()));
            assert!(number as usize <= writers[own].issued.borrow().len(), "never issued");
            assert!(state == writers[own].state(number), "not the state after commit {number}");
            assert!(number as usize >= before[own], "commit {} was acknowledged", before[own]);
            found.push(number);
            came_after.extend(note);
        }
        for note in came_after {
            for (known, number) in note[8..].chunks(8).zip(&found) {
                let known = u64::from_be_bytes(known.try_into().unwrap());
                assert!(known <= *number, "a commit is there and one that it came after is not");
            }
        }
        let report = store.check().await.unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        // The image can be used like any other store.
        fill(&store, "later", (0..50u32).map(|n| (n.to_be_bytes().to_vec(), vec![1; 100]))).await;
        store.close().await.unwrap();
    });
}

/// Makes backups one after the other while writers work. Returns the reports.
fn check(options: Options, seed: u64, pause: u64, backups: usize) -> Vec<Result<BackupReport, Error>> {
    let executor = Executor::new(mem());
    let writers = writers();
    run(&executor, |handle| async move {
        let store = Store::create(handle.clone(), options).await.unwrap();
        let done = Rc::new(Cell::new(false));
        for own in 0..WRITERS {
            store.create_table(&format!("table {own}")).await.unwrap();
            handle.spawn(work(store.clone(), Rc::clone(&writers), own, Rc::clone(&done), seed));
        }
        let mut reports = Vec::new();
        // All backups use the same image, so that remains of an older backup would be found.
        let image = MemImage::default();
        for _ in 0..backups {
            handle.sleep_until(handle.now() + Nanos::from_micros(30_000)).await;
            let before = acknowledged(&writers);
            let sink =
                Slow { image: image.clone(), handle: handle.clone(), pause: Nanos::from_micros(pause) };
            let report = store.backup(&sink).await;
            if report.is_ok() {
                verify(&image, &writers, before);
            }
            reports.push(report);
        }
        done.set(true);
        reports
    })
}

#[test]
fn a_backup_during_transactions_holds_a_prefix_of_the_commits() {
    for seed in 0..3 {
        let reports = check(options(), seed, 20, 4);
        assert!(
            reports.iter().all(|report| matches!(report, Ok(BackupReport { passes: 1.., .. }))),
            "{reports:?}"
        );
    }
}

#[test]
fn an_overtaken_backup_copies_changed_pages_again() {
    let small = Options { log_bytes: 256 * 4096, ..options() };
    let reports = check(small, 9, 20, 3);
    let passes =
        |report: &Result<BackupReport, Error>| matches!(report, Ok(BackupReport { passes: 2.., .. }));
    assert!(reports.iter().any(passes), "{reports:?}");
}

#[test]
fn a_backup_that_is_always_overtaken_fails_and_delays_no_commit() {
    let small = Options { log_bytes: 256 * 4096, ..options() };
    let reports = check(small, 3, 300, 1);
    assert_eq!(reports, [Err(Error::BackupOvertaken { passes: 16 })]);
}

#[test]
fn a_bulk_load_during_a_backup_is_in_it_whole_or_not_at_all() {
    for wait in 0..12 {
        let executor = Executor::new(mem());
        let image = MemImage::default();
        let target = image.clone();
        run(&executor, |handle| async move {
            let store = Store::create(handle.clone(), options()).await.unwrap();
            fill(&store, "base", (0..2000u32).map(|n| (n.to_be_bytes().to_vec(), vec![2; 200]))).await;
            let table = store.create_table("loaded").await.unwrap();
            let other = store.clone();
            let own = handle.clone();
            handle.spawn(async move {
                own.sleep_until(own.now() + Nanos::from_micros(wait * 700)).await;
                other
                    .bulk_load(table, (0..3000u32).map(|n| (n.to_be_bytes().to_vec(), vec![3; 100])))
                    .await
                    .unwrap();
            });
            let sink = Slow { image: target, handle, pause: Nanos::from_micros(100) };
            store.backup(&sink).await.unwrap();
        });
        let copy = Executor::new(mem());
        let records = run(&copy, |handle| async move {
            restore(&image, handle.clone()).await.unwrap();
            let store = Store::open(handle, options()).await.unwrap();
            let report = store.check().await.unwrap();
            assert!(report.problems.is_empty(), "{:?}", report.problems);
            contents(&store, store.table("loaded").await.unwrap()).await.len()
        });
        assert!(records == 0 || records == 3000, "{records}");
    }
}

/// The rule: a page that is freed during a backup keeps its contents until the end, because the backup may still copy
/// it. A table that is freed in parts leaves no page that looks damaged.
#[test]
fn a_backup_copies_pages_that_are_freed_meanwhile() {
    for place in ["in-place", "out-of-place:unit=1KiB"] {
        let rows = |count: u32| (0..count).map(|n| (n.to_be_bytes().to_vec(), vec![2; 400]));
        let (executor, image) = (Executor::new(mem()), MemImage::default());
        let target = image.clone();
        run(&executor, |handle| async move {
            let options = Options { place: place.parse().unwrap(), ..options() };
            let store = Store::create(handle.clone(), options).await.unwrap();
            fill(&store, "kept", rows(500)).await;
            fill(&store, "dropped", rows(4000)).await;
            store.checkpoint().await.unwrap();
            let (other, own) = (store.clone(), handle.clone());
            handle.spawn(async move {
                own.sleep_until(own.now() + Nanos::from_micros(2_000)).await;
                other.drop_table("dropped").await.unwrap();
                // The second checkpoint makes both redo points pass the drop.
                other.checkpoint().await.unwrap();
                fill(&other, "kept", rows(10)).await;
                other.checkpoint().await.unwrap();
            });
            let sink = Slow { image: target, handle, pause: Nanos::from_micros(3_000) };
            store.backup(&sink).await.unwrap();
            assert_eq!(store.tables().await.unwrap().len(), 1, "the table was dropped meanwhile");
        });
        let copy = Executor::new(mem());
        let records = run(&copy, |handle| async move {
            restore(&image, handle.clone()).await.unwrap();
            let store = Store::open(handle, options()).await.unwrap();
            assert_eq!(store.check().await.unwrap().problems, []);
            contents(&store, store.table("kept").await.unwrap()).await.len()
        });
        assert_eq!(records, 500);
    }
}

#[test]
fn an_interrupted_backup_is_no_store_and_a_closed_store_makes_none() {
    let executor = Executor::new(mem());
    let image = MemImage::default();
    let target = image.clone();
    run(&executor, |handle| async move {
        let store = Store::create(handle, options()).await.unwrap();
        store.backup(&target).await.unwrap();
        // Drops a backup before its end: the image no longer contains a store.
        {
            let sink = Slow { image: target.clone(), handle: store.handle().clone(), pause: Nanos(1000) };
            let mut backup = Box::pin(store.backup(&sink));
            std::future::poll_fn(|context| {
                let _ = backup.as_mut().poll(context);
                std::task::Poll::Ready(())
            })
            .await;
        }
        store.checkpoint().await.unwrap();
        store.close().await.unwrap();
        assert_eq!(store.backup(&target).await, Err(Error::Closed));
    });
    let copy = Executor::new(mem());
    let opened = run(&copy, |handle| async move {
        restore(&image, handle.clone()).await.unwrap();
        Store::open(handle, options()).await.map(drop)
    });
    assert_eq!(opened, Err(Error::NotAStore));
}

/// An image on a drive with pages of 16 KiB, which writes whole pages only.
struct LargePages(MemImage);

const LARGE_PAGE: u64 = 16 << 10;

impl LargePages {
    fn whole(at: u64, bytes: u64) -> Result<(), Error> {
        let is_whole = at.is_multiple_of(LARGE_PAGE) && bytes.is_multiple_of(LARGE_PAGE);
        is_whole.then_some(()).ok_or(Error::Io(IoError::Invalid))
    }
}

impl Sink for LargePages {
    fn write<'a>(&'a self, at: u64, bytes: &'a [u8]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            LargePages::whole(at, bytes.len() as u64)?;
            self.0.write(at, bytes).await
        })
    }

    fn clear(&self, at: u64, bytes: u64) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            LargePages::whole(at, bytes)?;
            self.0.clear(at, bytes).await
        })
    }

    fn sync(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.0.sync().await })
    }
}

#[test]
fn a_backup_can_be_written_to_a_drive_with_large_pages() {
    let drive = || Executor::new(MemDevice::new(2048, LARGE_PAGE as u32, 64, Nanos::from_micros(10)));
    let options = Options { memory_bytes: 4 << 20, page_bytes: LARGE_PAGE as u32, ..options() };
    let image = MemImage::default();
    let (target, own) = (LargePages(image.clone()), options.clone());
    run(&drive(), |handle| async move {
        let store = Store::create(handle, own).await.unwrap();
        fill(&store, "base", (0..500u32).map(|n| (n.to_be_bytes().to_vec(), vec![2; 200]))).await;
        store.backup(&target).await.unwrap();
    });
    run(&drive(), |handle| async move {
        restore(&image, handle.clone()).await.unwrap();
        let store = Store::open(handle, options).await.unwrap();
        assert_eq!(contents(&store, store.table("base").await.unwrap()).await.len(), 500);
        assert_eq!(store.check().await.unwrap().problems, []);
    });
}
