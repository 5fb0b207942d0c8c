//! The pool itself: guards, misses, evictions, write-back.
//!
//! A miss takes a free frame, or asks the write-back policy for a plan and performs it. Frames
//! being written back are latched shared and pinned, so nobody evicts or changes them meanwhile;
//! they become clean only when the write has succeeded. Frames being read into are in no order and
//! in no table until the read has succeeded. Whoever gives up waiting (a dropped future) leaves the
//! I/O to a task that finishes its bookkeeping, so a frame under I/O is never reused.

use crate::write_back::Order;
use crate::{FrameTable, Plan, Replacement, ReplacementPolicy, WriteBack};
use fulgurite_base::{FrameId, Lpn, PageId};
use fulgurite_device::executor::{Io, WaitQueue};
use fulgurite_device::{Arena, Buffer, Device, Handle, IoError, Operation, StreamId};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use thiserror::Error;

/// Why the pool could not serve a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PoolError {
    /// The page could not be read.
    #[error("page {} could not be read: {error}", page.0)]
    Read {
        /// The page.
        page: PageId,
        /// What the drive said.
        error: IoError,
    },
    /// Dirty pages could not be written; they are still dirty and still in the pool.
    #[error("write-back failed, the pages stay dirty: {0}")]
    WriteBack(IoError),
    /// The drive could not make what it had acknowledged durable.
    #[error("flush failed: {0}")]
    Flush(IoError),
}

/// Why a pool could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PoolConfigError {
    /// No frames.
    #[error("a pool needs at least one frame")]
    NoFrames,
    /// The page is not made of whole device pages.
    #[error("a pool page of {page_bytes} bytes is not made of device pages of {device_bytes} bytes")]
    PageSize {
        /// Asked for.
        page_bytes: u32,
        /// The drive's.
        device_bytes: u32,
    },
}

/// The shape and the policies of a pool.
pub struct PoolConfig {
    /// Frames in the pool.
    pub frames: u32,
    /// Bytes in a page: a multiple of the device's.
    pub page_bytes: u32,
    /// Which frame leaves; made for the same number of frames.
    pub replacement: Replacement,
    /// What is written when it does.
    pub write_back: WriteBack,
}

/// What a pool has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolCounters {
    /// Requests that found their page in the pool or on its way there.
    pub hits: u64,
    /// Requests that read their page from the drive.
    pub misses: u64,
    /// Read requests to the drive.
    pub read_ios: u64,
    /// Pages read.
    pub pages_read: u64,
    /// Write-back batches.
    pub write_ios: u64,
    /// Pages written back, without [`PoolCounters::pages_flushed`].
    pub pages_written: u64,
    /// Pages written by [`BufferPool::flush`].
    pub pages_flushed: u64,
}

/// Pages that are written together when the pool is flushed.
const FLUSH_BATCH: usize = 64;

struct State {
    frames: FrameTable,
    table: FxHashMap<PageId, FrameId>,
    replacement: Replacement,
    free: Vec<FrameId>,
    /// Pages on their way in, and who else waits for them.
    loading: FxHashMap<PageId, Vec<Waker>>,
    /// Who waits for a latch.
    latch_waiters: FxHashMap<FrameId, Vec<Waker>>,
    plan: Plan,
    counters: PoolCounters,
}

struct Inner<D: Device + 'static> {
    handle: Handle<D>,
    state: RefCell<State>,
    write_back: WriteBack,
    /// Who waits for a frame when all are in use.
    frame_waiters: WaitQueue,
    /// Frame contents, where the device keeps any.
    arena: Option<Rc<Arena>>,
    page_bytes: usize,
    /// Device pages in a pool page.
    device_pages: u32,
}

/// A buffer pool; see the crate. Clones share the same pool.
pub struct BufferPool<D: Device + 'static>(Rc<Inner<D>>);

impl<D: Device + 'static> Clone for BufferPool<D> {
    fn clone(&self) -> Self {
        BufferPool(Rc::clone(&self.0))
    }
}

