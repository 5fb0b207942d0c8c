//! The guards through which a page in the pool is used.

use crate::state::Fixed;
use crate::{Arrival, FrameTable, ReplacementPolicy};
use fulgurite_device::Device;

/// A page in use for reading. Others may read it too; nobody changes or evicts it.
pub struct ReadGuard<D: Device + 'static>(pub(crate) Fixed<D>);

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
pub struct WriteGuard<D: Device + 'static>(pub(crate) Fixed<D>);

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
