//! The guards that give access to a page in the pool.

use crate::state::Fixed;
use crate::{Arrival, FrameTable, ReplacementPolicy};
use fulgurite_device::Device;

/// Shared access to a page. Other tasks may read it too; no task can change or evict it.
pub struct ReadGuard<D: Device + 'static>(pub(crate) Fixed<D>);

impl<D: Device + 'static> ReadGuard<D> {
    /// Moves the page to where a prefetched page would be in the eviction order, so that it is evicted soon
    /// unless it is requested again. A dirty page keeps its place, because it would have to be written first.
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

    /// The page's bytes; empty if the device stores no contents.
    pub fn bytes(&self) -> &[u8] {
        bytes(&self.0)
    }
}

/// Exclusive access to a page.
pub struct WriteGuard<D: Device + 'static>(pub(crate) Fixed<D>);

impl<D: Device + 'static> WriteGuard<D> {
    /// The page's bytes; empty if the device stores no contents.
    pub fn bytes(&self) -> &[u8] {
        bytes(&self.0)
    }

    /// The page's bytes, to change; empty if the device stores no contents.
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