impl<D: Device + 'static> BufferPool<D> {
    /// An empty pool over the device behind `handle`.
    pub fn new(handle: Handle<D>, config: PoolConfig) -> Result<BufferPool<D>, PoolConfigError> {
        let PoolConfig { frames, page_bytes, replacement, write_back } = config;
        let caps = handle.caps();
        if frames == 0 {
            return Err(PoolConfigError::NoFrames);
        }
        if page_bytes == 0 || page_bytes % caps.page_bytes != 0 {
            return Err(PoolConfigError::PageSize { page_bytes, device_bytes: caps.page_bytes });
        }
        let state = State {
            frames: FrameTable::new(frames),
            table: FxHashMap::with_capacity_and_hasher(frames as usize, Default::default()),
            replacement,
            // Popped from the end: frame 0 is used first.
            free: (0..frames).rev().map(FrameId).collect(),
            loading: FxHashMap::default(),
            latch_waiters: FxHashMap::default(),
            plan: Plan::default(),
            counters: PoolCounters::default(),
        };
        let arena = caps.contents.then(|| Arena::new(frames as usize * page_bytes as usize));
        Ok(BufferPool(Rc::new(Inner {
            handle,
            state: RefCell::new(state),
            write_back,
            frame_waiters: WaitQueue::default(),
            arena,
            page_bytes: page_bytes as usize,
            device_pages: page_bytes / caps.page_bytes,
        })))
    }

    /// Pages that fit on the device.
    pub fn pages(&self) -> u64 {
        self.0.handle.caps().pages / u64::from(self.0.device_pages)
    }

    /// The unpinned pages in the order in which they would leave, and whether each is dirty.
    pub fn eviction_order(&self) -> Vec<(PageId, bool)> {
        let state = self.0.state.borrow();
        let order = Order::new(&state.replacement, &state.frames);
        order.map(|frame| (state.frames.page(frame), state.frames.is_dirty(frame))).collect()
    }

    /// What the pool has done so far.
    pub fn counters(&self) -> PoolCounters {
        self.0.state.borrow().counters
    }

    /// The page for reading, if it is in the pool and its latch is free.
    #[inline]
    pub fn try_read(&self, page: PageId) -> Option<ReadGuard<D>> {
        self.try_fix(page, false).map(ReadGuard)
    }

    /// The page for changing, if it is in the pool and its latch is free. It counts as changed.
    #[inline]
    pub fn try_write(&self, page: PageId) -> Option<WriteGuard<D>> {
        self.try_fix(page, true).map(WriteGuard)
    }

    /// The page for reading.
    pub async fn read(&self, page: PageId) -> Result<ReadGuard<D>, PoolError> {
        self.fix(page, false).await.map(ReadGuard)
    }

    /// The page for changing. It counts as changed.
    pub async fn write(&self, page: PageId) -> Result<WriteGuard<D>, PoolError> {
        self.fix(page, true).await.map(WriteGuard)
    }

    /// Writes every dirty page and waits until the drive has made it durable.
    pub async fn flush(&self) -> Result<(), PoolError> {
        let inner = &self.0;
        let mut from = 0;
        loop {
            let mut batch = Vec::new();
            {
                let mut state = inner.state.borrow_mut();
                while from < state.frames.len() && batch.len() < FLUSH_BATCH {
                    let frame = FrameId(from);
                    if state.frames.is_dirty(frame) {
                        if !state.frames.try_latch(frame, false) {
                            break;
                        }
                        batch.push(frame);
                    }
                    from += 1;
                }
                state.counters.pages_flushed += batch.len() as u64;
            }
            match batch.is_empty() {
                false => inner.write_out(batch).await?,
                true if from == inner.state.borrow().frames.len() => break,
                // Somebody is changing this very page.
                true => inner.latch_released(FrameId(from)).await,
            }
        }
        inner.handle.submit(Operation::Flush).await.map_err(PoolError::Flush)
    }

    #[inline]
    fn try_fix(&self, page: PageId, write: bool) -> Option<Fixed<D>> {
        let mut state = self.0.state.borrow_mut();
        let frame = *state.table.get(&page)?;
        if !state.frames.try_latch(frame, write) {
            return None;
        }
        state.counters.hits += 1;
        state.replacement.access(frame, write);
        if write {
            state.frames.set_dirty(frame, true);
        }
        Some(Fixed { inner: Rc::clone(&self.0), frame })
    }

    async fn fix(&self, page: PageId, write: bool) -> Result<Fixed<D>, PoolError> {
        loop {
            if let Some(fixed) = self.try_fix(page, write) {
                return Ok(fixed);
            }
            let resident = self.0.state.borrow().table.get(&page).copied();
            match resident {
                Some(frame) => self.0.latch_released(frame).await,
                None if self.0.is_loading(page) => self.0.loaded(page).await,
                None => return self.0.load(page, write).await,
            }
        }
    }
}

