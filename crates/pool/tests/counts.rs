//! Checks miss counts on real traces. On the project's trace, the counts of all policies are pinned and
//! compared with independent models of the papers. On a trace that the project may not distribute, the counts
//! are compared with a trusted simulator.

mod models;

use fulgurite_base::PageId;
use fulgurite_pool::{MissCounter, NextUses, ReplacementConfig, WriteBack};
use fulgurite_workload::Op;
use fulgurite_workload::trace::{Trace, TraceOptions};
use std::path::Path;
use std::sync::Arc;

const FRAMES: [u32; 8] = [500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 40_000];

/// The misses of libCacheSim 0.1 (commit of 7 October 2024) on the CloudPhysics trace, one page for each
/// request, for each of the pool sizes `FRAMES`.
const LIBCACHESIM: [(&str, [u64; 8]); 8] = [
    ("fifo", [96_483, 95_520, 94_588, 91_581, 79_210, 72_229, 71_976, 49_142]),
    ("lru", [95_398, 94_823, 94_189, 91_527, 79_438, 72_053, 68_348, 48_994]),
    // The policy Clock of libCacheSim is a FIFO with one bit, which is called second chance here.
    ("second-chance", [95_293, 94_727, 94_081, 91_458, 84_750, 72_151, 64_351, 48_999]),
    ("arc", [94_218, 94_027, 92_829, 87_770, 79_413, 64_422, 64_282, 48_999]),
    ("2q", [94_565, 94_117, 93_075, 87_879, 78_831, 72_103, 71_898, 49_142]),
    ("s3-fifo", [94_551, 94_017, 92_455, 85_382, 76_212, 70_417, 70_187, 49_000]),
    ("sieve", [94_379, 93_975, 93_411, 89_798, 81_059, 64_431, 64_350, 48_999]),
    ("lfu", [96_651, 95_562, 93_707, 89_798, 81_059, 64_431, 64_350, 48_999]),
];

fn misses(requests: &[(PageId, bool)], replacement: &str, frames: u32) -> u64 {
    let mut replacement = replacement.parse::<ReplacementConfig>().unwrap().start(frames).unwrap();
    let mut future = NextUses::default();
    future.add(requests.iter().map(|(page, _)| *page));
    replacement.foresee(&Arc::new(future));
    let mut counter = MissCounter::new(frames, replacement, WriteBack::SINGLE);
    counter.request_all(requests);
    counter.counters().misses
}

#[test]
#[ignore = "needs the CloudPhysics trace of libCacheSim in ../shared/traces; run it with --ignored"]
fn counts_equal_those_of_libcachesim() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces/cloudphysics.csv.gz");
    let trace = Trace::load(path, None, TraceOptions::default()).unwrap();
    let page = |start: u64| (PageId(start / 512), false);
    let requests: Vec<(PageId, bool)> = trace.records().iter().map(|record| page(record.start)).collect();
    for (name, expected) in LIBCACHESIM {
        assert_eq!(FRAMES.map(|frames| misses(&requests, name, frames)), expected, "{name}");
    }
    // The clock of textbooks is second chance.
    assert_eq!(FRAMES.map(|frames| misses(&requests, "clock:max=1,initial=0", frames)), LIBCACHESIM[2].1);
}

/// The misses on the project's trace, in 500 and in 2,000 frames. Without a drive no erase block was ever
/// erased, so cflru-e equals cflru here.
const OWN: [(&str, [u64; 2]); 18] = [
    ("fifo", [79_394, 66_298]),
    ("second-chance", [77_467, 65_937]),
    ("clock", [77_362, 65_684]),
    ("nru", [78_666, 67_742]),
    ("lfu", [123_624, 100_589]),
    ("lru", [77_078, 65_062]),
    ("2q", [75_779, 60_426]),
    ("arc", [77_073, 65_217]),
    ("cflru", [77_374, 65_967]),
    ("cflru-c", [77_596, 63_130]),
    ("cflru-e", [77_374, 65_967]),
    ("dl-cflru-e", [141_016, 124_330]),
    ("lru-wsr", [77_360, 65_946]),
    ("ccf-lru", [140_648, 98_834]),
    ("s3-fifo", [75_471, 59_730]),
    ("sieve", [96_900, 70_332]),
    ("w-tinylfu", [111_362, 59_333]),
    ("belady", [58_109, 39_885]),
];

/// The requests of the project's trace.
fn own_trace() -> Vec<(PageId, bool)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/postgres-pgbench.pages.zst");
    let trace = Trace::load(path, None, TraceOptions::default()).unwrap();
    let pages = trace.page_requests(8192).unwrap();
    pages.iter().map(|request| (PageId(request.page), request.op == Op::Write)).collect()
}

#[test]
fn counts_on_the_projects_trace_equal_the_models() {
    let requests = own_trace();
    for (name, model) in models::MODELS {
        for frames in [100, 500] {
            let mut request = model(frames);
            let expected = requests.iter().filter(|(page, _)| request(page.0)).count() as u64;
            assert_eq!(misses(&requests, name, frames as u32), expected, "{name} in {frames} frames");
        }
    }
}

#[test]
fn counts_on_the_projects_trace_are_pinned() {
    let requests = own_trace();
    let counted: Vec<(&str, [u64; 2])> = ReplacementConfig::registry()
        .names()
        .map(|name| (name, [500, 2_000].map(|frames| misses(&requests, name, frames))))
        .collect();
    assert_eq!(counted, OWN);
}
