//! Measures the cost of a hit: of the pool's synchronous path, and, for comparison, of a look-up in a hash
//! table of the same pages.
//!
//! `cargo bench -p fulgurite-pool --bench hit`; `--test` makes a short run.

use fulgurite_base::{Nanos, PageId, Prng, SpecError};
use fulgurite_device::{Executor, MemDevice};
use fulgurite_pool::{BufferPool, PoolConfig, ReplacementConfig, WriteBack};
use rustc_hash::FxHashMap;
use std::hint::black_box;
use std::time::Instant;

const PAGE_BYTES: u32 = 512;

/// Returns the mean wall-clock time of a request, in nanoseconds.
fn time(pages: &[PageId], mut request: impl FnMut(PageId)) -> f64 {
    let start = Instant::now();
    pages.iter().for_each(|page| request(*page));
    start.elapsed().as_secs_f64() * 1e9 / pages.len() as f64
}

fn main() -> Result<(), SpecError> {
    let requests = if std::env::args().any(|argument| argument == "--test") { 10_000 } else { 20_000_000 };
    for frames in [1_000u32, 10_000, 100_000] {
        let mut prng = Prng::new(42, "hits");
        let page = |number: u64| PageId(number * 17);
        let pages: Vec<PageId> = (0..requests).map(|_| page(prng.below(u64::from(frames)))).collect();
        let table: FxHashMap<PageId, u32> =
            (0..frames).map(|frame| (page(u64::from(frame)), frame)).collect();
        let bare = time(&pages, |page| {
            black_box(table.get(&page));
        });
        for name in ["lru", "clock", "sieve", "arc"] {
            let executor = Executor::new(MemDevice::new(1 << 24, PAGE_BYTES, 64, Nanos::ZERO));
            let replacement = name.parse::<ReplacementConfig>()?.start(frames)?;
            let config = PoolConfig::new(frames, PAGE_BYTES, replacement, WriteBack::SINGLE);
            let pool = BufferPool::new(executor.handle(), config)
                .map_err(|error| SpecError::new(error.to_string()))?;
            let filling = pool.clone();
            let filled = executor.block_on(async move {
                for number in 0..u64::from(frames) {
                    filling.read(page(number)).await?;
                }
                Ok::<(), fulgurite_pool::PoolError>(())
            });
            filled
                .map_err(|error| SpecError::new(error.to_string()))?
                .map_err(|error| SpecError::new(error.to_string()))?;
            let read = time(&pages, |page| drop(black_box(pool.try_read(page).expect("resident"))));
            let write = time(&pages, |page| drop(black_box(pool.try_write(page).expect("resident"))));
            println!(
                "{frames:7} frames, {name:6} bare look-up {bare:5.1} ns, read hit {read:5.1} ns, write hit \
                 {write:5.1} ns"
            );
        }
    }
    Ok(())
}
