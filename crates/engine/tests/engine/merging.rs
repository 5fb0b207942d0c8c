//! Records that wait for their leaves are merged many at a time, and leaves beside each other together.

use crate::common::run;
use fulgurite_base::{Nanos, Prng};
use fulgurite_device::{Executor, MemDevice};
use fulgurite_engine::{Options, Statistics, Store};

const ROWS: u32 = 40_000;

/// Updates rows that are all equally likely, far more than memory or the log have room for. What that took.
/// `runs` says how many per cent of the pages runs may take.
fn update_uniformly(runs: u8) -> Statistics {
    let executor = Executor::new(MemDevice::new(8192, 4096, 64, Nanos::from_micros(10)));
    run(&executor, |handle| async move {
        let options = Options { memory_bytes: 1600 << 10, log_bytes: 8 << 20, runs, ..Options::default() };
        let store = Store::create(handle, options).await.unwrap();
        let table = store.create_table("rows").await.unwrap();
        let row = |number: u32, value: u8| (number.to_be_bytes().to_vec(), vec![value; 100]);
        store.bulk_load(table, (0..ROWS).map(|number| row(number, 0))).await.unwrap();
        let mut prng = Prng::new(1, "updates");
        for _ in 0..3_000 {
            let transaction = store.begin();
            for _ in 0..32 {
                let (key, value) = row(prng.below(u64::from(ROWS)) as u32, 1);
                transaction.put(table, &key, &value).await.unwrap();
            }
            transaction.commit().await.unwrap();
        }
        store.statistics()
    })
}

#[test]
fn uniform_updates_read_leaves_together_and_gather_several_records_for_each() {
    let done = update_uniformly(0);
    let (records, pool) = (done.records, done.pool);
    assert!(records.merged > 70_000, "most updates are in their leaves: {}", records.merged);
    // Without neighbours each command reads one leaf.
    assert!(3 * pool.read_ios < 2 * pool.pages_read, "{} commands, {} pages", pool.read_ios, pool.pages_read);
    // Where newer records of merged leaves keep their room, 3.9 are merged at a time.
    assert!(
        10 * records.merged > 42 * records.merges,
        "{} records in {} merges",
        records.merged,
        records.merges
    );
}

/// The rule: records that wait in runs go into their leaves many at a time. The runs take no more than their share, and
/// what was not given back yet.
#[test]
fn records_wait_in_runs_until_a_leaf_gets_many_of_them() {
    let with_runs = update_uniformly(30);
    let runs = with_runs.run_counters;
    assert!(runs.merged > 25_000, "{runs:?}");
    assert!(runs.merged > 6 * runs.leaves, "{} records in {} leaves", runs.merged, runs.leaves);
    assert!(with_runs.run_pages < with_runs.pages_used * 60 / 100);
}
