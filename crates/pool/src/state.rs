//! The state that all clones of a pool share: its frames, the tasks that wait for them, and its counters.
//!
//! A frame is free, or a page is being read into it, or it is resident. A resident frame is in the page table
//! and in the replacement policy's order. While its page is being written, the page may be read but not
//! changed. With spare frames, a frame may also be evicted during its write. The frame is then *detached*: it
//! stays in the page table, so that its page is still found, and becomes free when the write has ended. Only
//! a frame's latch and flags decide which task may use its bytes.

use crate::counters::PoolCounters;
use crate::departed::Watched;
use crate::page_table::PageTable;
use crate::spare::Spare;
use crate::store::PageStore;
use crate::waiting::{Batch, Turns, Waiter, Wish};
use crate::write_back::Plan;
use crate::{Arrival, Cursor, FrameTable, Prefetch, Replacement, ReplacementPolicy, WriteBack};
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
    /// Frames without a page, including the spare ones.
    pub free: Vec<FrameId>,
    /// The number of frames that are resident or being read into, and the limit on this number.
    pub resident: u32,
    pub limit: u32,
    /// The number of spare frames, which take the reads of misses on dirty victim frames.
    pub spare: Spare,
    /// The number of frames that are lent as memory for other data.
    pub lent: u32,
    /// The number of pages that are being written.
    pub under_way: u32,
    /// Pages that are being read, and the other tasks that wait for each of them.
    pub loading: FxHashMap<PageId, Vec<Rc<Waiter>>>,
    /// The tasks that wait for each latch. A frame with waiters is contended.
    pub latch_queues: FxHashMap<FrameId, VecDeque<Rc<Waiter>>>,
    /// Batches of writes in the order in which they began. Some of them may have ended.
    pub writing: VecDeque<Rc<Batch>>,
    /// The error of a failed write that no task waited for; the next miss reports it.
    pub failure: Option<IoError>,
    /// The number of batches whose write has failed so far.
    pub failures: u64,
    /// The error of the last failed write; `None` if none has failed.
    pub last_failure: Option<IoError>,
    /// The batch that the cleaner (which writes ahead of misses) is writing; `None` if there is none.
    pub cleaning: Option<Rc<Batch>>,
    /// The number of frames at the head of the eviction order that were clean at the cleaner's last look. An
    /// access may have made some of them dirty since.
    pub clean_ahead: u32,
    /// The last batch that a miss waited for, if the write-back policy has a lock. Until this batch has
    /// ended, no other miss evicts.
    pub locked_by: Option<Rc<Batch>>,
    pub plan: Plan,
    pub cursor: Cursor,
    pub suggestions: Vec<PageId>,
    pub counters: PoolCounters,
    /// Counts of pages that were evicted and soon read again, if [`crate::BufferPool::watch_departures`] was
    /// called.
    pub watched: Option<Watched>,
}

