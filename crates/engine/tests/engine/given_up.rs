//! Who drops a future has only stopped to wait: the store is sound whatever was under way, at any moment.

use crate::common::{all, fill, mem, options, run};
use fulgurite_base::Nanos;
use fulgurite_device::{Device, Executor, Handle, MemDevice};
use fulgurite_engine::{Durability, Options, Store};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

type Records = Vec<(Vec<u8>, Vec<u8>)>;

/// Waits for a future, but no longer than `patience`. Whether it has ended.
async fn give_up<D: Device + 'static, T>(
    handle: &Handle<D>,
    patience: Nanos,
    future: impl Future<Output = T>,
) -> bool {
    let (mut future, mut end) = (pin!(future), pin!(handle.sleep_until(handle.now() + patience)));
    poll_fn(|context| match (future.as_mut().poll(context), end.as_mut().poll(context)) {
        (Poll::Ready(_), _) => Poll::Ready(true),
        (_, Poll::Ready(())) => Poll::Ready(false),
        _ => Poll::Pending,
    })
    .await
}

/// Moments at which to give up: commands take 10 µs, and those of one step end together.
fn moments() -> impl Iterator<Item = Nanos> {
    (0..40).map(|step| Nanos::from_micros(5 * step))
}

fn records(from: u64, version: u8) -> Records {
    (from..from + 100).map(|key| (key.to_be_bytes().to_vec(), vec![version; 200])).collect()
}

async fn put_all<D: Device + 'static>(store: &Store<D>, table: &str, records: &Records) {
    let (table, transaction) = (store.table(table).await.unwrap(), store.begin());
    for (key, value) in records {
        transaction.put(table, key, value).await.unwrap();
    }
    transaction.commit_with(Durability::Flush).await.unwrap();
}

/// What a table has when the store is opened without having been closed.
fn after_a_crash(executor: &Executor<MemDevice>, options: Options) -> Records {
    let executor = Executor::new(executor.with_device(|device| std::mem::replace(device, mem())));
    run(&executor, |handle| async move {
        let store = Store::open(handle, options).await.unwrap();
        let report = store.check().await.unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        all(&store, "table").await.unwrap()
    })
}

#[test]
fn a_checkpoint_goes_on() {
    let out_of_place = Options { place: "out-of-place".parse().unwrap(), ..options() };
    for options in [options(), out_of_place] {
        let mut has_given_up = 0;
        for patience in moments() {
            let (executor, kept) = (Executor::new(mem()), options.clone());
            let options = options.clone();
            let ended = run(&executor, |handle| async move {
                let store = Store::create(handle.clone(), options).await.unwrap();
                fill(&store, "table", records(0, 1).into_iter()).await;
                let ended = give_up(&handle, patience, store.checkpoint()).await;
                put_all(&store, "table", &records(50, 2)).await;
                store.checkpoint().await.unwrap();
                put_all(&store, "table", &records(100, 3)).await;
                ended
            });
            has_given_up += u32::from(!ended);
            let expected = [&records(0, 1)[..50], &records(50, 2)[..50], &records(100, 3)].concat();
            assert!(after_a_crash(&executor, kept) == expected, "given up after {patience}");
        }
        assert!(has_given_up > 4, "{has_given_up}");
    }
}

#[test]
fn a_table_is_made_or_not() {
    let mut has_given_up = 0;
    for patience in moments() {
        let executor = Executor::new(mem());
        let ended = run(&executor, |handle| async move {
            let store = Store::create(handle.clone(), options()).await.unwrap();
            fill(&store, "table", records(0, 1).into_iter()).await;
            // Others than the catalogue's pages are in the pool.
            fill(&store, "large", (0..40).flat_map(|part| records(100 * part, 1))).await;
            assert_eq!(all(&store, "large").await.unwrap().len(), 4_000);
            let ended = give_up(&handle, patience, store.create_table("other")).await;
            // Nothing waits for what was given up.
            put_all(&store, "table", &records(50, 2)).await;
            store.create_table("other").await.unwrap();
            put_all(&store, "other", &records(0, 3)).await;
            assert_eq!(all(&store, "other").await.unwrap(), records(0, 3));
            ended
        });
        has_given_up += u32::from(!ended);
        let expected = [&records(0, 1)[..50], &records(50, 2)].concat();
        assert!(after_a_crash(&executor, options()) == expected, "given up after {patience}");
    }
    assert!(has_given_up > 2, "{has_given_up}");
}

#[test]
fn a_bulk_load_that_ends_is_not_written_over() {
    let mut has_given_up = 0;
    for patience in moments() {
        let executor = Executor::new(mem());
        let ended = run(&executor, |handle| async move {
            let store = Store::create(handle.clone(), options()).await.unwrap();
            let table = store.create_table("table").await.unwrap();
            let mut load = store.begin_load(table).await.unwrap();
            for (key, value) in records(0, 1) {
                load.push(key, value).await.unwrap();
            }
            let ended = give_up(&handle, patience, load.finish()).await;
            put_all(&store, "table", &records(50, 2)).await;
            ended
        });
        has_given_up += u32::from(!ended);
        let expected = [&records(0, 1)[..50], &records(50, 2)].concat();
        assert!(after_a_crash(&executor, options()) == expected, "given up after {patience}");
    }
    assert!(has_given_up > 5, "{has_given_up}");
}
