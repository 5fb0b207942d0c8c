//! The pool itself: what it is made of, its guards, hits, and flushing.
//!
//! A frame is free, or being read into, or resident. A resident frame is in the table and in the replacement
//! policy's order. While its page is being written it may be read and not changed. Where misses do not wait
//! for writes, it may also be evicted during the write. It is then *detached*: it stays in the table, so
//! that its page is found, and becomes free when the write has ended. A frame's latch and flags alone decide
//! who may use its bytes. `miss.rs` makes room and reads, `write.rs` writes.

use crate::departed::{Departures, Watched};
use crate::page_table::PageTable;
use crate::spare::Spare;
use crate::waiting::{Batch, Turns, Waiter, Wish};
use crate::write_back::Order;
use crate::{Arrival, Cursor, FrameTable, Plan, Prefetch, Replacement, ReplacementPolicy, WriteBack};
use fulgurite_base::{FrameId, Lpn, PageId};
use fulgurite_device::{Arena, Buffer, Device, Handle, IoError, Operation};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
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
    /// Dirty pages could not be written; they are still dirty and still in the pool. Where misses do not
    /// wait for writes, the next miss learns it.
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
    /// All frames would be spare.
    #[error("{buffers} write buffers leave no frame of {frames}; a pool needs more frames than buffers")]
    Buffers {
        /// Spare frames asked for.
        buffers: u32,
        /// Frames in all.
        frames: u32,
    },
    /// The page is not made of whole device pages.
    #[error("a pool page of {page_bytes} bytes is not made of device pages of {device_bytes} bytes")]
    PageSize {
        /// Asked for.
        page_bytes: u32,
        /// The drive's.
        device_bytes: u32,
    },
    /// The policy asks for what the drive does not tell.
    #[error("the replacement policy asks how often erase blocks were erased, which this drive does not tell")]
    EraseCounts,
}

/// The end of a page's way to or from the drive.
pub type PageIo = Pin<Box<dyn Future<Output = Result<(), IoError>>>>;

/// The end of the way from the drive of several pages: for each of them, in order.
pub type RunIo = Pin<Box<dyn Future<Output = Vec<Result<(), IoError>>>>>;

/// Where pages are, and how they get there and back. Without one, a page lies at its own number on the drive
/// and is written as it is.
///
/// The pool calls its functions when the I/O begins, and awaits what they return. It polls a future to its end even if
/// nobody wants the page any more. The functions themselves must not use the pool; their futures may.
pub trait PageStore {
    /// Reads `page` into `into`. An error keeps the page out of the pool.
    fn read(&self, page: PageId, into: Option<Buffer>) -> PageIo;

    /// Reads the pages from `first` on, one into each of `into`. An error keeps its page out of the pool, and no other. A store
    /// where they lie side by side asks the drive once.
    fn read_run(&self, first: PageId, into: Vec<Option<Buffer>>) -> RunIo {
        let reads: Vec<PageIo> =
            (first.0..).zip(into).map(|(page, into)| self.read(PageId(page), into)).collect();
        Box::pin(async move {
            let mut outcomes = Vec::with_capacity(reads.len());
            for read in reads {
                outcomes.push(read.await);
            }
            outcomes
        })
    }

    /// Writes pages. Nobody changes them before the future has ended; an error keeps them dirty. What must be durable
    /// first, such as the log of their changes, is this function's to wait for.
    fn write(&self, pages: Vec<PageBytes>) -> PageIo;
}

/// A page that is to be written.
#[derive(Clone, Debug)]
pub struct PageBytes {
    /// Which.
    pub page: PageId,
    /// Its bytes; none where the device keeps no contents.
    pub bytes: Option<Buffer>,
}

/// The shape and the policies of a pool.
pub struct PoolConfig {
    /// Frames in the pool, those for pages whose write is under way among them.
    pub frames: u32,
    /// Bytes in a page: a multiple of the device's.
    pub page_bytes: u32,
    /// Which frame leaves; made for the same number of frames.
    pub replacement: Replacement,
    /// What is written when a frame leaves, and who waits.
    pub write_back: WriteBack,
    /// What is read beside a missed page.
    pub prefetch: Prefetch,
    /// Where pages are, if not at their own numbers.
    pub store: Option<Rc<dyn PageStore>>,
}

