//! FIFO (first in, first out): evicts the page that was read in first.
//!
//! Uses of a page do not change the order. Every operation is O(1), and a hit costs nothing.

use super::lists::{List, Lists};
use super::policy::{Arrival, Cursor, ReplacementPolicy};
use crate::FrameTable;
use fulgurite_base::{FrameId, NoOptions, PageId, SpecError};

const QUEUE: List = List(0);

/// The frames in the order in which their pages were read in.
pub struct Fifo(Lists);

impl Fifo {
    pub(super) fn new(_: &NoOptions, frames: u32) -> Result<Fifo, SpecError> {
        Ok(Fifo(Lists::new(frames, 1)))
    }
}

impl ReplacementPolicy for Fifo {
    #[inline]
    fn insert(&mut self, frame: FrameId, _: PageId, arrival: Arrival) {
        self.0.enter(QUEUE, frame.0, arrival);
    }

    #[inline]
    fn access(&mut self, _: FrameId, _: bool) {}

    #[inline]
    fn remove(&mut self, frame: FrameId) {
        self.0.unlink(frame.0);
    }

    #[inline]
    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
        self.0.next_unpinned(QUEUE, frames, &mut cursor.places[0])
    }

    #[inline]
    fn likely_victim(&self) -> Option<u32> {
        self.0.oldest(QUEUE)
    }
}
