//! Tests of the calls from the pool to a replacement policy, and of erase counts.

use crate::common::{PAGE_BYTES, config, mem, pool_over, request};
use fulgurite_base::{Lpn, Nanos, PageId, Prng, Spec};
use fulgurite_device::{Arena, Caps, Command, Completion, Device, Executor, MemDevice, QueueFull};
use fulgurite_pool::{
    BufferPool, Departures, PoolConfig, PoolConfigError, ReplacementConfig, ReplacementPolicy, WriteBack,
    WriteBackConfig,
};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// The rule: a pool, which learns of a request when it comes, refuses a policy that must know it before.
#[test]
fn a_policy_that_needs_the_future_is_refused() {
    let replacement = "belady".parse::<ReplacementConfig>().unwrap().start(8).unwrap();
    let (executor, _) = pool_over(mem(16), 1, WriteBack::SINGLE);
    let refused = PoolConfig { replacement, ..config(8, WriteBack::SINGLE) };
    assert_eq!(BufferPool::new(executor.handle(), refused).err(), Some(PoolConfigError::Future));
}

#[test]
fn a_policy_gets_erase_counts_from_the_drive_or_is_refused() {
    let cflru_e = || "cflru-e".parse::<ReplacementConfig>().unwrap().start(8).unwrap();
    let (executor, _) = pool_over(mem(16), 1, WriteBack::SINGLE);
    let refused = PoolConfig { replacement: cflru_e(), ..config(8, WriteBack::SINGLE) };
    assert_eq!(BufferPool::new(executor.handle(), refused).err(), Some(PoolConfigError::EraseCounts));

    let drive = fulgurite_ssd::preset::configure(Spec::parse("p4510:blocks=20").unwrap()).unwrap();
    let executor = Executor::new(fulgurite_ssd::SimDrive::new(drive, 42, false).unwrap());
    let config = PoolConfig { replacement: cflru_e(), page_bytes: 4096, ..config(8, WriteBack::SINGLE) };
    let pool = BufferPool::new(executor.handle(), config).unwrap();
    let (user, handle) = (pool.clone(), executor.handle());
    let mut prng = Prng::new(5, "pages");
    executor
        .block_on(async move {
            // These writes are enough for garbage collection to erase some blocks more often than others.
            for _ in 0..60_000 {
                request(&user, prng.below(30_000), true).await.unwrap();
            }
        })
        .unwrap();
    let erases: Vec<u64> = (0..30_000).filter_map(|page| handle.erases(Lpn(page))).collect();
    assert!(erases.iter().max() > erases.iter().min(), "all blocks are equally worn");
    // The window is two of the eight frames, so the victim is the less worn of the two least recent pages.
    let order = pool.eviction_order();
    let first = handle.erases(Lpn(order[0].0.0)).unwrap_or(0);
    assert!(order[1..2].iter().all(|(page, _)| first <= handle.erases(Lpn(page.0)).unwrap_or(0)));
}

/// The rule: the pool tells the replacement policy which pages a batch writes before their eviction, also if
/// the miss does not wait for the batch. LRU-WSR with `passed=move` then moves the hot dirty page that the
/// batch skips, as an eviction would.
#[test]
fn the_policy_learns_which_pages_a_batch_writes() {
    let (first, second, hot) = (0, 2, 4);
    for (passed, order) in [("move", [5, second, 6, hot, 7]), ("stay", [5, second, 6, 7, hot])] {
        for (spec, frames) in [("ace:n_w=2", 5), ("ace+raw:n_w=2,buffers=1", 6)] {
            let write_back = spec.parse::<WriteBackConfig>().unwrap().resolve(|| Ok(2)).unwrap();
            let policy = format!("lru-wsr:passed={passed}").parse::<ReplacementConfig>().unwrap();
            let shape =
                PoolConfig { replacement: policy.start(frames).unwrap(), ..config(frames, write_back) };
            let executor = Executor::new(mem(64));
            let pool = BufferPool::new(executor.handle(), shape).unwrap();
            let inside = pool.clone();
            executor
                .block_on(async move {
                    for page in 0..5 {
                        request(&inside, page, page % 2 == 0).await.unwrap();
                    }
                    // A clean page is evicted each time, and a dirty page before it in the order becomes
                    // cold. The use of page `hot` in between keeps this page hot.
                    for page in [5, hot, 6] {
                        request(&inside, page, false).await.unwrap();
                    }
                    // Both cold dirty pages are written, and the hot page between them is skipped.
                    request(&inside, 7, false).await.unwrap();
                })
                .unwrap();
            executor.run().unwrap();
            assert_eq!(pool.counters().pages_written, 2, "{spec}: {first} and {second}");
            let left: Vec<u64> = pool.eviction_order().iter().map(|(page, _)| page.0).collect();
            assert_eq!(left, order, "{spec}, {passed}");
        }
    }
}

