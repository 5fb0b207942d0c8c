//! Tests of misses: the writes that they wait for, the order in which they continue, and spare frames.

use crate::common::{config, mem, pool_over, request};
use crate::contents::start_and_give_up;
use crate::stores::Slow;
use fulgurite_base::{Nanos, PageId};
use fulgurite_device::{Executor, Fault, FaultDevice, IoError, MemDevice};
use fulgurite_pool::{BufferPool, PoolConfig, PoolError, WriteBack, WriteBackConfig};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::task::{Context, Waker};

#[test]
fn a_read_does_not_wait_for_an_unrelated_write() {
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

/// Returns the times at which three simultaneous misses get their pages, in µs, and the number of misses that
/// waited for a write. Two of the four frames are dirty and are the first victims.
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

pub(crate) fn three_misses(executor: &Executor<MemDevice>, pool: &BufferPool<MemDevice>) -> (Vec<u64>, u64) {
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

/// Returns the times at which three simultaneous misses get their pages, in µs, and the number of misses that
/// waited for a write. The pool is full, and the first `dirty` pages of the eviction order are dirty.
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

/// The rule: a miss that finds no spare frame makes one more frame spare, up to `buffers`, and does not wait
/// for a write. Reads and writes of the drive take 10 µs each.
#[test]
fn spare_frames_follow_the_writes_under_way() {
    assert_eq!(full_pool("raw:buffers=1", 8, 2), (vec![10, 20, 20], 2));
    assert_eq!(full_pool("raw:buffers=2", 8, 2), (vec![10, 10, 10], 0));
    // With a third dirty victim, the second miss finds no clean frame after its own victim, so it waits for a
    // write too.
    assert_eq!(full_pool("raw:buffers=2", 8, 3), (vec![10, 20, 20], 2));
}

/// The rule: spare frames that no miss has needed for a while hold pages again, whether the victims are clean
/// or dirty.
#[test]
fn unneeded_spare_frames_hold_pages_again() {
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
        // Simultaneous misses need more than one spare frame.
        three_misses(&executor, &pool);
        assert_eq!(pool.limit(), 6);
        // Misses in sequence need at most one spare frame.
        requests(0..600, write);
        assert_eq!(pool.limit(), 7, "changed: {write}");
    }
}

/// The rule: a miss in a pool at its limit uses no frame that the limit leaves empty.
#[test]
fn a_miss_at_the_limit_takes_no_empty_frame() {
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

/// The rule: all misses together have at most `under_way` pages under write. A miss that would exceed this
/// bound waits, and continues with pages that the writes of other misses have cleaned.
#[test]
fn misses_share_a_bound_on_pages_under_write() {
    assert_eq!(full_pool("ace:n_w=2,under_way=6", 8, 8), (vec![20, 20, 20], 3));
    // The second miss continues with the page that the first miss has written together with its own victim;
    // the third miss writes again.
    assert_eq!(full_pool("ace:n_w=2,under_way=2", 8, 8), (vec![20, 20, 30], 3));
    // The bound leaves room for one more page, so a batch is cut to one page.
    assert_eq!(full_pool("ace:n_w=2,under_way=3", 8, 8), (vec![20, 20, 20], 3));
}

/// The rule: while a miss writes its victim frame under the lock, no other miss evicts, not even a clean
/// frame. The misses continue in the order of their requests. Reads and writes of the drive take 10 µs each.
#[test]
fn under_the_lock_misses_evict_one_after_another() {
    // Without the lock, two misses write concurrently, and the third takes a clean frame, which costs only
    // its read.
    assert_eq!(misses_at_once("single"), (vec![10, 20, 20], 2));
    // The second miss begins its write when the first write has ended, and the third miss continues after the
    // second write.
    assert_eq!(misses_at_once("single:lock=yes"), (vec![20, 30, 30], 3));
}

#[test]
fn a_dropped_or_failed_miss_releases_the_lock() {
    let lock = WriteBack { lock: true, ..WriteBack::SINGLE };
    let device = FaultDevice::new(mem(64), vec![Fault::FailWrite(1)]);
    let (executor, pool) = pool_over(device, 2, lock);
    let outcome = executor.block_on(async move {
        for page in 0..2 {
            request(&pool, page, true).await.unwrap();
        }
        // The first victim is page 0, and its miss is dropped during the write. The second victim is page 1,
        // and the write of page 1 fails.
        start_and_give_up(pool.read(PageId(40)));
        let second = request(&pool, 41, true).await;
        let third = request(&pool, 42, true).await;
        [second, third, request(&pool, 43, false).await]
    });
    assert_eq!(outcome, Ok([Ok(()), Err(PoolError::WriteBack(IoError::Media)), Ok(())]));
}

/// Runs misses on the pages 1, 2 and 3, requested 1, 2 and 3 µs after `since`, and returns the pages in the
/// order in which the misses are served. Each miss keeps its page pinned for a while.
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

/// Returns the order in which three misses get the only frame. The frame is pinned while the misses are
/// requested. The holder of the pin releases it, takes it again before any other task runs if `take_again` is
/// set, and releases it finally.
fn order_of_misses(take_again: bool) -> Vec<u64> {
    let (executor, pool) = pool_over(mem(16), 1, WriteBack::SINGLE);
    let (holder, handle) = (pool.clone(), executor.handle());
    executor.spawn(async move {
        let guard = holder.read(PageId(0)).await.unwrap();
        handle.sleep_until(Nanos::from_micros(100)).await;
        drop(guard);
        if take_again {
            let guard = holder.try_read(PageId(0)).expect("no other task has run");
            handle.sleep_until(Nanos::from_micros(200)).await;
            drop(guard);
        }
    });
    // While one miss pins the frame, the next miss gets its turn and finds the frame pinned.
    served_order(&executor, &pool, Nanos::from_micros(20), Nanos::from_micros(50))
}

/// The rule: a miss that found no frame in its turn stays before later misses in the queue.
#[test]
fn a_miss_that_must_wait_again_keeps_its_place() {
    assert_eq!(order_of_misses(false), [1, 2, 3]);
    assert_eq!(order_of_misses(true), [1, 2, 3]);
}

/// The rule: a miss that has written under the lock has had its turn, so it stays before the waiting misses,
/// even if it finds no frame after its write.
#[test]
fn a_miss_that_held_the_lock_stays_before_waiting_misses() {
    let (executor, pool) = pool_over(mem(16), 1, WriteBack { lock: true, ..WriteBack::SINGLE });
    let (holder, handle) = (pool.clone(), executor.handle());
    executor.spawn(async move {
        request(&holder, 0, true).await.unwrap();
        // Page 0 is written for the first miss, from 20 to 30 µs, and is pinned when the write has ended.
        handle.sleep_until(Nanos::from_micros(25)).await;
        let guard = holder.read(PageId(0)).await.unwrap();
        handle.sleep_until(Nanos::from_micros(100)).await;
        drop(guard);
    });
    // The end of the write was also the turn of the second miss, in vain; the third miss has not had a turn.
    assert_eq!(served_order(&executor, &pool, Nanos::from_micros(19), Nanos::ZERO), [2, 1, 3]);
    assert_eq!(pool.counters().pages_written, 1);
}

/// The rule: a miss that waited for its turn before it wrote under the lock keeps its place in the queue.
#[test]
fn a_miss_that_waited_before_it_held_the_lock_keeps_its_place() {
    let (executor, pool) = pool_over(mem(16), 1, WriteBack { lock: true, ..WriteBack::SINGLE });
    let (holder, handle) = (pool.clone(), executor.handle());
    executor.spawn(async move {
        let guard = holder.write(PageId(0)).await.unwrap();
        handle.sleep_until(Nanos::from_micros(50)).await;
        drop(guard);
        // Page 0 is written for the first miss, from 50 to 60 µs, and is pinned when the write has ended.
        handle.sleep_until(Nanos::from_micros(55)).await;
        let guard = holder.read(PageId(0)).await.unwrap();
        handle.sleep_until(Nanos::from_micros(100)).await;
        drop(guard);
    });
    assert_eq!(served_order(&executor, &pool, Nanos::from_micros(19), Nanos::ZERO), [2, 1, 3]);
}

/// Returns the time, in µs, at which `again` ends. The task that calls `again` has released the only frame at
/// 100 µs, at the same moment. Three misses of 10 µs each were requested before.
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

/// The rule: a request that comes after waiting misses is served after them, even if a frame is free at that
/// moment.
#[test]
fn no_request_overtakes_waiting_misses() {
    assert_eq!(comes_again(|pool| async move { request(&pool, 5, false).await.unwrap() }), 140);
    // A fetch ends when its reads are submitted, so it ends 10 µs before a request would.
    assert_eq!(comes_again(|pool| async move { pool.fetch(&[PageId(5)]).await.unwrap() }), 130);
}

/// The rule: the frame of a failed read goes to a waiting miss.
#[test]
fn the_frame_of_a_failed_read_serves_a_waiting_miss() {
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
    // Nothing was written, so no miss waited for a write.
    assert_eq!(pool.counters().write_waits, 0);
}

/// The rule: if a miss is dropped after it was given its turn and before it took the turn, the next miss gets
/// the turn.
#[test]
fn the_turn_of_a_dropped_miss_goes_to_the_next() {
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

/// The rule: a miss that gets the error of a failed write passes its turn on, so that the misses behind it do
/// not wait for ever.
#[test]
fn a_miss_that_reports_a_failed_write_passes_its_turn_on() {
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
        // Page 0 is written after a read that does not wait for it, so no miss waits for the write.
        request(&user, 10, false).await.unwrap();
    });
    for page in 11..13 {
        let (pool, outcomes, handle) = (pool.clone(), Rc::clone(&outcomes), executor.handle());
        executor.spawn(async move {
            // Page 1 is the next victim, but the bound allows no second page under write.
            handle.sleep_until(Nanos::from_micros(40 + page)).await;
            let outcome = request(&pool, page, false).await;
            outcomes.borrow_mut().push((page, outcome));
        });
    }
    executor.run().unwrap();
    assert_eq!(*outcomes.borrow(), [(11, Err(PoolError::WriteBack(IoError::Media))), (12, Ok(()))]);
}
