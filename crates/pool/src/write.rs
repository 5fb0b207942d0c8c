//! Writes dirty pages: in batches for misses, and in batches of the cleaner, which writes ahead of misses.
//!
//! A page counts as clean when its write begins, because no task can change it before the write has ended. If
//! the write fails, the page becomes dirty again. A separate task awaits each batch, so a batch ends properly
//! even if no other task waits for it.

use crate::state::{Inner, PoolState};
use crate::store::PageBytes;
use crate::waiting::Batch;
use crate::write_back::Order;
use crate::{Arrival, FrameTable, ReplacementPolicy};
use fulgurite_base::FrameId;
use fulgurite_base::StreamId;
use fulgurite_device::{Device, IoError, Operation};
use std::rc::Rc;

impl<D: Device + ?Sized + 'static> Inner<D> {
    /// Begins to write the batch of a miss or of the cleaner, which is not empty.
    pub(crate) fn write_batch(self: &Rc<Self>, state: &mut PoolState, batch: Vec<FrameId>) -> Rc<Batch> {
        state.counters.write_ios += 1;
        state.counters.pages_written += batch.len() as u64;
        self.start_write(state, batch).expect("a batch of a miss has its victim frame at least")
    }

    /// Begins to write dirty frames in one batch. None of them is latched exclusively.
    pub(crate) fn start_write(
        self: &Rc<Self>,
        state: &mut PoolState,
        batch: Vec<FrameId>,
    ) -> Option<Rc<Batch>> {
        if batch.is_empty() {
            return None;
        }
        // Without spare frames, a write pins its frame until the write has ended.
        state.under_way += batch.len() as u32;
        let held = if self.write_back.buffers == 0 { FrameTable::HELD } else { 0 };
        for frame in &batch {
            state.frames.set(*frame, FrameTable::WRITING | held);
            state.frames.set_dirty(*frame, false);
            // A detached frame has left the eviction order, so the policy no longer knows it.
            if !state.frames.has(*frame, FrameTable::DETACHED) {
                state.replacement.cleaned(*frame);
            }
        }
        let ticket = Rc::new(Batch::new(batch));
        // Batches that have ended are removed here, so that the list does not grow without bound.
        while state.writing.front().is_some_and(|first| first.outcome().is_some()) {
            state.writing.pop_front();
        }
        state.writing.push_back(Rc::clone(&ticket));
        let (inner, ended) = (Rc::clone(self), Rc::clone(&ticket));
        let Some(store) = &self.store else {
            let write = |frame: &FrameId| Operation::Write {
                lpn: self.lpn(state.frames.page(*frame)),
                pages: self.device_pages,
                from: self.buffer(*frame),
                stream: StreamId::default(),
                durable: false,
            };
            // The writes are submitted before any other task can run.
            let io = self.handle.submit_all(ticket.frames.iter().map(write));
            self.handle.spawn(async move {
                let outcome = io.await;
                inner.end_write(&ended, outcome);
            });
            return Some(ticket);
        };
        let pages = ticket
            .frames
            .iter()
            .map(|frame| PageBytes { page: state.frames.page(*frame), bytes: self.buffer(*frame) })
            .collect();
        let io = store.write(pages);
        self.handle.spawn(async move {
            let outcome = io.await;
            inner.end_write(&ended, outcome);
        });
        Some(ticket)
    }

    fn end_write(self: &Rc<Self>, ticket: &Rc<Batch>, outcome: Result<(), IoError>) {
        {
            let mut state = self.state.borrow_mut();
            let state = &mut *state;
            for frame in &ticket.frames {
                self.end_frame(state, *frame, outcome.is_ok());
            }
            let awaited = ticket.end(outcome);
            if let Err(error) = outcome {
                state.failures += 1;
                state.last_failure = Some(error);
                // A task that waits for the batch gets the error itself; otherwise the next miss gets it.
                if !awaited {
                    state.failure = Some(error);
                }
            }
            // After a failure the cleaner would write the same pages again at once, so it pauses.
            if state.cleaning.take_if(|cleaning| Rc::ptr_eq(cleaning, ticket)).is_some() && outcome.is_ok() {
                self.clean_ahead(state);
            }
        }
        // Each frame of the batch may serve one waiting miss, so as many misses get their turn.
        for _ in &ticket.frames {
            self.turns.next();
        }
    }

    fn end_frame(self: &Rc<Self>, state: &mut PoolState, frame: FrameId, written: bool) {
        let detached = state.frames.has(frame, FrameTable::DETACHED);
        state.under_way -= 1;
        state.frames.clear(frame, FrameTable::WRITING | FrameTable::HELD);
        if !written {
            state.frames.set_dirty(frame, true);
        }
        match (detached, written) {
            (true, true) => {
                let page = state.frames.page(frame);
                state.table.remove(page, |frame| state.frames.page(FrameId(frame)));
                state.free.push(frame);
            }
            (true, false) => {
                // This frame has the only copy of the page, so the page becomes resident again, even beyond
                // the limit.
                state.frames.clear(frame, FrameTable::DETACHED);
                state.replacement.insert(
                    frame,
                    state.frames.page(frame),
                    Arrival { write: true, ..Arrival::default() },
                );
                state.resident += 1;
            }
            (false, _) => state.hand_over(frame),
        }
    }

    /// Runs the cleaner after an eviction or after one of the cleaner's own batches. The cleaner writes the
    /// dirty frames at the head of the eviction order, unless enough of these frames are known to be clean.
    pub(crate) fn clean_ahead(self: &Rc<Self>, state: &mut PoolState) {
        let ahead = self.write_back.ahead;
        if ahead == 0 || state.cleaning.is_some() {
            return;
        }
        // Most calls follow an eviction, which took one clean frame from the head of the order, so one fewer
        // is known to be clean.
        state.clean_ahead = state.clean_ahead.saturating_sub(1);
        if state.clean_ahead >= ahead / 2 && state.clean_ahead > 0 {
            return;
        }
        let PoolState { frames, replacement, plan, cursor, .. } = &mut *state;
        self.write_back.plan_cleaning(Order::new(replacement, frames, cursor), frames, plan);
        let batch = std::mem::take(&mut plan.write);
        if batch.is_empty() {
            state.clean_ahead = ahead;
            return;
        }
        replacement.written_ahead(frames, &batch);
        state.cleaning = Some(self.write_batch(state, batch));
    }
}
