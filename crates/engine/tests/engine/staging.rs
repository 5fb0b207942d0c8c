//! Tests of values that are larger than a transaction may be: their pieces are stored before the commit.

use crate::common::patched::Patched;
use crate::common::{all, mem, options, run};
use fulgurite_base::Nanos;
use fulgurite_device::{Executor, Handle};
use fulgurite_engine::{Durability, Options, Source, Store};
use std::cell::Cell;
use std::rc::Rc;

/// A value of twice the log, which has 1 MiB.
const LARGE: usize = 2 << 20;

fn small_log() -> Options {
    Options { log_bytes: 1 << 20, memory_bytes: 1 << 20, ..options() }
}

fn value(fill: u8) -> Vec<u8> {
    (0..LARGE).map(|at| (at / 1000) as u8 ^ fill).collect()
}

/// Waits until the pieces of values without a record are deleted. Returns the pages in use then.
async fn settled(store: &Store, handle: &Handle) -> u64 {
    for _ in 0..200 {
        let check = store.check().await.unwrap();
        assert!(check.problems.is_empty(), "{check:?}");
        if check.unused_pieces == 0 {
            store.checkpoint().await.unwrap();
            return store.statistics().pages_used;
        }
        handle.sleep_until(handle.now() + Nanos::from_micros(1000)).await;
    }
    panic!("pieces stay");
}

#[test]
fn a_value_larger_than_the_log_is_put_replaced_and_deleted() {
    let executor = Executor::new(mem());
    run(&executor, |handle| async move {
        let store = Store::create(handle.clone(), small_log()).await.unwrap();
        let table = store.create_table("t").await.unwrap();
        let empty = settled(&store, &handle).await;
        for fill in [1, 2] {
            let transaction = store.begin();
            // The second write of a key within a transaction counts.
            transaction.put(table, b"key", &value(9)).await.unwrap();
            transaction.put(table, b"key", &value(fill)).await.unwrap();
            assert_eq!(transaction.get(table, b"key").await.unwrap(), Some(value(fill)));
            assert!(store.snapshot().get(table, b"key").await.unwrap() != Some(value(fill)));
            transaction.commit().await.unwrap();
            assert_eq!(store.snapshot().get(table, b"key").await.unwrap(), Some(value(fill)));
            let used = settled(&store, &handle).await;
            assert!((500..1100).contains(&(used - empty)), "{used} pages for {} of value", LARGE / 4096);
        }
        let transaction = store.begin();
        transaction.put(table, b"key", &value(3)).await.unwrap();
        transaction.delete(table, b"key").await.unwrap();
        transaction.commit().await.unwrap();
        assert_eq!(store.snapshot().get(table, b"key").await.unwrap(), None);
        let used = settled(&store, &handle).await;
        assert!(used <= empty + 8, "{empty} pages, then {used}");
        store.close().await.unwrap();
    });
}

#[test]
fn an_aborted_transaction_leaves_no_piece() {
    let executor = Executor::new(mem());
    run(&executor, |handle| async move {
        let store = Store::create(handle.clone(), small_log()).await.unwrap();
        let table = store.create_table("t").await.unwrap();
        let empty = settled(&store, &handle).await;
        for _ in 0..8 {
            let transaction = store.begin();
            transaction.put(table, b"key", &value(1)).await.unwrap();
            drop(transaction);
            let used = settled(&store, &handle).await;
            assert!(used <= empty + 8, "{empty} pages, then {used}");
        }
    });
}

#[test]
fn a_crash_leaves_a_whole_value_or_none_and_no_piece() {
    let executor = Executor::new(mem());
    let images = run(&executor, |handle| async move {
        let store = Store::create(handle.clone(), small_log()).await.unwrap();
        let table = store.create_table("t").await.unwrap();
        store.checkpoint().await.unwrap();
        let done = Rc::new(Cell::new(false));
        let (other, stop) = (store.clone(), Rc::clone(&done));
        handle.spawn(async move {
            for fill in [1, 2] {
                let transaction = other.begin();
                transaction.put(table, b"key", &value(fill)).await.unwrap();
                transaction.commit_with(Durability::Flush).await.unwrap();
            }
            stop.set(true);
        });
        let mut images = Vec::new();
        while !done.get() {
            handle.sleep_until(handle.now() + Nanos::from_micros(800)).await;
            let mut bytes = vec![0; 4096 * 4096];
            Source::read(&handle, 0, &mut bytes).await.unwrap();
            images.push(Rc::new(bytes));
        }
        images
    });
    let mut found = Vec::new();
    for image in &images {
        let executor = Executor::new(Patched::new(image));
        let rows = run(&executor, |handle| async move {
            let store = Store::open(handle.clone(), small_log()).await.unwrap();
            settled(&store, &handle).await;
            all(&store, "t").await.unwrap()
        });
        assert!(rows.is_empty() || rows[0].1 == value(1) || rows[0].1 == value(2));
        found.push(rows.first().map(|(_, value)| value[0]));
    }
    assert!(images.len() > 6, "{}", images.len());
    assert!(found.is_sorted() && found.first() == Some(&None) && found.last() == Some(&Some(2)), "{found:?}");
}

#[test]
fn a_bulk_load_takes_values_larger_than_the_log() {
    let executor = Executor::new(mem());
    run(&executor, |handle| async move {
        let store = Store::create(handle.clone(), small_log()).await.unwrap();
        let table = store.create_table("t").await.unwrap();
        let records = [(b"a".to_vec(), value(1)), (b"b".to_vec(), value(2))];
        store.bulk_load(table, records.clone()).await.unwrap();
        assert!(all(&store, "t").await.unwrap() == records);
        settled(&store, &handle).await;
    });
}