impl PoolConfig {
    /// A pool without prefetching, whose pages lie at their own numbers.
    pub fn new(frames: u32, page_bytes: u32, replacement: Replacement, write_back: WriteBack) -> PoolConfig {
        PoolConfig { frames, page_bytes, replacement, write_back, prefetch: Prefetch::default(), store: None }
    }
}

/// What a pool has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolCounters {
    /// Requests that found their page in the pool, on its way there, or on its way out.
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
    /// Pages read that nobody had asked for.
    pub prefetched: u64,
    /// Those that were asked for later.
    pub prefetch_hits: u64,
    /// Those that left without having been asked for.
    pub prefetch_wasted: u64,
    /// Pages that were asked for again between their eviction and the end of their write.
    pub rescued: u64,
    /// Misses that waited for a write.
    pub write_waits: u64,
}

impl PoolCounters {
    /// What has been done since these were the counters.
    pub fn since(&self, before: &PoolCounters) -> PoolCounters {
        PoolCounters {
            hits: self.hits - before.hits,
            misses: self.misses - before.misses,
            read_ios: self.read_ios - before.read_ios,
            pages_read: self.pages_read - before.pages_read,
            write_ios: self.write_ios - before.write_ios,
            pages_written: self.pages_written - before.pages_written,
            pages_flushed: self.pages_flushed - before.pages_flushed,
            prefetched: self.prefetched - before.prefetched,
            prefetch_hits: self.prefetch_hits - before.prefetch_hits,
            prefetch_wasted: self.prefetch_wasted - before.prefetch_wasted,
            rescued: self.rescued - before.rescued,
            write_waits: self.write_waits - before.write_waits,
        }
    }
}

/// Pages that are written together when the pool is flushed.
const FLUSH_BATCH: usize = 64;

pub(crate) struct PoolState {
    pub frames: FrameTable,
    pub table: PageTable,
    pub replacement: Replacement,
    pub prefetch: Prefetch,
    /// Frames that hold nothing.
    pub free: Vec<FrameId>,
    /// Frames resident or being read into, and how many were asked for at most.
    pub resident: u32,
    pub limit: u32,
    /// Frames that are spare, for pages whose write is under way.
    pub spare: Spare,
    /// Frames that serve as memory for something else.
    pub lent: u32,
    /// Pages whose write is under way.
    pub under_way: u32,
    /// Pages on their way in, and who else waits for them.
    pub loading: FxHashMap<PageId, Vec<Rc<Waiter>>>,
    /// Who waits for a latch. A frame with waiters is contended.
    pub latch_queues: FxHashMap<FrameId, VecDeque<Rc<Waiter>>>,
    /// Writes under way, oldest first, ended ones among them.
    pub writing: VecDeque<Rc<Batch>>,
    /// The error of a failed write for which no task waited.
    pub failure: Option<IoError>,
    /// Writes that have failed so far.
    pub failures: u64,
    /// The cleaner's batch under way, and how many more evictions it may sleep through.
    pub cleaning: Option<Rc<Batch>>,
    pub clean_ahead: u32,
    /// With a lock: the last batch that a miss waited for. Until it has ended, no other miss evicts.
    pub locked_by: Option<Rc<Batch>>,
    pub plan: Plan,
    pub cursor: Cursor,
    pub suggestions: Vec<PageId>,
    pub counters: PoolCounters,
    /// What leaves and comes back, where somebody wants to know.
    pub watched: Option<Watched>,
}

impl PoolState {
    #[inline]
    pub fn lookup(&self, page: PageId) -> Option<FrameId> {
        self.table.get(page, |frame| self.frames.page(FrameId(frame))).map(FrameId)
    }

    /// How many frames may be resident or read into.
    #[inline]
    pub fn resident_max(&self) -> u32 {
        self.limit.min(self.frames.len() - self.spare.frames - self.lent).max(1)
    }

    /// A free frame for a page to come, unless as many are resident as may be.
    pub fn take_free(&mut self) -> Option<FrameId> {
        let frame = if self.resident < self.resident_max() { self.free.pop() } else { None };
        self.resident += u32::from(frame.is_some());
        frame
    }

    /// A page is read because somebody needs it.
    #[inline]
    pub fn comes(&mut self, page: PageId) {
        if let Some(watched) = &mut self.watched {
            watched.come(page);
        }
    }

    /// A request finds its page in `frame`, whose latch it has.
    #[inline]
    fn hit(&mut self, frame: FrameId, write: bool) {
        self.counters.hits += 1;
        if self.frames.has(frame, FrameTable::PREFETCHED) {
            self.first_use(frame);
        }
        self.replacement.access(frame, write);
        if write {
            self.frames.set_dirty(frame, true);
        }
    }