impl PoolState {
    /// Creates the state of an empty pool over `frames`.
    pub(crate) fn new(
        frames: FrameTable,
        replacement: Replacement,
        prefetch: Prefetch,
        write_back: &WriteBack,
    ) -> PoolState {
        PoolState {
            table: PageTable::new(frames.len()),

            replacement,
            prefetch,
            // Frames are popped from the end, so frame 0 is used first.
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
            last_failure: None,
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
    pub(crate) fn lookup(&self, page: PageId) -> Option<FrameId> {
        self.table.get(page, |frame| self.frames.page(FrameId(frame))).map(FrameId)
    }

    /// Returns the most frames that may be resident or being read into.
    #[inline]
    pub(crate) fn resident_max(&self) -> u32 {
        self.limit.min(self.frames.len() - self.spare.frames - self.lent).max(1)
    }

    /// Takes a free frame for a new page, unless the pool is at its limit.
    pub(crate) fn take_free(&mut self) -> Option<FrameId> {
        let frame = if self.resident < self.resident_max() { self.free.pop() } else { None };
        self.resident += u32::from(frame.is_some());
        frame
    }

    /// Records in the ghost table, if there is one, that a page is read because a task needs it.
    #[inline]
    pub(crate) fn comes(&mut self, page: PageId) {
        if let Some(watched) = &mut self.watched {
            watched.come(page);
        }
    }

    /// Counts a hit on `frame`, whose latch the request holds.
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

    /// Handles the first request for a prefetched page, which would have been a miss without prefetching.
    #[cold]
    fn first_use(&mut self, frame: FrameId) {
        self.frames.clear(frame, FrameTable::PREFETCHED);
        self.counters.prefetch_hits += 1;
        self.prefetch.observe(self.frames.page(frame));
    }

    /// Takes the latch of `frame` for a request, unless the latch is held or other tasks wait for it.
    #[inline]
    pub(crate) fn try_hit(&mut self, frame: FrameId, write: bool) -> bool {
        // A detached frame is in no eviction order, so the replacement policy must not be told of the hit.
        if self.frames.has(frame, FrameTable::CONTENDED | FrameTable::DETACHED)
            || !self.frames.try_latch(frame, write)
        {
            return false;
        }
        self.hit(frame, write);
        true
    }

    /// Adds a request to the queue for the latch of `frame`.
    pub(crate) fn enqueue(&mut self, frame: FrameId, write: bool) -> Rc<Waiter> {
        let waiter = Waiter::new(write);
        self.frames.set(frame, FrameTable::CONTENDED);
        self.latch_queues.entry(frame).or_default().push_back(Rc::clone(&waiter));
        waiter
    }

    /// Gives the latch of `frame` to the waiting tasks, in order, until a task needs a latch that is not
    /// available.
    pub(crate) fn hand_over(&mut self, frame: FrameId) {
        // The queue is taken out of the map, because a hit needs the whole state.
        let Some(mut queue) = self.latch_queues.remove(&frame) else { return };
        while let Some(waiter) = queue.front() {
            // A waiter whose future was dropped no longer waits and is skipped.
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

    /// Makes `page`, which is now in `frame`, resident, and gives its latch to the tasks that joined its
    /// read.
    pub(crate) fn deliver(
        &mut self,
        frame: FrameId,
        page: PageId,
        arrival: Arrival,
        joined: Vec<Rc<Waiter>>,
    ) {
        self.table.insert(page, frame.0);
        self.replacement.insert(frame, page, arrival);
        if !joined.is_empty() {
            // A contended frame is pinned, so the page cannot be evicted before these tasks have used it.
            self.frames.set(frame, FrameTable::CONTENDED);
            self.latch_queues.insert(frame, joined.into());
            self.hand_over(frame);
        }
    }
}

pub(crate) struct Inner<D: Device + ?Sized + 'static> {
    pub handle: Handle<D>,
    pub state: RefCell<PoolState>,
    pub write_back: WriteBack,
    pub store: Option<Rc<dyn PageStore>>,
    /// The tasks that wait for a frame to become free or evictable.
    pub turns: Turns,
    /// The contents of all frames; `None` if the device stores no contents.
    pub arena: Option<Arc<Arena>>,
    pub page_bytes: usize,
    /// The number of device pages in a pool page.
    pub device_pages: u32,
}

impl<D: Device + ?Sized + 'static> Inner<D> {
    pub(crate) fn pages(&self) -> u64 {
        self.handle.caps().pages / u64::from(self.device_pages)
    }

    /// Drops one latch of `frame`. Gives the latch to the next task that waits for it, or the frame to the
    /// next task that waits for a frame.
    #[inline]
    pub(crate) fn release(&self, frame: FrameId) {
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

    pub(crate) fn lpn(&self, page: PageId) -> Lpn {
        address(page, self.device_pages)
    }

    pub(crate) fn arena(&self) -> Option<Arc<Arena>> {
        self.arena.clone()
    }

    pub(crate) fn buffer(&self, frame: FrameId) -> Option<Buffer> {
        self.arena.as_ref().map(|arena| arena.buffer(frame.index() * self.page_bytes, self.page_bytes))
    }
}

/// Returns the drive's address of a page of the pool. A page beyond the end of the drive gets an address
/// beyond that end.
pub(crate) fn address(page: PageId, device_pages: u32) -> Lpn {
    Lpn(page.0.saturating_mul(u64::from(device_pages)))
}

/// The wait for a latch. The output is `None` if the task must look the page up again.
pub(crate) struct Granted<'a, D: Device + ?Sized + 'static> {
    pub inner: &'a Rc<Inner<D>>,
    pub waiter: Rc<Waiter>,
}

impl<D: Device + ?Sized + 'static> Future for Granted<'_, D> {
    type Output = Option<Fixed<D>>;

    fn poll(self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        match self.waiter.poll(context) {
            None => Poll::Pending,
            Some(Wish::Latched(frame)) => Poll::Ready(Some(Fixed { inner: Rc::clone(self.inner), frame })),
            Some(_) => Poll::Ready(None),
        }
    }
}

impl<D: Device + ?Sized + 'static> Drop for Granted<'_, D> {
    fn drop(&mut self) {
        // If the latch was already granted to the dropped future, the next task gets it.
        if let Wish::Latched(frame) = self.waiter.give_up() {
            self.inner.release(frame);
        }
    }
}

/// A pinned frame with its latch. Dropping it releases the latch.
pub(crate) struct Fixed<D: Device + ?Sized + 'static> {
    pub inner: Rc<Inner<D>>,
    pub frame: FrameId,
}

impl<D: Device + ?Sized + 'static> Fixed<D> {
    /// Returns the address and the length of the page's bytes. Guards call this often, so it makes no buffer.
    #[inline]
    pub(crate) fn bytes(&self) -> Option<(*mut u8, usize)> {
        let len = self.inner.page_bytes;
        let arena = self.inner.arena.as_ref()?;
        Some((arena.address(self.frame.index() * len, len).as_ptr(), len))
    }
}

impl<D: Device + ?Sized + 'static> Drop for Fixed<D> {
    #[inline]
    fn drop(&mut self) {
        self.inner.release(self.frame);
    }
}
