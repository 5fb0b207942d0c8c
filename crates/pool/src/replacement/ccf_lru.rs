//! CCF-LRU (cold-clean-first LRU): evicts cold clean pages first, then cold dirty ones; hot pages get a
//! second chance.
//!
//! "CCF-LRU: A New Buffer Replacement Algorithm for Flash Memory" (Li et al., IEEE TCE 55(3), 2009). There
//! are two LRU lists: one of cold clean pages and one of all others, the mixed list. A page that is read in
//! by a read request enters the cold clean list; a page that is read in by a write request is hot and enters
//! the mixed list. A use makes a page hot and moves it to the newest end of the mixed list. The victim is the
//! oldest cold clean page. If there is none, the oldest page of the mixed list is checked: a cold or clean
//! page is evicted, a hot dirty page becomes cold and moves to the newest end. O(1) amortised. *Ambiguity.* A
//! page that is written back and stays in the pool keeps its list and its cold flag.

use super::lists::{List, Lists};
use super::policy::{Arrival, Cursor, ReplacementPolicy};
use crate::FrameTable;
use fulgurite_base::{FrameId, NoOptions, PageId, SpecError};

const COLD_CLEAN: List = List(0);
const MIXED: List = List(1);

/// The cold clean list, the mixed list, and a cold flag for each frame.
pub struct CcfLru {
    lists: Lists,
    cold: Vec<bool>,
}

impl CcfLru {
    pub(super) fn new(_: &NoOptions, frames: u32) -> Result<CcfLru, SpecError> {
        Ok(CcfLru { lists: Lists::new(frames, 2), cold: vec![false; frames as usize] })
    }

    /// Returns whether a page of the mixed list is evicted, without a second chance, when it is the oldest.
    #[inline]
    fn leaves_at_once(&self, frames: &FrameTable, frame: FrameId) -> bool {
        self.cold[frame.index()] || !frames.is_dirty(frame)
    }
}

impl ReplacementPolicy for CcfLru {
    fn insert(&mut self, frame: FrameId, _: PageId, arrival: Arrival) {
        self.cold[frame.index()] = !arrival.write;
        match arrival.write {
            true => self.lists.push_newest(MIXED, frame.0),
            false => self.lists.enter(COLD_CLEAN, frame.0, arrival),
        }
    }

    #[inline]
    fn access(&mut self, frame: FrameId, _: bool) {
        self.cold[frame.index()] = false;
        self.lists.move_newest(MIXED, frame.0);
    }

    fn remove(&mut self, frame: FrameId) {
        self.lists.unlink(frame.0);
    }

    /// Returns the pages of the cold clean list, then the cold or clean pages of the mixed list, then its hot
    /// dirty pages.
    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
        self.lists.next_unpinned(COLD_CLEAN, frames, &mut cursor.places[1]).or_else(|| {
            let leaves = |frame| self.leaves_at_once(frames, frame);
            self.lists.next_after_second_chance(MIXED, frames, cursor, leaves)
        })
    }

    fn evict(&mut self, frames: &FrameTable) -> Option<FrameId> {
        if let Some(frame) = self.lists.next_unpinned(COLD_CLEAN, frames, &mut None) {
            self.lists.unlink(frame.0);
            return Some(frame);
        }
        // A checked page becomes cold, because it has used its second chance.
        let leaves = |frame: FrameId| {
            std::mem::replace(&mut self.cold[frame.index()], true) || !frames.is_dirty(frame)
        };
        self.lists.evict_or_requeue(MIXED, frames, leaves)
    }

    #[inline]
    fn prefetch(&self, frame: u32) {
        self.lists.prefetch(frame);
        fulgurite_base::prefetch(&self.cold, frame as usize);
    }

    #[inline]
    fn likely_victim(&self) -> Option<u32> {
        self.lists.oldest(COLD_CLEAN)
    }
}
