//! Miss-ratio curves against direct simulation at every size, and Belady's MIN against its definition and against
//! every other policy.

use fulgurite_base::PageId;
use fulgurite_pool::{
    MissCounter, NextUses, ReplacementConfig, ReplacementPolicy, Sample, StackDistances, WriteBack,
};
use fulgurite_workload::Op;
use fulgurite_workload::trace::{Trace, TraceOptions};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

/// The requests of the project's trace.
fn own_trace() -> Vec<(PageId, bool)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/postgres-pgbench.pages.zst");
    let trace = Trace::load(path, None, TraceOptions::default()).unwrap();
    trace.records().iter().map(|record| (PageId(record.start), record.op == Op::Write)).collect()
}

fn misses(requests: &[(PageId, bool)], replacement: &str, frames: u32) -> u64 {
    let config = replacement.parse::<ReplacementConfig>().unwrap();
    let mut replacement = config.start(frames).unwrap();
    let mut future = NextUses::default();
    future.add(requests.iter().map(|(page, _)| *page));
    replacement.foresee(&Arc::new(future));
    let mut counter = MissCounter::new(frames, replacement, WriteBack::SINGLE);
    counter.request_all(requests);
    counter.counters().misses
}

/// Returns the misses of LRU by its definition: a list of pages, the least recent first.
fn slow_lru(pages: &[u64], frames: usize) -> u64 {
    let mut pool: Vec<u64> = Vec::new();
    let mut misses = 0;
    for page in pages {
        let held = pool.iter().position(|held| held == page);
        misses += u64::from(held.is_none());
        match held {
            Some(at) => drop(pool.remove(at)),
            None if pool.len() == frames => drop(pool.remove(0)),
            None => {}
        }
        pool.push(*page);
    }
    misses
}

/// Returns the misses of MIN by its definition: it looks through the rest of the trace for each page in the pool.
fn slow_min(pages: &[u64], frames: usize) -> u64 {
    let mut pool: Vec<u64> = Vec::new();
    let mut misses = 0;
    for (at, page) in pages.iter().enumerate() {
        if pool.contains(page) {
            continue;
        }
        misses += 1;
        if pool.len() == frames {
            let next = |page: &u64| pages[at..].iter().position(|later| later == page).unwrap_or(usize::MAX);
            let victim = (0..frames).max_by_key(|place| next(&pool[*place])).unwrap();
            pool.remove(victim);
        }
        pool.push(*page);
    }
    misses
}

proptest! {
    /// The rule: the misses of one pass equal those of a slow list of pages, for every size.
    #[test]
    fn lru_in_one_pass_has_the_misses_of_the_model_at_every_size(pages in prop::collection::vec(0u64..50, 1..500)) {
        let requests: Vec<(PageId, bool)> = pages.iter().map(|page| (PageId(*page), false)).collect();
        let mut distances = StackDistances::default();
        distances.request_all(&requests);
        let sizes: Vec<u64> = (1..=52).collect();
        let expected: Vec<u64> = sizes
            .iter()
            .map(|frames| slow_lru(&pages, *frames as usize))
            .collect();
        prop_assert_eq!(distances.misses(&sizes), expected);
    }

    /// The rule: MIN evicts the page whose next request is farthest away, and has the fewest misses of all
    /// policies.
    #[test]
    fn belady_has_the_misses_of_its_definition_and_the_fewest(
        pages in prop::collection::vec(0u64..30, 1..300), frames in 1u32..20
    ) {
        let requests: Vec<(PageId, bool)> = pages.iter().map(|page| (PageId(*page), page % 3 == 0)).collect();
        let fewest = misses(&requests, "belady", frames);
        prop_assert_eq!(fewest, slow_min(&pages, frames as usize));
        for name in ReplacementConfig::registry().names() {
            prop_assert!(fewest <= misses(&requests, name, frames), "{} in {} frames", name, frames);
        }
    }
}

/// The rule: one pass over a real trace gives the misses that LRU has in a pool of each size.
#[test]
fn lru_in_one_pass_has_the_misses_of_a_pool_on_a_real_trace() {
    let requests = own_trace();
    let mut distances = StackDistances::default();
    for slice in requests.chunks(4096) {
        distances.request_all(slice);
    }
    let pages = distances.distinct_pages();
    let sizes: Vec<u64> = (1..=64).map(|at| (pages * at).div_ceil(64)).chain([pages + 1]).collect();
    let expected: Vec<u64> = sizes.iter().map(|frames| misses(&requests, "lru", *frames as u32)).collect();
    assert_eq!(distances.misses(&sizes), expected);
}

/// The rule: no policy has fewer misses than MIN at any size of a real trace.
#[test]
fn no_policy_beats_belady_on_a_real_trace() {
    let requests = own_trace();
    for frames in [20, 100, 500, 2_000, 5_000] {
        let fewest = misses(&requests, "belady", frames);
        for name in ReplacementConfig::registry().names().filter(|name| *name != "belady") {
            let others = misses(&requests, name, frames);
            assert!(fewest < others, "{name} in {frames} frames: {others} misses, belady {fewest}");
        }
    }
}

