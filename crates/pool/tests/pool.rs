//! Many users on one pool, and what happens when the drive or a user gives up.

mod common;

use common::{PAGE_BYTES, config, mem, pool_over, request};
use fulgurite_base::{FrameId, Lpn, Nanos, PageId, Prng, Spec, StreamId};
use fulgurite_device::{
    Arena, Buffer, Caps, Command, Completion, Device, Executor, Fault, FaultDevice, Handle, IoError,
    MemDevice, Operation, QueueFull, RunError,
};
use fulgurite_pool::write_back::BatchPlanner;
use fulgurite_pool::{
    BufferPool, Departures, FrameTable, PageBytes, PageIo, PageStore, Plan, PoolConfig, PoolConfigError,
    PoolCounters, PoolError, PrefetchConfig, ReplacementConfig, ReplacementPolicy, WriteBack,
    WriteBackConfig,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// One of each mechanism: waiting or not, one page or a batch, with and without a cleaner.
fn write_backs() -> Vec<WriteBack> {
    let specs = [
        "single",
        "single:lock=yes",
        "ace:n_w=4",
        "background:ahead=4",
        "background:ahead=3,n_w=2",
        "raw:buffers=1",
        "raw:buffers=2,least=2",
        "raw:buffers=2",
        "ace+raw:n_w=4,buffers=2",
    ];
    specs.map(|spec| spec.parse::<WriteBackConfig>().unwrap().resolve(|| Ok(4)).unwrap()).to_vec()
}

/// `users` tasks change and read random pages of a pool much smaller than the data. Every page is
/// stamped with its number and a version; a read must see the last version written.
fn stamped_run(users: usize, shape: PoolConfig) -> BufferPool<MemDevice> {
    let pages = 64;
    let executor = Executor::new(mem(pages));
    let pool = BufferPool::new(executor.handle(), shape).unwrap();
    let versions = Rc::new(RefCell::new(vec![0u64; pages as usize]));
    for user in 0..users {
        let (pool, versions) = (pool.clone(), Rc::clone(&versions));
        let mut prng = Prng::new(11, &format!("user {user}"));
        executor.spawn(async move {
            let mut page = 0;
            for _ in 0..300 {
                // Half of the requests go to a few pages, some go on where the last one was.
                page = match prng.below(4) {
                    0 => prng.below(pages),
                    1 => (page + 1) % pages,
                    _ => prng.below(pages / 8),
                };
                if prng.below(8) == 0 {
                    let ahead: Vec<PageId> = (page..pages.min(page + 5)).map(PageId).collect();
                    pool.fetch(&ahead).await.unwrap();
                }
                if prng.below(2) == 0 {
                    let mut guard = pool.write(PageId(page)).await.unwrap();
                    let version = versions.borrow()[page as usize];
                    check_stamp(guard.bytes(), page, version);
                    versions.borrow_mut()[page as usize] = version + 1;
                    guard.bytes_mut()[..8].copy_from_slice(&page.to_le_bytes());
                    guard.bytes_mut()[8..16].copy_from_slice(&(version + 1).to_le_bytes());
                } else {
                    let guard = pool.read(PageId(page)).await.unwrap();
                    check_stamp(guard.bytes(), page, versions.borrow()[page as usize]);
                }
            }
        });
    }
    executor.run().unwrap();
    let flushing = pool.clone();
    executor.block_on(async move { flushing.flush().await.unwrap() }).unwrap();
    // A fresh pool reads every page from the drive itself.
    let fresh = BufferPool::new(executor.handle(), config(4, WriteBack::SINGLE)).unwrap();
    executor
        .block_on(async move {
            for page in 0..pages {
                check_stamp(
                    fresh.read(PageId(page)).await.unwrap().bytes(),
                    page,
                    versions.borrow()[page as usize],
                );
            }
        })
        .unwrap();
    pool
}

fn check_stamp(bytes: &[u8], page: u64, version: u64) {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let expected = if version == 0 { (0, 0) } else { (page, version) };
    assert_eq!((word(0), word(8)), expected, "page {page} is misplaced or stale");
}

#[test]
fn no_update_is_lost_with_many_users() {
    for write_back in write_backs() {
        for prefetch in ["none", "sequential:n=3", "history:n=2,table=64", "both:n=3,table=64"] {
            for (users, frames) in [(1, 3), (8, 9), (50, 20), (40, 3)] {
                let prefetch = prefetch.parse::<PrefetchConfig>().unwrap().start().unwrap();
                let config = PoolConfig { prefetch, ..config(frames, write_back.clone()) };
                let counters = stamped_run(users, config).counters();
                let PoolCounters { hits, misses, prefetched, pages_read, .. } = counters;
                assert_eq!(hits + misses, 300 * users as u64, "{write_back:?}");
                assert_eq!(pages_read, misses + prefetched);
                assert!(counters.pages_written > 0 && counters.write_ios <= counters.pages_written);
                assert!(counters.prefetch_hits + counters.prefetch_wasted <= prefetched);
            }
        }
    }
}

/// Writes up to two dirty pages that follow the one that leaves, whether that is clean or dirty.
#[derive(Debug)]
struct TwoMore;

impl BatchPlanner for TwoMore {
    fn plan(
        &self,
        _: FrameId,
        rest: &mut dyn Iterator<Item = FrameId>,
        frames: &FrameTable,
        plan: &mut Plan,
    ) {
        plan.write.extend(rest.filter(|frame| frames.is_dirty(*frame)).take(2));
    }
}

/// [`TwoMore`] in place of the batches of each mechanism.
fn planned_write_backs() -> impl Iterator<Item = WriteBack> {
    write_backs().into_iter().map(|own| WriteBack { planner: Some(Arc::new(TwoMore)), ..own })
}

/// The rule: a planner of the user's own may write pages beside a clean one that leaves, for a miss and where the limit falls, and
/// every frame is used again.
#[test]
fn no_frame_is_lost_where_a_clean_page_leaves_beside_a_batch() {
    for write_back in planned_write_backs() {
        for falls_to in [9, 5] {
            let (executor, pool) = pool_over(mem(64), 9, write_back.clone());
            let (user, handle) = (pool.clone(), executor.handle());
            executor
                .block_on(async move {
                    for page in 0..60 {
                        request(&user, page, page % 2 == 0).await.unwrap();
                    }
                    user.flush().await.unwrap();
                    // The one that leaves next stays clean.
                    for (page, _) in user.eviction_order().into_iter().skip(1) {
                        request(&user, page.0, true).await.unwrap();
                    }
                    user.set_limit(falls_to);
                    request(&user, 60, false).await.unwrap();
                    user.set_limit(9);
                    user.flush().await.unwrap();
                    // So long that spare frames which nobody needs go back.
                    for page in 0..600 {
                        request(&user, page % 64, false).await.unwrap();
                    }
                    handle.sleep_until(handle.now() + Nanos::from_micros(100)).await;
                })
                .unwrap();
            let held = pool.eviction_order().len() as u32;
            assert_eq!(held, 9 - write_back.buffers_least, "{write_back:?}, {falls_to}");
        }
    }
}

/// The rule: such a page leaves at once, so its miss does not wait for the batch.
#[test]
fn a_clean_page_does_not_wait_for_the_batch_beside_it() {
    let (executor, pool) =
        pool_over(mem(16), 4, WriteBack { planner: Some(Arc::new(TwoMore)), ..WriteBack::SINGLE });
    let (user, handle) = (pool.clone(), executor.handle());
    executor
        .block_on(async move {
            for page in 0..4 {
                request(&user, page, page > 0).await.unwrap();
            }
            let before = handle.now();
            request(&user, 8, false).await.unwrap();
            assert_eq!(handle.now() - before, Nanos::from_micros(10), "a read and no write");
        })
        .unwrap();
    let PoolCounters { pages_written, write_waits, .. } = pool.counters();
    assert_eq!((pages_written, write_waits), (2, 0));
}

#[test]
fn no_update_is_lost_under_any_replacement() {
    for name in ReplacementConfig::registry().names().filter(|name| !name.ends_with("-e")) {
        for write_back in write_backs() {
            let replacement = name.parse::<ReplacementConfig>().unwrap().start(12).unwrap();
            let config = PoolConfig { replacement, ..config(12, write_back.clone()) };
            assert!(stamped_run(20, config).counters().pages_written > 0, "{name} under {write_back:?}");
        }
    }
}

#[test]
fn erase_counts_come_through_the_seam_or_the_policy_is_refused() {
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
            // Enough for garbage collection to have erased some blocks more often than others.
            for _ in 0..60_000 {
                request(&user, prng.below(30_000), true).await.unwrap();
            }
        })
        .unwrap();
    let erases: Vec<u64> = (0..30_000).filter_map(|page| handle.erases(Lpn(page))).collect();
    assert!(erases.iter().max() > erases.iter().min(), "all blocks are equally worn");
    // The window is two of the eight: the less worn of the two least recent leaves first.
    let order = pool.eviction_order();
    let first = handle.erases(Lpn(order[0].0.0)).unwrap_or(0);
    assert!(order[1..2].iter().all(|(page, _)| first <= handle.erases(Lpn(page.0)).unwrap_or(0)));
}

#[test]
fn a_read_waits_for_no_write_where_it_need_not() {
    // Reads and writes of the drive take 10 µs each.
    let time_of_a_miss = |spec: &str| {
        let write_back = spec.parse::<WriteBackConfig>().unwrap().resolve(|| Ok(2)).unwrap();
        let (executor, pool) = pool_over(mem(64), 4 + write_back.buffers, write_back.clone());
        let handle = executor.handle();
        let user = pool.clone();
        let elapsed = executor.block_on(async move {
            for page in 0..4 {
                request(&user, page, true).await.unwrap();
            }
            let before = handle.now();
            request(&user, 10, false).await.unwrap();
            handle.now() - before
        });
        (elapsed.unwrap(), pool.counters().write_waits)
    };
    for spec in ["single", "ace:n_w=4"] {
        assert_eq!(time_of_a_miss(spec), (Nanos::from_micros(20), 1), "{spec}");
    }
    for spec in ["raw:buffers=4,least=4", "raw:buffers=1", "ace+raw:n_w=4,least=8"] {
        assert_eq!(time_of_a_miss(spec), (Nanos::from_micros(10), 0), "{spec}");
    }
}

/// When each of three misses that come at once has its page, in µs: two of the four frames are dirty and leave first.
fn misses_at_once(spec: &str) -> (Vec<u64>, u64) {
    let write_back = spec.parse::<WriteBackConfig>().unwrap().resolve(|| Ok(2)).unwrap();
    let (executor, pool) = pool_over(mem(64), 4, write_back);
    let inside = pool.clone();
    executor
        .block_on(async move {
            for page in 0..4 {
                request(&inside, page, page < 2).await.unwrap();
            }
        })
        .unwrap();
    three_misses(&executor, &pool)
}

