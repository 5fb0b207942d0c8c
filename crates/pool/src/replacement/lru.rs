//! LRU (least recently used): evicts the page that was used least recently.
//!
//! LRU is the textbook policy and the baseline for the others. Every operation is O(1).

use super::lists::{List, Lists};
use super::policy::{Arrival, Cursor, ReplacementPolicy};
use crate::FrameTable;
use fulgurite_base::{FrameId, NoOptions, PageId, SpecError};

const QUEUE: List = List(0);

/// The frames from the least to the most recently used.
pub struct Lru(Lists);

impl Lru {
    pub(super) fn new(_: &NoOptions, frames: u32) -> Result<Lru, SpecError> {
        Ok(Lru(Lists::new(frames, 1)))
    }
}

impl ReplacementPolicy for Lru {
    #[inline]
    fn insert(&mut self, frame: FrameId, _: PageId, arrival: Arrival) {
        self.0.enter(QUEUE, frame.0, arrival);
    }

    #[inline]
    fn access(&mut self, frame: FrameId, _: bool) {
        self.0.move_newest(QUEUE, frame.0);
    }

    #[inline]
    fn remove(&mut self, frame: FrameId) {
        self.0.unlink(frame.0);
    }

    #[inline]
    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
        self.0.next_unpinned(QUEUE, frames, &mut cursor.places[0])
    }

    #[inline]
    fn prefetch(&self, frame: u32) {
        self.0.prefetch(frame);
    }

    #[inline]
    fn likely_victim(&self) -> Option<u32> {
        self.0.oldest(QUEUE)
    }
}
