//! Tests the checkpoints that the store starts by itself as its log fills.

use crate::common::{options, run};
use fulgurite_base::{Nanos, Prng};
use fulgurite_device::{Executor, MemDevice};
use fulgurite_engine::{Options, Store};

const LOG_BYTES: u64 = 4 << 20;

/// The rule: a checkpoint moves the redo point by a small step, so that more than half of the log stays in
/// use and pages that change often are written rarely. It begins before commits wait for log space.
#[test]
fn a_checkpoint_frees_a_small_part_of_the_log() {
    let executor = Executor::new(MemDevice::new(8192, 4096, 64, Nanos::from_micros(10)));
    run(&executor, |handle| async move {
        let options = Options { log_bytes: LOG_BYTES, memory_bytes: 4 << 20, records: 0, ..options() };
        let store = Store::create(handle, options).await.unwrap();
        let table = store.create_table("t").await.unwrap();
        let mut prng = Prng::new(1, "keys");
        let (mut least, mut most) = (u64::MAX, 0);
        while store.statistics().checkpoints < 12 {
            let transaction = store.begin();
            for _ in 0..8 {
                transaction.put(table, &prng.below(10_000).to_be_bytes(), &[1; 100]).await.unwrap();
            }
            transaction.commit().await.unwrap();
            let done = store.statistics();
            if done.checkpoints > 0 {
                (least, most) = (least.min(done.log_bytes_used), most.max(done.log_bytes_used));
            }
        }
        assert!(least > LOG_BYTES / 2, "a checkpoint left {least} bytes");
        assert!(most < LOG_BYTES / 16 * 15, "commits had to wait for room: {most} bytes");
    });
}

/// The rule: after a clean close all records are in their leaves, even if many leaves had to be split for
/// them, so the next opening has nothing to recover.
#[test]
fn a_closed_store_has_nothing_to_recover() {
    let executor = Executor::new(MemDevice::new(16_384, 4096, 64, Nanos::from_micros(10)));
    let options = || Options { log_bytes: LOG_BYTES, memory_bytes: 4 << 20, ..options() };
    run(&executor, move |handle| async move {
        let store = Store::create(handle, options()).await.unwrap();
        let table = store.create_table("t").await.unwrap();
        let mut prng = Prng::new(1, "keys");
        for _ in 0..2_000 {
            let transaction = store.begin();
            for _ in 0..30 {
                transaction.put(table, &prng.below(1 << 40).to_be_bytes(), &[1; 100]).await.unwrap();
            }
            transaction.commit().await.unwrap();
        }
        let pending = || store.statistics().records_pending;
        assert!(pending() > 1_000, "{} records wait", pending());
        store.close().await.unwrap();
        assert_eq!(pending(), 0);
    });
    let recovered = run(&executor, move |handle| async move {
        Store::open(handle, options()).await.unwrap().statistics().recovered_ops
    });
    assert_eq!(recovered, 0);
}
