//! The state that all users and tasks of a pool share: its frames, the tasks that wait for them, and its counters.
//!
//! A frame is free, or being read into, or resident. A resident frame is in the table and in the replacement
//! policy's order. While its page is being written it may be read and not changed. Where misses do not wait
//! for writes, it may also be evicted during the write. It is then *detached*: it stays in the table, so
//! that its page is found, and becomes free when the write has ended. A frame's latch and flags alone decide
//! who may use its bytes.

use crate::counters::PoolCounters;
use crate::departed::Watched;
use crate::page_table::PageTable;
use crate::spare::Spare;
use crate::store::PageStore;
use crate::waiting::{Batch, Turns, Waiter, Wish};
use crate::{Arrival, Cursor, FrameTable, Plan, Prefetch, Replacement, ReplacementPolicy, WriteBack};
use fulgurite_base::{FrameId, Lpn, PageId};
use fulgurite_device::{Arena, Buffer, Device, Handle, IoError};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

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
    /// The state of an empty pool over `frames`.
    pub fn new(
        frames: FrameTable,
        replacement: Replacement,
        prefetch: Prefetch,
        write_back: &WriteBack,
    ) -> PoolState {
        PoolState {
            table: PageTable::new(frames.len()),

            replacement,
            prefetch,
            // Popped from the end: frame 0 is used first.
            free: (0..frames.len()).rev().map(FrameId).collect(),
            resident: 0,
            limit: frames.len(),
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
            frames,
        }
    }

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
    pub fn try_hit(&mut self, frame: FrameId, write: bool) -> bool {
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
    pub fn enqueue(&mut self, frame: FrameId, write: bool) -> Rc<Waiter> {
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
    pub arena: Option<Arc<Arena>>,
    pub page_bytes: usize,
    /// Device pages in a pool page.
    pub device_pages: u32,
}

impl<D: Device + 'static> Inner<D> {
    pub fn pages(&self) -> u64 {
        self.handle.caps().pages / u64::from(self.device_pages)
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
pub(crate) fn address(page: PageId, device_pages: u32) -> Lpn {
    Lpn(page.0.saturating_mul(u64::from(device_pages)))
}

/// The latch that a waiter gets; nothing where it shall try again.
pub(crate) struct Granted<'a, D: Device + 'static> {
    pub inner: &'a Rc<Inner<D>>,
    pub waiter: Rc<Waiter>,
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
    pub fn bytes(&self) -> Option<(*mut u8, usize)> {
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
