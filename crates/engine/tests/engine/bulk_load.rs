//! Tests bulk loads on a drive that fails, and with values that are too large.

use crate::common::refuses::Refuses;
use crate::common::{all, fill, mem, options, run};
use fulgurite_base::Nanos;
use fulgurite_device::{Executor, Handle, IoError, Operation};
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

/// Rows whose values are stored in pieces.
fn large_rows(count: u32) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    (0..count).map(|row| (row.to_be_bytes().to_vec(), vec![row as u8; 5_000]))
}

/// Returns the number of pieces that belong to no record, after the background task has had time to delete some.
async fn unused_pieces(store: &Store, handle: &Handle) -> u64 {
    handle.sleep_until(handle.now() + Nanos::from_micros(20_000)).await;
    let report = store.check().await.unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    report.unused_pieces
}

/// The rule: the large values of a load that was given up are deleted, also if a crash ended it. Those of a load in
/// progress are not, and neither are other values.
#[test]
fn a_load_that_is_given_up_leaves_no_pieces() {
    let drive = mem();
    let executor = Executor::new(drive);
    let (more, kept) = run(&executor, |handle| async move {
        let store = Store::create(handle.clone(), options()).await.unwrap();
        let kept: Vec<_> = large_rows(5).collect();
        fill(&store, "kept", kept.iter().cloned()).await;
        let table = store.create_table("loaded").await.unwrap();
        // More values than the first ranges of numbers have.
        for count in [20, 200] {
            let mut load = store.begin_load(table).await.unwrap();
            for (key, value) in large_rows(count) {
                load.push(key, value).await.unwrap();
            }
            assert!(
                unused_pieces(&store, &handle).await > u64::from(count),
                "the pieces of the load are there"
            );
            assert_eq!(store.compact().await.unwrap().pieces_deleted, 0);
            assert!(unused_pieces(&store, &handle).await > u64::from(count), "and stay");
            drop(load);
            assert_eq!(unused_pieces(&store, &handle).await, 0);
        }
        assert!(all(&store, "kept").await.unwrap() == kept);
        store.bulk_load(table, large_rows(200)).await.unwrap();
        assert_eq!(unused_pieces(&store, &handle).await, 0);
        assert!(all(&store, "loaded").await.unwrap().into_iter().eq(large_rows(200)));
        let more = store.create_table("more").await.unwrap();
        let mut load = store.begin_load(more).await.unwrap();
        for (key, value) in large_rows(20) {
            load.push(key, value).await.unwrap();
        }
        (load, kept)
    });
    // The power is cut during the load.
    let drive = executor.with_device(|device| std::mem::replace(device, mem()));
    std::mem::forget(more);
    run(&Executor::new(drive), |handle| async move {
        let store = Store::open(handle.clone(), options()).await.unwrap();
        // A value of another table gets none of the numbers of the load.
        fill(&store, "after", large_rows(3)).await;
        assert_eq!(unused_pieces(&store, &handle).await, 0);
        for (name, rows) in [("kept", 5), ("loaded", 200), ("after", 3)] {
            assert!(all(&store, name).await.unwrap().into_iter().eq(large_rows(rows)), "{name}");
        }
        assert!(kept.len() == 5 && all(&store, "more").await.unwrap().is_empty());
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
