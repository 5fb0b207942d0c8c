//! Serves misses: makes room, reads the requested page, and prefetches further pages with it.
//!
//! When a read ends, its page leaves the table of pages that are being read. If the read failed, its frame
//! becomes free as soon as no I/O can touch the frame. If the miss's future is dropped, a separate task waits
//! for the end of the I/O and frees the frame.

use crate::error::PoolError;
use crate::state::{Fixed, Inner, PoolState};
use crate::store::PageIo;
use crate::waiting::{Batch, Wish};
use crate::write_back::{Order, Plan};
use crate::{Arrival, FrameTable, ReplacementPolicy};
use fulgurite_base::{FrameId, PageId};
use fulgurite_device::executor::Io;
use fulgurite_device::{Device, IoError, Operation};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// The outcome of an attempt to make room for a miss: a frame, or the reason why there is none yet.
pub(crate) enum Room {
    /// This frame can take the page.
    Frame(FrameId),
    /// This batch must be written first.
    After(Rc<Batch>),
    /// There is no frame: all frames are pinned, or the pages of all spare frames are being written, or
    /// another miss holds the lock, so that only that miss may evict.
    None,
}

impl<D: Device + ?Sized + 'static> Inner<D> {
    /// Reads `page` into a frame, and pins and latches that frame.
    pub(crate) async fn load(self: &Rc<Self>, page: PageId, write: bool) -> Result<Fixed<D>, PoolError> {
        let recall = {
            let mut state = self.state.borrow_mut();
            state.counters.misses += 1;
            state.comes(page);
            // Requests for the page during the read join it here instead of reading the page again.
            state.loading.insert(page, Vec::new());
            state.prefetch.observe(page);
            state.replacement.miss(page)
        };
        // From here on, dropping `loading` on an error or with the future removes the entry from `loading` in
        // the state.
        let mut loading = Loading::new(self, page, None);
        let (frame, may_prefetch) = self.room().await?;
        loading.frame = Some(frame);
        // The missed page goes to the drive before the prefetched ones.
        loading.submit();
        if may_prefetch > 0 {
            if self.write_back.batches {
                self.drop_next(may_prefetch);
            }
            // Frames that are freed here and not used for prefetching need no wake-up: `room` has already
            // woken the next task that waits for a frame, and that task finds them.
            self.prefetch(page, may_prefetch);
        }
        loading.read().await?;
        let arrival = Arrival { write, prefetched: false, recall };
        loading.deliver(arrival);
        Ok(Fixed { inner: Rc::clone(self), frame })
    }

    /// Pins and latches a frame for `page`, which is neither in the pool nor being read, without reading it.
    pub(crate) async fn load_new(self: &Rc<Self>, page: PageId) -> Result<Fixed<D>, PoolError> {
        let recall = {
            let mut state = self.state.borrow_mut();
            state.loading.insert(page, Vec::new());
            state.replacement.miss(page)
        };
        let mut loading = Loading::new(self, page, None);
        let (frame, _) = self.room().await?;
        loading.frame = Some(frame);
        loading.deliver(Arrival { write: true, prefetched: false, recall });
        Ok(Fixed { inner: Rc::clone(self), frame })
    }

    /// Returns a frame without a page, freed by eviction if necessary, and the number of further frames that
    /// may be evicted for prefetching.
    pub(crate) async fn room(self: &Rc<Self>) -> Result<(FrameId, u32), PoolError> {
        // `batched` is the number of evictions for prefetching that the awaited batch allows. `again` tells
        // whether this miss has waited for its turn, and `waited` whether it has waited for a write.
        let (mut batched, mut again, mut waited) = (None, false, false);
        // Misses that are already waiting go first.
        if !self.turns.is_empty() {
            self.turns.wait(false).await;
            again = true;
        }
        loop {
            let failure = self.state.borrow_mut().failure.take();
            if let Some(error) = failure {
                // The frame of this turn is left to the next waiting miss, because this miss ends with the
                // error.
                self.turns.next();
                return Err(PoolError::WriteBack(error));
            }
            let room = self.make_room(&mut self.state.borrow_mut());
            match room {
                Room::Frame(frame) => {
                    // There may be another frame, so the next waiting miss gets its turn.
                    self.turns.next();
                    let state = self.state.borrow();
                    let may_prefetch = batched.unwrap_or(state.plan.prefetch);
                    return Ok((frame, if state.prefetch.is_none() { 0 } else { may_prefetch }));
                }
                Room::After(batch) => {
                    // The plan is shared, and other misses overwrite it during the wait, so its number is
                    // kept here.
                    batched = Some(self.state.borrow().plan.prefetch);
                    self.count_wait(&mut waited);
                    (&*batch).await.map_err(PoolError::WriteBack)?;
                    // A miss that held the lock has had its turn, so it continues before the waiting misses.
                    again |= self.write_back.lock;
                    // The loop then plans again, because the victim may have been requested while it was
                    // written.
                }
                Room::None => {
                    // There is a victim that cannot be evicted, so writes hold all spare frames or the lock:
                    // the miss waits for a write.
                    if self.state.borrow().plan.evict.is_some() {
                        self.count_wait(&mut waited);
                    }
                    self.turns.wait(again).await;
                    again = true;
                }
            }
        }
    }

    /// Counts this miss among those that wait for a write, at most once.
    fn count_wait(&self, waited: &mut bool) {
        self.state.borrow_mut().counters.write_waits += u64::from(!std::mem::replace(waited, true));
    }

    /// Carries out what the write-back policy's plan allows without waiting: evictions, and the start of
    /// writes.
    pub(crate) fn make_room(self: &Rc<Self>, state: &mut PoolState) -> Room {
        // A failed write may have made a page resident again and so exceeded the limit.
        self.shrink(state, None);
        if let Some(frame) = state.take_free() {
            // While the pool fills up, free frames can take prefetched pages. ACE, however, prefetches only
            // together with a batch.
            state.plan.prefetch = if self.write_back.batches { 0 } else { u32::MAX };
            return Room::Frame(frame);
        }
        loop {
            let PoolState { frames, replacement, plan, cursor, locked_by, under_way, .. } = &mut *state;
            self.write_back.plan(Order::new(replacement, frames, cursor), frames, plan);
            let Some(victim) = plan.evict else { return Room::None };
            // The lock forbids other misses to evict. The miss that holds the lock waits for the write itself
            // and does not get here.
            if is_under_way(locked_by) {
                return Room::None;
            }
            let is_dirty = frames.is_dirty(victim);
            let is_clean = !is_dirty && !frames.has(victim, FrameTable::WRITING);
            let batch = self.take_batch(plan, *under_way);
            // Nothing may be written now. The end of any write gives this miss its turn again.
            if is_dirty && batch.is_empty() {
                return Room::None;
            }
            if is_clean {
                self.evict_beside(state, victim, batch);
                self.clean_ahead(state);
                state.spare.used(state.free.len() as u32);
                return Room::Frame(victim);
            }
            // The read goes to a spare frame, and the victim frame becomes free when its page has been
            // written.
            let spare = if self.write_back.buffers > 0 { state.free.pop() } else { None };
            if spare.is_none() && !state.spare.grow() {
                if batch.is_empty() {
                    return Room::None;
                }
                state.replacement.written_ahead(&state.frames, &batch);
                let batch = self.write_batch(state, batch);
                state.locked_by = self.write_back.lock.then(|| Rc::clone(&batch));
                return Room::After(batch);
            }
            self.evict_beside(state, victim, batch);
            if let Some(spare) = spare {
                state.spare.used(state.free.len() as u32);
                return Room::Frame(spare);
            }
            // The evicted frame becomes a spare frame when its page has been written. The loop evicts the
            // next victim to make room for the miss.
            state.resident -= 1;
        }
    }

    /// Takes the plan's batch, cut so that the bound on pages being written is kept.
    fn take_batch(&self, plan: &mut Plan, under_way: u32) -> Vec<FrameId> {
        plan.write.truncate(self.write_back.under_way.saturating_sub(under_way) as usize);
        std::mem::take(&mut plan.write)
    }

    /// Evicts `victim` and begins to write `batch`, which contains the victim if the victim is dirty, and may
    /// be empty otherwise. Returns the batch if it is not empty.
    fn evict_beside(
        self: &Rc<Self>,
        state: &mut PoolState,
        victim: FrameId,
        batch: Vec<FrameId>,
    ) -> Option<Rc<Batch>> {
        state.replacement.written_ahead(&state.frames, &batch);
        // The victim is evicted before the write begins, because a page that becomes clean may change the
        // order.
        self.evict(state, victim);
        (!batch.is_empty()).then(|| self.write_batch(state, batch))
    }

    /// Evicts the next `most` frames of the eviction order, up to the first dirty one. A frame that is still
    /// being written becomes free when its write has ended.
    fn drop_next(&self, most: u32) {
        let state = &mut *self.state.borrow_mut();
        for _ in 0..most {
            let PoolState { frames, replacement, cursor, .. } = &mut *state;
            let next = Order::new(replacement, frames, cursor).next();
            let Some(victim) = next.filter(|next| !frames.is_dirty(*next)) else { return };
            self.evict(state, victim);
            state.resident -= 1;
            if !state.frames.has(victim, FrameTable::WRITING) {
                state.free.push(victim);
            }
        }
    }

    /// Removes `victim`, the first frame of the eviction order, from that order. Its page stays in the page
    /// table if the page is being written or is about to be written.
    pub(crate) fn evict(&self, state: &mut PoolState, victim: FrameId) {
        let PoolState { frames, replacement, counters, table, watched, .. } = state;
        let evicted = replacement.evict(frames);
        assert!(
            evicted == Some(victim),
            "the replacement policy breaks the order law: {evicted:?} for {victim:?}"
        );
        assert!(!frames.is_pinned(victim), "an evicted frame is unused");
        counters.prefetch_wasted += u64::from(frames.has(victim, FrameTable::PREFETCHED));
        if let Some(watched) = watched {
            watched.leave(frames.page(victim));
        }
        if frames.is_dirty(victim) || frames.has(victim, FrameTable::WRITING) {
            frames.set(victim, FrameTable::DETACHED);
        } else {
            table.remove(frames.page(victim), |frame| frames.page(FrameId(frame)));
        }
    }

    /// Makes a requested page whose frame is detached (evicted during its write) resident again, and evicts
    /// another page for it.
    pub(crate) fn rescue(self: &Rc<Self>, state: &mut PoolState, frame: FrameId) {
        state.counters.rescued += 1;
        let page = state.frames.page(frame);
        let recall = state.replacement.miss(page);
        state.frames.clear(frame, FrameTable::DETACHED);
        state.replacement.insert(frame, page, Arrival { recall, ..Arrival::default() });
        state.resident += 1;
        self.shrink(state, Some(frame));
    }

    /// Evicts pages until the pool is within its limit, as far as possible without waiting, and never evicts
    /// `keep`. The bound on writes under way and the lock apply to these evictions too, so some of them may
    /// be left to the next miss.
    fn shrink(self: &Rc<Self>, state: &mut PoolState, keep: Option<FrameId>) {
        while state.resident > state.resident_max() {
            let PoolState { frames, replacement, plan, cursor, locked_by, under_way, .. } = &mut *state;
            self.write_back.plan(Order::new(replacement, frames, cursor), frames, plan);
            // The caller is about to latch `keep`, so the pool exceeds its limit by one frame until the next
            // miss.
            let Some(victim) = plan.evict.filter(|victim| Some(*victim) != keep) else { return };
            if is_under_way(locked_by) {
                return;
            }
            // The page of `keep` already has its frame and cannot wait, so the eviction for it ignores the
            // bound on writes.
            let under_way = if keep.is_some() { 0 } else { *under_way };
            let batch = self.take_batch(plan, under_way);
            if frames.is_dirty(victim) && batch.is_empty() {
                return;
            }
            if let Some(batch) = self.evict_beside(state, victim, batch) {
                state.locked_by = self.write_back.lock.then_some(batch);
            }
            state.resident -= 1;
            if !state.frames.has(victim, FrameTable::DETACHED) {
                state.free.push(victim);
            }
        }
    }

    /// Prefetches at most `most` pages that the prefetch policy expects after `page`, into frames that need
    /// no write.
    fn prefetch(self: &Rc<Self>, page: PageId, most: u32) {
        // The vector is taken out and put back, so that prefetching allocates nothing.
        let mut suggestions = std::mem::take(&mut self.state.borrow_mut().suggestions);
        self.state.borrow().prefetch.suggest(page, most, &mut suggestions);
        let pages = self.pages();
        for page in suggestions.drain(..) {
            let mut state = self.state.borrow_mut();
            let wanted = page.0 < pages && state.lookup(page).is_none() && !state.loading.contains_key(&page);
            if !wanted {
                continue;
            }
            let Some(frame) = self.room_at_once(&mut state) else { break };
            state.counters.prefetched += 1;
            state.loading.insert(page, Vec::new());
            // `submit` borrows the state itself, so the borrow ends here.
            drop(state);
            let mut loading = Loading::new(self, page, Some(frame));
            loading.submit();
            self.handle.spawn(async move {
                if loading.read().await.is_ok() {
                    loading.settle_prefetched();
                }
            });
        }
        self.state.borrow_mut().suggestions = suggestions;
    }

    /// Returns a frame for a page to prefetch: a free frame, or the next frame in eviction order if it is
    /// clean. If that frame is being written and enough spare frames are left, returns a spare frame.
    fn room_at_once(&self, state: &mut PoolState) -> Option<FrameId> {
        if let Some(frame) = state.take_free() {
            return Some(frame);
        }
        let PoolState { frames, replacement, cursor, free, spare, .. } = state;
        let victim = Order::new(replacement, frames, cursor).next()?;
        // An unused prefetched page is not evicted for another prefetched page.
        if frames.is_dirty(victim) || frames.has(victim, FrameTable::PREFETCHED) {
            return None;
        }
        let mut frame = victim;
        if frames.has(victim, FrameTable::WRITING) {
            // Half of the spare frames are kept for misses.
            if free.len() as u32 <= spare.frames / 2 {
                return None;
            }
            frame = free.pop()?;
        }
        self.evict(state, victim);
        Some(frame)
    }
}