    /// A prefetched page is asked for. Without prefetching, this request would have been a miss.
    #[cold]
    fn first_use(&mut self, frame: FrameId) {
        self.frames.clear(frame, FrameTable::PREFETCHED);
        self.counters.prefetch_hits += 1;
        self.prefetch.observe(self.frames.page(frame));
    }

    /// Takes the latch of `frame` for a request, unless others came first or it cannot be had.
    #[inline]
    fn try_hit(&mut self, frame: FrameId, write: bool) -> bool {
        // A detached frame is in no eviction order, so the policy must not hear of it.
        if self.frames.has(frame, FrameTable::CONTENDED | FrameTable::DETACHED)
            || !self.frames.try_latch(frame, write)
        {
            return false;
        }
        self.hit(frame, write);
        true
    }

    /// Adds a request to those that wait for the latch of `frame`.
    fn enqueue(&mut self, frame: FrameId, write: bool) -> Rc<Waiter> {
        let waiter = Waiter::new(write);
        self.frames.set(frame, FrameTable::CONTENDED);
        self.latch_queues.entry(frame).or_default().push_back(Rc::clone(&waiter));
        waiter
    }

    /// Hands the latch of `frame` to the tasks that wait for it, in order, until one cannot have it.
    pub fn hand_over(&mut self, frame: FrameId) {
        // The queue leaves the map because a hit needs the whole state.
        let Some(mut queue) = self.latch_queues.remove(&frame) else { return };
        while let Some(waiter) = queue.front() {
            // A waiter whose future was dropped is passed over.
            if waiter.is_waiting() {
                if !self.frames.try_latch(frame, waiter.write) {
                    break;
                }
                let waiter = Rc::clone(waiter);
                self.hit(frame, waiter.write);
                waiter.answer(Wish::Latched(frame));
            }
            queue.pop_front();
        }
        match queue.is_empty() {
            true => self.frames.clear(frame, FrameTable::CONTENDED),
            false => drop(self.latch_queues.insert(frame, queue)),
        }
    }

    /// `page` is now in `frame`; the task that waited for it comes next.
    pub fn deliver(&mut self, frame: FrameId, page: PageId, arrival: Arrival, joined: Vec<Rc<Waiter>>) {
        self.table.insert(page, frame.0);
        self.replacement.insert(frame, page, arrival);
        if !joined.is_empty() {
            // A contended frame is pinned: the page cannot leave before those who joined have used it.
            self.frames.set(frame, FrameTable::CONTENDED);
            self.latch_queues.insert(frame, joined.into());
            self.hand_over(frame);
        }
    }
}

pub(crate) struct Inner<D: Device + 'static> {
    pub handle: Handle<D>,
    pub state: RefCell<PoolState>,
    pub write_back: WriteBack,
    pub store: Option<Rc<dyn PageStore>>,
    /// Who waits for a frame to become free or evictable.
    pub turns: Turns,
    /// Frame contents, where the device keeps any.
    arena: Option<Arc<Arena>>,
    pub page_bytes: usize,
    /// Device pages in a pool page.
    pub device_pages: u32,
}

/// A buffer pool; see the crate. Clones share the same pool.
pub struct BufferPool<D: Device + 'static>(pub(crate) Rc<Inner<D>>);

impl<D: Device + 'static> Clone for BufferPool<D> {
    fn clone(&self) -> Self {
        BufferPool(Rc::clone(&self.0))
    }
}

