//! Writes dirty pages on request, either given pages or all of them, and makes all of them durable in the
//! second case.

use crate::FrameTable;
use crate::error::PoolError;
use crate::pool::BufferPool;
use crate::state::{Granted, Inner};
use crate::waiting::Batch;
use fulgurite_base::{FrameId, PageId};
use fulgurite_device::{Device, Operation};
use rustc_hash::FxHashSet;
use std::rc::Rc;

/// The most dirty pages that [`BufferPool::flush`] writes in one batch.
const FLUSH_BATCH: usize = 64;

impl<D: Device + ?Sized + 'static> BufferPool<D> {
    /// Writes the given pages, if they are in the pool and dirty, all at once. Waits for these writes and for
    /// the writes of given pages that were already under way. A page that is latched exclusively is left out.
    /// The pages are durable only after a flush of the drive.
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

    /// Writes every page that is dirty at the call. Waits until the drive has made these pages durable, and
    /// also the pages whose writes were already under way.
    pub async fn flush(&self) -> Result<(), PoolError> {
        let inner = &self.0;
        // Waits for earlier writes first: if one of them fails, its pages are dirty again, and the loop below
        // writes them.
        inner.written().await;
        let failures = {
            let mut state = inner.state.borrow_mut();
            // The flush writes the pages of earlier failures again, so it reports their errors itself.
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
                // Another task is changing this page, so the loop waits for the latch and then looks at the
                // page again.
                Some(waiter) => drop(Granted { inner, waiter }.await),
                None if from == inner.state.borrow().frames.len() => break,
                None => {}
            }
        }
        // Misses may have written some of the dirty pages meanwhile, so the flush waits for their writes too.
        inner.written().await;
        let failed = {
            let mut state = inner.state.borrow_mut();
            // Another task may have got the error already, so only the count of failures tells that a write has
            // failed.
            let error = state.failure.take().or(state.last_failure);
            error.filter(|_| state.failures > failures)
        };
        match failed {
            Some(error) => Err(PoolError::WriteBack(error)),
            None => inner.handle.submit(Operation::Flush).await.map_err(PoolError::Flush),
        }
    }
}

impl<D: Device + ?Sized + 'static> Inner<D> {
    /// Returns the batches under way that write one of the given pages.
    pub(crate) fn writes_of(&self, pages: &[PageId]) -> Vec<Rc<Batch>> {
        let state = self.state.borrow();
        let frames = pages.iter().filter_map(|page| state.lookup(*page));
        let frames: FxHashSet<FrameId> =
            frames.filter(|frame| state.frames.has(*frame, FrameTable::WRITING)).collect();
        let has_one = |batch: &&Rc<Batch>| batch.frames.iter().any(|frame| frames.contains(frame));
        let under_way = state.writing.iter().filter(|batch| batch.outcome().is_none());
        under_way.filter(has_one).cloned().collect()
    }

    /// Waits until every write that is under way now has succeeded or failed.
    async fn written(&self) {
        // The list is copied because writes begin and end during the wait.
        let batches: Vec<Rc<Batch>> = self.state.borrow().writing.iter().cloned().collect();
        for batch in batches {
            let _ = (&*batch).await;
        }
    }
}