fn three_misses(executor: &Executor<MemDevice>, pool: &BufferPool<MemDevice>) -> (Vec<u64>, u64) {
    let begin = executor.handle().now();
    let ended = Rc::new(RefCell::new(Vec::new()));
    for page in 40..43 {
        let (pool, handle, ended) = (pool.clone(), executor.handle(), Rc::clone(&ended));
        executor.spawn(async move {
            request(&pool, page, false).await.unwrap();
            ended.borrow_mut().push((handle.now() - begin).0 / 1_000);
        });
    }
    executor.run().unwrap();
    let ended = ended.borrow().clone();
    (ended, pool.counters().write_waits)
}

/// When each of three misses that come at once has its page, in µs, and how many of them waited for a write: the pool is
/// full, and the first `dirty` pages of the order are dirty.
fn full_pool(spec: &str, frames: u32, dirty: u64) -> (Vec<u64>, u64) {
    let write_back = spec.parse::<WriteBackConfig>().unwrap().resolve(|| Ok(2)).unwrap();
    let (executor, pool) = pool_over(mem(64), frames, write_back);
    let inside = pool.clone();
    let full = u64::from(pool.limit());
    executor
        .block_on(async move {
            for page in 0..full {
                request(&inside, page, page < dirty).await.unwrap();
            }
        })
        .unwrap();
    assert!(pool.is_full());
    three_misses(&executor, &pool)
}

/// The rule: a miss that finds no spare frame takes one more from the pool, up to `buffers`, and waits for no write.
/// Reads and writes of the drive take 10 µs each.
#[test]
fn spare_frames_follow_the_writes_under_way() {
    assert_eq!(full_pool("raw:buffers=1", 8, 2), (vec![10, 20, 20], 2));
    assert_eq!(full_pool("raw:buffers=2", 8, 2), (vec![10, 10, 10], 0));
    // With a third dirty victim the second miss finds no clean frame behind its own, so it waits for that write too.
    assert_eq!(full_pool("raw:buffers=2", 8, 3), (vec![10, 20, 20], 2));
}

/// The rule: spare frames that no miss has needed for a while hold pages again, whether the misses displace clean pages or dirty ones.
#[test]
fn spare_frames_that_nobody_needs_go_back() {
    for write in [false, true] {
        let write_back = "raw:buffers=2".parse::<WriteBackConfig>().unwrap().resolve(|| Ok(2)).unwrap();
        let (executor, pool) = pool_over(mem(64), 8, write_back);
        let inside = pool.clone();
        let requests = |pages: std::ops::Range<u64>, write| {
            let inside = inside.clone();
            let all = async move {
                for page in pages {
                    request(&inside, page % 64, write).await.unwrap();
                }
            };
            executor.block_on(all).unwrap();
        };
        requests(0..7, true);
        assert_eq!(pool.limit(), 7);
        // Two of the misses at once need a spare frame each.
        three_misses(&executor, &pool);
        assert_eq!(pool.limit(), 6);
        // One after another they need one at most.
        requests(0..600, write);
        assert_eq!(pool.limit(), 7, "changed: {write}");
    }
}

