//! Tests the latency of commits, group commit, and the limits of the log.

use crate::common::{all, mem, options, run};
use fulgurite_base::Nanos;
use fulgurite_device::{Executor, Handle};
use fulgurite_engine::{Durability, Error, Options, Store, Table};
use std::cell::Cell;
use std::rc::Rc;

/// The group-commit windows are far longer than a flush, for which the drive takes 10 µs per command.
const GROUP: Nanos = Nanos::from_micros(1_000);
const RELAXED: Nanos = Nanos::from_micros(100_000);

fn with_windows() -> Options {
    Options { group_window: GROUP, relaxed_window: RELAXED, ..options() }
}

async fn new_store(handle: &Handle) -> (Store, Table) {
    let store = Store::create(handle.clone(), with_windows()).await.unwrap();
    let table = store.create_table("t").await.unwrap();
    (store, table)
}

/// Commits a record, and returns the latency.
async fn commit(store: &Store, table: Table, key: u64, durability: Durability) -> Nanos {
    let begun = store.handle().now();
    let transaction = store.begin();
    transaction.put(table, &key.to_be_bytes(), b"value").await.unwrap();
    transaction.commit_with(durability).await.unwrap();
    Nanos(store.handle().now().0 - begun.0)
}

/// Runs `tasks` tasks that commit concurrently, each `times` times. Returns the longest latency, and the
/// number of log flushes.
async fn together(store: &Store, table: Table, tasks: u64, times: u64) -> (Nanos, u64) {
    let (longest, ended) = (Rc::new(Cell::new(Nanos::ZERO)), Rc::new(Cell::new(0)));
    let before = store.statistics().log_flushes;
    for task in 0..tasks {
        let (store, longest, ended) = (store.clone(), Rc::clone(&longest), Rc::clone(&ended));
        store.handle().clone().spawn(async move {
            for time in 0..times {
                // Each task begins at a different time.
                let at = Nanos(store.handle().now().0 + 1_000 * (task + 1));
                store.handle().sleep_until(at).await;
                let took = commit(&store, table, 1_000 * task + time, Durability::Group).await;
                longest.set(longest.get().max(took));
            }
            ended.set(ended.get() + 1);
        });
    }
    while ended.get() < tasks {
        let at = Nanos(store.handle().now().0 + 1_000);
        store.handle().sleep_until(at).await;
    }
    (longest.get(), store.statistics().log_flushes - before)
}

#[test]
fn a_lone_commit_does_not_wait_for_others() {
    run(&Executor::new(mem()), |handle| async move {
        let (store, table) = new_store(&handle).await;
        for key in 0..10 {
            let took = commit(&store, table, key, Durability::Group).await;
            assert!(took < Nanos::from_micros(100), "commit {key} took {took:?}");
        }
    });
}

#[test]
fn the_first_lone_commit_waits_at_most_the_group_window() {
    run(&Executor::new(mem()), |handle| async move {
        let (store, table) = new_store(&handle).await;
        together(&store, table, 8, 4).await;
        let first = commit(&store, table, 1, Durability::Group).await;
        assert!(first >= GROUP && first < Nanos(GROUP.0 + 100_000), "{first:?}");
        let second = commit(&store, table, 1, Durability::Group).await;
        assert!(second < Nanos::from_micros(100), "{second:?}");
    });
}

#[test]
fn concurrent_commits_share_flushes_without_waiting_for_the_window() {
    run(&Executor::new(mem()), |handle| async move {
        let (store, table) = new_store(&handle).await;
        // In the first rounds the store learns how many commits are concurrent.
        together(&store, table, 8, 2).await;
        let (longest, flushes) = together(&store, table, 8, 50).await;
        // The first two flushes of a round may cover few commits each; the others share the next flush. One
        // flush for each commit would be 400 flushes.
        assert!(flushes <= 4 * 50, "{flushes} flushes");
        assert!(longest < GROUP, "{longest:?}");
    });
}

#[test]
fn a_second_flush_begins_only_during_one_of_few_commits() {
    run(&Executor::new(mem()), |handle| async move {
        let (store, table) = new_store(&handle).await;
        // A flush takes 20 µs. A commit that arrived during a flush and shared the next one would take
        // longer.
        let (longest, _) = together(&store, table, 2, 50).await;
        assert_eq!(longest, Nanos::from_micros(20));
        // If each flush had a second one in flight beside it, 32 tasks would need 275 flushes.
        together(&store, table, 32, 2).await;
        let (_, flushes) = together(&store, table, 32, 50).await;
        assert!(flushes <= 200, "{flushes} flushes");
    });
}

#[test]
fn a_group_commit_does_not_wait_for_the_relaxed_window() {
    run(&Executor::new(mem()), |handle| async move {
        let (store, table) = new_store(&handle).await;
        together(&store, table, 8, 4).await;
        commit(&store, table, 1, Durability::Relaxed).await;
        let took = commit(&store, table, 2, Durability::Group).await;
        assert!(took < Nanos(2 * GROUP.0), "{took:?}");
    });
}

#[test]
fn relaxed_commits_are_flushed_once_in_their_window() {
    run(&Executor::new(mem()), |handle| async move {
        let (store, table) = new_store(&handle).await;
        let (before, begun) = (store.statistics().log_flushes, handle.now());
        for key in 0..1_000 {
            commit(&store, table, key, Durability::Relaxed).await;
            let at = Nanos(handle.now().0 + 1_000_000);
            handle.sleep_until(at).await;
        }
        let flushes = store.statistics().log_flushes - before;
        let windows = (handle.now().0 - begun.0) / RELAXED.0;
        assert!((windows - 1..=windows).contains(&flushes), "{flushes} flushes in {windows} windows");
    });
}

/// The rule: the deletes of a transaction provide no log space for its writes.
#[test]
fn deletes_make_no_room_for_puts() {
    let small = || Options { log_bytes: 64 * 4096, ..options() };
    run(&Executor::new(mem()), |handle| async move {
        let store = Store::create(handle, small()).await.unwrap();
        let table = store.create_table("table").await.unwrap();
        for number in 0..60u8 {
            let transaction = store.begin();
            transaction.put(table, &[number], &[number; 90]).await.unwrap();
            transaction.commit().await.unwrap();
        }
        // The leaves are clean, so the deletes become pending records.
        store.checkpoint().await.unwrap();
        let mut most = Vec::new();
        for deletes in [0, 60] {
            let transaction = store.begin();
            for number in 0..deletes {
                transaction.delete(table, &[number]).await.unwrap();
            }
            let mut puts = 0u16;
            let refused = loop {
                match transaction.put(table, &puts.to_be_bytes(), &[1; 1000]).await {
                    Ok(()) => puts += 1,
                    Err(error) => break error,
                }
            };
            assert!(matches!(refused, Error::TransactionTooLarge { .. }), "{refused}");
            most.push(puts);
        }
        assert!(most[0] > 20 && most[1] < most[0], "{most:?}");
        assert_eq!(all(&store, "table").await.unwrap().len(), 60);
    });
}