impl<D: Device + 'static> BufferPool<D> {
    /// An empty pool over the device behind `handle`.
    pub fn new(handle: Handle<D>, config: PoolConfig) -> Result<BufferPool<D>, PoolConfigError> {
        let PoolConfig { frames, page_bytes, replacement, write_back, prefetch, store } = config;
        let caps = handle.caps();
        if frames == 0 {
            return Err(PoolConfigError::NoFrames);
        }
        if write_back.buffers >= frames {
            return Err(PoolConfigError::Buffers { buffers: write_back.buffers, frames });
        }
        if page_bytes == 0 || page_bytes % caps.page_bytes != 0 {
            return Err(PoolConfigError::PageSize { page_bytes, device_bytes: caps.page_bytes });
        }
        // The check above makes this division exact.
        let device_pages = page_bytes / caps.page_bytes;
        let mut table = FrameTable::new(frames);
        if replacement.needs_erase_counts() {
            if !caps.erase_counts {
                return Err(PoolConfigError::EraseCounts);
            }
            let drive = handle.clone();
            table.set_erase_counts(Box::new(move |page| {
                // A page that was never written lies in no erase block.
                drive.erases(address(page, device_pages)).unwrap_or(0)
            }));
        }
        let state = PoolState {
            frames: table,
            table: PageTable::new(frames),
            replacement,
            prefetch,
            // Popped from the end: frame 0 is used first.
            free: (0..frames).rev().map(FrameId).collect(),
            resident: 0,
            limit: frames,
            spare: Spare::new(write_back.buffers_least.min(write_back.buffers), write_back.buffers),
            lent: 0,
            under_way: 0,
            loading: FxHashMap::default(),
            latch_queues: FxHashMap::default(),
            writing: VecDeque::new(),
            failure: None,
            failures: 0,
            cleaning: None,
            clean_ahead: 0,
            locked_by: None,
            plan: Plan::default(),
            cursor: Cursor::default(),
            suggestions: Vec::new(),
            counters: PoolCounters::default(),
            watched: None,
        };
        let arena = caps.contents.then(|| Arena::new(frames as usize * page_bytes as usize));
        if let Some(arena) = &arena {
            handle.register(arena);
        }
        Ok(BufferPool(Rc::new(Inner {
            handle,
            state: RefCell::new(state),
            write_back,
            store,
            turns: Turns::default(),
            arena,
            page_bytes: page_bytes as usize,
            device_pages,
        })))
    }

    /// Pages that fit on the device.
    pub fn pages(&self) -> u64 {
        self.0.pages()
    }

    /// Frames that may hold pages.
    pub fn limit(&self) -> u32 {
        self.0.state.borrow().resident_max()
    }

    /// From now on at most so many frames hold pages, at least one, and never more than the pool has beside those for pages
    /// on their way out and those that are lent. Pages that are beyond the limit when it falls stay until the next miss.
    pub fn set_limit(&self, frames: u32) {
        self.0.state.borrow_mut().limit = frames;
    }

    /// From now on counts misses that `window` more frames would spare, about. That costs a look-up in a table for each page that
    /// comes or leaves, and 32 bytes of memory for each frame of the window.
    pub fn watch_departures(&self, window: u32) {
        self.0.state.borrow_mut().watched = Some(Watched::new(window));
    }

    /// What was counted since the beginning of [`BufferPool::watch_departures`].
    pub fn departures(&self) -> Departures {
        self.0.state.borrow().watched.as_ref().map_or(Departures::default(), |watched| watched.counts)
    }

    /// Whether as many frames hold pages as may, so that each page that comes displaces another.
    pub fn is_full(&self) -> bool {
        let state = self.0.state.borrow();
        state.resident >= state.resident_max()
    }

    /// The unpinned pages in the order in which they would leave, and whether each is dirty.
    pub fn eviction_order(&self) -> Vec<(PageId, bool)> {
        let state = self.0.state.borrow();
        let mut cursor = Cursor::default();
        let order = Order::new(&state.replacement, &state.frames, &mut cursor);
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

    /// A page for changing, without reading it: whoever asks fills all of it. A page that is in the pool is given as it
    /// is there. It counts as changed.
    pub async fn create(&self, page: PageId) -> Result<WriteGuard<D>, PoolError> {
        loop {
            let is_known = {
                let state = self.0.state.borrow();
                state.lookup(page).is_some() || state.loading.contains_key(&page)
            };
            if !is_known {
                return self.0.load_new(page).await.map(WriteGuard);
            }
            match self.fix(page, true).await {
                // It was on its way for somebody else, and could not be read. Here its contents do not matter.
                Err(PoolError::Read { .. }) => {}
                outcome => return outcome.map(WriteGuard),
            }
        }
    }

    /// Writes those of `pages` that are in the pool and dirty, all at once, and waits until the drive has them and those of
    /// which a write was under way. A page that somebody is changing is left out. They are not durable before the drive is
    /// flushed.
    pub async fn write_pages(&self, pages: &[PageId]) -> Result<(), PoolError> {
        let inner = &self.0;
        {
            let mut state = inner.state.borrow_mut();
            let state = &mut *state;
            let frames: Vec<FrameId> = pages
                .iter()
                .filter_map(|page| state.lookup(*page))
                .filter(|frame| state.frames.is_dirty(*frame) && !state.frames.is_latched_exclusively(*frame))
                .collect();
            state.counters.pages_flushed += frames.len() as u64;
            inner.start_write(state, frames);
        }
        for batch in inner.writes_of(pages) {
            (&*batch).await.map_err(PoolError::WriteBack)?;
        }
        Ok(())
    }

    /// Writes every page that is dirty now and waits until the drive has made it durable, together with the
    /// writes that were under way.
    pub async fn flush(&self) -> Result<(), PoolError> {
        let inner = &self.0;
        // Of writes begun before, those that fail leave their pages dirty again, and are met below.
        inner.written().await;
        let failures = {
            let mut state = inner.state.borrow_mut();
            // The flush writes the pages of earlier failures again and answers for them itself.
            state.failure = None;
            state.failures
        };
        let mut from = 0;
        loop {
            let (batch, busy) = {
                let mut state = inner.state.borrow_mut();
                let mut batch = Vec::new();
                let mut busy = None;
                while from < state.frames.len() && batch.len() < FLUSH_BATCH && busy.is_none() {
                    let frame = FrameId(from);
                    if !state.frames.is_dirty(frame) {
                        from += 1;
                    } else if state.frames.is_latched_exclusively(frame) {
                        busy = Some(state.enqueue(frame, false));
                    } else {
                        batch.push(frame);
                        from += 1;
                    }
                }
                state.counters.pages_flushed += batch.len() as u64;
                (inner.start_write(&mut state, batch), busy)
            };
            if let Some(batch) = batch {
                (&*batch).await.map_err(PoolError::WriteBack)?;
            }
            match busy {
                // Somebody is changing this very page: afterwards it is looked at again.
                Some(waiter) => drop(Granted { inner, waiter }.await),
                None if from == inner.state.borrow().frames.len() => break,
                None => {}
            }
        }
        // Pages that were dirty may have been written by misses meanwhile.
        inner.written().await;
        let failed = {
            let mut state = inner.state.borrow_mut();
            // A miss may have taken the error already, so only the count tells.
            (state.failures > failures).then(|| state.failure.take().unwrap_or(IoError::Media))
        };
        match failed {
            Some(error) => Err(PoolError::WriteBack(error)),
            None => inner.handle.submit(Operation::Flush).await.map_err(PoolError::Flush),
        }
    }

    #[inline]
    fn try_fix(&self, page: PageId, write: bool) -> Option<Fixed<D>> {
        let mut state = self.0.state.borrow_mut();
        let frame = state.lookup(page)?;
        state.try_hit(frame, write).then(|| Fixed { inner: Rc::clone(&self.0), frame })
    }

    async fn fix(&self, page: PageId, write: bool) -> Result<Fixed<D>, PoolError> {
        let inner = &self.0;
        loop {
            let waiter = {
                let mut state = inner.state.borrow_mut();
                match state.lookup(page) {
                    Some(frame) => {
                        if state.frames.has(frame, FrameTable::DETACHED) {
                            inner.rescue(&mut state, frame);
                        }
                        if state.try_hit(frame, write) {
                            return Ok(Fixed { inner: Rc::clone(inner), frame });
                        }
                        Some(state.enqueue(frame, write))
                    }
                    None => state.loading.get_mut(&page).map(|waiters| {
                        let waiter = Waiter::new(write);
                        waiters.push(Rc::clone(&waiter));
                        waiter
                    }),
                }
            };
            match waiter {
                // No await lies between the look-up and the entry in `loading`, so a page is read once.
                None => return inner.load(page, write).await,
                Some(waiter) => {
                    if let Some(fixed) = (Granted { inner, waiter }).await {
                        return Ok(fixed);
                    }
                    // The read that was joined has failed: try it oneself.
                }
            }
        }
    }
}