/// The rule: the replacement policy is told what a batch writes ahead of its turn, also where the miss does not wait for the batch. LRU-WSR
/// with `passed=move` then moves the hot dirty page that the batch passes over, as if its turn had come.
#[test]
fn the_policy_is_told_what_is_written_ahead() {
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
                    // A clean page leaves each time, and a dirty one before it turns cold; the use between keeps one page hot.
                    for page in [5, hot, 6] {
                        request(&inside, page, false).await.unwrap();
                    }
                    // Both cold dirty pages are written, and the hot one between them is passed over.
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

/// The rule: the replacement policy is told what the cleaner writes ahead too.
#[test]
fn the_policy_is_told_what_the_cleaner_writes_ahead() {
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
    assert!(differ > 0, "no order tells what was passed over");
}

/// The rule: with LRU a page that has served its purpose leaves before those that were asked for earlier, and one that is changed
/// keeps its place. Under every policy one page leaves for one that comes, and never the changed one.
#[test]
fn a_page_that_has_served_its_purpose_leaves_next() {
    for name in ReplacementConfig::registry().names() {
        let Ok(replacement) = name.parse::<ReplacementConfig>().unwrap().start(8) else { continue };
        if replacement.needs_erase_counts() {
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

/// The rule: a miss that waits for writes takes none of the frames that a limit leaves empty, though they are free.
#[test]
fn a_miss_below_its_limit_takes_no_empty_frame() {
    let (executor, pool) = pool_over(mem(64), 8, WriteBack::SINGLE);
    pool.set_limit(4);
    let (inside, handle) = (pool.clone(), executor.handle());
    let took = executor
        .block_on(async move {
            for page in 0..4 {
                request(&inside, page, true).await.unwrap();
            }
            let begin = handle.now();
            request(&inside, 40, false).await.unwrap();
            handle.now() - begin
        })
        .unwrap();
    assert_eq!((took, pool.counters().write_waits), (Nanos::from_micros(20), 1));
}

/// The rule: the pages that leave are counted, and those of them that are read again before as many have left as the window is long.
#[test]
fn what_leaves_and_comes_back_is_counted() {
    for (window, came_back) in [(64, 6), (1, 0)] {
        let (executor, pool) = pool_over(mem(64), 4, WriteBack::SINGLE);
        pool.watch_departures(window);
        let inside = pool.clone();
        executor
            .block_on(async move {
                // Two rounds over six pages: each of the second round has left two frames too early.
                for page in (0..6).chain(0..6) {
                    request(&inside, page, page % 2 == 0).await.unwrap();
                }
            })
            .unwrap();
        assert_eq!(pool.departures(), Departures { left: 8, came_back }, "window {window}");
    }
}

/// The rule: a page that is fetched comes back like one that was missed.
#[test]
fn what_is_fetched_comes_back_as_well() {
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

/// The rule: all misses together have `under_way` pages on their way at most; who is beyond that waits, and goes on with
/// what the writes of the others have cleaned.
#[test]
fn misses_share_a_bound_on_pages_under_way() {
    assert_eq!(full_pool("ace:n_w=2,under_way=6", 8, 8), (vec![20, 20, 20], 3));
    // The second goes on with the page that the first has cleaned beside its own; the third writes anew.
    assert_eq!(full_pool("ace:n_w=2,under_way=2", 8, 8), (vec![20, 20, 30], 3));
    // What the bound leaves is a batch of one.
    assert_eq!(full_pool("ace:n_w=2,under_way=3", 8, 8), (vec![20, 20, 20], 3));
}

/// The rule: while a miss writes its victim frame under the lock, no other miss evicts, not even a clean frame, and they
/// go on in the order in which they came. Reads and writes of the drive take 10 µs each.
#[test]
fn under_the_lock_misses_wait_behind_one_another() {
    // Two writes side by side, and a clean frame that costs its read alone.
    assert_eq!(misses_at_once("single"), (vec![10, 20, 20], 2));
    // The second begins its write when the first has ended, and the third comes after it.
    assert_eq!(misses_at_once("single:lock=yes"), (vec![20, 30, 30], 3));
}

#[test]
fn a_lock_is_let_go_by_a_miss_that_gives_up_or_fails() {
    let lock = WriteBack { lock: true, ..WriteBack::SINGLE };
    let device = FaultDevice::new(mem(64), vec![Fault::FailWrite(1)]);
    let (executor, pool) = pool_over(device, 2, lock);
    let outcome = executor.block_on(async move {
        for page in 0..2 {
            request(&pool, page, true).await.unwrap();
        }
        // The first victim is page 0, whose miss is dropped during the write; the second is page 1, whose write fails.
        start_and_give_up(pool.read(PageId(40)));
        let second = request(&pool, 41, true).await;
        let third = request(&pool, 42, true).await;
        [second, third, request(&pool, 43, false).await]
    });
    assert_eq!(outcome, Ok([Ok(()), Err(PoolError::WriteBack(IoError::Media)), Ok(())]));
}

#[test]
fn a_page_on_its_way_out_is_found() {
    let raw = "raw:buffers=2,least=2".parse::<WriteBackConfig>().unwrap().resolve(|| Ok(2)).unwrap();
    let (executor, pool) = pool_over(mem(64), 6, raw);
    let (user, other, handle) = (pool.clone(), pool.clone(), executor.handle());
    executor.spawn(async move {
        for page in 0..4 {
            user.write(PageId(page)).await.unwrap().bytes_mut().fill(page as u8 + 1);
        }
        // Evicts page 0, whose write is under way for as long as the read.
        request(&user, 10, false).await.unwrap();
    });
    executor.spawn(async move {
        handle.sleep_until(Nanos::from_micros(45)).await;
        assert_eq!(other.read(PageId(0)).await.unwrap().bytes()[5], 1);
        assert_eq!(handle.now(), Nanos::from_micros(45), "it was there");
        // Changing it has to wait for the write.
        other.write(PageId(0)).await.unwrap().bytes_mut().fill(9);
        assert_eq!(handle.now(), Nanos::from_micros(50));
    });
    executor.run().unwrap();
    let counters = pool.counters();
    assert_eq!((counters.rescued, counters.misses, counters.hits), (1, 5, 2));
    assert!(pool.eviction_order().contains(&(PageId(0), true)));
}

/// The pages of a write with their first bytes.
type LogRecord = Vec<(u64, u8)>;

/// A log that takes 30 µs to become durable, and fails once, goes before the pages. Page n lies at place 63 - n.
struct LogFirst {
    handle: Handle<MemDevice>,
    logged: Rc<RefCell<Vec<LogRecord>>>,
}

impl LogFirst {
    fn place(page: PageId) -> Lpn {
        Lpn(63 - page.0)
    }
}

impl PageStore for LogFirst {
    fn read(&self, page: PageId, into: Option<Buffer>) -> PageIo {
        Box::pin(self.handle.submit(Operation::Read { lpn: Self::place(page), pages: 1, into }))
    }

    fn write(&self, pages: Vec<PageBytes>) -> PageIo {
        let (handle, logged) = (self.handle.clone(), Rc::clone(&self.logged));
        Box::pin(async move {
            handle.sleep_until(handle.now() + Nanos::from_micros(30)).await;
            // SAFETY: the pool lets nobody change the pages before this future has ended.
            let first = |page: &PageBytes| unsafe { page.bytes.as_ref().unwrap().bytes()[0] };
            logged.borrow_mut().push(pages.iter().map(|page| (page.page.0, first(page))).collect());
            if logged.borrow().len() == 2 {
                return Err(IoError::Media);
            }
            let write = |page: PageBytes| Operation::Write {
                lpn: Self::place(page.page),
                pages: 1,
                from: page.bytes,
                stream: StreamId::default(),
                durable: false,
            };
            handle.submit_all(pages.into_iter().map(write)).await
        })
    }
}

#[test]
fn a_new_page_is_not_read_and_chosen_pages_are_written() {
    let (executor, pool) = pool_over(mem(64), 4, WriteBack::SINGLE);
    let user = pool.clone();
    executor
        .block_on(async move {
            for page in 0..6u64 {
                user.create(PageId(page)).await.unwrap().bytes_mut().fill(page as u8);
            }
            assert_eq!((user.counters().pages_read, user.counters().pages_written), (0, 2));
            user.write_pages(&[PageId(3), PageId(5), PageId(0)]).await.unwrap();
            let dirty: Vec<_> = user.eviction_order().into_iter().filter(|(_, dirty)| *dirty).collect();
            assert_eq!(dirty, [(PageId(2), true), (PageId(4), true)]);
            // One that is in the pool already is given as it is.
            assert_eq!(user.create(PageId(3)).await.unwrap().bytes()[0], 3);
        })
        .unwrap();
}

/// The rule: who asks for a page that is being created waits for the new page, and does not read the old one.
#[test]
fn a_page_that_is_being_created_is_not_read_by_others() {
    let (executor, pool) = pool_over(mem(64), 2, WriteBack::SINGLE);
    let (creating, asking, handle) = (pool.clone(), pool.clone(), executor.handle());
    executor.spawn(async move {
        for page in 0..2 {
            request(&creating, page, true).await.unwrap();
        }
        // A dirty page leaves first, from 20 to 30 µs.
        creating.create(PageId(7)).await.unwrap().bytes_mut().fill(7);
    });
    executor.spawn(async move {
        handle.sleep_until(Nanos::from_micros(25)).await;
        assert_eq!(asking.read(PageId(7)).await.unwrap().bytes()[5], 7);
        assert_eq!(handle.now(), Nanos::from_micros(30));
    });
    executor.run().unwrap();
    assert_eq!(pool.counters().pages_read, 2);
}

/// Where pages come after a while. The drive fails once.
struct Slow {
    handle: Handle<MemDevice>,
    begun: Cell<u32>,
    fails: u32,
    arrived: Rc<RefCell<BTreeMap<u64, u8>>>,
}

impl PageStore for Slow {
    fn read(&self, page: PageId, into: Option<Buffer>) -> PageIo {
        let read = Operation::Read { lpn: Lpn(page.0), pages: 1, into };
        Box::pin(self.handle.submit(read))
    }

    fn write(&self, pages: Vec<PageBytes>) -> PageIo {
        self.begun.set(self.begun.get() + 1);
        let fails = self.begun.get() == self.fails;
        let (handle, arrived) = (self.handle.clone(), Rc::clone(&self.arrived));
        Box::pin(async move {
            handle.sleep_until(handle.now() + Nanos::from_micros(300)).await;
            if fails {
                return Err(IoError::Media);
            }
            for page in pages {
                // SAFETY: the pool lets nobody change the pages before this future has ended.
                let first = unsafe { page.bytes.as_ref().unwrap().bytes()[0] };
                arrived.borrow_mut().insert(page.page.0, first);
            }
            Ok(())
        })
    }
}

/// The rule: when the write of chosen pages returns, the drive has all of them, also those whose write somebody else had begun,
/// or had begun in vain.
#[test]
fn chosen_pages_have_come_whoever_writes_them() {
    for (write_back, fails) in
        write_backs().into_iter().flat_map(|write_back| [0, 1, 2].map(|fails| (write_back.clone(), fails)))
    {
        let executor = Executor::new(mem(64));
        let arrived = Rc::new(RefCell::new(BTreeMap::new()));
        let store =
            Slow { handle: executor.handle(), begun: Cell::new(0), fails, arrived: Rc::clone(&arrived) };
        let config = PoolConfig { store: Some(Rc::new(store)), ..config(8, write_back.clone()) };
        let pool = BufferPool::new(executor.handle(), config).unwrap();
        executor
            .block_on(async move {
                for page in 0..12u64 {
                    while pool.create(PageId(page)).await.map(|mut page| page.bytes_mut().fill(7)).is_err() {}
                }
                let all: Vec<PageId> = (0..12).map(PageId).collect();
                while pool.write_pages(&all).await.is_err() {}
                let expected: BTreeMap<u64, u8> = (0..12).map(|page| (page, 7)).collect();
                assert_eq!(*arrived.borrow(), expected, "{write_back:?}, write {fails} fails");
            })
            .unwrap();
    }
}

#[test]
fn the_log_goes_before_the_data() {
    for write_back in write_backs() {
        let executor = Executor::new(mem(64));
        let logged = Rc::new(RefCell::new(Vec::new()));
        let store = LogFirst { handle: executor.handle(), logged: Rc::clone(&logged) };
        let config = PoolConfig { store: Some(Rc::new(store)), ..config(8, write_back.clone()) };
        let pool = BufferPool::new(executor.handle(), config).unwrap();
        let user = pool.clone();
        executor
            .block_on(async move {
                for page in 0..30u64 {
                    while let Err(error) =
                        user.write(PageId(page)).await.map(|mut guard| guard.bytes_mut().fill(page as u8))
                    {
                        assert_eq!(error, PoolError::WriteBack(IoError::Media));
                    }
                }
                while user.flush().await.is_err() {}
            })
            .unwrap();
        // Every page that reached the drive was in the log first, with what was written.
        let logged: Vec<(u64, u8)> = logged.borrow().concat();
        let store = LogFirst { handle: executor.handle(), logged: Rc::default() };
        let config = PoolConfig { store: Some(Rc::new(store)), ..common::config(4, WriteBack::SINGLE) };
        let fresh = BufferPool::new(executor.handle(), config).unwrap();
        executor
            .block_on(async move {
                for page in 0..30u64 {
                    assert_eq!(fresh.read(PageId(page)).await.unwrap().bytes()[0], page as u8);
                    assert!(
                        logged.contains(&(page, page as u8)),
                        "{write_back:?}: page {page} was not logged"
                    );
                }
            })
            .unwrap();
    }
}

#[test]
fn nobody_starves_for_a_latch() {
    // Readers that never leave the page alone, and one who wants to change it.
    let (executor, pool) = pool_over(mem(8), 4, WriteBack::SINGLE);
    let changed = Rc::new(RefCell::new(None));
    for reader in 0..5u64 {
        let (pool, handle, changed) = (pool.clone(), executor.handle(), Rc::clone(&changed));
        executor.spawn(async move {
            while changed.borrow().is_none() {
                let _guard = pool.read(PageId(1)).await.unwrap();
                let end = handle.now() + Nanos::from_micros(7 + reader);
                assert!(end < Nanos::from_micros(100_000), "the writer starves");
                handle.sleep_until(end).await;
            }
        });
    }
    let (writer, handle, when) = (pool.clone(), executor.handle(), Rc::clone(&changed));
    executor.spawn(async move {
        handle.sleep_until(Nanos::from_micros(50)).await;
        drop(writer.write(PageId(1)).await.unwrap());
        *when.borrow_mut() = Some(handle.now());
    });
    executor.run().unwrap();
    // Those who had the latch when it was asked for, and nobody else.
    assert!(changed.borrow().unwrap() <= Nanos::from_micros(50 + 11));
}

/// Which of the first pages of the eviction order are dirty.
fn dirty_ahead(pool: &BufferPool<MemDevice>, pages: usize) -> Vec<bool> {
    pool.eviction_order().into_iter().take(pages).map(|(_, dirty)| dirty).collect()
}

/// The rule: the cleaner keeps the first `ahead` frames of the order clean, and looks again when half of them have left.
#[test]
fn the_cleaner_writes_ahead_and_rests_while_half_of_it_is_left() {
    let background =
        "background:ahead=4,n_w=4".parse::<WriteBackConfig>().unwrap().resolve(|| Ok(4)).unwrap();
    let (executor, pool) = pool_over(mem(64), 12, background);
    let (user, handle) = (pool.clone(), executor.handle());
    let seen = executor.block_on(async move {
        for page in 0..12 {
            request(&user, page, true).await.unwrap();
        }
        let mut seen = Vec::new();
        for page in 20..25 {
            request(&user, page, true).await.unwrap();
            // The cleaner has come to its end.
            handle.sleep_until(handle.now() + Nanos::from_micros(100)).await;
            seen.push(dirty_ahead(&user, 5));
        }
        seen
    });
    let expected = [
        [false, false, false, false, true],
        [false, false, false, true, true],
        [false, false, true, true, true],
        // With less than half of the four left it has written four more.
        [false, false, false, false, true],
        [false, false, false, true, true],
    ];
    assert_eq!(seen.unwrap(), expected);
    // One write of a miss that met a dirty frame, and two batches.
    assert_eq!((pool.counters().write_ios, pool.counters().pages_written), (3, 8));
}

/// The rule: the cleaner has one batch under way, however many misses call for it meanwhile; and it keeps the next frame clean
/// where it is to look no further.
#[test]
fn the_cleaner_has_one_batch_under_way_and_may_look_at_one_frame() {
    let cleaner = |spec: &str| spec.parse::<WriteBackConfig>().unwrap().resolve(|| Ok(4)).unwrap();
    let (executor, pool) = pool_over(mem(64), 12, cleaner("background:ahead=4,n_w=2"));
    let filling = pool.clone();
    executor
        .block_on(async move {
            for page in 0..12 {
                request(&filling, page, true).await.unwrap();
            }
        })
        .unwrap();
    for page in 20..23 {
        let user = pool.clone();
        executor.spawn(async move { request(&user, page, true).await.unwrap() });
    }
    let (asks, handle) = (pool.clone(), executor.handle());
    let soon = handle.now() + Nanos::from_micros(19);
    let begun = executor.block_on(async move {
        handle.sleep_until(soon).await;
        asks.counters().write_ios
    });
    // Three misses have written a page each, and the first to have done so has called the cleaner.
    assert_eq!(begun, Ok(3 + 1));

    let (executor, pool) = pool_over(mem(64), 6, cleaner("background:ahead=1,n_w=1"));
    let (user, handle) = (pool.clone(), executor.handle());
    let ahead = executor.block_on(async move {
        for page in (0..6).chain([20]) {
            request(&user, page, true).await.unwrap();
        }
        handle.sleep_until(handle.now() + Nanos::from_micros(100)).await;
        dirty_ahead(&user, 2)
    });
    assert_eq!(ahead.unwrap(), [false, true]);
}

/// Runs misses of the pages 1, 2 and 3, which come 1, 2 and 3 µs after `since`, and returns their pages as they are served. Each holds
/// its page for a while.
fn served_order(
    executor: &Executor<MemDevice>,
    pool: &BufferPool<MemDevice>,
    since: Nanos,
    holds: Nanos,
) -> Vec<u64> {
    let order = Rc::new(RefCell::new(Vec::new()));
    for page in 1..4 {
        let (pool, order, handle) = (pool.clone(), Rc::clone(&order), executor.handle());
        executor.spawn(async move {
            handle.sleep_until(since + Nanos::from_micros(page)).await;
            let guard = pool.read(PageId(page)).await.unwrap();
            order.borrow_mut().push(page);
            handle.sleep_until(handle.now() + holds).await;
            drop(guard);
        });
    }
    executor.run().unwrap();
    order.take()
}

/// Who gets the only frame, in order: it is held, three misses come one after another, and its holder lets it go, takes it
/// again before anybody else can, and lets it go for good.
fn order_of_misses(take_again: bool) -> Vec<u64> {
    let (executor, pool) = pool_over(mem(16), 1, WriteBack::SINGLE);
    let (holder, handle) = (pool.clone(), executor.handle());
    executor.spawn(async move {
        let guard = holder.read(PageId(0)).await.unwrap();
        handle.sleep_until(Nanos::from_micros(100)).await;
        drop(guard);
        if take_again {
            let guard = holder.try_read(PageId(0)).expect("nobody else has run");
            handle.sleep_until(Nanos::from_micros(200)).await;
            drop(guard);
        }
    });
    // While one holds the frame, the next one has its turn, and finds it in use.
    served_order(&executor, &pool, Nanos::from_micros(20), Nanos::from_micros(50))
}

/// The rule: a miss whose turn was in vain keeps its place before those that came later.
#[test]
fn a_miss_that_must_wait_again_keeps_its_place() {
    assert_eq!(order_of_misses(false), [1, 2, 3]);
    assert_eq!(order_of_misses(true), [1, 2, 3]);
}

/// The rule: a miss that has written under the lock has had its turn, so it goes before those that still wait for
/// theirs, though it finds no frame after its write.
#[test]
fn a_miss_that_has_held_the_lock_goes_before_those_that_wait_for_it() {
    let (executor, pool) = pool_over(mem(16), 1, WriteBack { lock: true, ..WriteBack::SINGLE });
    let (holder, handle) = (pool.clone(), executor.handle());
    executor.spawn(async move {
        request(&holder, 0, true).await.unwrap();
        // Page 0 is being written for the first miss, from 20 to 30 µs, and is in use when that has ended.
        handle.sleep_until(Nanos::from_micros(25)).await;
        let guard = holder.read(PageId(0)).await.unwrap();
        handle.sleep_until(Nanos::from_micros(100)).await;
        drop(guard);
    });
    // The end of the write was the second's turn, in vain as well; the third has not had one.
    assert_eq!(served_order(&executor, &pool, Nanos::from_micros(19), Nanos::ZERO), [2, 1, 3]);
    assert_eq!(pool.counters().pages_written, 1);
}

/// The rule: that holds too for a miss that had waited for its turn before it wrote under the lock.
#[test]
fn a_miss_that_waited_before_it_held_the_lock_keeps_its_place() {
    let (executor, pool) = pool_over(mem(16), 1, WriteBack { lock: true, ..WriteBack::SINGLE });
    let (holder, handle) = (pool.clone(), executor.handle());
    executor.spawn(async move {
        let guard = holder.write(PageId(0)).await.unwrap();
        handle.sleep_until(Nanos::from_micros(50)).await;
        drop(guard);
        // Page 0 is being written for the first miss, from 50 to 60 µs, and is in use when that has ended.
        handle.sleep_until(Nanos::from_micros(55)).await;
        let guard = holder.read(PageId(0)).await.unwrap();
        handle.sleep_until(Nanos::from_micros(100)).await;
        drop(guard);
    });
    assert_eq!(served_order(&executor, &pool, Nanos::from_micros(19), Nanos::ZERO), [2, 1, 3]);
}

/// When one who lets the only frame go at 100 µs, and comes again in the same moment with `again`, is served, in µs. Three misses of 10 µs
/// each have come before.
fn comes_again<F: Future<Output = ()>>(again: impl FnOnce(BufferPool<MemDevice>) -> F + 'static) -> u64 {
    let (executor, pool) = pool_over(mem(16), 1, WriteBack::SINGLE);
    let (holder, handle, served) = (pool.clone(), executor.handle(), Rc::new(Cell::new(Nanos::ZERO)));
    let tells = Rc::clone(&served);
    executor.spawn(async move {
        let guard = holder.read(PageId(0)).await.unwrap();
        handle.sleep_until(Nanos::from_micros(100)).await;
        drop(guard);
        again(holder).await;
        tells.set(handle.now());
    });
    assert_eq!(served_order(&executor, &pool, Nanos::from_micros(20), Nanos::ZERO), [1, 2, 3]);
    served.get().0 / 1_000
}

/// The rule: whoever comes while others wait for frames goes behind them, also where a frame is free at that moment.
#[test]
fn nobody_goes_before_misses_that_wait() {
    assert_eq!(comes_again(|pool| async move { request(&pool, 5, false).await.unwrap() }), 140);
    // To fetch ends when the drive has been asked.
    assert_eq!(comes_again(|pool| async move { pool.fetch(&[PageId(5)]).await.unwrap() }), 130);
}

/// The rule: a read that failed gives its frame to the miss that waits for one.
#[test]
fn the_frame_of_a_failed_read_serves_who_waits() {
    let device = FaultDevice::new(mem(16), vec![Fault::FailRead(0)]);
    let (executor, pool) = pool_over(device, 1, WriteBack::SINGLE);
    let (first, second, handle) = (pool.clone(), pool.clone(), executor.handle());
    executor.spawn(async move {
        let error = PoolError::Read { page: PageId(3), error: IoError::Media };
        assert_eq!(request(&first, 3, false).await, Err(error));
    });
    executor.spawn(async move {
        handle.sleep_until(Nanos::from_micros(5)).await;
        request(&second, 4, false).await.unwrap();
    });
    executor.run().unwrap();
    assert_eq!(pool.eviction_order(), [(PageId(4), false)]);
    // Nothing was written, so nobody has waited for that.
    assert_eq!(pool.counters().write_waits, 0);
}

/// The rule: a miss that is dropped after its turn has come, and before it noticed, leaves the turn to the next.
#[test]
fn a_turn_that_nobody_takes_goes_to_the_next() {
    let (executor, pool) = pool_over(mem(16), 1, WriteBack::SINGLE);
    let (holder, handle) = (pool.clone(), executor.handle());
    executor.spawn(async move {
        let guard = holder.read(PageId(0)).await.unwrap();
        let mut first = Box::pin(holder.read(PageId(1)));
        assert!(first.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        handle.sleep_until(Nanos::from_micros(100)).await;
        drop(guard);
        drop(first);
    });
    let (second, handle) = (pool.clone(), executor.handle());
    executor.spawn(async move {
        handle.sleep_until(Nanos::from_micros(50)).await;
        request(&second, 2, false).await.unwrap();
    });
    executor.run().unwrap();
    assert_eq!(pool.eviction_order(), [(PageId(2), false)]);
}

/// The rule: where misses wait for their writes, a frame that is being written stays, and others take the frame behind it.
#[test]
fn a_frame_is_held_while_it_is_written() {
    let (executor, pool) = pool_over(mem(64), 3, WriteBack::SINGLE);
    let inside = pool.clone();
    executor
        .block_on(async move {
            for page in 0..3 {
                request(&inside, page, page == 0).await.unwrap();
            }
        })
        .unwrap();
    // The first writes page 0, the second takes the clean frame of page 1 at once, the third that of page 2.
    assert_eq!(three_misses(&executor, &pool), (vec![10, 10, 20], 1));
    let mut held: Vec<u64> = pool.eviction_order().into_iter().map(|(page, _)| page.0).collect();
    held.sort_unstable();
    assert_eq!(held, [40, 41, 42]);
}

/// The rule: prefetched pages that nobody asked for leave next, but not for more prefetching, and are counted as wasted.
#[test]
fn unused_prefetched_pages_leave_next_and_are_counted() {
    let prefetch = "sequential:n=2".parse::<PrefetchConfig>().unwrap().start().unwrap();
    let executor = Executor::new(mem(64));
    let pool =
        BufferPool::new(executor.handle(), PoolConfig { prefetch, ..config(6, WriteBack::SINGLE) }).unwrap();
    let (user, handle) = (pool.clone(), executor.handle());
    let orders = executor.block_on(async move {
        let mut orders = Vec::new();
        // The second page in a row brings 7 and 8 along. Then the pool is full, and 30 and 31 are a run as well.
        for page in [5, 6, 20, 30, 31, 40] {
            request(&user, page, false).await.unwrap();
            handle.sleep_until(handle.now() + Nanos::from_micros(100)).await;
            let order: Vec<u64> = user.eviction_order().into_iter().map(|(page, _)| page.0).collect();
            orders.push((order, user.counters().prefetched, user.counters().prefetch_wasted));
        }
        orders
    });
    assert_eq!(
        orders.unwrap(),
        [
            (vec![5], 0, 0),
            (vec![8, 7, 5, 6], 2, 0),
            (vec![8, 7, 5, 6, 20], 2, 0),
            (vec![8, 7, 5, 6, 20, 30], 2, 0),
            // 31 takes the frame of 8. What it names would take that of 7, which was prefetched as well.
            (vec![7, 5, 6, 20, 30, 31], 2, 1),
            (vec![5, 6, 20, 30, 31, 40], 2, 2),
        ]
    );
}

/// The rule: a prefetched page that could not be read stays out of the pool, and is read again by who needs it.
#[test]
fn a_page_that_cannot_be_prefetched_is_read_again_by_who_needs_it() {
    let prefetch = "sequential:n=2".parse::<PrefetchConfig>().unwrap().start().unwrap();
    // Pages 5 and 6 are read, and then 7 and 8 are prefetched.
    let executor = Executor::new(FaultDevice::new(numbered(64), vec![Fault::FailRead(2)]));
    let shape = PoolConfig { prefetch, ..config(8, WriteBack::SINGLE) };
    let pool = BufferPool::new(executor.handle(), shape).unwrap();
    let (user, handle) = (pool.clone(), executor.handle());
    executor
        .block_on(async move {
            for page in 5..9u64 {
                assert_eq!(user.read(PageId(page)).await.unwrap().bytes()[..8], page.to_le_bytes());
                handle.sleep_until(handle.now() + Nanos::from_micros(100)).await;
            }
        })
        .unwrap();
    // 5, 6 and 7 were missed; 8 was there.
    assert_eq!((pool.counters().misses, pool.counters().prefetch_hits), (3, 1));
}

/// The rule: in a full pool, what is prefetched takes the place of clean pages that leave next, also without spare frames.
#[test]
fn prefetched_pages_take_the_place_of_clean_ones() {
    let prefetch = "sequential:n=2".parse::<PrefetchConfig>().unwrap().start().unwrap();
    let executor = Executor::new(mem(64));
    let pool =
        BufferPool::new(executor.handle(), PoolConfig { prefetch, ..config(4, WriteBack::SINGLE) }).unwrap();
    let user = pool.clone();
    executor
        .block_on(async move {
            for page in [2, 4, 6, 8, 30, 31] {
                request(&user, page, false).await.unwrap();
            }
        })
        .unwrap();
    executor.run().unwrap();
    let mut held: Vec<u64> = pool.eviction_order().into_iter().map(|(page, _)| page.0).collect();
    held.sort_unstable();
    assert_eq!((held, pool.counters().prefetched), (vec![30, 31, 32, 33], 2));
}

/// The rule: a prefetched page that somebody asked for on its way arrives like one that was missed, not to leave next.
#[test]
fn a_prefetched_page_that_is_wanted_already_arrives_as_used() {
    let prefetch = "sequential:n=2".parse::<PrefetchConfig>().unwrap().start().unwrap();
    let replacement = "fifo".parse::<ReplacementConfig>().unwrap().start(8).unwrap();
    let executor = Executor::new(mem(64));
    let shape = PoolConfig { prefetch, replacement, ..config(8, WriteBack::SINGLE) };
    let pool = BufferPool::new(executor.handle(), shape).unwrap();
    let (user, other, handle) = (pool.clone(), pool.clone(), executor.handle());
    executor.spawn(async move {
        for page in [5, 6] {
            request(&user, page, false).await.unwrap();
        }
    });
    executor.spawn(async move {
        // Page 6 is read from 10 to 20 µs, with 7 and 8 beside it.
        handle.sleep_until(Nanos::from_micros(15)).await;
        request(&other, 7, false).await.unwrap();
    });
    executor.run().unwrap();
    let order: Vec<u64> = pool.eviction_order().into_iter().map(|(page, _)| page.0).collect();
    assert_eq!(order, [8, 5, 6, 7]);
}

/// The rule: no page is prefetched that lies beyond the drive, is in the pool, or is on its way into it.
#[test]
fn what_is_there_or_nowhere_is_not_prefetched() {
    let prefetch = "sequential:n=4".parse::<PrefetchConfig>().unwrap().start().unwrap();
    let executor = Executor::new(mem(64));
    let shape = PoolConfig { prefetch, ..config(16, WriteBack::SINGLE) };
    let pool = BufferPool::new(executor.handle(), shape).unwrap();
    let (user, other, handle) = (pool.clone(), pool.clone(), executor.handle());
    executor.spawn(async move {
        // 60 is the second page of a run, so 61 to 64 are expected. The drive ends with 63.
        for page in [62, 59, 60] {
            request(&user, page, false).await.unwrap();
        }
    });
    executor.spawn(async move {
        // Page 60 is asked for at 20 µs.
        handle.sleep_until(Nanos::from_micros(15)).await;
        request(&other, 63, false).await.unwrap();
    });
    executor.run().unwrap();
    assert_eq!((pool.counters().prefetched, pool.counters().pages_read), (1, 5));
    let mut held: Vec<u64> = pool.eviction_order().into_iter().map(|(page, _)| page.0).collect();
    held.sort_unstable();
    assert_eq!(held, [59, 60, 61, 62, 63]);
}

/// The rule: pages to prefetch take spare frames only while more than half of them are free; the rest is for misses.
#[test]
fn prefetching_leaves_half_of_the_spare_frames() {
    let prefetch = "sequential".parse::<PrefetchConfig>().unwrap().start().unwrap();
    let cleaner = WriteBack { ahead: 4, cleaner_n_w: 4, ..WriteBack::SINGLE.with_buffers(4) };
    let executor = Executor::new(mem(64));
    let pool = BufferPool::new(executor.handle(), PoolConfig { prefetch, ..config(12, cleaner) }).unwrap();
    let user = pool.clone();
    executor
        .block_on(async move {
            for (page, write) in [
                (0, false),
                (30, true),
                (32, true),
                (34, true),
                (36, true),
                (38, true),
                (40, true),
                (19, false),
            ] {
                request(&user, page, write).await.unwrap();
            }
            // Page 0 leaves, the next four are being written, and 20 is the second page of a run.
            request(&user, 20, false).await.unwrap();
        })
        .unwrap();
    assert_eq!((pool.counters().prefetched, pool.counters().write_waits), (2, 0));
}

#[test]
fn misses_on_one_page_are_joined() {
    let (executor, pool) = pool_over(mem(8), 4, WriteBack::SINGLE);
    for _ in 0..10 {
        let pool = pool.clone();
        executor.spawn(async move { request(&pool, 5, false).await.unwrap() });
    }
    executor.run().unwrap();
    assert_eq!((pool.counters().misses, pool.counters().hits, pool.counters().read_ios), (1, 9, 1));
}

#[test]
fn a_failed_write_never_makes_a_page_clean() {
    for write_back in write_backs() {
        let device = FaultDevice::new(mem(16), vec![Fault::FailWrite(0)]);
        let (executor, pool) = pool_over(device, 4, write_back.clone());
        let inside = pool.clone();
        let outcome = executor.block_on(async move {
            // Whether or not a miss waits for the write that fails, one of them learns of it, once.
            let mut errors = Vec::new();
            for page in 0..4 {
                loop {
                    match inside.write(PageId(page)).await {
                        Ok(mut guard) => break guard.bytes_mut().fill(page as u8 + 1),
                        Err(error) => errors.push(error),
                    }
                }
            }
            for page in 9..14 {
                while let Err(error) = request(&inside, page, false).await {
                    errors.push(error);
                }
            }
            inside.flush().await.unwrap();
            let mut kept = Vec::new();
            for page in 0..4 {
                kept.push(inside.read(PageId(page)).await.unwrap().bytes()[7]);
            }
            (errors, kept)
        });
        let error = PoolError::WriteBack(IoError::Media);
        assert_eq!(outcome, Ok((vec![error], vec![1, 2, 3, 4])), "{write_back:?}");
    }
}

/// A pool of four frames and two spare ones that are all in use: the write of a first victim has failed, and it came back.
fn with_a_page_that_came_back(
    replacement: &str,
) -> (Executor<FaultDevice<MemDevice>>, BufferPool<FaultDevice<MemDevice>>) {
    let executor = Executor::new(FaultDevice::new(mem(16), vec![Fault::FailWrite(0)]));
    let raw = "raw:buffers=2,least=2".parse::<WriteBackConfig>().unwrap().resolve(|| Ok(4)).unwrap();
    let replacement = replacement.parse::<ReplacementConfig>().unwrap().start(6).unwrap();
    let config = PoolConfig { replacement, ..config(6, raw) };
    let pool = BufferPool::new(executor.handle(), config).unwrap();
    let (user, handle) = (pool.clone(), executor.handle());
    executor
        .block_on(async move {
            for page in 0..4 {
                request(&user, page, true).await.unwrap();
            }
            request(&user, 8, false).await.unwrap();
            handle.sleep_until(handle.now() + Nanos::from_micros(100)).await;
            request(&user, 9, true).await.unwrap_err();
        })
        .unwrap();
    (executor, pool)
}

/// The rule: a page that comes back since its write has failed is as changed as it was, so a policy that lets clean pages go first
/// keeps it.
#[test]
fn a_page_that_could_not_be_written_comes_back_as_a_changed_one() {
    let (_, pool) = with_a_page_that_came_back("cflru:window=100%");
    let dirty: Vec<bool> = pool.eviction_order().into_iter().map(|(_, dirty)| dirty).collect();
    assert_eq!(dirty, [false, true, true, true, true], "clean pages go first");
}

/// The rule: it is one page too many, which leaves as soon as another page is called back.
#[test]
fn a_page_that_came_back_is_counted() {
    let (executor, pool) = with_a_page_that_came_back("lru");
    let (user, handle) = (pool.clone(), executor.handle());
    executor
        .block_on(async move {
            let (next, miss) = (user.eviction_order()[0].0, user.clone());
            handle.spawn(async move { request(&miss, 10, true).await.unwrap() });
            handle.sleep_until(handle.now() + Nanos::from_micros(5)).await;
            request(&user, next.0, false).await.unwrap();
            handle.sleep_until(handle.now() + Nanos::from_micros(100)).await;
        })
        .unwrap();
    assert_eq!((pool.counters().rescued, pool.eviction_order().len()), (1, 4));
}

/// The rule: the miss after that makes room for it too, so that the pool has its spare frames again and misses wait for no write.
#[test]
fn a_page_that_came_back_takes_no_spare_frame_for_long() {
    let (executor, pool) = with_a_page_that_came_back("lru");
    let (user, handle) = (pool.clone(), executor.handle());
    executor
        .block_on(async move {
            request(&user, 10, true).await.unwrap();
            handle.sleep_until(handle.now() + Nanos::from_micros(100)).await;
        })
        .unwrap();
    assert_eq!(pool.eviction_order().len(), pool.limit() as usize);
    let before = pool.counters();
    for page in 11..13 {
        let user = pool.clone();
        executor.spawn(async move { request(&user, page, false).await.unwrap() });
    }
    executor.run().unwrap();
    let after = pool.counters();
    assert_eq!((after.pages_written - before.pages_written, after.write_waits), (2, 0));
}

/// The rule: where the limit falls, the next miss makes the pool as small as it may be, and nothing is lost.
#[test]
fn a_pool_is_as_small_as_its_limit_after_the_next_miss() {
    for write_back in write_backs() {
        let (executor, pool) = pool_over(mem(32), 8, write_back.clone());
        let user = pool.clone();
        executor
            .block_on(async move {
                for page in 0..8 {
                    user.write(PageId(page)).await.unwrap().bytes_mut().fill(page as u8 + 1);
                }
                user.set_limit(2);
                request(&user, 20, false).await.unwrap();
                assert_eq!(user.eviction_order().len(), user.limit() as usize);
                for page in 0..8 {
                    assert_eq!(user.read(PageId(page)).await.unwrap().bytes()[7], page as u8 + 1);
                }
                assert_eq!(user.eviction_order().len(), user.limit() as usize);
            })
            .unwrap();
        assert!(pool.limit() <= 2, "{write_back:?}");
    }
}

/// Pages at their own numbers, and how many are being written, now and at most.
struct Counted {
    handle: Handle<MemDevice>,
    now: Rc<Cell<usize>>,
    most: Rc<Cell<usize>>,
}

impl PageStore for Counted {
    fn read(&self, page: PageId, into: Option<Buffer>) -> PageIo {
        Box::pin(self.handle.submit(Operation::Read { lpn: Lpn(page.0), pages: 1, into }))
    }

    fn write(&self, pages: Vec<PageBytes>) -> PageIo {
        let (now, count) = (Rc::clone(&self.now), pages.len());
        now.set(now.get() + count);
        self.most.set(self.most.get().max(now.get()));
        let io = self.handle.submit_all(pages.into_iter().map(|page| Operation::Write {
            lpn: Lpn(page.page.0),
            pages: 1,
            from: page.bytes,
            stream: StreamId::default(),
            durable: false,
        }));
        Box::pin(async move {
            let outcome = io.await;
            now.set(now.get() - count);
            outcome
        })
    }
}

/// The rule: a pool whose limit falls writes no more pages at once than misses may, and with a lock one at a time.
#[test]
fn a_pool_that_becomes_smaller_keeps_the_bound_and_the_lock() {
    for write_back in write_backs().into_iter().chain(planned_write_backs()) {
        let executor = Executor::new(mem(64));
        let most = Rc::new(Cell::new(0));
        let store = Counted { handle: executor.handle(), now: Rc::default(), most: Rc::clone(&most) };
        let shape = PoolConfig { store: Some(Rc::new(store)), ..config(32, write_back.clone()) };
        let pool = BufferPool::new(executor.handle(), shape).unwrap();
        let user = pool.clone();
        let bound = if write_back.lock && write_back.planner.is_none() { 1 } else { write_back.under_way };
        executor
            .block_on(async move {
                for page in 0..32 {
                    user.write(PageId(page)).await.unwrap().bytes_mut().fill(page as u8 + 1);
                }
                user.set_limit(2);
                request(&user, 40, false).await.unwrap();
                assert!(most.get() <= bound as usize, "{} at once under {write_back:?}", most.get());
                for page in 0..32 {
                    assert_eq!(user.read(PageId(page)).await.unwrap().bytes()[7], page as u8 + 1);
                }
                assert_eq!(user.eviction_order().len(), user.limit() as usize);
            })
            .unwrap();
    }
}

/// The rule: a miss that is told of a failed write passes its turn on, so that those behind it do not wait for ever.
#[test]
fn a_miss_that_learns_of_a_failed_write_passes_its_turn_on() {
    let executor = Executor::new(mem(64));
    let store = Slow { handle: executor.handle(), begun: Cell::new(0), fails: 1, arrived: Rc::default() };
    let one_under_way = WriteBack { under_way: 1, ..WriteBack::SINGLE.with_buffers(1) };
    let config = PoolConfig { store: Some(Rc::new(store)), ..config(3, one_under_way) };
    let pool = BufferPool::new(executor.handle(), config).unwrap();
    let outcomes = Rc::new(RefCell::new(Vec::new()));
    let user = pool.clone();
    executor.spawn(async move {
        for page in 0..2 {
            request(&user, page, true).await.unwrap();
        }
        // Page 0 is written from a spare frame, and nobody waits for that.
        request(&user, 10, false).await.unwrap();
    });
    for page in 11..13 {
        let (pool, outcomes, handle) = (pool.clone(), Rc::clone(&outcomes), executor.handle());
        executor.spawn(async move {
            // Page 1 is next, but no second page may be under way.
            handle.sleep_until(Nanos::from_micros(40 + page)).await;
            let outcome = request(&pool, page, false).await;
            outcomes.borrow_mut().push((page, outcome));
        });
    }
    executor.run().unwrap();
    assert_eq!(*outcomes.borrow(), [(11, Err(PoolError::WriteBack(IoError::Media))), (12, Ok(()))]);
}

/// Counts how often it was asked to write.
#[derive(Default)]
struct Asked(Cell<usize>);

impl PageStore for Asked {
    fn read(&self, _: PageId, _: Option<Buffer>) -> PageIo {
        Box::pin(std::future::ready(Ok(())))
    }

    fn write(&self, _: Vec<PageBytes>) -> PageIo {
        self.0.set(self.0.get() + 1);
        Box::pin(std::future::ready(Ok(())))
    }
}

/// The rule: where nothing is dirty, nobody is asked to write.
#[test]
fn a_flush_without_dirty_pages_writes_nothing() {
    let (executor, asked) = (Executor::new(mem(16)), Rc::new(Asked::default()));
    let shape = PoolConfig { store: Some(asked.clone()), ..config(4, WriteBack::SINGLE) };
    let pool = BufferPool::new(executor.handle(), shape).unwrap();
    executor
        .block_on(async move {
            request(&pool, 3, false).await.unwrap();
            pool.flush().await.unwrap();
            pool.write_pages(&[PageId(3)]).await.unwrap();
        })
        .unwrap();
    assert_eq!(asked.0.get(), 0);
}

/// The rule: a write that failed and that nobody waited for is told to whoever needs a frame next, also to fetch pages.
#[test]
fn a_failed_write_is_told_to_who_fetches() {
    let device = FaultDevice::new(mem(64), vec![Fault::FailWrite(0)]);
    let (executor, pool) = pool_over(device, 3, WriteBack::SINGLE.with_buffers(1));
    let handle = executor.handle();
    let outcomes = executor.block_on(async move {
        for (page, write) in [(0, true), (1, false), (10, false)] {
            request(&pool, page, write).await.unwrap();
        }
        handle.sleep_until(Nanos::from_micros(200)).await;
        [pool.fetch(&[PageId(20)]).await, pool.fetch(&[PageId(20)]).await]
    });
    assert_eq!(outcomes, Ok([Err(PoolError::WriteBack(IoError::Media)), Ok(())]));
}

/// The rule: a page that comes back while it is written has its place at once, though no more pages may be under way for misses.
#[test]
fn what_leaves_for_a_page_that_comes_back_does_not_wait_for_the_bound() {
    let one_under_way = WriteBack { under_way: 1, ..WriteBack::SINGLE.with_buffers(1) };
    let (executor, pool) = pool_over(mem(64), 3, one_under_way);
    let user = pool.clone();
    executor
        .block_on(async move {
            for page in [0, 1] {
                request(&user, page, true).await.unwrap();
            }
            // Page 0 is being written when it is asked for again.
            let other = user.clone();
            let mut miss = Box::pin(request(&other, 10, false));
            assert!(miss.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            request(&user, 0, false).await.unwrap();
            let PoolCounters { rescued, pages_written, .. } = user.counters();
            assert_eq!((rescued, pages_written), (1, 2));
            miss.await.unwrap();
        })
        .unwrap();
}

#[test]
fn a_flush_reports_what_it_could_not_write() {
    for write_back in write_backs() {
        // With room for all, nothing is written before the flush.
        let device = FaultDevice::new(mem(16), vec![Fault::FailWrite(1)]);
        let (executor, pool) = pool_over(device, 12, write_back.clone());
        let inside = pool.clone();
        let outcome = executor.block_on(async move {
            for page in 0..3 {
                request(&inside, page, true).await.unwrap();
            }
            (inside.flush().await, inside.flush().await)
        });
        assert_eq!(outcome, Ok((Err(PoolError::WriteBack(IoError::Media)), Ok(()))), "{write_back:?}");
    }
}

/// The rule: a flush answers for every page that was changed when it began, also for one whose write a miss has begun meanwhile,
/// although that miss has been told.
#[test]
fn a_flush_reports_what_a_miss_could_not_write_meanwhile() {
    let device = FaultDevice::new(mem(16), vec![Fault::FailWrite(1)]);
    let (executor, pool) = pool_over(device, 3, WriteBack::SINGLE);
    let filling = pool.clone();
    executor
        .block_on(async move {
            for page in 0..3 {
                request(&filling, page, true).await.unwrap();
            }
            // Page 2 is the one that leaves next.
            request(&filling, 0, false).await.unwrap();
        })
        .unwrap();
    // The flush writes page 0 and then waits for page 1, while a miss begins to write page 2.
    let (start, told) = (executor.handle().now(), Rc::new(RefCell::new(Vec::new())));
    let at = move |micros| start + Nanos::from_micros(micros);
    let (holder, handle) = (pool.clone(), executor.handle());
    executor.spawn(async move {
        let held = holder.write(PageId(1)).await.unwrap();
        handle.sleep_until(at(15)).await;
        drop(held);
    });
    let (misses, handle, tells) = (pool.clone(), executor.handle(), Rc::clone(&told));
    executor.spawn(async move {
        handle.sleep_until(at(12)).await;
        let outcome = request(&misses, 9, false).await;
        tells.borrow_mut().push(outcome);
    });
    let (flushes, tells) = (pool.clone(), Rc::clone(&told));
    executor.spawn(async move {
        let outcome = flushes.flush().await;
        tells.borrow_mut().push(outcome);
    });
    executor.run().unwrap();
    let failed = Err(PoolError::WriteBack(IoError::Media));
    assert_eq!(*told.borrow(), [failed, failed]);
}

#[test]
fn a_failed_read_leaves_the_pool_usable() {
    let device = FaultDevice::new(mem(16), vec![Fault::FailRead(0)]);
    let (executor, pool) = pool_over(device, 1, WriteBack::SINGLE);
    let outcome = executor.block_on(async move {
        let first = request(&pool, 3, false).await;
        (first, request(&pool, 3, false).await, request(&pool, 4, true).await)
    });
    let error = PoolError::Read { page: PageId(3), error: IoError::Media };
    assert_eq!(outcome, Ok((Err(error), Ok(()), Ok(()))));
}

/// A place of which nothing can be read.
struct Unreadable;

impl PageStore for Unreadable {
    fn read(&self, _: PageId, _: Option<Buffer>) -> PageIo {
        Box::pin(async { Err(IoError::Media) })
    }

    fn write(&self, _: Vec<PageBytes>) -> PageIo {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// The rule: a read that has failed is over, and its frame is free at once.
#[test]
fn a_failed_read_of_a_store_gives_its_frame_back() {
    let executor = Executor::new(mem(16));
    let shape = PoolConfig { store: Some(Rc::new(Unreadable)), ..config(1, WriteBack::SINGLE) };
    let pool = BufferPool::new(executor.handle(), shape).unwrap();
    let user = pool.clone();
    let outcome = executor.block_on(async move {
        let read = request(&user, 3, false).await;
        (read, user.create(PageId(3)).await.map(drop))
    });
    let error = PoolError::Read { page: PageId(3), error: IoError::Media };
    assert_eq!(outcome, Ok((Err(error), Ok(()))));
    executor.run().unwrap();
}

#[test]
fn a_page_beyond_the_drive_is_an_error() {
    let (executor, pool) = pool_over(mem(16), 2, WriteBack::SINGLE);
    for page in [16, u64::MAX] {
        let pool = pool.clone();
        let outcome = executor.block_on(async move { request(&pool, page, false).await });
        assert_eq!(outcome, Ok(Err(PoolError::Read { page: PageId(page), error: IoError::OutOfRange })));
    }
}

/// Polls a future once and drops it.
fn start_and_give_up(future: impl Future) {
    let mut future = Box::pin(future);
    assert!(matches!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
}

#[test]
fn a_user_who_gives_up_costs_no_frame_and_no_update() {
    for write_back in write_backs() {
        let (executor, pool) = pool_over(mem(64), 2 + write_back.buffers, write_back.clone());
        let inside = pool.clone();
        executor
            .block_on(async move {
                start_and_give_up(inside.read(PageId(40)));
                for page in 0..2 {
                    inside.write(PageId(page)).await.unwrap().bytes_mut().fill(page as u8 + 1);
                }
                // Given up during the write-back of the victim, then during the read.
                start_and_give_up(inside.read(PageId(41)));
                inside.read(PageId(0)).await.unwrap();
                start_and_give_up(inside.read(PageId(42)));
                start_and_give_up(inside.read(PageId(42)));
                for page in 50..60 {
                    request(&inside, page, page % 2 == 0).await.unwrap();
                }
                for page in 0..2 {
                    assert!(
                        inside
                            .read(PageId(page))
                            .await
                            .unwrap()
                            .bytes()
                            .iter()
                            .all(|byte| *byte == page as u8 + 1)
                    );
                }
            })
            .unwrap();
        let held = pool.eviction_order().len() as u32;
        assert_eq!(held, pool.limit(), "a frame is lost under {write_back:?}");
    }
}

#[test]
fn a_pinned_page_is_never_evicted_and_waiting_for_ever_is_reported() {
    let (executor, pool) = pool_over(mem(16), 2, WriteBack::SINGLE);
    let outcome = executor.block_on(async move {
        let _first = pool.read(PageId(0)).await.unwrap();
        let _second = pool.write(PageId(1)).await.unwrap();
        request(&pool, 2, false).await.unwrap();
    });
    assert!(matches!(outcome, Err(RunError::Stalled { tasks: 1, .. })), "{outcome:?}");
}

#[test]
fn waiting_for_a_frame_ends_when_one_is_let_go() {
    let (executor, pool) = pool_over(mem(16), 1, WriteBack::SINGLE);
    let (waiting, handle) = (pool.clone(), executor.handle());
    executor.spawn(async move {
        let guard = pool.write(PageId(0)).await.unwrap();
        handle.sleep_until(Nanos::from_micros(500)).await;
        drop(guard);
    });
    executor.spawn(async move { request(&waiting, 1, false).await.unwrap() });
    executor.run().unwrap();
    // Held until 500 µs, then a write-back and a read of 10 µs each.
    assert_eq!(executor.with_device(|device| device.now()), Nanos::from_micros(520));
}

#[test]
fn impossible_pools_are_refused() {
    let (executor, _) = pool_over(mem(16), 1, WriteBack::SINGLE);
    let refuse = |config: PoolConfig| BufferPool::new(executor.handle(), config).err();
    let good = || config(1, WriteBack::SINGLE);
    assert_eq!(refuse(PoolConfig { frames: 0, ..good() }), Some(PoolConfigError::NoFrames));
    let spare = PoolConfigError::Buffers { buffers: 1, frames: 1 };
    assert_eq!(refuse(config(1, WriteBack::SINGLE.with_buffers(1))), Some(spare));
    let error = PoolConfigError::PageSize { page_bytes: 700, device_bytes: PAGE_BYTES };
    assert_eq!(refuse(PoolConfig { page_bytes: 700, ..good() }), Some(error));
    assert!(refuse(PoolConfig { page_bytes: 2 * PAGE_BYTES, ..good() }).is_none());
}

/// Writes each page's number into it.
fn numbered(pages: u64) -> MemDevice {
    let executor = Executor::new(mem(pages));
    let pool = BufferPool::new(executor.handle(), config(4, WriteBack::SINGLE)).unwrap();
    executor
        .block_on(async move {
            for page in 0..pages {
                pool.write(PageId(page)).await.unwrap().bytes_mut()[..8].copy_from_slice(&page.to_le_bytes());
            }
            pool.flush().await.unwrap();
        })
        .unwrap();
    executor.with_device(|device| std::mem::replace(device, mem(1)))
}

#[test]
fn pages_that_follow_each_other_are_fetched_with_one_command() {
    let (executor, pool) = pool_over(numbered(64), 32, WriteBack::SINGLE);
    let reader = pool.clone();
    executor
        .block_on(async move {
            drop(reader.read(PageId(12)).await.unwrap());
            // 10 and 11, 13 to 15, and 20: page 12 is there, and 11 is named twice.
            let wanted = [10, 11, 11, 12, 13, 14, 15, 20].map(PageId);
            reader.fetch(&wanted).await.unwrap();
            for page in wanted {
                let guard = reader.read(page).await.unwrap();
                assert_eq!(guard.bytes()[..8], page.0.to_le_bytes());
            }
        })
        .unwrap();
    let PoolCounters { read_ios, pages_read, misses, hits, prefetched, prefetch_hits, .. } = pool.counters();
    assert_eq!((read_ios, pages_read), (1 + 3, 1 + 6));
    assert_eq!((misses, hits, prefetched, prefetch_hits), (1, 8, 6, 6));
}

/// The rule: a command reads no more pages of the drive than it may, also where a page of the pool is many of them.
#[test]
fn a_run_is_fetched_with_as_many_commands_as_the_drive_needs() {
    let (pages, per_page) = (24, 64);
    let executor = Executor::new(mem(pages * per_page));
    let replacement = "lru".parse::<ReplacementConfig>().unwrap().start(32).unwrap();
    let shape = PoolConfig::new(32, PAGE_BYTES * per_page as u32, replacement, WriteBack::SINGLE);
    let pool = BufferPool::new(executor.handle(), shape).unwrap();
    let user = pool.clone();
    executor
        .block_on(async move {
            let all: Vec<PageId> = (0..pages).map(PageId).collect();
            user.fetch(&all).await.unwrap();
            for page in 0..pages {
                request(&user, page, false).await.unwrap();
            }
        })
        .unwrap();
    // The drive takes 1,024 pages in a command, which are 16 of these.
    assert_eq!((pool.counters().read_ios, pool.counters().pages_read), (2, 24));
}

/// The rule: a page that somebody else asked for while `fetch` waited for a frame is read once, and the frame is given back.
#[test]
fn a_page_that_came_while_its_frame_was_made_is_not_fetched_again() {
    let (executor, pool) = pool_over(numbered(64), 2, WriteBack::SINGLE);
    let (user, other, handle) = (pool.clone(), pool.clone(), executor.handle());
    let (sleeper, begin) = (executor.handle(), executor.handle().now());
    executor.spawn(async move {
        request(&user, 0, true).await.unwrap();
        let held = user.read(PageId(1)).await.unwrap();
        // Page 0 is written first, from 20 to 30 µs.
        user.fetch(&[PageId(7)]).await.unwrap();
        sleeper.sleep_until(begin + Nanos::from_micros(100)).await;
        drop(held);
        // Both frames are still there.
        let both = (user.read(PageId(8)).await.unwrap(), user.read(PageId(9)).await.unwrap());
        assert_eq!(both.1.bytes()[..8], 9u64.to_le_bytes());
    });
    executor.spawn(async move {
        handle.sleep_until(begin + Nanos::from_micros(25)).await;
        assert_eq!(other.read(PageId(7)).await.unwrap().bytes()[..8], 7u64.to_le_bytes());
    });
    executor.run().unwrap();
    let held: Vec<u64> = pool.eviction_order().into_iter().map(|(page, _)| page.0).collect();
    assert_eq!(held.len(), 2, "{held:?}");
    assert_eq!((pool.counters().prefetched, pool.counters().pages_read), (0, 5));
}

#[test]
fn more_pages_than_frames_are_fetched_in_the_end() {
    let (executor, pool) = pool_over(numbered(64), 8, WriteBack::SINGLE);
    let reader = pool.clone();
    executor
        .block_on(async move {
            let wanted: Vec<PageId> = (0..64).map(PageId).collect();
            reader.fetch(&wanted).await.unwrap();
            assert_eq!(reader.read(PageId(5)).await.unwrap().bytes()[..8], 5u64.to_le_bytes());
        })
        .unwrap();
    let counters = pool.counters();
    assert_eq!((counters.pages_read, counters.prefetched), (65, 64));
}

#[test]
fn a_page_that_cannot_be_fetched_is_read_again_by_who_needs_it() {
    let (executor, pool) =
        pool_over(FaultDevice::new(numbered(64), vec![Fault::FailRead(0)]), 8, WriteBack::SINGLE);
    let reader = pool.clone();
    executor
        .block_on(async move {
            reader.fetch(&[7].map(PageId)).await.unwrap();
            assert_eq!(reader.read(PageId(7)).await.unwrap().bytes()[..8], 7u64.to_le_bytes());
            let all: Vec<PageId> = (8..16).map(PageId).collect();
            reader.fetch(&all).await.unwrap();
            for page in all {
                assert_eq!(reader.read(page).await.unwrap().bytes()[..8], page.0.to_le_bytes());
            }
        })
        .unwrap();
    assert_eq!(pool.counters().prefetched, 9);
}

/// The rule: that holds for each page of a run that could not be read.
#[test]
fn a_run_that_cannot_be_fetched_is_read_again_by_who_needs_it() {
    let device = FaultDevice::new(numbered(64), vec![Fault::FailRead(0)]);
    let (executor, pool) = pool_over(device, 8, WriteBack::SINGLE);
    let reader = pool.clone();
    executor
        .block_on(async move {
            reader.fetch(&[8, 9].map(PageId)).await.unwrap();
            for page in 8..10u64 {
                assert_eq!(reader.read(PageId(page)).await.unwrap().bytes()[..8], page.to_le_bytes());
            }
        })
        .unwrap();
    assert_eq!((pool.counters().prefetched, pool.counters().misses), (2, 2));
}

/// Pages at their own numbers.
struct Plain(Handle<MemDevice>);

impl PageStore for Plain {
    fn read(&self, page: PageId, into: Option<Buffer>) -> PageIo {
        Box::pin(self.0.submit(Operation::Read { lpn: Lpn(page.0), pages: 1, into }))
    }

    fn write(&self, _: Vec<PageBytes>) -> PageIo {
        Box::pin(std::future::ready(Err(IoError::Unsupported)))
    }
}

#[test]
fn a_pool_goes_with_its_executor_though_reads_are_under_way() {
    let executor = Executor::new(mem(64));
    let store = Rc::new(Plain(executor.handle()));
    let known = Rc::downgrade(&store);
    let shape = PoolConfig { store: Some(store), ..config(16, WriteBack::SINGLE) };
    let pool = BufferPool::new(executor.handle(), shape).unwrap();
    for page in 0..4 {
        let reader = pool.clone();
        executor.spawn(async move {
            reader.fetch(&[8 + page, 9 + page].map(PageId)).await.unwrap();
            let _ = reader.read(PageId(page)).await;
        });
    }
    executor.turn().unwrap();
    drop(pool);
    assert!(known.upgrade().is_some(), "tasks read");
    drop(executor);
    assert!(known.upgrade().is_none(), "nothing holds the pool any more");
}

/// The rule: what a store reads page by page comes in like what it reads with one command.
#[test]
fn a_store_that_reads_one_page_at_a_time_fetches_a_run() {
    let executor = Executor::new(numbered(64));
    let shape = PoolConfig { store: Some(Rc::new(Plain(executor.handle()))), ..config(8, WriteBack::SINGLE) };
    let pool = BufferPool::new(executor.handle(), shape).unwrap();
    let user = pool.clone();
    executor
        .block_on(async move {
            user.fetch(&[3, 4, 5].map(PageId)).await.unwrap();
            for page in 3..6u64 {
                assert_eq!(user.read(PageId(page)).await.unwrap().bytes()[..8], page.to_le_bytes());
            }
        })
        .unwrap();
    assert_eq!((pool.counters().misses, pool.counters().prefetched), (0, 3));
}

/// The rule: to fetch what is in the pool already takes no frame from another page.
#[test]
fn what_is_there_is_fetched_without_a_frame() {
    let (executor, pool) = pool_over(mem(64), 4, WriteBack::SINGLE);
    let user = pool.clone();
    executor
        .block_on(async move {
            for page in 0..4 {
                request(&user, page, false).await.unwrap();
            }
            user.fetch(&[0, 1, 2, 3].map(PageId)).await.unwrap();
        })
        .unwrap();
    let left: Vec<u64> = pool.eviction_order().into_iter().map(|(page, _)| page.0).collect();
    assert_eq!((left, pool.counters().pages_read), (vec![0, 1, 2, 3], 4));
}

/// The rule: of every count, [`PoolCounters::since`] tells what was added.
#[test]
fn counters_since_tell_what_was_added() {
    let counters = |of: fn(u64) -> u64| PoolCounters {
        hits: of(13),
        misses: of(2),
        read_ios: of(3),
        pages_read: of(4),
        write_ios: of(5),
        pages_written: of(6),
        pages_flushed: of(7),
        prefetched: of(8),
        prefetch_hits: of(9),
        prefetch_wasted: of(10),
        rescued: of(11),
        write_waits: of(12),
    };
    let (before, after) = (counters(|count| 100 * count), counters(|count| 101 * count));
    assert_eq!(after.since(&before), counters(|count| count));
}

/// The rule: the first use of a prefetched page counts as a request for the policy, so that a run goes on. Without it the page behind
/// those that were prefetched would begin a new run.
#[test]
fn a_run_goes_on_behind_what_was_prefetched() {
    let prefetch = "sequential:n=2".parse::<PrefetchConfig>().unwrap().start().unwrap();
    let executor = Executor::new(mem(64));
    let shape = PoolConfig { prefetch, ..config(32, WriteBack::SINGLE) };
    let pool = BufferPool::new(executor.handle(), shape).unwrap();
    let (user, handle) = (pool.clone(), executor.handle());
    executor
        .block_on(async move {
            for page in 0..10 {
                request(&user, page, false).await.unwrap();
                handle.sleep_until(handle.now() + Nanos::from_micros(50)).await;
            }
        })
        .unwrap();
    // The run is believed at page 1, and from then on every third page is missed.
    let PoolCounters { misses, prefetched, prefetch_hits, .. } = pool.counters();
    assert_eq!((misses, prefetched, prefetch_hits), (4, 6, 6));
}

/// An ideal drive that tells how often its erase blocks were erased, and keeps what was registered with it.
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

/// The rule: a policy that asks for erase counts gets those of the drive, of the place where each page lies there. And the drive
/// knows the memory of the frames.
#[test]
fn a_policy_is_told_the_erase_counts_of_the_drive() {
    let registered = Rc::new(Cell::new(0));
    let executor = Executor::new(Worn::new(&registered));
    let replacement = "cflru-e:window=4".parse::<ReplacementConfig>().unwrap().start(4).unwrap();
    // Pages of two of the drive's, so that a place is not a page's number.
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
    // All are dirty, so the order is that of the erases: the last page of the drive was erased least.
    let order: Vec<u64> = pool.eviction_order().into_iter().map(|(page, _)| page.0).collect();
    assert_eq!(order, [3, 2, 1, 0]);
}

/// The rule: a pool is full once as many frames hold pages as may, and not before.
#[test]
fn a_pool_is_full_when_its_frames_are_in_use() {
    let (executor, pool) = pool_over(mem(64), 3, WriteBack::SINGLE);
    for page in 0..3 {
        assert!(!pool.is_full(), "{page} pages");
        let user = pool.clone();
        executor.block_on(async move { request(&user, page, false).await.unwrap() }).unwrap();
    }
    assert!(pool.is_full());
    // What is there can be had at once for changing, and what somebody has cannot.
    let changed = pool.try_write(PageId(2)).expect("it is there");
    assert!(pool.try_write(PageId(2)).is_none() && pool.try_write(PageId(9)).is_none());
    drop(changed);
    assert_eq!(pool.eviction_order().last(), Some(&(PageId(2), true)));
}

/// Notes how many pages each write has.
struct Widths(RefCell<Vec<usize>>);

impl PageStore for Widths {
    fn read(&self, _: PageId, _: Option<Buffer>) -> PageIo {
        Box::pin(std::future::ready(Ok(())))
    }

    fn write(&self, pages: Vec<PageBytes>) -> PageIo {
        self.0.borrow_mut().push(pages.len());
        Box::pin(std::future::ready(Ok(())))
    }
}

/// The rule: a flush writes all that is dirty and nothing else, 64 pages at a time. [`BufferPool::write_pages`] writes the dirty ones of
/// those that it is told, but none that somebody is changing.
#[test]
fn a_flush_writes_all_that_is_dirty_in_batches() {
    let executor = Executor::new(mem(256));
    let store = Rc::new(Widths(RefCell::default()));
    let shape = PoolConfig { store: Some(Rc::clone(&store) as _), ..config(200, WriteBack::SINGLE) };
    let pool = BufferPool::new(executor.handle(), shape).unwrap();
    let user = pool.clone();
    executor
        .block_on(async move {
            for page in 0..160 {
                request(&user, page, page < 140).await.unwrap();
            }
            user.flush().await.unwrap();
            assert_eq!(user.counters().pages_flushed, 140);
            assert!(user.eviction_order().iter().all(|(_, dirty)| !dirty));
            request(&user, 7, true).await.unwrap();
            let changing = user.write(PageId(8)).await.unwrap();
            user.write_pages(&[6, 7, 8].map(PageId)).await.unwrap();
            assert_eq!(user.counters().pages_flushed, 141);
            drop(changing);
            assert!(user.eviction_order().contains(&(PageId(8), true)));
        })
        .unwrap();
    assert_eq!(*store.0.borrow(), [64, 64, 12, 1]);
}

/// The rule: a flush writes again what failed before it began, so no miss is told of that afterwards.
#[test]
fn a_flush_makes_good_what_failed_before() {
    let raw = "raw:buffers=1".parse::<WriteBackConfig>().unwrap().resolve(|| Ok(1)).unwrap();
    let device = FaultDevice::new(mem(16), vec![Fault::FailWrite(0)]);
    let (executor, pool) = pool_over(device, 3, raw);
    let (user, handle) = (pool.clone(), executor.handle());
    let outcome = executor.block_on(async move {
        // The write of page 0 is waited for by nobody.
        for page in 0..3 {
            request(&user, page, page == 0).await.unwrap();
        }
        handle.sleep_until(handle.now() + Nanos::from_micros(50)).await;
        let flushed = user.flush().await;
        (flushed, request(&user, 9, false).await)
    });
    assert_eq!(outcome, Ok((Ok(()), Ok(()))));
}

/// The rule: a flush waits for the writes that are under way when it begins, and writes again what they could not.
#[test]
fn a_flush_waits_for_the_writes_under_way() {
    let device = FaultDevice::new(mem(16), vec![Fault::FailWrite(0)]);
    let (executor, pool) = pool_over(device, 2, WriteBack::SINGLE);
    let user = pool.clone();
    let flushed = executor.block_on(async move {
        request(&user, 0, true).await.unwrap();
        start_and_give_up(user.write_pages(&[PageId(0)]));
        user.flush().await
    });
    executor.run().unwrap();
    assert_eq!((flushed, pool.eviction_order()), (Ok(Ok(())), vec![(PageId(0), false)]));
}

/// The rule: a latch that a request is given and no longer wants goes to the next who waits for it.
#[test]
fn a_latch_that_nobody_takes_goes_to_the_next() {
    let (executor, pool) = pool_over(mem(16), 2, WriteBack::SINGLE);
    let (holder, handle) = (pool.clone(), executor.handle());
    executor.spawn(async move {
        let held = holder.write(PageId(0)).await.unwrap();
        let mut first = Box::pin(holder.write(PageId(0)));
        assert!(first.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        handle.sleep_until(Nanos::from_micros(100)).await;
        drop(held);
        drop(first);
    });
    let (second, handle) = (pool.clone(), executor.handle());
    executor.spawn(async move {
        handle.sleep_until(Nanos::from_micros(50)).await;
        request(&second, 0, true).await.unwrap();
    });
    executor.run().unwrap();
    assert!(pool.try_write(PageId(0)).is_some(), "the latch is free in the end");
}

/// The rule: a frame that a limit leaves empty is lent before a page has to leave for it.
#[test]
fn an_empty_frame_is_lent_first() {
    let (executor, pool) = pool_over(mem(16), 8, WriteBack::SINGLE);
    pool.set_limit(4);
    let user = pool.clone();
    executor
        .block_on(async move {
            for page in 0..4 {
                request(&user, page, false).await.unwrap();
            }
        })
        .unwrap();
    let mut lent = pool.borrower();
    assert!(lent.borrow_one().is_some());
    assert_eq!(pool.eviction_order().len(), 4);
}

/// The rule: a write that fails for a loan is told to the next miss, and nothing is lent.
#[test]
fn a_write_that_failed_for_a_loan_is_told_to_the_next_miss() {
    let device = FaultDevice::new(mem(16), vec![Fault::FailWrite(1)]);
    let (executor, pool) = pool_over(device, 2, WriteBack::SINGLE);
    let user = pool.clone();
    let outcome = executor.block_on(async move {
        for page in 0..2 {
            request(&user, page, true).await.unwrap();
        }
        let loan = user.borrower().borrow_soon().await;
        (loan.is_some(), request(&user, 9, false).await)
    });
    assert_eq!(outcome, Ok((false, Err(PoolError::WriteBack(IoError::Media)))));
    assert_eq!(pool.limit(), 2);
}

/// The rule: of two who wait for the last frame that may be lent, one gets it; what was made free for the other is the pool's again.
#[test]
fn the_last_frame_is_lent_to_nobody() {
    let (executor, pool) = pool_over(mem(16), 2, WriteBack::SINGLE);
    let user = pool.clone();
    executor
        .block_on(async move {
            for page in 0..2 {
                request(&user, page, true).await.unwrap();
            }
        })
        .unwrap();
    let loans = Rc::new(RefCell::new(Vec::new()));
    for _ in 0..2 {
        let (soon, loans) = (pool.borrower().borrow_soon(), Rc::clone(&loans));
        executor.spawn(async move {
            let loan = soon.await;
            loans.borrow_mut().push(loan);
        });
    }
    executor.run().unwrap();
    let got = loans.borrow().iter().flatten().count();
    assert_eq!((got, pool.limit()), (1, 1));
    loans.borrow_mut().clear();
    assert_eq!(pool.limit(), 2, "what was lent is back");
}

/// The rule: a frame that is given back serves a miss that waits for one.
#[test]
fn a_frame_that_is_given_back_serves_who_waits() {
    let (executor, pool) = pool_over(mem(16), 2, WriteBack::SINGLE);
    let mut lent = pool.borrower();
    let frame = lent.borrow_one().unwrap();
    let (user, handle) = (pool.clone(), executor.handle());
    executor.spawn(async move {
        let held = user.read(PageId(0)).await.unwrap();
        handle.sleep_until(Nanos::from_micros(200)).await;
        drop(held);
    });
    let (user, handle, served) = (pool.clone(), executor.handle(), Rc::new(Cell::new(Nanos::ZERO)));
    let tells = Rc::clone(&served);
    executor.spawn(async move {
        handle.sleep_until(Nanos::from_micros(50)).await;
        request(&user, 1, false).await.unwrap();
        tells.set(handle.now());
    });
    let handle = executor.handle();
    executor.spawn(async move {
        handle.sleep_until(Nanos::from_micros(100)).await;
        lent.give_back(frame);
    });
    executor.run().unwrap();
    assert_eq!(served.get(), Nanos::from_micros(110));
}