/// The rule: the pool tells the replacement policy which pages the cleaner writes.
#[test]
fn the_policy_learns_which_pages_the_cleaner_writes() {
    let order = |passed: &str, seed: u64| {
        let cleaner =
            "background:ahead=4,n_w=2".parse::<WriteBackConfig>().unwrap().resolve(|| Ok(2)).unwrap();
        let policy = format!("lru-wsr:passed={passed}").parse::<ReplacementConfig>().unwrap();
        let shape = PoolConfig { replacement: policy.start(6).unwrap(), ..config(6, cleaner) };
        let executor = Executor::new(mem(64));
        let pool = BufferPool::new(executor.handle(), shape).unwrap();
        let (user, handle) = (pool.clone(), executor.handle());
        executor
            .block_on(async move {
                let mut prng = Prng::new(seed, "requests");
                for _ in 0..30 {
                    request(&user, prng.below(9), prng.below(3) == 0).await.unwrap();
                    handle.sleep_until(handle.now() + Nanos::from_micros(100)).await;
                }
            })
            .unwrap();
        pool.eviction_order().iter().map(|(page, _)| page.0).collect::<Vec<_>>()
    };
    let differ = (0..40).filter(|seed| order("move", *seed) != order("stay", *seed)).count();
    assert!(differ > 0, "no order shows that a page was skipped");
}

/// The rule: with LRU, a clean page after `leaves_next` is evicted before pages with earlier requests, and a
/// dirty page keeps its position. Under every policy, a new page evicts exactly one page, and never the dirty
/// one.
#[test]
fn leaves_next_makes_a_clean_page_the_next_victim() {
    for name in ReplacementConfig::registry().names() {
        let Ok(replacement) = name.parse::<ReplacementConfig>().unwrap().start(8) else { continue };
        if replacement.needs_erase_counts() || replacement.needs_future() {
            continue;
        }
        let shape = PoolConfig { replacement, ..config(8, WriteBack::SINGLE) };
        let executor = Executor::new(mem(64));
        let pool = BufferPool::new(executor.handle(), shape).unwrap();
        let user = pool.clone();
        executor
            .block_on(async move {
                for page in 0..8 {
                    request(&user, page, page == 6).await.unwrap();
                }
                for page in [5, 6] {
                    user.read(PageId(page)).await.unwrap().leaves_next();
                }
                request(&user, 40, false).await.unwrap();
            })
            .unwrap();
        let left: Vec<u64> = (0..8).filter(|page| pool.try_read(PageId(*page)).is_none()).collect();
        assert_eq!((left.len(), left.contains(&6)), (1, false), "{name}: {left:?}");
        assert!(name != "lru" || left == [5], "{left:?}");
    }
}

/// The rule: [`BufferPool::departures`] counts the evicted pages, and the pages that are read again within a
/// window of evictions.
#[test]
fn evicted_pages_that_are_read_again_are_counted() {
    for (window, came_back) in [(64, 6), (1, 0)] {
        let (executor, pool) = pool_over(mem(64), 4, WriteBack::SINGLE);
        pool.watch_departures(window);
        let inside = pool.clone();
        executor
            .block_on(async move {
                // The requests go twice over six pages, so two more frames would have kept each page of the
                // second round.
                for page in (0..6).chain(0..6) {
                    request(&inside, page, page % 2 == 0).await.unwrap();
                }
            })
            .unwrap();
        assert_eq!(pool.departures(), Departures { left: 8, came_back }, "window {window}");
    }
}

/// The rule: a fetch of an evicted page is counted like a miss on that page.
#[test]
fn a_fetched_page_counts_as_read_again() {
    let (executor, pool) = pool_over(mem(64), 4, WriteBack::SINGLE);
    pool.watch_departures(64);
    let inside = pool.clone();
    executor
        .block_on(async move {
            for page in 0..6 {
                request(&inside, page, false).await.unwrap();
            }
            inside.fetch(&[0, 1].map(PageId)).await.unwrap();
        })
        .unwrap();
    assert_eq!(pool.departures(), Departures { left: 4, came_back: 2 });
}

/// An ideal drive that reports erase counts and counts the registrations of memory.
struct Worn {
    inner: MemDevice,
    caps: Caps,
    registered: Rc<Cell<usize>>,
}

impl Worn {
    fn new(registered: &Rc<Cell<usize>>) -> Worn {
        let inner = mem(64);
        let caps = Caps { erase_counts: true, ..inner.caps().clone() };
        Worn { inner, caps, registered: Rc::clone(registered) }
    }
}

impl Device for Worn {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn erases(&self, lpn: Lpn) -> Option<u64> {
        Some(64 - lpn.0)
    }

    fn register(&mut self, _: &Arc<Arena>) {
        self.registered.set(self.registered.get() + 1);
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        self.inner.submit(command)
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        self.inner.wait(deadline, completions);
    }
}

/// The rule: a policy gets the drive's erase count for the address of each page, and the pool registers the
/// memory of its frames with the drive.
#[test]
fn a_policy_gets_the_erase_counts_of_the_drive() {
    let registered = Rc::new(Cell::new(0));
    let executor = Executor::new(Worn::new(&registered));
    let replacement = "cflru-e:window=4".parse::<ReplacementConfig>().unwrap().start(4).unwrap();
    // A pool page consists of two device pages, so that the address of a page differs from its number.
    let shape = PoolConfig::new(4, 2 * PAGE_BYTES, replacement, WriteBack::SINGLE);
    let pool = BufferPool::new(executor.handle(), shape).unwrap();
    assert_eq!((registered.get(), pool.pages()), (1, 32));
    let user = pool.clone();
    executor
        .block_on(async move {
            for page in 0..4 {
                request(&user, page, true).await.unwrap();
            }
        })
        .unwrap();
    // All pages are dirty, so the order follows the erase counts; the last page of the drive has the lowest.
    let order: Vec<u64> = pool.eviction_order().into_iter().map(|(page, _)| page.0).collect();
    assert_eq!(order, [3, 2, 1, 0]);
}
