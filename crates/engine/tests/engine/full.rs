//! Tests a full drive: the store returns an error, loses nothing, and can be written again after deletions.

use crate::common::{all, options, run};
use fulgurite_base::Nanos;
use fulgurite_device::{Executor, MemDevice};
use fulgurite_engine::{Durability, Error, Store, Table};

/// Returns a drive of 4 MiB, three quarters of which are the log and other areas.
fn small() -> MemDevice {
    MemDevice::new(1024, 4096, 64, Nanos::from_micros(10))
}

fn key(number: u32) -> Vec<u8> {
    // The keys are scattered, so that every part of the tree grows.
    number.wrapping_mul(2_654_435_761).to_be_bytes().to_vec()
}

async fn put(store: &Store, table: Table, number: u32, len: usize) -> Result<(), Error> {
    let transaction = store.begin();
    transaction.put(table, &key(number), &vec![number as u8; len]).await?;
    transaction.commit_with(Durability::Flush).await
}

/// Inserts records until the store is full. Returns the number of records.
async fn fill_up(store: &Store, table: Table, from: u32, len: usize) -> u32 {
    for number in from.. {
        match put(store, table, number, len).await {
            Ok(()) => {}
            Err(Error::Full { .. }) => return number,
            Err(error) => panic!("{error}"),
        }
    }
    from
}

async fn verify(store: &Store, kept: impl Iterator<Item = u32>) {
    let mut expected: Vec<_> = kept.map(key).collect();
    expected.sort_unstable();
    let found: Vec<_> = all(store, "t").await.unwrap().into_iter().map(|(key, _)| key).collect();
    assert!(found == expected, "{} of {}", found.len(), expected.len());
    let report = store.check().await.unwrap();
    assert!(report.problems.is_empty(), "{report:?}");
}

fn check(len: usize, close: bool) {
    let executor = Executor::new(small());
    let filled = run(&executor, move |handle| async move {
        let store = Store::create(handle, options()).await.unwrap();
        let table = store.create_table("t").await.unwrap();
        let filled = fill_up(&store, table, 0, len).await;
        verify(&store, 0..filled).await;
        // The store stays full, and returns the same error again.
        assert!(matches!(put(&store, table, filled, len).await, Err(Error::Full { .. })));
        if close {
            store.close().await.unwrap();
        }
        filled
    });
    assert!(filled > 50, "{filled}");
    run(&executor, move |handle| async move {
        let store = Store::open(handle, options()).await.unwrap();
        let table = store.table("t").await.unwrap();
        verify(&store, 0..filled).await;
        assert!(matches!(put(&store, table, filled, len).await, Err(Error::Full { .. })));
        // A delete succeeds on a full store, and frees space.
        for number in (0..filled).filter(|number| number % 4 != 0) {
            let transaction = store.begin();
            transaction.delete(table, &key(number)).await.unwrap();
            transaction.commit_with(Durability::Flush).await.unwrap();
        }
        verify(&store, (0..filled).filter(|number| number % 4 == 0)).await;
        let full_again = fill_up(&store, table, filled, len).await;
        assert!(full_again > filled + filled / 3, "{filled} {full_again}");
        verify(&store, (0..filled).filter(|number| number % 4 == 0).chain(filled..full_again)).await;
    });
}

#[test]
fn a_full_store_loses_nothing_and_takes_more_once_there_is_room() {
    check(200, true);
    check(200, false);
}

#[test]
fn a_store_full_of_large_values_loses_nothing_either() {
    check(9000, true);
    check(9000, false);
}