impl<D: Device + 'static> Inner<D> {
    fn is_loading(&self, page: PageId) -> bool {
        self.state.borrow().loading.contains_key(&page)
    }

    /// Waits until `page` has come in, or has failed to.
    async fn loaded(&self, page: PageId) {
        suspend(|waker| {
            if let Some(waiters) = self.state.borrow_mut().loading.get_mut(&page) {
                waiters.push(waker);
            }
        })
        .await;
    }

    /// Waits until somebody lets go of `frame`.
    async fn latch_released(&self, frame: FrameId) {
        suspend(|waker| self.state.borrow_mut().latch_waiters.entry(frame).or_default().push(waker)).await;
    }

    /// Reads `page` into a frame and fixes it.
    async fn load(self: &Rc<Self>, page: PageId, write: bool) -> Result<Fixed<D>, PoolError> {
        {
            let mut state = self.state.borrow_mut();
            state.counters.misses += 1;
            state.loading.insert(page, Vec::new());
        }
        let mut loading = Loading { inner: Rc::clone(self), page, frame: None, io: None };
        let frame = self.free_frame().await?;
        loading.frame = Some(frame);
        let lpn = self.lpn(page);
        {
            let counters = &mut self.state.borrow_mut().counters;
            counters.read_ios += 1;
            counters.pages_read += 1;
        }
        let read = Operation::Read { lpn, pages: self.device_pages, into: self.buffer(frame) };
        let io = loading.io.insert(self.handle.submit(read));
        let outcome = io.await;
        loading.io = None;
        outcome.map_err(|error| PoolError::Read { page, error })?;
        loading.frame = None;
        let mut state = self.state.borrow_mut();
        state.frames.load(frame, page);
        assert!(state.frames.try_latch(frame, write), "a fresh frame's latch is free");
        state.frames.set_dirty(frame, write);
        state.table.insert(page, frame);
        state.replacement.insert(frame, page);
        Ok(Fixed { inner: Rc::clone(self), frame })
    }

    /// A frame that holds nothing, made by eviction if need be.
    async fn free_frame(self: &Rc<Self>) -> Result<FrameId, PoolError> {
        loop {
            match self.make_room() {
                Room::Frame(frame) => return Ok(frame),
                Room::AllInUse => self.frame_waiters.wait().await,
                // Then look again: the victim may have been asked for while it was written.
                Room::MustWrite(batch) => self.write_out(batch).await?,
            }
        }
    }

    /// Performs as much of the write-back policy's plan as needs no waiting.
    fn make_room(&self) -> Room {
        let mut state = self.state.borrow_mut();
        let State { frames, replacement, plan, table, free, counters, .. } = &mut *state;
        if let Some(frame) = free.pop() {
            return Room::Frame(frame);
        }
        self.write_back.plan(Order::new(replacement, frames), frames, plan);
        let Some(victim) = plan.evict else { return Room::AllInUse };
        if plan.write.is_empty() {
            assert!(
                !frames.is_pinned(victim) && !frames.is_dirty(victim),
                "an evicted frame is unused and clean"
            );
            replacement.remove(victim);
            table.remove(&frames.page(victim));
            return Room::Frame(victim);
        }
        for frame in &plan.write {
            assert!(frames.try_latch(*frame, false), "an unpinned frame's latch is free");
        }
        counters.write_ios += 1;
        counters.pages_written += plan.write.len() as u64;
        Room::MustWrite(std::mem::take(&mut plan.write))
    }

    /// Writes frames that are latched shared, all at once, and lets go of them.
    async fn write_out(self: &Rc<Self>, batch: Vec<FrameId>) -> Result<(), PoolError> {
        let io = {
            let state = self.state.borrow();
            self.handle.submit_all(batch.iter().map(|frame| Operation::Write {
                lpn: self.lpn(state.frames.page(*frame)),
                pages: self.device_pages,
                from: self.buffer(*frame),
                stream: StreamId::default(),
            }))
        };
        let mut writing = Writing { inner: Rc::clone(self), batch, io: Some(io) };
        let outcome = writing.io.as_mut().expect("just set").await;
        writing.finish(outcome);
        outcome.map_err(PoolError::WriteBack)
    }

    /// Drops one latch and pin of `frame` and wakes whom that may concern.
    #[inline]
    fn release(&self, frame: FrameId) {
        let waiters = {
            let mut state = self.state.borrow_mut();
            state.frames.unlatch(frame);
            if state.latch_waiters.is_empty() { None } else { state.latch_waiters.remove(&frame) }
        };
        waiters.into_iter().flatten().for_each(Waker::wake);
        self.frame_waiters.wake_all();
    }

    fn lpn(&self, page: PageId) -> Lpn {
        Lpn(page.0.saturating_mul(u64::from(self.device_pages)))
    }

    fn buffer(&self, frame: FrameId) -> Option<Buffer> {
        self.arena.as_ref().map(|arena| arena.buffer(frame.index() * self.page_bytes, self.page_bytes))
    }
}

