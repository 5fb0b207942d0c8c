//! Tests indexes: entries that are too long, a small log, and limits of scans.

use crate::common::{mem, options, run};
use fulgurite_device::Executor;
use fulgurite_engine::{Direction, Error, Extract, Index, IndexRow, Options, Store};
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
