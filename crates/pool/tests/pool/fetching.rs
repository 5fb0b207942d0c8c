//! Tests of prefetching, and of fetching several pages at once.

use crate::common::{PAGE_BYTES, config, mem, pool_over, request};
use fulgurite_base::{Lpn, Nanos, PageId};
use fulgurite_device::{Buffer, Executor, Fault, FaultDevice, Handle, IoError, MemDevice, Operation};
use fulgurite_pool::{
    BufferPool, PageBytes, PageIo, PageStore, PoolConfig, PoolCounters, PrefetchConfig, ReplacementConfig,
    WriteBack,
};
use std::rc::Rc;

/// The rule: prefetched pages that were not requested are the next victims of misses, but not of further
/// prefetching. When they are evicted, they are counted as wasted.
#[test]
fn unused_prefetched_pages_are_evicted_next_and_counted() {
    let prefetch = "sequential:n=2".parse::<PrefetchConfig>().unwrap().start().unwrap();
    let executor = Executor::new(mem(64));
    let pool =
        BufferPool::new(executor.handle(), PoolConfig { prefetch, ..config(6, WriteBack::SINGLE) }).unwrap();
    let (user, handle) = (pool.clone(), executor.handle());
    let orders = executor.block_on(async move {
        let mut orders = Vec::new();
        // The second page of the run 5, 6 prefetches 7 and 8. Then the pool is full, and pages 30 and 31 are
        // a run as well.
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
            // Page 31 takes the frame of page 8. Prefetching for page 31 would need the frame of page 7,
            // which is prefetched and unused, so nothing is prefetched.
            (vec![7, 5, 6, 20, 30, 31], 2, 1),
            (vec![5, 6, 20, 30, 31, 40], 2, 2),
        ]
    );
}

/// The rule: if prefetching a page fails, the page stays out of the pool, and the next request for this page
/// reads it again.
#[test]
fn the_next_request_reads_a_page_whose_prefetching_failed() {
    let prefetch = "sequential:n=2".parse::<PrefetchConfig>().unwrap().start().unwrap();
    // Pages 5 and 6 are read, and then pages 7 and 8 are prefetched. The read of page 7 fails.
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
    // Pages 5, 6 and 7 missed; page 8 was hit.
    assert_eq!((pool.counters().misses, pool.counters().prefetch_hits), (3, 1));
}

/// The rule: in a full pool, prefetched pages replace the next clean victims, also without spare frames.
#[test]
fn prefetched_pages_replace_clean_victims() {
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

/// The rule: a prefetched page that is requested during its read is inserted like a missed page, not as the
/// next victim.
#[test]
fn a_prefetched_page_requested_during_its_read_counts_as_used() {
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
        // Page 6 is read from 10 to 20 µs, and pages 7 and 8 are prefetched at the same time.
        handle.sleep_until(Nanos::from_micros(15)).await;
        request(&other, 7, false).await.unwrap();
    });
    executor.run().unwrap();
    let order: Vec<u64> = pool.eviction_order().into_iter().map(|(page, _)| page.0).collect();
    assert_eq!(order, [8, 5, 6, 7]);
}

/// The rule: a page is not prefetched if it is beyond the end of the drive, in the pool, or being read.
#[test]
fn pages_in_the_pool_or_beyond_the_drive_are_not_prefetched() {
    let prefetch = "sequential:n=4".parse::<PrefetchConfig>().unwrap().start().unwrap();
    let executor = Executor::new(mem(64));
    let shape = PoolConfig { prefetch, ..config(16, WriteBack::SINGLE) };
    let pool = BufferPool::new(executor.handle(), shape).unwrap();
    let (user, other, handle) = (pool.clone(), pool.clone(), executor.handle());
    executor.spawn(async move {
        // Page 60 is the second page of a run, so pages 61 to 64 are expected. The last page of the drive is
        // 63.
        for page in [62, 59, 60] {
            request(&user, page, false).await.unwrap();
        }
    });
    executor.spawn(async move {
        // Page 60 is requested at 20 µs, so page 63 is being read by then.
        handle.sleep_until(Nanos::from_micros(15)).await;
        request(&other, 63, false).await.unwrap();
    });
    executor.run().unwrap();
    assert_eq!((pool.counters().prefetched, pool.counters().pages_read), (1, 5));
    let mut held: Vec<u64> = pool.eviction_order().into_iter().map(|(page, _)| page.0).collect();
    held.sort_unstable();
    assert_eq!(held, [59, 60, 61, 62, 63]);
}