impl<D: Device + 'static> Inner<D> {
    pub fn pages(&self) -> u64 {
        self.handle.caps().pages / u64::from(self.device_pages)
    }

    /// The writes that are under way now of some pages.
    fn writes_of(&self, pages: &[PageId]) -> Vec<Rc<Batch>> {
        let state = self.state.borrow();
        let frames = pages.iter().filter_map(|page| state.lookup(*page));
        let frames: FxHashSet<FrameId> =
            frames.filter(|frame| state.frames.has(*frame, FrameTable::WRITING)).collect();
        let has_one = |batch: &&Rc<Batch>| batch.frames.iter().any(|frame| frames.contains(frame));
        let under_way = state.writing.iter().filter(|batch| batch.outcome().is_none());
        under_way.filter(has_one).cloned().collect()
    }

    /// Waits until every write that is under way now has ended, well or not.
    async fn written(&self) {
        // The list is copied because writes begin and end during the wait.
        let batches: Vec<Rc<Batch>> = self.state.borrow().writing.iter().cloned().collect();
        for batch in batches {
            let _ = (&*batch).await;
        }
    }

    /// Drops one latch of `frame` and hands it, or the frame, to the next task that waits.
    #[inline]
    pub fn release(&self, frame: FrameId) {
        let unused = {
            let mut state = self.state.borrow_mut();
            let (contended, unused) = state.frames.unlatch(frame);
            if contended {
                state.hand_over(frame);
            }
            unused
        };
        if unused && !self.turns.is_empty() {
            self.turns.next();
        }
    }

    pub fn lpn(&self, page: PageId) -> Lpn {
        address(page, self.device_pages)
    }

    pub fn arena(&self) -> Option<Arc<Arena>> {
        self.arena.clone()
    }

    pub fn buffer(&self, frame: FrameId) -> Option<Buffer> {
        self.arena.as_ref().map(|arena| arena.buffer(frame.index() * self.page_bytes, self.page_bytes))
    }
}

