//! Discards pages whose contents nobody needs any more, without writing them.

use crate::pool::BufferPool;
use crate::state::{Granted, Inner, PoolState};
use crate::waiting::Waiter;
use crate::{FrameTable, ReplacementPolicy};
use fulgurite_base::{FrameId, PageId};
use fulgurite_device::Device;
use std::ops::Range;
use std::rc::Rc;

impl<D: Device + ?Sized + 'static> BufferPool<D> {
    /// Removes the pages `pages` from the pool and forgets their changes. Waits for reads, writes and guards of these
    /// pages that exist already. After that, a request for one of them reads it from the drive.
    pub async fn discard(&self, pages: Range<u64>) {
        let inner = &self.0;
        for page in inner.known(&pages) {
            // Each turn of the loop waits for one other user of the page, and then looks at the page again.
            loop {
                let waiter = {
                    let mut state = inner.state.borrow_mut();
                    match state.lookup(page) {
                        Some(frame) if state.frames.has(frame, FrameTable::WRITING) => None,
                        Some(frame) if state.frames.is_pinned(frame) => Some(state.enqueue(frame, false)),
                        Some(frame) => {
                            state.discard(frame);
                            break;
                        }
                        None => match state.loading.get_mut(&page) {
                            Some(waiters) => {
                                let waiter = Waiter::new(false);
                                waiters.push(Rc::clone(&waiter));
                                Some(waiter)
                            }
                            None => break,
                        },
                    }
                };
                match waiter {
                    Some(waiter) => drop(Granted { inner, waiter }.await),
                    None => {
                        for batch in inner.writes_of(&[page]) {
                            // If the write has failed, the page is dirty again and is discarded all the same.
                            let _ = (&*batch).await;
                        }
                    }
                }
            }
            // The frame is free for a task that waits for one.
            inner.turns.next();
        }
    }
}

impl<D: Device + ?Sized + 'static> Inner<D> {
    /// Returns the pages of a range that are in the pool or being read, in order.
    fn known(&self, pages: &Range<u64>) -> Vec<PageId> {
        let state = self.state.borrow();
        let is_known = |page: PageId| state.lookup(page).is_some() || state.loading.contains_key(&page);
        // The range of a trim may be the whole drive, and then the frames are fewer.
        if pages.end.saturating_sub(pages.start) <= u64::from(state.frames.len()) {
            return pages.clone().map(PageId).filter(|page| is_known(*page)).collect();
        }
        let held = (0..state.frames.len()).map(|frame| state.frames.page(FrameId(frame)));
        let mut known: Vec<PageId> = held.chain(state.loading.keys().copied()).collect();
        known.retain(|page| pages.contains(&page.0) && is_known(*page));
        known.sort_unstable();
        known.dedup();
        known
    }
}

impl PoolState {
    /// Frees a resident frame that nobody uses.
    fn discard(&mut self, frame: FrameId) {
        let PoolState { frames, replacement, counters, table, .. } = self;
        counters.prefetch_wasted += u64::from(frames.has(frame, FrameTable::PREFETCHED));
        replacement.remove(frame);
        table.remove(frames.page(frame), |frame| frames.page(FrameId(frame)));
        frames.set_dirty(frame, false);
        self.free.push(frame);
        self.resident -= 1;
    }
}
