//! A write that fails loses nothing, and is told to whoever must know.

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
