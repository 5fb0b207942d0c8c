//! Tests that writes during a checkpoint become pending records as usual: few go to their leaves for lack of
//! space.

use crate::common::run;
use fulgurite_base::{Nanos, Prng};
use fulgurite_device::{Executor, MemDevice};
use fulgurite_engine::{Durability, Options, Statistics, Store, Table};
use std::cell::Cell;
use std::rc::Rc;

const ROWS: u64 = 250_000;
const CLIENTS: u64 = 4;
const WRITES: u64 = 8;

async fn new_store(store: &Store) -> Table {
    let table = store.create_table("t").await.unwrap();
    let rows = (0..ROWS).map(|row| (row.to_be_bytes().to_vec(), vec![1; 100]));
    store.bulk_load(table, rows).await.unwrap();
    store.checkpoint().await.unwrap();
    table
}

/// Lets clients update rows of their own, chosen uniformly, until `is_end` returns true. Each client pauses
/// for `think` between commits. Returns the number of updates, and the counters of the store.
async fn update_until(
    store: &Store,
    table: Table,
    think: Nanos,
    is_end: impl Fn(&Statistics) -> bool + Clone + 'static,
) -> (u64, Statistics) {
    let (updates, ended) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    for client in 0..CLIENTS {
        let (store, is_end) = (store.clone(), is_end.clone());
        let (updates, ended) = (Rc::clone(&updates), Rc::clone(&ended));
        store.handle().clone().spawn(async move {
            let mut prng = Prng::new(client, "beside");
            while !is_end(&store.statistics()) {
                let transaction = store.begin();
                for _ in 0..WRITES {
                    let row = prng.below(ROWS / CLIENTS) * CLIENTS + client;
                    transaction.put(table, &row.to_be_bytes(), &[2; 100]).await.unwrap();
                }
                transaction.commit_with(Durability::Relaxed).await.unwrap();
                updates.set(updates.get() + WRITES);
                store.handle().sleep_until(Nanos(store.handle().now().0 + think.0)).await;
            }
            ended.set(ended.get() + 1);
        });
    }
    while ended.get() < CLIENTS {
        store.handle().sleep_until(Nanos(store.handle().now().0 + think.0)).await;
    }
    (updates.get(), store.statistics())
}

fn drive() -> MemDevice {
    MemDevice::new(16_384, 4096, 8, Nanos::from_micros(500))
}

/// The rule: a checkpoint begins before half of the log is used if no row is written twice. Then all records
/// in the log are pending, and they may take only a third of it.
#[test]
fn a_checkpoint_begins_before_pending_records_fill_their_part_of_the_log() {
    let options = || Options { memory_bytes: 8 << 20, log_bytes: 3 << 20, ..Options::default() };
    let (updates, after) = run(&Executor::new(drive()), |handle| async move {
        let store = Store::create(handle, options()).await.unwrap();
        let table = new_store(&store).await;
        let before = store.statistics().checkpoints;
        let think = Nanos::from_micros(200);
        update_until(&store, table, think, move |now| now.checkpoints > before + 1).await
    });
    let refused = after.records.refused;
    // If the checkpoint began when half of the log is used, a fifth of the updates would go to their leaves.
    assert!(refused * 10 < updates, "{refused} of {updates} updates went to their leaves");
}

/// The rule: the record cache gets frames even while a checkpoint dirties most pages of the pool, so that the
/// next victim frame is not available at once.
#[test]
fn the_record_cache_gets_frames_while_a_checkpoint_dirties_the_pool() {
    let options = || Options { memory_bytes: 8 << 20, log_bytes: 16 << 20, ..Options::default() };
    let (updates, after) = run(&Executor::new(drive()), |handle| async move {
        let store = Store::create(handle, options()).await.unwrap();
        let table = new_store(&store).await;
        let think = Nanos::from_micros(1_000);
        update_until(&store, table, think, |now| now.records_pending > 4_000).await;
        let before = store.statistics().checkpoints;
        let checkpoint = store.clone();
        store.handle().spawn(async move { checkpoint.checkpoint().await.unwrap() });
        update_until(&store, table, think, move |now| now.checkpoints > before).await
    });
    let refused = after.records.refused;
    assert!(refused * 1000 < updates, "{refused} of {updates} updates went to their leaves");
}
