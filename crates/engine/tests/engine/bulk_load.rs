//! Tests bulk loads on a drive that fails, and with values that are too large.

use crate::common::refuses::Refuses;
use crate::common::{all, mem, options, run};
use fulgurite_device::{Executor, IoError, Operation};
use fulgurite_engine::{Direction, Error, Options, Store};
use std::ops::Bound;

/// Returns rows that take more than the memory, and more than half of the free space of the drive.
fn rows() -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    (0..7_000u32).map(|row| (row.to_be_bytes().to_vec(), vec![row as u8; 1_000]))
}

/// The rule: a bulk load that fails at its end frees its pages, so that the same load can be repeated.
#[test]
fn a_load_that_fails_at_its_end_frees_its_pages() {
    let (drive, fails) = Refuses::new(mem(), |operation| matches!(operation, Operation::Read { .. }));
    run(&Executor::new(drive), |handle| async move {
        let store = Store::create(handle, options()).await.unwrap();
        let table = store.create_table("table").await.unwrap();
        for _ in 0..3 {
            let mut load = store.begin_load(table).await.unwrap();
            for (key, value) in rows() {
                load.push(key, value).await.unwrap();
            }
            // The pages of the load have evicted the root of the table, so the drive must read it.
            fails.set(true);
            let outcome = load.finish().await;
            assert!(matches!(outcome, Err(Error::Io(IoError::Media))), "{outcome:?}");
            fails.set(false);
        }
        store.bulk_load(table, rows()).await.unwrap();
        assert!(all(&store, "table").await.unwrap().into_iter().eq(rows()));
        let report = store.check().await.unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
    });
}

/// The rule: a snapshot sees the state that it was taken in, also if its table is loaded later. On an emptied table
/// it still sees the rows that were deleted.
#[test]
fn a_snapshot_sees_no_later_load() {
    run(&Executor::new(mem()), |handle| async move {
        let store = Store::create(handle, options()).await.unwrap();
        let table = store.create_table("table").await.unwrap();
        let everything = (Bound::Unbounded, Bound::Unbounded);
        let change = async |key: &[u8], value: Option<&[u8]>| {
            let transaction = store.begin();
            match value {
                Some(value) => transaction.put(table, key, value).await.unwrap(),
                None => transaction.delete(table, key).await.unwrap(),
            }
            transaction.commit().await.unwrap();
        };
        let empty = store.snapshot();
        change(b"\0\0\0\x05", Some(b"first")).await;
        let one = store.snapshot();
        change(b"\0\0\0\x05", None).await;
        // Puts the pending delete into the leaf, since only an empty table is loaded.
        store.checkpoint().await.unwrap();
        let none = store.snapshot();
        store.bulk_load(table, rows().take(500)).await.unwrap();
        let all_rows = store.snapshot();
        // A later change of a loaded row is not seen as its loaded value either.
        change(&7u32.to_be_bytes(), Some(b"changed")).await;
        let first = (vec![0, 0, 0, 5], b"first".to_vec());
        for (snapshot, expected) in [
            (&empty, Vec::new()),
            (&one, vec![first]),
            (&none, Vec::new()),
            (&all_rows, rows().take(500).collect()),
        ] {
            for direction in [Direction::Forward, Direction::Backward] {
                let mut found = snapshot.scan(table, everything, direction).all().await.unwrap();
                if direction == Direction::Backward {
                    found.reverse();
                }
                assert_eq!(found.len(), expected.len());
                assert!(found == expected);
            }
            for key in [5u32, 6, 7] {
                let value = snapshot.get(table, &key.to_be_bytes()).await.unwrap();
                let known = expected.iter().find(|(known, _)| *known == key.to_be_bytes());
                assert_eq!(value.as_ref(), known.map(|(_, value)| value), "{key}");
            }
        }
    });
}

/// Whether a new store with a small log accepts values of these lengths, in one bulk load or each in a
/// transaction.
fn takes(lengths: &'static [usize], in_bulk: bool) -> bool {
    run(&Executor::new(mem()), move |handle| async move {
        let store = Store::create(handle, Options { log_bytes: 64 * 4096, ..options() }).await.unwrap();
        let table = store.create_table("table").await.unwrap();
        let rows = || (0..).zip(lengths).map(|(key, length): (u8, _)| (vec![key], vec![key; *length]));
        let outcome = if in_bulk {
            store.bulk_load(table, rows()).await.map(drop)
        } else {
            let mut outcome = Ok(());
            for (key, value) in rows() {
                let transaction = store.begin();
                transaction.put(table, &key, &value).await.unwrap();
                outcome = outcome.and(transaction.commit().await);
            }
            outcome
        };
        assert!(matches!(outcome, Ok(()) | Err(Error::TransactionTooLarge { .. })), "{outcome:?}");
        outcome.is_ok()
    })
}

/// The rule: a bulk load accepts the values that a transaction accepts, at any position: a loaded value can be written
/// again, and saved by a repair. Both accept values larger than the log, which has 256 KiB here.
#[test]
fn a_load_accepts_the_values_that_a_transaction_accepts() {
    for lengths in [&[6_080][..], &[300_000], &[3_000, 6_081], &[900_000, 10, 300_000]] {
        assert_eq!([takes(lengths, false), takes(lengths, true)], [true, true], "{lengths:?}");
    }
}
