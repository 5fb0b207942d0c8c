//! Tests that dropping a future of the store at any moment only ends the wait: the store stays consistent.

use crate::common::{all, fill, mem, options, run};
use fulgurite_base::Nanos;
use fulgurite_device::{Executor, MemDevice};
use fulgurite_engine::{Durability, Options, Store};
use std::future::Future;

type Records = Vec<(Vec<u8>, Vec<u8>)>;

/// Returns the delays after which futures are dropped. Commands take 10 µs, and those that were submitted
/// together complete together.
fn moments() -> impl Iterator<Item = Nanos> {
    (0..40).map(|step| Nanos::from_micros(5 * step))
}

fn records(from: u64, version: u8) -> Records {
    (from..from + 100).map(|key| (key.to_be_bytes().to_vec(), vec![version; 200])).collect()
}

async fn put_all(store: &Store, table: &str, records: &Records) {
    let (table, transaction) = (store.table(table).await.unwrap(), store.begin());
    for (key, value) in records {
        transaction.put(table, key, value).await.unwrap();
    }
    transaction.commit_with(Durability::Flush).await.unwrap();
}

/// Returns the records of a table after the store is opened without having been closed.
fn after_a_crash(executor: &Executor<MemDevice>, options: Options) -> Records {
    let executor = Executor::new(executor.with_device(|device| std::mem::replace(device, mem())));
    run(&executor, |handle| async move {
        let store = Store::open(handle, options).await.unwrap();
        let report = store.check().await.unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        all(&store, "table").await.unwrap()
    })
}

/// Drops the future of an operation after each of the delays, each time on a new store, and checks that the
/// store has the expected records after a crash. `work` returns whether the operation had ended by then. It
/// must have been dropped early at least `least` times.
fn at_every_moment<F: Future<Output = bool> + 'static>(
    options: &Options,
    least: u32,
    expected: &[&[(Vec<u8>, Vec<u8>)]],
    work: impl Fn(Store, Nanos) -> F + Copy + 'static,
) {
    let (mut has_given_up, expected) = (0, expected.concat());
    for patience in moments() {
        let (executor, own) = (Executor::new(mem()), options.clone());
        let ended = run(&executor, |handle| async move {
            let store = Store::create(handle, own).await.unwrap();
            work(store, patience).await
        });
        has_given_up += u32::from(!ended);
        assert!(after_a_crash(&executor, options.clone()) == expected, "given up after {patience}");
    }
    assert!(has_given_up >= least, "{has_given_up}");
}

#[test]
fn a_dropped_checkpoint_continues() {
    let out_of_place = Options { place: "out-of-place".parse().unwrap(), ..options() };
    let expected = [&records(0, 1)[..50], &records(50, 2)[..50], &records(100, 3)];
    for options in [options(), out_of_place] {
        at_every_moment(&options, 5, &expected, |store, patience| async move {
            fill(&store, "table", records(0, 1).into_iter()).await;
            let ended = store.handle().within(patience, store.checkpoint()).await;
            put_all(&store, "table", &records(50, 2)).await;
            store.checkpoint().await.unwrap();
            put_all(&store, "table", &records(100, 3)).await;
            ended.is_some()
        });
    }
}

#[test]
fn a_dropped_create_table_is_atomic() {
    let expected = [&records(0, 1)[..50], &records(50, 2)];
    at_every_moment(&options(), 3, &expected, |store, patience| async move {
        fill(&store, "table", records(0, 1).into_iter()).await;
        // The pool now holds other pages than those of the catalogue, so creating a table must read.
        fill(&store, "large", (0..40).flat_map(|part| records(100 * part, 1))).await;
        assert_eq!(all(&store, "large").await.unwrap().len(), 4_000);
        let ended = store.handle().within(patience, store.create_table("other")).await;
        // No later operation waits for the dropped one.
        put_all(&store, "table", &records(50, 2)).await;
        store.create_table("other").await.unwrap();
        put_all(&store, "other", &records(0, 3)).await;
        assert_eq!(all(&store, "other").await.unwrap(), records(0, 3));
        ended.is_some()
    });
}

#[test]
fn a_dropped_bulk_load_and_later_writes_do_not_collide() {
    let expected = [&records(0, 1)[..50], &records(50, 2)];
    at_every_moment(&options(), 6, &expected, |store, patience| async move {
        let table = store.create_table("table").await.unwrap();
        let mut load = store.begin_load(table).await.unwrap();
        for (key, value) in records(0, 1) {
            load.push(key, value).await.unwrap();
        }
        let ended = store.handle().within(patience, load.finish()).await;
        put_all(&store, "table", &records(50, 2)).await;
        ended.is_some()
    });
}