/// Where a page of the pool lies on the drive. A page beyond the end of the drive lies beyond it here too.
fn address(page: PageId, device_pages: u32) -> Lpn {
    Lpn(page.0.saturating_mul(u64::from(device_pages)))
}

/// The latch that a waiter gets; nothing where it shall try again.
struct Granted<'a, D: Device + 'static> {
    inner: &'a Rc<Inner<D>>,
    waiter: Rc<Waiter>,
}

impl<D: Device + 'static> Future for Granted<'_, D> {
    type Output = Option<Fixed<D>>;

    fn poll(self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        match self.waiter.poll(context) {
            None => Poll::Pending,
            Some(Wish::Latched(frame)) => Poll::Ready(Some(Fixed { inner: Rc::clone(self.inner), frame })),
            Some(_) => Poll::Ready(None),
        }
    }
}

impl<D: Device + 'static> Drop for Granted<'_, D> {
    fn drop(&mut self) {
        // A latch that a dropped future was given goes to the next task.
        if let Wish::Latched(frame) = self.waiter.give_up() {
            self.inner.release(frame);
        }
    }
}

/// A pinned, latched frame.
pub(crate) struct Fixed<D: Device + 'static> {
    pub inner: Rc<Inner<D>>,
    pub frame: FrameId,
}

impl<D: Device + 'static> Fixed<D> {
    /// Where the page's bytes lie, and how many they are. A guard asks often, so no buffer is made for it.
    #[inline]
    fn bytes(&self) -> Option<(*mut u8, usize)> {
        let len = self.inner.page_bytes;
        let arena = self.inner.arena.as_ref()?;
        Some((arena.address(self.frame.index() * len, len).as_ptr(), len))
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
    /// The page has served its purpose: unless it is asked for again, it leaves before those that were asked for, as one does
    /// that was read ahead. One that is changed stays where it is, since it would have to be written.
    pub fn leaves_next(&self) {
        let state = &mut *self.0.inner.state.borrow_mut();
        let frame = self.0.frame;
        if !state.frames.is_dirty(frame)
            && !state.frames.has(frame, FrameTable::WRITING | FrameTable::DETACHED)
        {
            state.replacement.remove(frame);
            let arrival = Arrival { prefetched: true, ..Arrival::default() };
            state.replacement.insert(frame, state.frames.page(frame), arrival);
        }
    }

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
        match self.0.bytes() {
            // SAFETY: the latch is exclusive, so there is no other guard and no I/O; the arena
            // lives as long as the pool, which the guard holds.
            Some((start, len)) => unsafe { std::slice::from_raw_parts_mut(start, len) },
            None => &mut [],
        }
    }
}

#[inline]
fn bytes<D: Device>(fixed: &Fixed<D>) -> &[u8] {
    match fixed.bytes() {
        // SAFETY: the latch keeps others from changing the bytes while the guard lives; the arena
        // lives as long as the pool, which the guard holds.
        Some((start, len)) => unsafe { std::slice::from_raw_parts(start, len) },
        None => &[],
    }
}
