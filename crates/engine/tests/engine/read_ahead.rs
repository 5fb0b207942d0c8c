//! Tests read-ahead of scans: they return the same records in less time, with few unneeded reads.

use crate::common::{mem, options, run};
use fulgurite_base::Nanos;
use fulgurite_device::Executor;
use fulgurite_engine::{Direction, Extract, Index, Options, Record, Store, Table};
use std::future::Future;
use std::ops::Bound;
use std::rc::Rc;

const ALL: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);
const ROWS: u32 = 6_000;

fn key(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// Maps the numbers to a permutation of themselves.
fn scattered(number: u32) -> u32 {
    number.wrapping_mul(2_654_435_761)
}

fn wide() -> Options {
    // There are frames for all pages, so that each page is read once.
    Options { memory_bytes: 8 << 20, log_bytes: 4 << 20, ..options() }
}

/// Runs a task on a store without cached pages that contains rows by number, and an index over them in
/// another order. Returns the value of the task, the virtual time that it took, and the number of pages read.
fn cold<T: 'static, F: Future<Output = T> + 'static>(
    task: impl FnOnce(Store, Table, Index) -> F + 'static,
) -> (T, Nanos, u64) {
    let executor = Executor::new(mem());
    let extract: Extract = Rc::new(|key, _, keys| {
        let number = u32::from_be_bytes(key.try_into().unwrap());
        keys.push(scattered(number).to_be_bytes().to_vec());
    });
    let again = Rc::clone(&extract);
    run(&executor, |handle| async move {
        let store = Store::create(handle, wide()).await.unwrap();
        let table = store.create_table("rows").await.unwrap();
        let rows = (0..ROWS).map(|number| (key(number), vec![number as u8; 100]));
        store.bulk_load(table, rows).await.unwrap();
        store.create_index(table, "scattered", extract).await.unwrap();
        store.close().await.unwrap();
    });
    run(&executor, |handle| async move {
        let store = Store::open(handle.clone(), wide()).await.unwrap();
        let table = store.table("rows").await.unwrap();
        let index = store.create_index(table, "scattered", again).await.unwrap();
        let (begin, before) = (handle.now(), store.statistics().pool.pages_read);
        let result = task(store.clone(), table, index).await;
        let read = store.statistics().pool.pages_read - before;
        (result, handle.now().saturating_sub(begin), read)
    })
}

async fn scan(store: &Store, table: Table, direction: Direction, degree: u32) -> Vec<Record> {
    store.snapshot().scan(table, ALL, direction).degree(degree).all().await.unwrap()
}

#[test]
fn read_ahead_returns_the_same_records_sooner() {
    for direction in [Direction::Forward, Direction::Backward] {
        let (one, slow, read) =
            cold(move |store, table, _| async move { scan(&store, table, direction, 1).await });
        let (many, fast, again) =
            cold(move |store, table, _| async move { scan(&store, table, direction, 16).await });
        assert_eq!(one.len(), ROWS as usize);
        assert!(one == many, "{direction:?}");
        assert_eq!(read, again, "no leaf is read twice or in vain");
        // At all times between 8 and 16 reads of leaves are in progress.
        assert!(fast.0 * 7 < slow.0, "{direction:?}: {fast} and {slow}");
        let (own, usual, _) = cold(move |store, table, _| async move {
            store.snapshot().scan(table, ALL, direction).all().await.unwrap()
        });
        assert!(own == one && usual.0 * 7 < slow.0, "{direction:?}: {usual} without a degree");
    }
}

#[test]
fn a_limited_scan_reads_few_unneeded_leaves() {
    let ((), _, read) = cold(|store, table, _| async move {
        let snapshot = store.snapshot();
        // From the first scan the store learns how many records a leaf has.
        for first in [0, 500, 1_000, 1_500, 2_000, 2_500, 3_000, 3_500, 4_000, 4_500] {
            let low = key(first);
            let range = (Bound::Included(&low[..]), Bound::Unbounded);
            let found = snapshot.scan(table, range, Direction::Forward).limit(100).all().await.unwrap();
            assert_eq!((found.len(), found[0].0.clone()), (100, key(first)));
        }
    });
    // 100 records are in four or five leaves. The root was read already when the store was opened.
    assert!(read <= 10 * 6, "{read} pages for 10 scans of 100 records");
}

#[test]
fn an_index_scan_reads_rows_concurrently_in_index_order() {
    for direction in [Direction::Forward, Direction::Backward] {
        let rows = move |degree: u32| {
            cold(move |store: Store, _, index| async move {
                let low = 0x4000_0000_u32.to_be_bytes();
                let high = 0x5000_0000_u32.to_be_bytes();
                let range = (Bound::Included(&low[..]), Bound::Excluded(&high[..]));
                let transaction = store.begin();
                transaction.index_scan(index, range, direction).degree(degree).all().await.unwrap()
            })
        };
        let ((one, slow, _), (many, fast, _)) = (rows(1), rows(64));
        let mut expected: Vec<u32> =
            (0..ROWS).map(scattered).filter(|key| (0x4000_0000..0x5000_0000).contains(key)).collect();
        expected.sort_unstable();
        if direction == Direction::Backward {
            expected.reverse();
        }
        let found: Vec<u32> =
            many.iter().map(|row| u32::from_be_bytes(row.index_key[..].try_into().unwrap())).collect();
        assert_eq!(found, expected);
        assert!(one == many);
        // 375 rows are in 179 leaves, almost none of which is cached. Up to 64 are read concurrently.
        assert!(fast.0 * 5 < slow.0, "{direction:?}: {fast} and {slow}");
    }
}

#[test]
fn a_scan_reads_ahead_while_others_change_the_tree() {
    let executor = Executor::new(mem());
    run(&executor, |handle| async move {
        let store = Store::create(handle.clone(), Options { log_bytes: 4 << 20, ..options() }).await.unwrap();
        let table = store.create_table("rows").await.unwrap();
        store.bulk_load(table, (0..ROWS).map(|number| (key(2 * number), vec![1; 100]))).await.unwrap();
        let snapshot = store.snapshot();
        let writer = store.clone();
        handle.spawn(async move {
            for number in 0..1_500 {
                let transaction = writer.begin();
                let number = scattered(number) % (2 * ROWS);
                transaction.put(table, &key(number), &[2; 150]).await.unwrap();
                transaction.delete(table, &key(scattered(number) % ROWS * 2)).await.unwrap();
                transaction.commit().await.unwrap();
            }
        });
        for direction in [Direction::Forward, Direction::Backward] {
            let found = snapshot.scan(table, ALL, direction).degree(8).all().await.unwrap();
            assert_eq!(found.len(), ROWS as usize, "{direction:?}");
            assert!(found.iter().all(|(_, value)| value[..] == [1; 100]), "a snapshot does not change");
        }
    });
}
