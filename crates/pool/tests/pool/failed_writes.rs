//! Tests of failed writes: a failed write loses no page, and its error is reported to the right task.

use crate::common::{config, mem, pool_over, request};
use crate::write_backs;
use fulgurite_base::{Nanos, PageId};
use fulgurite_device::{Executor, Fault, FaultDevice, IoError, MemDevice};
use fulgurite_pool::{
    BufferPool, PoolConfig, PoolCounters, PoolError, ReplacementConfig, WriteBack, WriteBackConfig,
};
use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Waker};

#[test]
fn a_failed_write_never_makes_a_page_clean() {
    for write_back in write_backs() {
        let device = FaultDevice::new(mem(16), vec![Fault::FailWrite(0)]);
        let (executor, pool) = pool_over(device, 4, write_back.clone());
        let inside = pool.clone();
        let outcome = executor.block_on(async move {
            // Exactly one miss gets the error, whether or not it waited for the failed write.
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

/// Creates a pool of six frames, of which four hold pages and two are spare. The write of the first victim
/// has failed, so its page is resident again.
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

/// The rule: a page that is resident again after its failed write is dirty, so a policy that evicts clean
/// pages first keeps it.
#[test]
fn a_page_whose_write_failed_is_dirty_again() {
    let (_, pool) = with_a_page_that_came_back("cflru:window=100%");
    let dirty: Vec<bool> = pool.eviction_order().into_iter().map(|(_, dirty)| dirty).collect();
    assert_eq!(dirty, [false, true, true, true, true], "clean pages are evicted first");
}

/// The rule: a page that is resident again after its failed write exceeds the limit. One page is evicted for
/// it when another detached page is requested.
#[test]
fn a_page_whose_write_failed_counts_as_resident() {
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

/// The rule: the miss after a failed write of an evicted page evicts one more page, so that the pool has its
/// spare frames again and misses wait for no write.
#[test]
fn a_page_whose_write_failed_does_not_keep_a_spare_frame() {
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

/// The rule: if no task waited for a failed write, the next task that needs a frame gets the error, also if
/// that task fetches pages.
#[test]
fn a_fetch_reports_an_earlier_failed_write() {
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

/// The rule: a page that is requested during its write is resident at once, even if the bound on pages under
/// write is reached.
#[test]
fn an_eviction_for_a_detached_page_ignores_the_bound() {
    let one_under_way = WriteBack { under_way: 1, ..WriteBack::SINGLE.with_buffers(1) };
    let (executor, pool) = pool_over(mem(64), 3, one_under_way);
    let user = pool.clone();
    executor
        .block_on(async move {
            for page in [0, 1] {
                request(&user, page, true).await.unwrap();
            }
            // Page 0 is requested while it is being written.
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
fn a_flush_reports_a_failed_write() {
    for write_back in write_backs() {
        // All pages fit in the pool, so nothing is written before the flush.
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

/// The rule: a flush reports the failed write of any page that was dirty when the flush began, even if a miss
/// began that write meanwhile and got the error too.
#[test]
fn a_flush_reports_a_failed_write_of_a_concurrent_miss() {
    let device = FaultDevice::new(mem(16), vec![Fault::FailWrite(1)]);
    let (executor, pool) = pool_over(device, 3, WriteBack::SINGLE);
    let filling = pool.clone();
    executor
        .block_on(async move {
            for page in 0..3 {
                request(&filling, page, true).await.unwrap();
            }
            // Page 2 is the next victim.
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

/// The rule: a flush writes the pages of earlier failed writes again, so no later miss gets their errors.
#[test]
fn a_flush_repeats_earlier_failed_writes() {
    let raw = "raw:buffers=1".parse::<WriteBackConfig>().unwrap().resolve(|| Ok(1)).unwrap();
    let device = FaultDevice::new(mem(16), vec![Fault::FailWrite(0)]);
    let (executor, pool) = pool_over(device, 3, raw);
    let (user, handle) = (pool.clone(), executor.handle());
    let outcome = executor.block_on(async move {
        // The write of page 0 fails, and no task waits for it.
        for page in 0..3 {
            request(&user, page, page == 0).await.unwrap();
        }
        handle.sleep_until(handle.now() + Nanos::from_micros(50)).await;
        let flushed = user.flush().await;
        (flushed, request(&user, 9, false).await)
    });
    assert_eq!(outcome, Ok((Ok(()), Ok(()))));
}

/// The rule: if a write fails while a frame is borrowed, nothing is lent, and the next miss gets the error.
#[test]
fn the_next_miss_reports_a_write_that_failed_for_a_loan() {
    let device = FaultDevice::new(mem(16), vec![Fault::FailWrite(1)]);
    let (executor, pool) = pool_over(device, 2, WriteBack::SINGLE);
    let user = pool.clone();
    let outcome = executor.block_on(async move {
        for page in 0..2 {
            request(&user, page, true).await.unwrap();
        }
        let loan = user.borrower(u32::MAX).borrow_soon().await;
        (loan.is_some(), request(&user, 9, false).await)
    });
    assert_eq!(outcome, Ok((false, Err(PoolError::WriteBack(IoError::Media)))));
    assert_eq!(pool.limit(), 2);
}
