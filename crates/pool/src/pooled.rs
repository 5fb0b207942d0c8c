//! A drive with a buffer pool before it, which is a device again: a write-back cache for programs that know nothing
//! of a pool.
//!
//! A write ends when its pages are in frames, so a power cut loses the pages that were not flushed. A write covers
//! whole pages and therefore reads none. A flush writes every dirty page and then flushes the drive. A trim discards
//! its pages first, so that they are not written later. A command of several pages asks for all of them at once.

use crate::error::{PoolConfigError, PoolError};
use crate::{BufferPool, PoolConfig, PoolCounters};
use fulgurite_base::{Lpn, Nanos, PageId};
use fulgurite_device::{
    Buffer, Caps, Command, Completion, Device, Executor, Handle, IoError, Operation, QueueFull, Tag,
};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A device with a buffer pool before it.
pub struct PooledDevice<D: Device + 'static> {
    executor: Executor<D>,
    pool: BufferPool<D>,
    caps: Caps,
    in_flight: u32,
    shared: Rc<Shared<D>>,
}

/// The state that the tasks of all commands share.
struct Shared<D: Device + 'static> {
    handle: Handle<D>,
    /// The commands that have ended and were not reported yet.
    completions: RefCell<Vec<Completion>>,
    /// The number of writes of pages that were not in the pool.
    created: Cell<u64>,
}

/// A command that ends when the last clone of its pointer is dropped: each of its pages has one.
struct InFlight<D: Device + 'static> {
    tag: Tag,
    status: Cell<Result<(), IoError>>,
    shared: Rc<Shared<D>>,
}

impl<D: Device + 'static> InFlight<D> {
    /// Records the outcome of a part of the command, whose first error counts.
    fn note<T>(&self, outcome: Result<T, PoolError>) -> Option<T> {
        outcome.map_err(|error| self.fail(io_error(error))).ok()
    }

    fn fail(&self, error: IoError) {
        self.status.set(self.status.get().and(Err(error)));
    }
}

impl<D: Device + 'static> Drop for InFlight<D> {
    fn drop(&mut self) {
        let Shared { handle, completions, .. } = &*self.shared;
        let completion = Completion { tag: self.tag, at: handle.now(), status: self.status.get() };
        completions.borrow_mut().push(completion);
    }
}

fn io_error(error: PoolError) -> IoError {
    match error {
        PoolError::Read { error, .. } | PoolError::WriteBack(error) | PoolError::Flush(error) => error,
    }
}

