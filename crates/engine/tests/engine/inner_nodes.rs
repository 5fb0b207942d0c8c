//! Tests that inner nodes stay in the pool during point reads: each of them leads to a hundred leaves, while
//! a leaf is no longer needed once its record was copied.

use crate::common::run;
use fulgurite_base::{Nanos, Prng};
use fulgurite_device::{Executor, MemDevice};
use fulgurite_engine::{Options, Store};

const ROWS: u64 = 60_000;

/// The rule: if the inner nodes fit into the pool and the leaves do not, a point read reads only its leaf
/// from the drive.
#[test]
fn a_point_read_reads_one_page() {
    let executor = Executor::new(MemDevice::new(32_768, 4096, 64, Nanos::from_micros(10)));
    run(&executor, |handle| async move {
        let options = Options { memory_bytes: 2 << 20, log_bytes: 16 << 20, ..Options::default() };
        let store = Store::create(handle, options).await.unwrap();
        let table = store.create_table("rows").await.unwrap();
        // The keys are long, so that there are some 250 inner nodes for 20,000 leaves.
        let key =
            |number: u64| [&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[..], &[0; 24]].concat();
        let mut rows: Vec<Vec<u8>> = (0..ROWS).map(key).collect();
        rows.sort_unstable();
        store.bulk_load(table, rows.iter().map(|row| (row.clone(), vec![0; 1_000]))).await.unwrap();
        let mut prng = Prng::new(1, "reads");
        let mut asked = 0;
        // The first round fills the pool, and the second is measured.
        for _ in 0..2 {
            let before = store.statistics().pool;
            for _ in 0..6_000 {
                let row = &rows[prng.below(ROWS) as usize];
                assert!(store.snapshot().get(table, row).await.unwrap().is_some());
            }
            asked = store.statistics().pool.since(&before).misses;
        }
        assert!(asked < 6_000 * 21 / 20, "{asked} pages for 6,000 reads");
        assert!(asked > 6_000 * 19 / 20, "the leaves do not fit: {asked}");
    });
}
