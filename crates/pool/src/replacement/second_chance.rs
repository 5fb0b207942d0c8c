//! Second chance: FIFO, but a page that was used since its last check moves to the newest end once.
//!
//! Second chance is by Corbató (1968); textbooks also call it clock, with a hand in place of a queue. A hit
//! sets the page's referenced bit; O(1). An eviction checks the oldest page: if its bit is set, the bit is
//! cleared and the page moves to the newest end, otherwise the page is evicted. Amortised O(1). Pinned pages
//! are skipped unchanged.

use super::lists::{List, Lists};
use super::policy::{Arrival, Cursor, ReplacementPolicy};
use crate::FrameTable;
use fulgurite_base::{FrameId, NoOptions, PageId, SpecError};

const QUEUE: List = List(0);

/// A FIFO queue, and a referenced bit for each frame.
pub struct SecondChance {
    queue: Lists,
    referenced: Vec<bool>,
}

impl SecondChance {
    pub(super) fn new(_: &NoOptions, frames: u32) -> Result<SecondChance, SpecError> {
        Ok(SecondChance { queue: Lists::new(frames, 1), referenced: vec![false; frames as usize] })
    }
}

impl ReplacementPolicy for SecondChance {
    #[inline]
    fn insert(&mut self, frame: FrameId, _: PageId, arrival: Arrival) {
        self.referenced[frame.index()] = false;
        self.queue.enter(QUEUE, frame.0, arrival);
    }

    #[inline]
    fn access(&mut self, frame: FrameId, _: bool) {
        self.referenced[frame.index()] = true;
    }

    fn remove(&mut self, frame: FrameId) {
        self.queue.unlink(frame.0);
    }

    /// Returns first the pages without the referenced bit, then those with it, which have used their second
    /// chance by then.
    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
        let leaves = |frame: FrameId| !self.referenced[frame.index()];
        self.queue.next_after_second_chance(QUEUE, frames, cursor, leaves)
    }

    #[inline]
    fn evict(&mut self, frames: &FrameTable) -> Option<FrameId> {
        let leaves = |frame: FrameId| !std::mem::take(&mut self.referenced[frame.index()]);
        self.queue.evict_or_requeue(QUEUE, frames, leaves)
    }

    #[inline]
    fn prefetch(&self, frame: u32) {
        fulgurite_base::prefetch(&self.referenced, frame as usize);
    }

    #[inline]
    fn likely_victim(&self) -> Option<u32> {
        self.queue.oldest(QUEUE)
    }
}