/// Returns whether the write that holds the lock is still under way.
fn is_under_way(locked_by: &Option<Rc<Batch>>) -> bool {
    locked_by.as_ref().is_some_and(|batch| batch.outcome().is_none())
}

/// The read of a page, from the drive or from the page store.
enum Reading<D: Device + ?Sized + 'static> {
    Direct(Io<D>),
    Stored(PageIo),
}

impl<D: Device + ?Sized + 'static> Future for Reading<D> {
    type Output = Result<(), IoError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Reading::Direct(io) => Pin::new(io).poll(context),
            Reading::Stored(io) => io.as_mut().poll(context),
        }
    }
}

/// A page that is being read. Dropping it unsettled frees its frame when no I/O can touch the frame any more.
pub(crate) struct Loading<D: Device + ?Sized + 'static> {
    inner: Rc<Inner<D>>,
    pub page: PageId,
    frame: Option<FrameId>,
    io: Option<Reading<D>>,
    settled: bool,
}

impl<D: Device + ?Sized + 'static> Loading<D> {
    pub(crate) fn new(inner: &Rc<Inner<D>>, page: PageId, frame: Option<FrameId>) -> Loading<D> {
        Loading { inner: Rc::clone(inner), page, frame, io: None, settled: false }
    }

    pub(crate) fn frame(&self) -> FrameId {
        self.frame.expect("a page is read into a frame")
    }

    /// Submits the read of the page.
    pub(crate) fn submit(&mut self) {
        let inner = &self.inner;
        {
            let counters = &mut inner.state.borrow_mut().counters;
            counters.read_ios += 1;
            counters.pages_read += 1;
        }
        let into = inner.buffer(self.frame());
        self.io = Some(match &inner.store {
            Some(store) => Reading::Stored(store.read(self.page, into)),
            None => {
                let (lpn, pages) = (inner.lpn(self.page), inner.device_pages);
                Reading::Direct(inner.handle.submit(Operation::Read { lpn, pages, into }))
            }
        });
    }

    /// Waits for the end of the read.
    pub(crate) async fn read(&mut self) -> Result<(), PoolError> {
        let outcome = self.io.as_mut().expect("submitted").await;
        self.io = None;
        outcome.map_err(|error| PoolError::Read { page: self.page, error })
    }

    /// Makes the page that was read resident. The requesting task gets the latch first, then the tasks that
    /// joined the read.
    fn deliver(mut self, arrival: Arrival) {
        let mut state = self.inner.state.borrow_mut();
        let frame = self.frame();
        state.frames.load(frame, self.page);
        assert!(state.frames.try_latch(frame, arrival.write), "a fresh frame's latch is free");
        state.frames.set_dirty(frame, arrival.write);
        let joined = state.loading.remove(&self.page).unwrap_or_default();
        state.deliver(frame, self.page, arrival, joined);
        self.settled = true;
    }

    /// Makes a prefetched page resident, and gives its latch to the tasks that requested it during the read.
    fn settle_prefetched(self) {
        self.settle(|_, joined| Arrival { prefetched: joined == 0, ..Arrival::default() });
    }

    /// Makes a fetched page resident. This page will certainly be needed, so it is inserted like a requested
    /// one.
    pub(crate) fn settle_fetched(self) {
        let page = self.page;
        self.settle(|state, _| Arrival { recall: state.replacement.miss(page), ..Arrival::default() });
    }

    /// Makes the page that was read resident and gives its latch to the tasks that joined the read. The
    /// closure `arrival` gets the number of these tasks.
    fn settle(mut self, arrival: impl FnOnce(&mut PoolState, usize) -> Arrival) {
        let mut state = self.inner.state.borrow_mut();
        let frame = self.frame();
        state.frames.load(frame, self.page);
        state.frames.set(frame, FrameTable::PREFETCHED);
        let joined = state.loading.remove(&self.page).unwrap_or_default();
        let arrival = arrival(&mut state, joined.len());
        state.deliver(frame, self.page, arrival, joined);
        self.settled = true;
        // The frame can be evicted from now on, so a task that waits for a frame gets its turn.
        self.inner.turns.next();
    }
}

impl<D: Device + ?Sized + 'static> Drop for Loading<D> {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        let waiters = self.inner.state.borrow_mut().loading.remove(&self.page);
        waiters.into_iter().flatten().for_each(|waiter| waiter.answer(Wish::TryAgain));
        let Some(frame) = self.frame else { return };
        let inner = Rc::clone(&self.inner);
        let free = move || {
            let mut state = inner.state.borrow_mut();
            state.free.push(frame);
            state.resident -= 1;
            inner.turns.next();
        };
        match self.io.take() {
            None => free(),
            Some(io) => self.inner.handle.spawn(async move {
                // No task waits for the page any more; the frame becomes free at the end of the I/O, whatever
                // the outcome.
                let _ = io.await;
                free();
            }),
        }
    }
}
