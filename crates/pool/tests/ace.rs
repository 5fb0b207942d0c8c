//! Compares ACE with its worked example, with an independent oracle, and with the counts of the published
//! program.

mod common;

use common::{config, mem, pool_over, request};
use fulgurite_base::PageId;
use fulgurite_device::Executor;
use fulgurite_pool::{
    BufferPool, MissCounter, PoolConfig, PoolCounters, PrefetchConfig, ReplacementConfig, WriteBack,
};
use proptest::prelude::*;

/// The counts of one run: hits, misses, pages written, and batches written.
type Counts = [u64; 4];

/// Runs the requests one after another and returns the pool's counters.
fn replay(trace: &[(u64, bool)], frames: u32, write_back: WriteBack) -> PoolCounters {
    let pages = trace.iter().map(|(page, _)| page + 1).max().unwrap();
    let (executor, pool) = pool_over(mem(pages), frames, write_back);
    let (trace, requests_of) = (trace.to_vec(), pool.clone());
    executor
        .block_on(async move {
            for (page, write) in trace {
                request(&requests_of, page, write).await.unwrap();
            }
        })
        .unwrap();
    pool.counters()
}

fn counts(trace: &[(u64, bool)], frames: u32, write_back: WriteBack) -> Counts {
    let counters = replay(trace, frames, write_back);
    assert_eq!((counters.read_ios, counters.pages_read), (counters.misses, counters.misses));
    [counters.hits, counters.misses, counters.pages_written, counters.write_ios]
}

/// Returns the counts of the oracle: a simple LRU list, oldest page first. With `n_w` = 1 it is LRU without
/// batches.
fn oracle(trace: &[(u64, bool)], frames: usize, n_w: usize) -> Counts {
    let mut pool: Vec<(u64, bool)> = Vec::new();
    let [mut hits, mut misses, mut written, mut batches] = [0; 4];
    for (page, write) in trace {
        let found = pool.iter().position(|(held, _)| held == page).map(|at| pool.remove(at));
        if found.is_some() {
            hits += 1
        } else {
            misses += 1
        }
        if found.is_none() && pool.len() == frames {
            if pool[0].1 {
                batches += 1;
                pool.iter_mut()
                    .filter(|(_, dirty)| *dirty)
                    .take(n_w)
                    .for_each(|entry| (entry.1, written) = (false, written + 1));
            }
            pool.remove(0);
        }
        pool.push((*page, *write || found.is_some_and(|(_, dirty)| dirty)));
    }
    [hits, misses, written, batches]
}

proptest! {
    #[test]
    fn any_trace_gives_the_oracles_counts(
        trace in prop::collection::vec((0u64..40, any::<bool>()), 1..600),
        frames in 1u32..30,
        n_w in 1u32..12,
    ) {
        prop_assert_eq!(counts(&trace, frames, WriteBack::SINGLE), oracle(&trace, frames as usize, 1));
        prop_assert_eq!(counts(&trace, frames, WriteBack::ace(n_w)), oracle(&trace, frames as usize, n_w as usize));
    }
}

/// Replays the worked example of the ACE lecture: the pool holds 8 6 2 3 5 7 4, most recently used first, of
/// which 2, 5 and 4 are dirty; then page 1 is written. Returns the pool, most recently used first.
fn worked_example(write_back: WriteBack) -> (Vec<(u64, bool)>, u64, u64) {
    let (executor, pool) = pool_over(mem(10), 7, write_back);
    let inside = pool.clone();
    executor
        .block_on(async move {
            for (page, write) in
                [(4, true), (7, false), (5, true), (3, false), (2, true), (6, false), (8, false), (1, true)]
            {
                request(&inside, page, write).await.unwrap();
            }
        })
        .unwrap();
    let recent_first = pool.eviction_order().into_iter().rev().map(|(page, dirty)| (page.0, dirty)).collect();
    (recent_first, pool.counters().pages_written, pool.counters().write_ios)
}

#[test]
fn the_worked_example_with_single_writes() {
    let (pool, written, batches) = worked_example(WriteBack::SINGLE);
    assert_eq!(pool, [(1, true), (8, false), (6, false), (2, true), (3, false), (5, true), (7, false)]);
    assert_eq!((written, batches), (1, 1));
}

#[test]
fn the_worked_example_with_ace() {
    let (pool, written, batches) = worked_example(WriteBack::ace(3));
    assert_eq!(pool, [(1, true), (8, false), (6, false), (2, false), (3, false), (5, false), (7, false)]);
    assert_eq!((written, batches), (3, 1));
}