/// The rule: prefetching uses spare frames only while more than half of them are free; the other half is
/// reserved for misses.
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
            // Page 0 is evicted, the next four pages are being written, and page 20 is the second page of a
            // run.
            request(&user, 20, false).await.unwrap();
        })
        .unwrap();
    assert_eq!((pool.counters().prefetched, pool.counters().write_waits), (2, 0));
}

/// Creates a drive on which each page holds its number.
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
fn consecutive_pages_are_fetched_with_one_command() {
    let (executor, pool) = pool_over(numbered(64), 32, WriteBack::SINGLE);
    let reader = pool.clone();
    executor
        .block_on(async move {
            drop(reader.read(PageId(12)).await.unwrap());
            // The runs are 10 and 11, 13 to 15, and 20. Page 12 is in the pool, and page 11 is named twice.
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

/// The rule: a command reads at most as many device pages as the drive allows, also if a pool page consists
/// of many device pages.
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
    // The drive allows 1,024 device pages in a command, and these are 16 pool pages.
    assert_eq!((pool.counters().read_ios, pool.counters().pages_read), (2, 24));
}

/// The rule: if another task requests a page while `fetch` waits for the page's frame, the page is read once,
/// and the frame is freed.
#[test]
fn a_page_that_another_task_read_meanwhile_is_not_fetched() {
    let (executor, pool) = pool_over(numbered(64), 2, WriteBack::SINGLE);
    let (user, other, handle) = (pool.clone(), pool.clone(), executor.handle());
    let (sleeper, begin) = (executor.handle(), executor.handle().now());
    executor.spawn(async move {
        request(&user, 0, true).await.unwrap();
        let held = user.read(PageId(1)).await.unwrap();
        // Making room needs the write of page 0 first, from 20 to 30 µs.
        user.fetch(&[PageId(7)]).await.unwrap();
        sleeper.sleep_until(begin + Nanos::from_micros(100)).await;
        drop(held);
        // No frame was lost, so both frames can still be used.
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
fn more_pages_than_frames_can_be_fetched() {
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
fn the_next_request_reads_a_page_whose_fetch_failed() {
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

/// The rule: after the failed fetch of a run of pages, the next request for each of the pages reads that page
/// again.
#[test]
fn the_next_requests_read_a_run_whose_fetch_failed() {
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

/// A page store that keeps page n at page n of the drive.
pub(crate) struct Plain(pub Handle<MemDevice>);

impl PageStore for Plain {
    fn read(&self, page: PageId, into: Option<Buffer>) -> PageIo {
        Box::pin(self.0.submit(Operation::Read { lpn: Lpn(page.0), pages: 1, into }))
    }

    fn write(&self, _: Vec<PageBytes>) -> PageIo {
        Box::pin(std::future::ready(Err(IoError::Unsupported)))
    }
}

/// The rule: a run is fetched in the same way from a page store that reads page by page as from one that uses
/// one command.
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

/// The rule: fetching a page that is already in the pool evicts no other page.
#[test]
fn fetching_a_page_in_the_pool_needs_no_frame() {
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

/// The rule: the prefetch policy observes the first use of a prefetched page, so that a run of consecutive
/// pages continues. Otherwise the page behind the prefetched ones would begin a new run.
#[test]
fn a_run_continues_behind_its_prefetched_pages() {
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
    // The run is trusted from page 1 on, and from then on every third page misses.
    let PoolCounters { misses, prefetched, prefetch_hits, .. } = pool.counters();
    assert_eq!((misses, prefetched, prefetch_hits), (4, 6, 6));
}
