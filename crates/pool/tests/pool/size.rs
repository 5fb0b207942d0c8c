//! Tests of pools with a changing limit, and of lent frames.

use crate::common::{config, mem, pool_over, request};
use crate::write_backs;
use fulgurite_base::{Lpn, Nanos, PageId, StreamId};
use fulgurite_device::{Buffer, Executor, Handle, MemDevice, Operation};
use fulgurite_pool::{BufferPool, PageBytes, PageIo, PageStore, PoolConfig, WriteBack};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The rule: after the limit falls, the next miss shrinks the pool to the new limit, and no page is lost.
#[test]
fn a_pool_shrinks_to_its_limit_at_the_next_miss() {
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

/// A page store that keeps page n at page n of the drive. It counts the pages under write, now and at most.
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

/// The rule: while a pool shrinks, it writes at most as many pages at once as misses may write, and one page
/// at a time with a lock.
#[test]
fn a_shrinking_pool_keeps_the_bound_and_the_lock() {
    for write_back in write_backs() {
        let executor = Executor::new(mem(64));
        let most = Rc::new(Cell::new(0));
        let store = Counted { handle: executor.handle(), now: Rc::default(), most: Rc::clone(&most) };
        let shape = PoolConfig { store: Some(Rc::new(store)), ..config(32, write_back.clone()) };
        let pool = BufferPool::new(executor.handle(), shape).unwrap();
        let user = pool.clone();
        let bound = if write_back.lock { 1 } else { write_back.under_way };
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

/// The rule: a pool is full exactly when the number of frames with pages has reached the limit.
#[test]
fn a_pool_is_full_at_its_limit() {
    let (executor, pool) = pool_over(mem(64), 3, WriteBack::SINGLE);
    for page in 0..3 {
        assert!(!pool.is_full(), "{page} pages");
        let user = pool.clone();
        executor.block_on(async move { request(&user, page, false).await.unwrap() }).unwrap();
    }
    assert!(pool.is_full());
    // A page in the pool can be latched for changing at once, unless another task holds its latch.
    let changed = pool.try_write(PageId(2)).expect("the page is in the pool");
    assert!(pool.try_write(PageId(2)).is_none() && pool.try_write(PageId(9)).is_none());
    drop(changed);
    assert_eq!(pool.eviction_order().last(), Some(&(PageId(2), true)));
}

/// The rule: a frame that the limit leaves empty is lent before a page is evicted for a loan.
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
    let mut lent = pool.borrower(u32::MAX);
    assert!(lent.borrow_one().is_some());
    assert_eq!(pool.eviction_order().len(), 4);
}

/// The rule: if two tasks wait for the last frame that may be lent, one gets it, and the pool uses the other
/// freed frame again.
#[test]
fn the_last_frame_is_never_lent() {
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
        let (soon, loans) = (pool.borrower(u32::MAX).borrow_soon(), Rc::clone(&loans));
        executor.spawn(async move {
            let loan = soon.await;
            loans.borrow_mut().push(loan);
        });
    }
    executor.run().unwrap();
    let got = loans.borrow().iter().flatten().count();
    assert_eq!((got, pool.limit()), (1, 1));
    loans.borrow_mut().clear();
    assert_eq!(pool.limit(), 2, "the lent frames are given back");
}

/// The rule: the pool lends at most as many frames as its borrower may have, at once or after a wait.
#[test]
fn a_borrower_gets_at_most_its_number_of_frames() {
    let (executor, pool) = pool_over(mem(16), 8, WriteBack::SINGLE);
    let mut lent = pool.borrower(5);
    while lent.borrow_one().is_some() {}
    assert_eq!(pool.limit(), 3);
    let more = lent.borrow_soon();
    assert!(executor.block_on(more).unwrap().is_none());
    drop(lent);
    assert_eq!(pool.limit(), 8);
}

/// The rule: a frame that is given back serves a waiting miss.
#[test]
fn a_frame_that_is_given_back_serves_a_waiting_miss() {
    let (executor, pool) = pool_over(mem(16), 2, WriteBack::SINGLE);
    let mut lent = pool.borrower(u32::MAX);
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