/// The rule: with batches of write-backs, the pool reads the eviction order of MIN in advance, and MIN evicts the
/// same pages.
#[test]
fn batches_of_writes_do_not_change_the_misses_of_belady() {
    let requests = &own_trace()[..5_000];
    let mut future = NextUses::default();
    future.add(requests.iter().map(|(page, _)| *page));
    let future = Arc::new(future);
    let [single, ace] = [WriteBack::SINGLE, WriteBack::ace(8)].map(|write_back| {
        let mut replacement = "belady".parse::<ReplacementConfig>().unwrap().start(100).unwrap();
        replacement.foresee(&future);
        let mut counter = MissCounter::new(100, replacement, write_back);
        counter.request_all(requests);
        counter.counters()
    });
    assert_eq!(single.misses, ace.misses);
    assert!(ace.write_ios < single.write_ios, "{} batches, {} pages", ace.write_ios, single.write_ios);
}

/// The rule: the order law also holds if the policy knows the future.
#[test]
fn the_eviction_order_of_belady_is_that_of_the_next_requests() {
    use fulgurite_base::FrameId;
    use fulgurite_pool::{Arrival, Cursor, FrameTable};
    let pages = [1, 2, 3, 4, 3, 1, 4, 9];
    let mut future = NextUses::default();
    future.add(pages.map(PageId));
    let mut policy = "belady".parse::<ReplacementConfig>().unwrap().start(4).unwrap();
    policy.foresee(&Arc::new(future));
    let mut frames = FrameTable::new(4);
    for (frame, page) in (0..4).map(FrameId).zip(pages) {
        frames.load(frame, PageId(page));
        policy.insert(frame, PageId(page), Arrival::default());
    }
    let order = |policy: &dyn ReplacementPolicy| {
        let mut cursor = Cursor::default();
        std::iter::from_fn(|| policy.next(&frames, &mut cursor)).map(|frame| frame.0).collect::<Vec<_>>()
    };
    // Page 2 is never requested again; then come pages 4, 1 and 3.
    assert_eq!(order(&policy), [1, 3, 0, 2]);
    policy.access(FrameId(2), false);
    // Neither page 2 nor page 3 is requested again.
    assert_eq!(order(&policy), [2, 1, 3, 0]);
    assert_eq!(policy.evict(&frames), Some(FrameId(2)));
    assert_eq!(order(&policy), [1, 3, 0]);
}

/// The rule: a sample has all requests for its pages, one page in about `divisor`, and its parts have each of them
/// once.
#[test]
fn a_sample_has_all_requests_for_some_pages() {
    let requests = own_trace();
    let pages = |requests: &[(PageId, bool)]| {
        let mut pages: Vec<u64> = requests.iter().map(|(page, _)| page.0).collect();
        pages.sort_unstable();
        pages.dedup();
        pages.len() as f64
    };
    let all = pages(&requests);
    for (divisor, seed) in [(2, 1), (4, 2), (8, 3)] {
        let mut sample = Sample::new(Some(divisor), seed);
        sample.add(&requests);
        let expected = all / f64::from(divisor);
        let deviation = (sample.distinct_pages() as f64 - expected) / expected.sqrt();
        assert!(deviation.abs() < 4.0, "1/{divisor}: {} pages of {all}", sample.distinct_pages());
        let whole = sample.whole(false).len();
        let parts: Vec<usize> = sample.parts(false).iter().map(|part| part.len()).collect();
        assert_eq!(parts.iter().sum::<usize>(), whole);
        assert!(parts.iter().all(|part| *part > 0), "{parts:?}");
        assert_eq!(sample.all_requests(), requests.len() as u64);
    }
    let mut all_pages = Sample::new(Some(1), 5);
    all_pages.add(&requests);
    assert_eq!(all_pages.whole(false).len(), requests.len());
}

/// The rule: without a divisor, a sample has all pages of a short trace, and is thinned to a given number of pages
/// of a longer one. Thinning leaves what a sample with the same divisor has.
#[test]
fn a_sample_is_thinned_if_there_are_many_pages() {
    let requests: Vec<(PageId, bool)> =
        (0..100_000u64).map(|at| (PageId((at * at) % 70_001), at % 3 == 0)).collect();
    let fitted = |count: usize| {
        let mut sample = Sample::new(None, 7);
        requests[..count].chunks(1000).for_each(|slice| sample.add(slice));
        sample
    };
    assert_eq!(fitted(10_000).divisor(), 1);
    let thinned = fitted(100_000);
    assert!(thinned.divisor() > 1 && thinned.distinct_pages() <= 1 << 14, "{}", thinned.divisor());
    let mut given = Sample::new(Some(thinned.divisor()), 7);
    given.add(&requests);
    let lru = "lru".parse::<ReplacementConfig>().unwrap();
    for frames in [10, 100, 1_000] {
        let [one, other] = [&thinned, &given].map(|sample| sample.whole(false).misses(&lru, frames).unwrap());
        assert_eq!(one, other, "{frames} frames");
    }
    assert_eq!(thinned.whole(false).len(), given.whole(false).len());
}