#[test]
fn the_worked_example_with_ace_and_prefetching() {
    let prefetch = "history".parse::<PrefetchConfig>().unwrap().start().unwrap();
    let executor = Executor::new(mem(32));
    let config = PoolConfig { prefetch, ..config(7, WriteBack::ace(3)) };
    let pool = BufferPool::new(executor.handle(), config).unwrap();
    let inside = pool.clone();
    executor
        .block_on(async move {
            // Pages 9 and 0 follow page 1 twice, so they are named; before and after that, other pages fill
            // the pool.
            for page in [1, 9, 0, 11, 12, 13, 14, 15, 16, 17, 1, 9, 0] {
                request(&inside, page, false).await.unwrap();
            }
            for (page, write) in
                [(4, true), (7, false), (5, true), (3, false), (2, true), (6, false), (8, false), (1, true)]
            {
                request(&inside, page, write).await.unwrap();
            }
        })
        .unwrap();
    let order: Vec<(u64, bool)> =
        pool.eviction_order().into_iter().rev().map(|(page, dirty)| (page.0, dirty)).collect();
    assert_eq!(order, [(1, true), (8, false), (6, false), (2, false), (3, false), (9, false), (0, false)]);
    let PoolCounters { pages_written, write_ios, prefetched, .. } = pool.counters();
    assert_eq!((pages_written, write_ios, prefetched), (3, 1, 2));
}

/// The rule of the Evictor in the ACE lecture: together with a batch, n_e frames are evicted, whether or not
/// the prefetcher names a page. These frames are free for the next misses, which evict nothing and prefetch
/// nothing.
#[test]
fn with_prefetching_a_batch_evicts_n_e_frames() {
    let (after_batch, after_two_more) = {
        // No successor was seen twice, so the prefetcher names no page.
        let prefetch = "history".parse::<PrefetchConfig>().unwrap().start().unwrap();
        let executor = Executor::new(mem(32));
        let config = PoolConfig { prefetch, ..config(7, WriteBack { n_e: 3, ..WriteBack::ace(4) }) };
        let pool = BufferPool::new(executor.handle(), config).unwrap();
        let (inside, order) = (pool.clone(), |pool: &BufferPool<_>| -> Vec<(u64, bool)> {
            pool.eviction_order().into_iter().map(|(page, dirty)| (page.0, dirty)).collect()
        });
        executor
            .block_on(async move {
                for (page, write) in
                    [(4, true), (7, false), (5, true), (3, false), (2, true), (6, false), (8, false)]
                {
                    request(&inside, page, write).await.unwrap();
                }
                request(&inside, 1, true).await.unwrap();
                let after_batch = order(&inside);
                request(&inside, 20, false).await.unwrap();
                request(&inside, 21, false).await.unwrap();
                assert_eq!(inside.counters().prefetched, 0);
                (after_batch, order(&inside))
            })
            .unwrap()
    };
    assert_eq!(after_batch, [(3, false), (2, false), (6, false), (8, false), (1, true)]);
    let more: Vec<(u64, bool)> = after_batch.into_iter().chain([(20, false), (21, false)]).collect();
    assert_eq!(after_two_more, more);
}

/// The rule: ACE prefetches only together with a batch. A miss with a free frame or a clean victim prefetches
/// nothing, even if the prefetcher names pages.
#[test]
fn without_a_batch_ace_prefetches_nothing() {
    let prefetched = |write_back: WriteBack, requests: &[(u64, bool)]| {
        let prefetch = "sequential".parse::<PrefetchConfig>().unwrap().start().unwrap();
        let executor = Executor::new(mem(64));
        let config = PoolConfig { prefetch, ..config(6, write_back) };
        let pool = BufferPool::new(executor.handle(), config).unwrap();
        let (inside, requests) = (pool.clone(), requests.to_vec());
        executor
            .block_on(async move {
                for (page, write) in requests {
                    request(&inside, page, write).await.unwrap();
                }
            })
            .unwrap();
        pool.counters().prefetched
    };
    let clean: Vec<(u64, bool)> = (0..12).map(|page| (page, false)).collect();
    assert_eq!(prefetched(WriteBack::ace(3), &clean), 0);
    assert!(prefetched(WriteBack::SINGLE, &clean) > 0, "the prefetcher names pages");
    // Page 0 is dirty, and the miss that evicts it is the second of a run, so two more frames are evicted and
    // filled.
    let dirty = [(0, true), (20, false), (22, false), (24, false), (26, false), (30, false), (31, false)];
    assert_eq!(prefetched(WriteBack::ace(3), &dirty), 2);
}

/// The GNU C library's `rand()` with its default seed. The published program uses this generator unseeded.
struct GlibcRand(Vec<u32>);

impl GlibcRand {
    fn new() -> GlibcRand {
        let mut state = vec![1i64];
        for i in 1..31 {
            state.push((16_807 * state[i - 1]).rem_euclid(2_147_483_647));
        }
        let mut state: Vec<u32> = state.into_iter().map(|word| word as u32).collect();
        state.extend_from_within(0..3);
        let mut rand = GlibcRand(state);
        for _ in 34..344 {
            rand.advance();
        }
        rand
    }

    fn advance(&mut self) -> u32 {
        let n = self.0.len();
        let next = self.0[n - 31].wrapping_add(self.0[n - 3]);
        self.0.push(next);
        next
    }

