//! Second chance: FIFO, but a page that was used since it was last looked at goes to the back once.
//!
//! Corbató 1968; textbooks also call it clock, with a hand in place of a queue. A hit sets a bit; O(1).
//! An eviction looks at the oldest page: with the bit set it clears it and requeues the page, else the
//! page leaves. Amortised O(1). Pinned pages are passed over as they are.

use super::{Arrival, Cursor, ReplacementPolicy};
use crate::FrameTable;
use crate::lists::{List, Lists};
use fulgurite_base::{FrameId, PageId, Spec, SpecError};

const QUEUE: List = List(0);

/// A queue and a bit a frame.
pub struct SecondChance {
    queue: Lists,
    referenced: Vec<bool>,
}

impl SecondChance {
    pub(super) fn from_spec(_: &mut Spec, frames: u32) -> Result<SecondChance, SpecError> {
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

    /// First the pages without the bit, then, their second chance used, those with it.
    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
        while cursor.step < 2 {
            let second = cursor.step == 1;
            while let Some(frame) = super::next_unpinned(&self.queue, QUEUE, frames, &mut cursor.places[0]) {
                if self.referenced[frame.index()] == second {
                    return Some(frame);
                }
            }
            cursor.step += 1;
            cursor.places[0] = None;
        }
        None
    }

    #[inline]
    fn evict(&mut self, frames: &FrameTable) -> Option<FrameId> {
        let mut at = self.queue.oldest(QUEUE);
        while let Some(frame) = at {
            at = self.queue.newer(frame);
            if frames.is_pinned(FrameId(frame)) {
                continue;
            }
            if !std::mem::take(&mut self.referenced[frame as usize]) {
                self.queue.unlink(frame);
                return Some(FrameId(frame));
            }
            self.queue.move_newest(QUEUE, frame);
            // With nothing behind it, it comes up again at once.
            at = at.or(Some(frame));
        }
        None
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
