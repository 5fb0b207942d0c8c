//! Tests that pending records are merged many at a time, together with those of adjacent leaves.

use crate::common::run;
use fulgurite_base::{Nanos, Prng};
use fulgurite_device::{Executor, MemDevice};
use fulgurite_engine::{Options, Statistics, Store};

const ROWS: u32 = 40_000;

/// Updates uniformly chosen rows that take far more space than the memory or the log. Returns the statistics.
fn update_uniformly() -> Statistics {
    let executor = Executor::new(MemDevice::new(8192, 4096, 64, Nanos::from_micros(10)));
    run(&executor, |handle| async move {
        let options = Options { memory_bytes: 1600 << 10, log_bytes: 8 << 20, ..Options::default() };
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
fn uniform_updates_merge_adjacent_leaves_with_several_records_each() {
    let done = update_uniformly();
    let (records, pool) = (done.records, done.pool);
    assert!(records.merged > 70_000, "most updates are in their leaves: {}", records.merged);
    // If neighbouring leaves were not merged together, each command would read one leaf.
    assert!(3 * pool.read_ios < 2 * pool.pages_read, "{} commands, {} pages", pool.read_ios, pool.pages_read);
    // If the records of merged leaves were kept in the cache like pending ones, only 3.9 records would be
    // merged at a time.
    assert!(
        10 * records.merged > 42 * records.merges,
        "{} records in {} merges",
        records.merged,
        records.merges
    );
}

/// The rule: if the pending records of a leaf take twice a page, further records go to the leaf directly. The
/// leaf will be split for them anyway, and until then each split would have to redistribute all pending
/// records. So a store that is filled row by row grows as it is filled.
#[test]
fn a_leaf_that_will_be_split_gets_further_records_directly() {
    let executor = Executor::new(MemDevice::new(8192, 4096, 64, Nanos::from_micros(10)));
    let done = run(&executor, |handle| async move {
        let options = Options { memory_bytes: 8 << 20, log_bytes: 8 << 20, ..Options::default() };
        let store = Store::create(handle, options).await.unwrap();
        let table = store.create_table("rows").await.unwrap();
        // Makes the leaf clean: a dirty leaf would get all rows directly.
        store.checkpoint().await.unwrap();
        let mut prng = Prng::new(1, "rows");
        for _ in 0..100 {
            let transaction = store.begin();
            for _ in 0..32 {
                transaction.put(table, &prng.next_u64().to_be_bytes(), &[1; 100]).await.unwrap();
            }
            transaction.commit().await.unwrap();
        }
        store.statistics()
    });
    assert_eq!(done.records.merges, 0, "there is room for all of them as records");
    // The pending records are those from before the first change of the leaf: at most as many as fit into two
    // pages, plus those of one commit.
    assert!(done.records_pending <= 2 * 4096 / 108 + 32, "{} of 3,200 rows wait", done.records_pending);
}
