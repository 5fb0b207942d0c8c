//! Tests that memory is divided between records and pages so that the drive has the least I/O.

use crate::common::run;
use fulgurite_base::{Nanos, Prng};
use fulgurite_device::{Executor, MemDevice};
use fulgurite_engine::{Direction, Options, Statistics, Store, Table};
use std::ops::Bound;

const ROWS: u32 = 40_000;

fn key(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// Returns a loaded store whose pages are far larger than its memory.
async fn loaded(handle: fulgurite_device::Handle) -> (Store, Table) {
    let options = Options { memory_bytes: 2 << 20, log_bytes: 16 << 20, ..Options::default() };
    let store = Store::create(handle, options).await.unwrap();
    let table = store.create_table("rows").await.unwrap();
    store.bulk_load(table, (0..ROWS).map(|number| (key(number), vec![0; 100]))).await.unwrap();
    (store, table)
}

fn executor() -> Executor<MemDevice> {
    Executor::new(MemDevice::new(16_384, 4096, 64, Nanos::from_micros(10)))
}

async fn update(store: &Store, table: Table, transactions: u32) -> Statistics {
    let mut prng = Prng::new(1, "updates");
    for _ in 0..transactions {
        let transaction = store.begin();
        for _ in 0..32 {
            let row = prng.below(u64::from(ROWS)) as u32;
            transaction.put(table, &key(row), &[1; 100]).await.unwrap();
        }
        transaction.commit().await.unwrap();
    }
    store.statistics()
}

/// Scans the first `rows` rows of the table repeatedly. Their leaves fit into the pool if the record cache is
/// small.
async fn scan(store: &Store, table: Table, rows: u32, rounds: u32) -> Statistics {
    for _ in 0..rounds {
        for from in (0..rows).step_by(1_000) {
            let range = (Bound::Included(key(from)), Bound::Excluded(key(from + 1_000)));
            let range = (range.0.as_ref().map(|key| &key[..]), range.1.as_ref().map(|key| &key[..]));
            let snapshot = store.snapshot();
            let found = snapshot.scan(table, range, Direction::Forward).all().await.unwrap();
            assert_eq!(found.len(), 1_000);
        }
    }
    store.statistics()
}

#[test]
fn updates_get_memory_for_records_and_scans_for_pages() {
    let executor = executor();
    run(&executor, |handle| async move {
        let (store, table) = loaded(handle).await;
        let begun = store.statistics().record_limit_bytes;
        let updated = update(&store, table, 2_000).await;
        assert!(
            updated.record_limit_bytes > begun * 5 / 4,
            "updates of all rows: {begun}, then {} bytes",
            updated.record_limit_bytes
        );
        assert!(updated.record_bytes > begun, "they are in use: {}", updated.record_bytes);
        // 7,000 rows are in about 230 leaves. With the first share of the record cache there are only about
        // 70 frames.
        let scanned = scan(&store, table, 7_000, 60).await;
        assert!(
            scanned.record_limit_bytes < begun / 2,
            "scans that nearly fit: {} bytes",
            scanned.record_limit_bytes
        );
        let before = store.statistics().pool;
        let again = scan(&store, table, 7_000, 1).await.pool.since(&before);
        assert!(again.pages_read < 20, "records have given frames back: {} pages read", again.pages_read);
        let found = store.snapshot().get(table, &key(17)).await.unwrap();
        assert!(found == Some(vec![0; 100]) || found == Some(vec![1; 100]));
        store.close().await.unwrap();
    });
}
