//! Writes dirty pages on request: some of them, or all, which are then durable.

use crate::FrameTable;
use crate::error::PoolError;
use crate::pool::BufferPool;
use crate::state::{Granted, Inner};
use crate::waiting::Batch;
use fulgurite_base::{FrameId, PageId};
use fulgurite_device::{Device, IoError, Operation};
use rustc_hash::FxHashSet;
use std::rc::Rc;

/// Pages that are written together when the pool is flushed.
const FLUSH_BATCH: usize = 64;

impl<D: Device + 'static> BufferPool<D> {
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
}

impl<D: Device + 'static> Inner<D> {
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
}
