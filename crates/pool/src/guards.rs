//! Guards: a guard pins a page of the pool, holds its latch, and gives access to its bytes.

use crate::state::Fixed;
use crate::{Arrival, FrameTable, ReplacementPolicy};
use fulgurite_device::Device;

/// A shared latch on a page. Other tasks may read the page too; no task can change or evict it.
pub struct ReadGuard<D: Device + ?Sized + 'static = dyn Device>(pub(crate) Fixed<D>);

impl<D: Device + ?Sized + 'static> ReadGuard<D> {
    /// Moves the page to the position of a prefetched page in the eviction order, so that it is evicted soon
    /// unless it is requested again. A dirty page keeps its position, because its eviction would need a write
    /// first.
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

    /// Returns the page's bytes; empty if the device stores no contents.
    pub fn bytes(&self) -> &[u8] {
        bytes(&self.0)
    }
}

/// An exclusive latch on a page.
pub struct WriteGuard<D: Device + ?Sized + 'static = dyn Device>(pub(crate) Fixed<D>);

impl<D: Device + ?Sized + 'static> WriteGuard<D> {
    /// Returns the page's bytes; empty if the device stores no contents.
    pub fn bytes(&self) -> &[u8] {
        bytes(&self.0)
    }

    /// Returns the page's bytes for changing; empty if the device stores no contents.
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
fn bytes<D: Device + ?Sized>(fixed: &Fixed<D>) -> &[u8] {
    match fixed.bytes() {
        // SAFETY: the latch keeps others from changing the bytes while the guard lives; the arena
        // lives as long as the pool, which the guard holds.
        Some((start, len)) => unsafe { std::slice::from_raw_parts(start, len) },
        None => &[],
    }
}