impl<D: Device + 'static> PooledDevice<D> {
    /// Puts an empty pool before `device`. The page size of `config` is that of the new device. A page store of
    /// `config` has no effect, since page n is stored at page n of `device`.
    pub fn new(device: D, config: PoolConfig) -> Result<PooledDevice<D>, PoolConfigError> {
        let below = device.caps().clone();
        let page_bytes = config.page_bytes;
        let executor = Executor::new(device);
        let pool = BufferPool::new(executor.handle(), PoolConfig { store: None, ..config })?;
        let device_pages = page_bytes / below.page_bytes;
        // The pool writes page by page, so nothing larger than a page is written untorn.
        let aligned = page_bytes & page_bytes.wrapping_neg();
        let caps = Caps {
            page_bytes,
            pages: pool.pages(),
            pages_per_command: (below.pages_per_command / device_pages).max(1),
            atomic_bytes: below.atomic_bytes.min(aligned),
            durable_writes: false,
            share_pages: 0,
            streams: 1,
            fdp: None,
            zones: None,
            erase_counts: false,
            erase_pages: below.erase_pages / device_pages,
            ..below
        };
        let shared = Rc::new(Shared {
            handle: executor.handle(),
            completions: RefCell::default(),
            created: Cell::new(0),
        });
        Ok(PooledDevice { executor, pool, caps, in_flight: 0, shared })
    }

    /// Returns the pool's counters. The misses include writes of pages that were not in the pool, which read nothing.
    pub fn counters(&self) -> PoolCounters {
        let counters = self.pool.counters();
        PoolCounters { misses: counters.misses + self.shared.created.get(), ..counters }
    }

    /// Returns the pool.
    pub fn pool(&self) -> &BufferPool<D> {
        &self.pool
    }

    /// Calls `f` with the device below, to inspect it. `f` must not submit commands or wait.
    pub fn with_below<T>(&self, f: impl FnOnce(&mut D) -> T) -> T {
        self.executor.with_device(f)
    }

    /// Ends all that is in flight, and writes all dirty pages.
    pub fn write_back(&mut self) -> Result<(), IoError> {
        let pool = self.pool.clone();
        self.complete(async move { pool.flush().await }).map_err(io_error)
    }

    /// Empties the frames without writing them, as a power cut does. Commands in flight end first.
    pub fn lose(&mut self) {
        let (pool, pages) = (self.pool.clone(), self.caps.pages);
        self.complete(async move { pool.discard(0..pages).await });
    }

    fn complete<T: 'static>(&self, work: impl Future<Output = T> + 'static) -> T {
        self.executor.run().and_then(|()| self.executor.block_on(work)).expect(FAULTY)
    }

    /// Begins a command.
    fn begin(&self, operation: Operation, command: Rc<InFlight<D>>) {
        if let Some(error) = operation.fault(&self.caps) {
            return command.fail(error);
        }
        let (pool, handle) = (self.pool.clone(), self.shared.handle.clone());
        match operation {
            Operation::Read { lpn, pages, .. } | Operation::Write { lpn, pages, .. } => {
                for index in 0..u64::from(pages) {
                    self.begin_page(PageId(lpn.0 + index), index as usize, &operation, &command);
                }
            }
            Operation::Trim { lpn, pages } => {
                let pages = lpn.0..lpn.0 + u64::from(pages);
                self.shared.handle.spawn(async move {
                    pool.discard(pages.clone()).await;
                    let device_pages = u64::from(pool.0.device_pages);
                    let (mut at, end) = (pages.start * device_pages, pages.end * device_pages);
                    while at < end {
                        let pages = u32::try_from(end - at).unwrap_or(u32::MAX);
                        if let Err(error) = handle.submit(Operation::Trim { lpn: Lpn(at), pages }).await {
                            command.fail(error);
                        }
                        at += u64::from(pages);
                    }
                });
            }
            Operation::Flush => self.shared.handle.spawn(async move {
                command.note(pool.flush().await);
            }),
            // `fault` refuses it, because the device shares no pages.
            Operation::Share { .. } => {}
        }
    }

    /// Begins the part of a command that concerns its page number `index`, which is `page`.
    fn begin_page(&self, page: PageId, index: usize, operation: &Operation, command: &Rc<InFlight<D>>) {
        let bytes = self.caps.page_bytes as usize;
        let part = |buffer: &Option<Buffer>| buffer.as_ref().map(|buffer| buffer.part(index * bytes, bytes));
        // A hit is the common case, so it is tried first without a task.
        match operation {
            Operation::Read { into, .. } => {
                let into = part(into);
                match self.pool.try_read(page) {
                    Some(guard) => copy_out(guard.bytes(), into.as_ref()),
                    None => {
                        let (pool, command) = (self.pool.clone(), Rc::clone(command));
                        self.shared.handle.spawn(async move {
                            if let Some(guard) = command.note(pool.read(page).await) {
                                copy_out(guard.bytes(), into.as_ref());
                            }
                        });
                    }
                }
            }
            Operation::Write { from, .. } => {
                let from = part(from);
                match self.pool.try_write(page) {
                    Some(mut guard) => copy_in(guard.bytes_mut(), from.as_ref()),
                    None => {
                        let (pool, command) = (self.pool.clone(), Rc::clone(command));
                        self.shared.handle.spawn(async move {
                            // Another write of the page may have brought it since the submission.
                            let is_new = !pool.has(page);
                            let created = &command.shared.created;
                            created.set(created.get() + u64::from(is_new));
                            if let Some(mut guard) = command.note(pool.create(page).await) {
                                copy_in(guard.bytes_mut(), from.as_ref());
                            }
                        });
                    }
                }
            }
            Operation::Trim { .. } | Operation::Share { .. } | Operation::Flush => {}
        }
    }
}

/// The message for a device below that completes what nobody has asked for, or does not complete what was.
const FAULTY: &str = "the device below completes each of its commands once";

/// Copies a page of the pool to the buffer of a read.
fn copy_out(page: &[u8], into: Option<&Buffer>) {
    if let Some(into) = into.filter(|_| !page.is_empty()) {
        // SAFETY: the read is in flight, so only the device may use the buffer.
        unsafe { into.bytes_mut() }.copy_from_slice(page);
    }
}

/// Copies the buffer of a write to a page of the pool. A write without a buffer has zeros.
fn copy_in(page: &mut [u8], from: Option<&Buffer>) {
    match from {
        // SAFETY: the write is in flight, so nobody changes the buffer.
        Some(from) if !page.is_empty() => page.copy_from_slice(unsafe { from.bytes() }),
        _ => page.fill(0),
    }
}

impl<D: Device + 'static> Device for PooledDevice<D> {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn now(&self) -> Nanos {
        self.shared.handle.now()
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        if self.in_flight >= self.caps.queue_depth {
            return Err(QueueFull(command));
        }
        self.in_flight += 1;
        let Command { tag, operation } = command;
        let command = InFlight { tag, status: Cell::new(Ok(())), shared: Rc::clone(&self.shared) };
        self.begin(operation, Rc::new(command));
        // The commands of the tasks reach the device below at once, so that it knows its next event.
        self.executor.run_ready();
        Ok(())
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        while self.shared.completions.borrow().is_empty() && (self.in_flight > 0 || deadline.is_some()) {
            // The pool's own reads and writes complete here too, so this wait may end before the deadline.
            let any = self.executor.step(deadline).expect(FAULTY);
            if !any {
                break;
            }
        }
        let mut ended = self.shared.completions.borrow_mut();
        self.in_flight -= ended.len() as u32;
        completions.append(&mut ended);
    }

    fn next_event(&self) -> Option<Nanos> {
        if self.shared.completions.borrow().is_empty() {
            self.with_below(|device| device.next_event())
        } else {
            Some(self.now())
        }
    }
}
