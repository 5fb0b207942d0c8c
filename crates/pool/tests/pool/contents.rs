//! Tests of the contents of pages under concurrent users: a page always has its last written bytes, and a
//! dropped request loses no frame and no update.

use crate::common::{PAGE_BYTES, config, mem, pool_over, request};
use crate::fetching::Plain;
use crate::write_backs;
use fulgurite_base::{Nanos, PageId, Prng};
use fulgurite_device::{Device, Executor, IoError, MemDevice, RunError};
use fulgurite_pool::{
    BufferPool, PoolConfig, PoolConfigError, PoolCounters, PoolError, PrefetchConfig, ReplacementConfig,
    WriteBack, WriteBackConfig,
};
use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Runs `users` tasks that change and read random pages of a pool much smaller than the data. Every page is
/// stamped with its number and a version; a read must see the version that was written last.
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
                // Half of the requests go to a few pages, and a quarter continue with the page after the last
                // one.
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
    // A fresh pool is empty, so it reads every page from the drive.
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

#[test]
fn no_update_is_lost_under_any_replacement() {
    let is_usable = |name: &&str| !name.ends_with("-e") && *name != "belady";
    for name in ReplacementConfig::registry().names().filter(is_usable) {
        for write_back in write_backs() {
            let replacement = name.parse::<ReplacementConfig>().unwrap().start(12).unwrap();
            let config = PoolConfig { replacement, ..config(12, write_back.clone()) };
            assert!(stamped_run(20, config).counters().pages_written > 0, "{name} under {write_back:?}");
        }
    }
}

#[test]
fn a_page_can_be_found_during_its_write() {
    let raw = "raw:buffers=2,least=2".parse::<WriteBackConfig>().unwrap().resolve(|| Ok(2)).unwrap();
    let (executor, pool) = pool_over(mem(64), 6, raw);
    let (user, other, handle) = (pool.clone(), pool.clone(), executor.handle());
    executor.spawn(async move {
        for page in 0..4 {
            user.write(PageId(page)).await.unwrap().bytes_mut().fill(page as u8 + 1);
        }
        // This miss evicts page 0. The write of page 0 takes as long as the miss's read.
        request(&user, 10, false).await.unwrap();
    });
    executor.spawn(async move {
        handle.sleep_until(Nanos::from_micros(45)).await;
        assert_eq!(other.read(PageId(0)).await.unwrap().bytes()[5], 1);
        assert_eq!(handle.now(), Nanos::from_micros(45), "the page needs no read");
        // A change of the page must wait for the end of its write.
        other.write(PageId(0)).await.unwrap().bytes_mut().fill(9);
        assert_eq!(handle.now(), Nanos::from_micros(50));
    });
    executor.run().unwrap();
    let counters = pool.counters();
    assert_eq!((counters.rescued, counters.misses, counters.hits), (1, 5, 2));
    assert!(pool.eviction_order().contains(&(PageId(0), true)));
}

#[test]
fn no_task_starves_for_a_latch() {
    // Five readers together hold the latch of the page at all times, and one writer waits for the latch.
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
    // Only the readers that held the latch when the writer requested it are served before the writer.
    assert!(changed.borrow().unwrap() <= Nanos::from_micros(50 + 11));
}

#[test]
fn misses_on_one_page_share_a_read() {
    let (executor, pool) = pool_over(mem(8), 4, WriteBack::SINGLE);
    for _ in 0..10 {
        let pool = pool.clone();
        executor.spawn(async move { request(&pool, 5, false).await.unwrap() });
    }
    executor.run().unwrap();
    assert_eq!((pool.counters().misses, pool.counters().hits, pool.counters().read_ios), (1, 9, 1));
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

/// Polls a future once and drops it, as a task does that gives a request up.
pub(crate) fn start_and_give_up(future: impl Future) {
    let mut future = Box::pin(future);
    assert!(matches!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
}

#[test]
fn a_dropped_request_loses_no_frame_and_no_update() {
    for write_back in write_backs() {
        let (executor, pool) = pool_over(mem(64), 2 + write_back.buffers, write_back.clone());
        let inside = pool.clone();
        executor
            .block_on(async move {
                start_and_give_up(inside.read(PageId(40)));
                for page in 0..2 {
                    inside.write(PageId(page)).await.unwrap().bytes_mut().fill(page as u8 + 1);
                }
                // The first request is dropped during the write-back of the victim, the second during the
                // read.
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
fn a_miss_gets_a_frame_when_one_is_released() {
    let (executor, pool) = pool_over(mem(16), 1, WriteBack::SINGLE);
    let (waiting, handle) = (pool.clone(), executor.handle());
    executor.spawn(async move {
        let guard = pool.write(PageId(0)).await.unwrap();
        handle.sleep_until(Nanos::from_micros(500)).await;
        drop(guard);
    });
    executor.spawn(async move { request(&waiting, 1, false).await.unwrap() });
    executor.run().unwrap();
    // The frame is pinned until 500 µs; then a write-back and a read take 10 µs each.
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

#[test]
fn a_pool_is_freed_with_its_executor_during_reads() {
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
    assert!(known.upgrade().is_none(), "the pool is freed");
}

/// The rule: [`PoolCounters::since`] subtracts every counter.
#[test]
fn counters_since_are_differences() {
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

/// The rule: if a request is dropped after it was granted a latch, the next waiting request gets the latch.
#[test]
fn the_latch_of_a_dropped_request_goes_to_the_next() {
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
