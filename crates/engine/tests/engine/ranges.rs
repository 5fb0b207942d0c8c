//! Tests the deletion of ranges, and the ranges of prefixes.

use crate::common::{all, fill, mem, options, run};
use fulgurite_base::Nanos;
use fulgurite_device::Executor;
use fulgurite_engine::{Direction, Durability, Error, Extract, Options, Range, Store, prefix};
use std::cell::Cell;
use std::ops::Bound;
use std::rc::Rc;

const ALL: Range<'static> = (Bound::Unbounded, Bound::Unbounded);

fn key(number: u32) -> Vec<u8> {
    format!("row {number:06}").into_bytes()
}

fn rows(count: u32) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    (0..count).map(|number| (key(number), vec![number as u8; if number % 50 == 3 { 5_000 } else { 100 }]))
}

fn extract() -> Extract {
    Rc::new(|_, value, keys| keys.extend(value.first().map(|byte| vec![*byte])))
}

async fn is_sound(store: &Store) {
    let report = store.check().await.unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert_eq!((report.unused_pages, report.unused_pieces), (0, 0), "{report:?}");
}

/// The rule: the keys of a prefix are exactly those in its range.
#[test]
fn the_range_of_a_prefix_has_the_keys_that_begin_with_it() {
    let bytes = [0, 1, 254, 255];
    let mut keys: Vec<Vec<u8>> = vec![Vec::new()];
    for at in 0..85 {
        keys.extend(bytes.map(|byte| [&keys[at][..], &[byte]].concat()));
    }
    for start in &keys {
        let prefix = prefix(start);
        let (Bound::Included(low), high) = prefix.range() else { panic!("{prefix:?}") };
        for key in &keys {
            let is_below = match high {
                Bound::Excluded(high) => &key[..] < high,
                _ => true,
            };
            assert_eq!(&key[..] >= low && is_below, key.starts_with(start), "{start:?} {key:?}");
            assert_eq!(prefix.contains(key), key.starts_with(start));
        }
    }
}

/// The rule: a deleted range is gone as a whole with the commit, with its index entries and large values, and with what
/// the transaction itself has put; without the commit nothing is.
#[test]
fn a_transaction_deletes_a_range() {
    for indexed in [false, true] {
        let executor = Executor::new(mem());
        run(&executor, move |handle| async move {
            // The versions that the snapshot below needs must fit.
            let roomy = Options { memory_bytes: 8 << 20, ..options() };
            let store = Store::create(handle, roomy).await.unwrap();
            let table = store.create_table("rows").await.unwrap();
            if indexed {
                store.create_index(table, "by first", extract()).await.unwrap();
            }
            fill(&store, "rows", rows(400)).await;
            let (low, high) = (key(20), key(330));
            let range = (Bound::Excluded(&low[..]), Bound::Excluded(&high[..]));
            let undone = store.begin();
            assert_eq!(undone.delete_range(table, range).await, Ok(309));
            assert_eq!(undone.get(table, &key(21)).await, Ok(None));
            drop(undone);
            let transaction = store.begin();
            transaction.put(table, b"row 000100 and a half", b"own").await.unwrap();
            transaction.delete(table, &key(50)).await.unwrap();
            assert_eq!(transaction.delete_range(table, range).await, Ok(309));
            assert_eq!(transaction.delete_range(table, (range.1, range.0)).await, Ok(0));
            transaction.put(table, &key(60), b"again").await.unwrap();
            let old = store.snapshot();
            transaction.commit_with(Durability::Flush).await.unwrap();
            let left = all(&store, "rows").await.unwrap();
            let mut expected: Vec<_> = rows(400).filter(|(key, _)| *key <= low || *key >= high).collect();
            expected.insert(21, (key(60), b"again".to_vec()));
            assert!(left == expected, "{} rows", left.len());
            let seen = old.scan(table, ALL, Direction::Forward).all().await.unwrap();
            assert!(seen.into_iter().eq(rows(400)));
            is_sound(&store).await;
        });
        run(&executor, |handle| async move {
            let store = Store::open(handle, options()).await.unwrap();
            assert_eq!(all(&store, "rows").await.unwrap().len(), 92);
            is_sound(&store).await;
        });
    }
}

/// The rule: the deletion locks its range, also where there is no record. So an insert by another transaction comes
/// before or after it.
#[test]
fn a_deleted_range_is_locked() {
    run(&Executor::new(mem()), |handle| async move {
        let store = Store::create(handle.clone(), options()).await.unwrap();
        fill(&store, "rows", rows(10)).await;
        let (table, transaction) = (store.table("rows").await.unwrap(), store.begin());
        let (low, high) = (key(5), key(30));
        let range = (Bound::Included(&low[..]), Bound::Included(&high[..]));
        assert_eq!(transaction.delete_range(table, range).await, Ok(5));
        let (inserted, read) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(None)));
        let (other, is_inserted) = (store.begin(), Rc::clone(&inserted));
        handle.spawn(async move {
            other.put(table, &key(25), b"new").await.unwrap();
            other.commit().await.unwrap();
            is_inserted.set(true);
        });
        let (reader, was_read) = (store.begin(), Rc::clone(&read));
        handle.spawn(async move { was_read.set(Some(reader.get(table, &key(7)).await)) });
        handle.sleep_until(handle.now() + Nanos::from_micros(2_000)).await;
        assert!(!inserted.get() && read.take().is_none(), "the range is locked");
        transaction.commit().await.unwrap();
        handle.sleep_until(handle.now() + Nanos::from_micros(2_000)).await;
        assert_eq!((inserted.get(), read.take()), (true, Some(Ok(None))));
    });
}

/// The rule: a range whose deletions do not fit into the log is refused with a clear error, which leaves the
/// transaction as it was. The same range can be deleted in parts.
#[test]
fn a_range_that_is_too_large_is_deleted_in_parts() {
    for indexed in [false, true] {
        run(&Executor::new(mem()), move |handle| async move {
            let small = Options { log_bytes: 64 * 4096, memory_bytes: 4 << 20, ..options() };
            let store = Store::create(handle, small).await.unwrap();
            let table = store.create_table("rows").await.unwrap();
            if indexed {
                store.create_index(table, "by first", extract()).await.unwrap();
            }
            let rows = (0..4_000).map(|number| (key(number), vec![number as u8; 60]));
            for (number, (key, value)) in rows.enumerate() {
                let transaction = store.begin();
                transaction.put(table, &key, &value).await.unwrap();
                let durability = if number % 50 == 0 { Durability::Flush } else { Durability::Relaxed };
                transaction.commit_with(durability).await.unwrap();
            }
            let transaction = store.begin();
            transaction.put(table, b"another", b"row").await.unwrap();
            let refused = transaction.delete_range(table, ALL).await;
            assert!(matches!(refused, Err(Error::TransactionTooLarge { .. })), "{refused:?}");
            transaction.commit().await.unwrap();
            assert_eq!(all(&store, "rows").await.unwrap().len(), 4_001);
            let from = key(100);
            let range = (Bound::Included(&from[..]), Bound::Unbounded);
            assert_eq!(store.delete_range(table, range).await, Ok(3_900));
            assert_eq!(store.delete_range(table, range).await, Ok(0));
            assert_eq!(all(&store, "rows").await.unwrap().len(), 101);
            is_sound(&store).await;
        });
    }
}
