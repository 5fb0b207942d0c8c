//! Tests indexes: entries that are too long, a small log, and limits of scans.

use crate::common::{all, mem, options, run};
use fulgurite_base::{Nanos, Prng};
use fulgurite_device::Executor;
use fulgurite_engine::{Direction, Error, Extract, Index, IndexRow, Options, Store, Table};
use std::cell::{Cell, RefCell};
use std::ops::Bound;
use std::rc::Rc;

const ALL: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);

/// Returns a function that extracts two index keys from each record: one byte, and the value.
fn short_and_value() -> Extract {
    Rc::new(|_, value, keys| keys.extend([vec![1], value.to_vec()]))
}

async fn is_sound(store: &Store) {
    let report = store.check().await.unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

async fn rows(store: &Store, index: Index) -> Vec<IndexRow> {
    store.snapshot().index_scan(index, ALL, Direction::Forward).all().await.unwrap()
}

/// The rule: a record that an index refuses leaves nothing in the transaction, which may be committed without
/// it.
#[test]
fn a_record_that_an_index_refuses_leaves_no_entry() {
    run(&Executor::new(mem()), |handle| async move {
        let store = Store::create(handle, options()).await.unwrap();
        let table = store.create_table("table").await.unwrap();
        let index = store.create_index(table, "index", short_and_value()).await.unwrap();
        let transaction = store.begin();
        transaction.put(table, b"a", b"short").await.unwrap();
        let refused = transaction.put(table, b"b", &[7; 600]).await;
        assert!(matches!(refused, Err(Error::KeyTooLong { .. })), "{refused:?}");
        transaction.commit().await.unwrap();
        assert_eq!(rows(&store, index).await.len(), 2);
        assert_eq!(store.snapshot().get(table, b"b").await.unwrap(), None);
        is_sound(&store).await;
    });
}

/// The rule: a snapshot that is older than an index says so, and does not find nothing.
#[test]
fn a_snapshot_that_is_older_than_an_index_is_refused() {
    run(&Executor::new(mem()), |handle| async move {
        let store = Store::create(handle, options()).await.unwrap();
        let table = store.create_table("table").await.unwrap();
        let transaction = store.begin();
        transaction.put(table, b"a", b"value").await.unwrap();
        transaction.commit().await.unwrap();
        let old = store.snapshot();
        let index = store.create_index(table, "index", short_and_value()).await.unwrap();
        let found = old.index_scan(index, ALL, Direction::Forward).all().await;
        assert_eq!(found, Err(Error::SnapshotTooOld));
        assert_eq!(
            old.get(table, b"a").await.unwrap().as_deref(),
            Some(&b"value"[..]),
            "the table is readable"
        );
        assert_eq!(rows(&store, index).await.len(), 2);
    });
}

/// Puts two random records in each transaction until it is told to stop, and repeats a transaction that was
/// aborted to resolve a deadlock. Returns the number of commits.
async fn write_until(store: Store, table: Table, seed: u64, stop: Rc<Cell<bool>>) -> Result<u64, Error> {
    let (mut prng, mut commits) = (Prng::new(seed, "writers"), 0);
    while !stop.get() {
        let transaction = store.begin();
        let mut outcome = Ok(());
        for _ in 0..2 {
            let (key, byte) = (prng.below(300) as u32, prng.below(200) as u8 + 2);
            outcome = match prng.below(4) {
                0 => transaction.delete(table, &key.to_be_bytes()).await,
                _ => transaction.put(table, &key.to_be_bytes(), &[byte; 100]).await,
            };
            if outcome.is_err() {
                break;
            }
        }
        if outcome.is_ok() {
            outcome = transaction.commit().await;
        }
        match outcome {
            Ok(()) => commits += 1,
            Err(Error::Deadlock) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(commits)
}

/// The rule: the writers of a table go on while an index is made, and the index is exact when the call returns.
#[test]
fn an_index_is_made_beside_writers() {
    run(&Executor::new(mem()), |handle| async move {
        // The old versions of many commits must fit, so that the snapshots below do not become too old.
        let roomy = Options { memory_bytes: 8 << 20, ..options() };
        let store = Store::create(handle.clone(), roomy).await.unwrap();
        let table = store.create_table("table").await.unwrap();
        let (stop, outcomes) = (Rc::new(Cell::new(false)), Rc::new(RefCell::new(Vec::new())));
        for seed in 0..8 {
            let (store, stop, outcomes) = (store.clone(), Rc::clone(&stop), Rc::clone(&outcomes));
            handle.spawn(async move {
                let outcome = write_until(store, table, seed, stop).await;
                outcomes.borrow_mut().push(outcome);
            });
        }
        let mut indexes = Vec::new();
        for number in 0..10 {
            handle.sleep_until(handle.now() + Nanos::from_micros(2_000)).await;
            let name = format!("index {number}");
            let index = store.create_index(table, &name, short_and_value()).await.unwrap();
            indexes.push(index);
            // The snapshot of this moment has the entries of every record, before the writers go on.
            let snapshot = store.snapshot();
            let records = snapshot.scan(table, ALL, Direction::Forward).all().await.unwrap().len();
            let found = snapshot.index_scan(index, ALL, Direction::Forward).all().await.unwrap().len();
            assert_eq!(found, 2 * records, "{name}");
        }
        stop.set(true);
        while outcomes.borrow().len() < 8 {
            handle.sleep_until(handle.now() + Nanos::from_micros(1_000)).await;
        }
        for outcome in outcomes.borrow().iter() {
            assert!(outcome.as_ref().is_ok_and(|commits| *commits > 100), "{outcome:?}");
        }
        let mut expected: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        for (key, value) in all(&store, "table").await.unwrap() {
            expected.extend([(vec![1], key.clone()), (value, key)]);
        }
        expected.sort_unstable();
        for index in indexes {
            let mut found: Vec<_> =
                rows(&store, index).await.into_iter().map(|row| (row.index_key, row.key)).collect();
            found.sort_unstable();
            assert!(found == expected, "{} entries, not {}", found.len(), expected.len());
        }
        is_sound(&store).await;
    });
}

/// The rule: a record that prevents an index from being created can be deleted, even after the store was
/// opened again.
#[test]
fn a_record_that_is_too_long_for_an_index_can_be_deleted() {
    let executor = Executor::new(mem());
    run(&executor, |handle| async move {
        let store = Store::create(handle, options()).await.unwrap();
        let table = store.create_table("table").await.unwrap();
        let transaction = store.begin();
        for (key, value) in [(b"a", &[1; 5][..]), (b"b", &[2; 600]), (b"c", &[3; 600])] {
            transaction.put(table, key, value).await.unwrap();
        }
        transaction.commit().await.unwrap();
        let refused = store.create_index(table, "index", short_and_value()).await;
        assert!(matches!(refused, Err(Error::KeyTooLong { .. })), "{refused:?}");
        store.close().await.unwrap();
    });
    run(&executor, |handle| async move {
        let store = Store::open(handle, options()).await.unwrap();
        let table = store.table("table").await.unwrap();
        store.create_index(table, "index", short_and_value()).await.unwrap_err();
        let transaction = store.begin();
        transaction.delete(table, b"b").await.unwrap();
        transaction.put(table, b"c", b"short").await.unwrap();
        transaction.commit().await.unwrap();
        let index = store.create_index(table, "index", short_and_value()).await.unwrap();
        let keys: Vec<Vec<u8>> = rows(&store, index).await.into_iter().map(|row| row.key).collect();
        assert_eq!(keys, [b"a", b"c", b"a", b"c"]);
        is_sound(&store).await;
    });
}

/// The rule: an index over records can be created if the log accepts the records one by one, however small
/// the log is.
#[test]
fn an_index_can_be_created_with_a_small_log() {
    run(&Executor::new(mem()), |handle| async move {
        let small = Options { log_bytes: 64 * 4096, ..options() };
        let store = Store::create(handle, small).await.unwrap();
        let table = store.create_table("table").await.unwrap();
        for number in 0..200u32 {
            let transaction = store.begin();
            transaction.put(table, &number.to_be_bytes(), &[number as u8 | 1; 400]).await.unwrap();
            transaction.commit().await.unwrap();
        }
        let index = store.create_index(table, "index", short_and_value()).await.unwrap();
        assert_eq!(rows(&store, index).await.len(), 400);
        is_sound(&store).await;
    });
}

/// The rule: the limit of a scan counts from its position, however much it has read ahead.
#[test]
fn a_limit_counts_rows_that_were_read_ahead() {
    run(&Executor::new(mem()), |handle| async move {
        let store = Store::create(handle, options()).await.unwrap();
        let table = store.create_table("table").await.unwrap();
        let index = store.create_index(table, "index", short_and_value()).await.unwrap();
        let transaction = store.begin();
        for number in 0..100u8 {
            transaction.put(table, &[number], &[number; 3]).await.unwrap();
        }
        transaction.commit().await.unwrap();
        let snapshot = store.snapshot();
        let every = rows(&store, index).await;
        for degree in [1, 7, 64] {
            for (taken, limit) in [(0, 5), (1, 0), (1, 1), (3, 2), (3, 90), (20, 500)] {
                let mut scan = snapshot.index_scan(index, ALL, Direction::Forward).degree(degree);
                for row in &every[..taken] {
                    assert_eq!(scan.next().await.unwrap().as_ref(), Some(row));
                }
                let rest = scan.limit(limit).all().await.unwrap();
                let expected = &every[taken..every.len().min(taken + limit)];
                assert!(rest == expected, "{degree} {taken} {limit}: {}", rest.len());
            }
        }
    });
}