    fn next(&mut self) -> u64 {
        u64::from(self.advance() >> 1)
    }
}

/// Generates the trace of the published generator, which draws a type, a skew and a page for each request: 90
/// % of the requests go to 10 % of the pages.
fn published_trace(requests: usize, pages: u64) -> Vec<(u64, bool)> {
    let mut rand = GlibcRand::new();
    let hot = pages / 10;
    (0..requests)
        .map(|_| {
            let (kind, skew) = (rand.next() % 100, rand.next() % 100);
            let page = if skew < 90 { rand.next() % hot } else { rand.next() % (pages - hot) + hot };
            (page, kind >= 50)
        })
        .collect()
}

#[test]
fn glibc_rand_is_glibc_rand() {
    let mut rand = GlibcRand::new();
    assert_eq!([rand.next(), rand.next(), rand.next()], [1_804_289_383, 846_930_886, 1_681_692_777]);
}

#[test]
fn counts_equal_the_published_programs_on_its_small_trace() {
    let trace = published_trace(200_000, 2_048);
    let single = counts(&trace, 100, WriteBack::SINGLE);
    let ace = counts(&trace, 100, WriteBack::ace(8));
    assert_eq!(single, [77_603, 122_397, 75_345, 75_345]);
    assert_eq!(ace, [77_603, 122_397, 77_048, 9_631]);
}

#[test]
fn counts_equal_the_published_programs_on_its_large_trace() {
    let trace = published_trace(1_000_000, 102_400);
    let single = counts(&trace, 6_144, WriteBack::SINGLE);
    let ace = counts(&trace, 6_144, WriteBack::ace(8));
    assert_eq!(single[1..3], [534_021, 338_983]);
    assert_eq!(ace[1..], [534_021, 339_168, 42_396]);
}

#[test]
fn clean_first_policies_count_as_the_published_program() {
    let trace = published_trace(1_000_000, 102_400);
    let requests: Vec<(PageId, bool)> = trace.iter().map(|(page, write)| (PageId(*page), *write)).collect();
    let counts = |replacement: &str, write_back: WriteBack| {
        let replacement = replacement.parse::<ReplacementConfig>().unwrap().start(6_144).unwrap();
        let mut counter = MissCounter::new(6_144, replacement, write_back);
        counter.request_all(&requests);
        let counters = counter.counters();
        [counters.misses, counters.pages_written, counters.write_ios]
    };
    assert_eq!(counts("cflru", WriteBack::SINGLE), [528_291, 305_092, 305_092]);
    assert_eq!(counts("cflru", WriteBack::ace(8)), [528_307, 305_264, 38_158]);
    assert_eq!(counts("lru-wsr", WriteBack::SINGLE), [528_480, 306_736, 306_736]);
    // The published program moves the hot dirty pages that a batch skips.
    assert_eq!(counts("lru-wsr:passed=move", WriteBack::ace(8)), [528_519, 306_984, 38_373]);
    // By the virtual eviction order, the skipped pages keep their places, and there are fewer misses.
    assert_eq!(counts("lru-wsr", WriteBack::ace(8)), [528_495, 306_912, 38_364]);
}

/// The rule: the miss counter and the pool have the same counts under every replacement policy, and both tell
/// the policy of each page that was written back.
#[test]
fn the_pool_and_the_counter_have_the_same_counts() {
    let trace = published_trace(10_000, 1_024);
    let requests: Vec<(PageId, bool)> = trace.iter().map(|(page, write)| (PageId(*page), *write)).collect();
    let is_usable = |name: &&str| !name.ends_with("-e") && *name != "belady";
    for name in ReplacementConfig::registry().names().filter(is_usable) {
        for write_back in [WriteBack::SINGLE, WriteBack::ace(8)] {
            // Without batches, the counts of CCF-LRU differ: the miss counter evicts before it writes, so
            // CCF-LRU checks all pages. The pool writes first and evicts the written page, so the other pages
            // keep their second chance.
            if name == "ccf-lru" && !write_back.batches {
                continue;
            }
            let start = || name.parse::<ReplacementConfig>().unwrap().start(100).unwrap();
            let mut counter = MissCounter::new(100, start(), write_back.clone());
            counter.request_all(&requests);
            let executor = Executor::new(mem(1_024));
            let shape = PoolConfig { replacement: start(), ..config(100, write_back.clone()) };
            let pool = BufferPool::new(executor.handle(), shape).unwrap();
            let (user, requests) = (pool.clone(), requests.clone());
            executor
                .block_on(async move {
                    for (page, write) in requests {
                        request(&user, page.0, write).await.unwrap();
                    }
                })
                .unwrap();
            let counts = |counters: PoolCounters| {
                [counters.hits, counters.misses, counters.pages_written, counters.write_ios]
            };
            assert_eq!(counts(pool.counters()), counts(counter.counters()), "{name} under {write_back:?}");
        }
    }
}
