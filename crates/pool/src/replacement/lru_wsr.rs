//! LRU-WSR: LRU in which a dirty page that is not cold gets a second chance.
//!
//! "LRU-WSR: Integration of LRU and Writes Sequence Reordering for Flash Memory" (Jung et al., IEEE TCE
//! 54(3), 2008). The oldest page leaves if it is clean, or dirty and cold; a dirty page that is not cold
//! becomes cold and moves to the newest end. A use makes it hot again. O(1) amortised.
//! *Ambiguities.* Hits on clean pages clear the cold flag as well: it matters only once they are dirty.
//! A batch that is written ahead of its turn passes over hot dirty pages. By the law of the virtual order
//! they stay (`passed=stay`); the program published with ACE moves them as if their turn had come
//! (`passed=move`).

use super::lists::{List, Lists};
use super::policy::{Arrival, Cursor, ReplacementPolicy};
use crate::FrameTable;
use fulgurite_base::{Choice, Declared, Form, FrameId, Opt, PageId, SpecError, opt};

const QUEUE: List = List(0);

/// What becomes of the hot dirty pages that a batch passes over; see the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Passed {
    #[default]
    Stay,
    Move,
}

impl Choice for Passed {
    const NAMES: &'static [(&'static str, Passed)] = &[("stay", Passed::Stay), ("move", Passed::Move)];
}

/// The options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LruWsrConfig {
    /// What becomes of the hot dirty pages that a batch passes over.
    pub passed: Passed,
}

impl Declared for LruWsrConfig {
    const OPTIONS: &'static [Opt<LruWsrConfig>] = &[opt!(
        "passed",
        passed,
        Form::<Passed>::choice("stay|move"),
        "what becomes of the hot dirty pages that a batch passes over"
    )];
}

/// An LRU list and a cold flag a frame.
pub struct LruWsr {
    queue: Lists,
    cold: Vec<bool>,
    move_passed: bool,
}

impl LruWsr {
    pub(super) fn new(config: &LruWsrConfig, frames: u32) -> Result<LruWsr, SpecError> {
        Ok(LruWsr {
            queue: Lists::new(frames, 1),
            cold: vec![false; frames as usize],
            move_passed: config.passed == Passed::Move,
        })
    }

    #[inline]
    fn leaves_at_once(&self, frames: &FrameTable, frame: FrameId) -> bool {
        !frames.is_dirty(frame) || self.cold[frame.index()]
    }
}

impl ReplacementPolicy for LruWsr {
    fn insert(&mut self, frame: FrameId, _: PageId, arrival: Arrival) {
        self.cold[frame.index()] = false;
        self.queue.enter(QUEUE, frame.0, arrival);
    }

    #[inline]
    fn access(&mut self, frame: FrameId, _: bool) {
        self.cold[frame.index()] = false;
        self.queue.move_newest(QUEUE, frame.0);
    }

    fn remove(&mut self, frame: FrameId) {
        self.queue.unlink(frame.0);
    }

    /// First the pages that leave at once, then, their second chance used, the hot dirty ones.
    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
        let leaves = |frame| self.leaves_at_once(frames, frame);
        self.queue.next_after_second_chance(QUEUE, frames, cursor, leaves)
    }

    fn evict(&mut self, frames: &FrameTable) -> Option<FrameId> {
        // A page that is asked turns cold: it has used its second chance.
        let leaves = |frame: FrameId| {
            std::mem::replace(&mut self.cold[frame.index()], true) || !frames.is_dirty(frame)
        };
        self.queue.evict_or_requeue(QUEUE, frames, leaves)
    }

    fn written_ahead(&mut self, frames: &FrameTable, batch: &[FrameId]) {
        let Some(last) = batch.last().filter(|_| self.move_passed) else { return };
        let mut at = self.queue.oldest(QUEUE);
        while let Some(frame) = at.filter(|frame| *frame != last.0) {
            // The next frame is read first, because this one may move to the newest end.
            at = self.queue.newer(frame);
            let id = FrameId(frame);
            if !self.leaves_at_once(frames, id) && !frames.is_pinned(id) && !batch.contains(&id) {
                self.cold[frame as usize] = true;
                self.queue.move_newest(QUEUE, frame);
            }
        }
    }

    #[inline]
    fn prefetch(&self, frame: u32) {
        self.queue.prefetch(frame);
        fulgurite_base::prefetch(&self.cold, frame as usize);
    }

    #[inline]
    fn likely_victim(&self) -> Option<u32> {
        self.queue.oldest(QUEUE)
    }
}