/// What stands between a miss and a frame.
enum Room {
    /// Nothing: here it is.
    Frame(FrameId),
    /// These dirty frames, now latched shared, must be written first.
    MustWrite(Vec<FrameId>),
    /// Every frame is in use.
    AllInUse,
}

/// Suspends the task once, after giving its waker to `register`.
async fn suspend(register: impl FnOnce(Waker)) {
    let mut register = Some(register);
    poll_fn(|context| match register.take() {
        Some(register) => {
            register(context.waker().clone());
            Poll::Pending
        }
        None => Poll::Ready(()),
    })
    .await;
}

/// A page on its way in. However it ends, the page stops loading and a frame without a page is
/// free again, as soon as no I/O can touch it.
struct Loading<D: Device + 'static> {
    inner: Rc<Inner<D>>,
    page: PageId,
    frame: Option<FrameId>,
    io: Option<Io<D>>,
}

impl<D: Device + 'static> Drop for Loading<D> {
    fn drop(&mut self) {
        let waiters = self.inner.state.borrow_mut().loading.remove(&self.page);
        waiters.into_iter().flatten().for_each(Waker::wake);
        let Some(frame) = self.frame else { return };
        let inner = Rc::clone(&self.inner);
        let free = move || {
            inner.state.borrow_mut().free.push(frame);
            inner.frame_waiters.wake_all();
        };
        match self.io.take() {
            None => free(),
            Some(io) => self.inner.handle.spawn(async move {
                // Nobody waits for the page any more; only the end of the I/O matters.
                let _ = io.await;
                free();
            }),
        }
    }
}

/// Frames being written, latched shared.
struct Writing<D: Device + 'static> {
    inner: Rc<Inner<D>>,
    batch: Vec<FrameId>,
    io: Option<Io<D>>,
}

impl<D: Device + 'static> Writing<D> {
    /// A failed write never makes a page clean.
    fn finish(&mut self, outcome: Result<(), IoError>) {
        self.io = None;
        for frame in std::mem::take(&mut self.batch) {
            if outcome.is_ok() {
                self.inner.state.borrow_mut().frames.set_dirty(frame, false);
            }
            self.inner.release(frame);
        }
    }
}

impl<D: Device + 'static> Drop for Writing<D> {
    fn drop(&mut self) {
        let Some(io) = self.io.take() else { return };
        let mut rest =
            Writing { inner: Rc::clone(&self.inner), batch: std::mem::take(&mut self.batch), io: None };
        self.inner.handle.spawn(async move {
            let outcome = io.await;
            rest.finish(outcome);
        });
    }
}

/// A pinned, latched frame.
struct Fixed<D: Device + 'static> {
    inner: Rc<Inner<D>>,
    frame: FrameId,
}

impl<D: Device + 'static> Fixed<D> {
    fn buffer(&self) -> Option<Buffer> {
        self.inner.buffer(self.frame)
    }
}

impl<D: Device + 'static> Drop for Fixed<D> {
    #[inline]
    fn drop(&mut self) {
        self.inner.release(self.frame);
    }
}

/// A page in use for reading. Others may read it too; nobody changes or evicts it.
pub struct ReadGuard<D: Device + 'static>(Fixed<D>);

impl<D: Device + 'static> ReadGuard<D> {
    /// The page's bytes; none where the device keeps no contents.
    pub fn bytes(&self) -> &[u8] {
        bytes(&self.0)
    }
}

/// A page in use for changing, by nobody else.
pub struct WriteGuard<D: Device + 'static>(Fixed<D>);

impl<D: Device + 'static> WriteGuard<D> {
    /// The page's bytes; none where the device keeps no contents.
    pub fn bytes(&self) -> &[u8] {
        bytes(&self.0)
    }

    /// The page's bytes, to change; none where the device keeps no contents.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self.0.buffer() {
            // SAFETY: the latch is exclusive, so there is no other guard and no I/O; the arena
            // lives as long as the pool, which the guard holds.
            Some(buffer) => unsafe { std::slice::from_raw_parts_mut(buffer.as_ptr(), buffer.len()) },
            None => &mut [],
        }
    }
}

fn bytes<D: Device>(fixed: &Fixed<D>) -> &[u8] {
    match fixed.buffer() {
        // SAFETY: the latch keeps others from changing the bytes while the guard lives; the arena
        // lives as long as the pool, which the guard holds.
        Some(buffer) => unsafe { std::slice::from_raw_parts(buffer.as_ptr(), buffer.len()) },
        None => &[],
    }
}
