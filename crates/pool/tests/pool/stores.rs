//! Tests of page stores between the pool and the drive: a page store makes a log durable first, and its reads
//! may fail.

use crate::common::{config, mem, pool_over, request};
use crate::write_backs;
use fulgurite_base::{Lpn, Nanos, PageId, StreamId};
use fulgurite_device::{Buffer, Executor, Fault, FaultDevice, Handle, IoError, MemDevice, Operation};
use fulgurite_pool::{BufferPool, PageBytes, PageIo, PageStore, PoolConfig, PoolError, WriteBack};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The pages of a write, each with its first byte.
type LogRecord = Vec<(u64, u8)>;

/// A page store with a log (write-ahead logging): the log takes 30 µs to become durable before the pages are
/// written, and fails once. Page n is stored at page 63 - n of the drive.
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
            // SAFETY: no task can change the pages before this future has ended.
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
            // Page 3 is in the pool already, so it keeps its contents.
            assert_eq!(user.create(PageId(3)).await.unwrap().bytes()[0], 3);
        })
        .unwrap();
}

/// The rule: a request for a page that is being created waits for the new page and does not read the old page
/// from the drive.
#[test]
fn a_request_waits_for_a_page_that_is_being_created() {
    let (executor, pool) = pool_over(mem(64), 2, WriteBack::SINGLE);
    let (creating, asking, handle) = (pool.clone(), pool.clone(), executor.handle());
    executor.spawn(async move {
        for page in 0..2 {
            request(&creating, page, true).await.unwrap();
        }
        // The dirty victim is written first, from 20 to 30 µs.
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

/// A page store that takes 300 µs for a write and records the pages when their write has ended. The write
/// with the number `fails` fails; 0 means that none fails.
pub(crate) struct Slow {
    pub handle: Handle<MemDevice>,
    pub begun: Cell<u32>,
    pub fails: u32,
    pub arrived: Rc<RefCell<BTreeMap<u64, u8>>>,
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
                // SAFETY: no task can change the pages before this future has ended.
                let first = unsafe { page.bytes.as_ref().unwrap().bytes()[0] };
                arrived.borrow_mut().insert(page.page.0, first);
            }
            Ok(())
        })
    }
}

/// The rule: when `write_pages` returns, the drive has all given pages, also those whose write another task
/// had begun, even if that write failed.
#[test]
fn write_pages_also_waits_for_the_writes_of_others() {
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
fn the_log_is_durable_before_the_pages() {
    for write_back in write_backs() {
        let executor = Executor::new(mem(64));
        let logged = Rc::new(RefCell::new(Vec::new()));
        let store = LogFirst { handle: executor.handle(), logged: Rc::clone(&logged) };
        let shape = PoolConfig { store: Some(Rc::new(store)), ..config(8, write_back.clone()) };
        let pool = BufferPool::new(executor.handle(), shape).unwrap();
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
        // Every page that reached the drive was in the log before, with the same contents, as the WAL rule
        // demands.
        let logged: Vec<(u64, u8)> = logged.borrow().concat();
        let store = LogFirst { handle: executor.handle(), logged: Rc::default() };
        let shape = PoolConfig { store: Some(Rc::new(store)), ..config(4, WriteBack::SINGLE) };
        let fresh = BufferPool::new(executor.handle(), shape).unwrap();
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

/// A page store whose reads fail.
struct Unreadable;

impl PageStore for Unreadable {
    fn read(&self, _: PageId, _: Option<Buffer>) -> PageIo {
        Box::pin(async { Err(IoError::Media) })
    }

    fn write(&self, _: Vec<PageBytes>) -> PageIo {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// The rule: the frame of a failed read is free at once.
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
