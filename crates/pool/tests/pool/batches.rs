//! Tests of batches, flushes and the cleaner: which pages are written, when, and which tasks wait for the
//! writes.

use crate::common::{config, mem, pool_over, request};
use crate::contents::start_and_give_up;
use crate::misses::three_misses;
use crate::write_backs;
use fulgurite_base::{Nanos, PageId};
use fulgurite_device::{Buffer, Executor, Fault, FaultDevice, MemDevice};
use fulgurite_pool::{BufferPool, PageBytes, PageIo, PageStore, PoolConfig, WriteBack, WriteBackConfig};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The rule: when the limit falls and rises again, every frame that is not spare holds a page again.
#[test]
fn no_frame_is_lost_when_the_limit_falls_and_rises() {
    for write_back in write_backs() {
        for falls_to in [9, 5] {
            let (executor, pool) = pool_over(mem(64), 9, write_back.clone());
            let (user, handle) = (pool.clone(), executor.handle());
            executor
                .block_on(async move {
                    for page in 0..60 {
                        request(&user, page, page % 2 == 0).await.unwrap();
                    }
                    user.flush().await.unwrap();
                    // All pages except the next victim become dirty. The victim stays clean, so the next miss
                    // evicts it without a write.
                    for (page, _) in user.eviction_order().into_iter().skip(1) {
                        request(&user, page.0, true).await.unwrap();
                    }
                    user.set_limit(falls_to);
                    request(&user, 60, false).await.unwrap();
                    user.set_limit(9);
                    user.flush().await.unwrap();
                    // The requests cause enough misses for unneeded spare frames to hold pages again.
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

/// Returns for each of the first `pages` pages of the eviction order whether it is dirty.
fn dirty_ahead(pool: &BufferPool<MemDevice>, pages: usize) -> Vec<bool> {
    pool.eviction_order().into_iter().take(pages).map(|(_, dirty)| dirty).collect()
}

/// The rule: the cleaner keeps the first `ahead` frames of the eviction order clean, and runs again when half
/// of these frames were evicted.
#[test]
fn the_cleaner_runs_again_when_half_of_its_frames_were_evicted() {
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
            // After this time, the cleaner's batch has ended.
            handle.sleep_until(handle.now() + Nanos::from_micros(100)).await;
            seen.push(dirty_ahead(&user, 5));
        }
        seen
    });
    let expected = [
        [false, false, false, false, true],
        [false, false, false, true, true],
        [false, false, true, true, true],
        // When fewer than half of the four frames are known to be clean, the cleaner writes four more.
        [false, false, false, false, true],
        [false, false, false, true, true],
    ];
    assert_eq!(seen.unwrap(), expected);
    // A miss with a dirty victim has written once, and the cleaner has written two batches.
    assert_eq!((pool.counters().write_ios, pool.counters().pages_written), (3, 8));
}

/// The rule: the cleaner has at most one batch under write, for any number of concurrent misses. With
/// `ahead=1`, the cleaner keeps the next victim clean.
#[test]
fn the_cleaner_has_at_most_one_batch_and_can_look_at_one_frame() {
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
    // Each of the three misses has written a page, and the first one that finished has started the cleaner.
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

/// The rule: if misses wait for their writes, a frame that is being written is not evicted, and other misses
/// evict the next frame of the eviction order.
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
    // The first miss writes page 0, the second takes the clean frame of page 1 at once, and the third takes
    // the clean frame of page 2.
    assert_eq!(three_misses(&executor, &pool), (vec![10, 10, 20], 1));
    let mut held: Vec<u64> = pool.eviction_order().into_iter().map(|(page, _)| page.0).collect();
    held.sort_unstable();
    assert_eq!(held, [40, 41, 42]);
}

/// A page store that counts its writes.
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

/// The rule: a flush without dirty pages writes nothing.
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

/// A page store that records the number of pages of each write.
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

/// The rule: a flush writes exactly the dirty pages, 64 at a time. [`BufferPool::write_pages`] writes those
/// of the given pages that are dirty and not latched exclusively.
#[test]
fn a_flush_writes_all_dirty_pages_in_batches() {
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

/// The rule: a flush waits for the writes that are under way when it begins, and writes their pages again if
/// they fail.
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
