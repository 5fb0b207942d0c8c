//! Measures the miss counter: requests per second of one core for every replacement policy, and for the curve of LRU
//! over all sizes, on a skewed workload whose pages are scattered over 2^40.
//!
//! `cargo bench -p fulgurite-pool --bench counting [POLICY]…`; `--test` makes a short run.

use fulgurite_base::{PageId, SpecError};
use fulgurite_pool::{MissCounter, NextUses, ReplacementConfig, StackDistances, WriteBack};
use fulgurite_workload::GeneratorConfig;
use std::sync::Arc;
use std::time::Instant;

const PAGES: u64 = 1_000_003;
const FRAMES: u32 = 100_000;

fn main() -> Result<(), SpecError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let test = arguments.iter().any(|argument| argument == "--test");
    let asked: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let requests = if test { 100_000 } else { 20_000_000 };
    let zipf = "zipf:theta=1,write=0%".parse::<GeneratorConfig>()?.start(PAGES, 4096, 42)?;
    // Multiplication by an odd factor is a bijection, so the pages are far apart and distinct.
    let scattered = |page: u64| PageId(page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24);
    let requests: Vec<(PageId, bool)> =
        zipf.take(requests).map(|request| (scattered(request.page), false)).collect();
    for name in ReplacementConfig::registry().names() {
        if !asked.is_empty() && !asked.iter().any(|asked| *asked == name) {
            continue;
        }
        let mut replacement = name.parse::<ReplacementConfig>()?.start(FRAMES)?;
        if replacement.needs_future() {
            let mut future = NextUses::default();
            future.add(requests.iter().map(|(page, _)| *page));
            replacement.foresee(&Arc::new(future));
        }
        let mut counter = MissCounter::new(FRAMES, replacement, WriteBack::SINGLE);
        let start = Instant::now();
        for slice in requests.chunks(4096) {
            counter.request_all(slice);
        }
        let rate = requests.len() as f64 / start.elapsed().as_secs_f64() / 1e6;
        let ratio = counter.counters().misses as f64 / requests.len() as f64;
        println!("{name:14} {rate:7.1} M requests/s, miss ratio {ratio:.4}");
    }
    if asked.is_empty() || asked.iter().any(|asked| *asked == "lru") {
        let mut distances = StackDistances::default();
        let start = Instant::now();
        for slice in requests.chunks(4096) {
            distances.request_all(slice);
        }
        let rate = requests.len() as f64 / start.elapsed().as_secs_f64() / 1e6;
        let bytes = distances.bytes() as f64 / distances.distinct_pages() as f64;
        println!("{:14} {rate:7.1} M requests/s, {bytes:.0} bytes a page", "lru, all sizes");
    }
    Ok(())
}
