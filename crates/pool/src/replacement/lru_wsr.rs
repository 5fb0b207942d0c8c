//! LRU-WSR (LRU with write sequence reordering): LRU in which a dirty page that is not cold gets a second
//! chance.
//!
//! "LRU-WSR: Integration of LRU and Writes Sequence Reordering for Flash Memory" (Jung et al., IEEE TCE
//! 54(3), 2008). The oldest page is evicted if it is clean, or dirty and cold. A dirty page that is not cold
//! becomes cold and moves to the newest end. A use makes a page hot again. O(1) amortised. *Ambiguities.*
//! Hits on clean pages clear the cold flag as well, which matters only when the pages become dirty. A batch
//! that is written before its eviction skips hot dirty pages. By the order law (evictions follow the order
//! that was read), skipped pages keep their places in the list (`passed=stay`); the program published with
//! ACE moves them as an eviction would (`passed=move`).

use super::lists::{List, Lists};
use super::policy::{Arrival, Cursor, ReplacementPolicy};
use crate::FrameTable;
use fulgurite_base::{Choice, Declared, Form, FrameId, Opt, PageId, SpecError, opt};

const QUEUE: List = List(0);

/// The treatment of hot dirty pages that a batch skips: stay or move; see the module.
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

/// The options of the policy `lru-wsr`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LruWsrConfig {
    /// Whether hot dirty pages that a batch skips keep their places in the list or move to its newest end.
    pub passed: Passed,
}

impl Declared for LruWsrConfig {
    const OPTIONS: &'static [Opt<LruWsrConfig>] = &[opt!(
        "passed",
        passed,
        Form::<Passed>::choice("stay|move"),
        "whether hot dirty pages that a batch skips stay or move to the newest end"
    )];
}

/// An LRU list and a cold flag for each frame.
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

    /// Returns first the pages that are evicted at once, then the hot dirty ones, which have used their
    /// second chance by then.
    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
        let leaves = |frame| self.leaves_at_once(frames, frame);
        self.queue.next_after_second_chance(QUEUE, frames, cursor, leaves)
    }

    fn evict(&mut self, frames: &FrameTable) -> Option<FrameId> {
        // A checked page becomes cold, because it has used its second chance.
        let leaves = |frame: FrameId| {
            std::mem::replace(&mut self.cold[frame.index()], true) || !frames.is_dirty(frame)
        };
        self.queue.evict_or_requeue(QUEUE, frames, leaves)
    }

    fn written_ahead(&mut self, frames: &FrameTable, batch: &[FrameId]) {
        let Some(last) = batch.last().filter(|_| self.move_passed) else { return };
        let mut at = self.queue.oldest(QUEUE);
        while let Some(frame) = at.filter(|frame| *frame != last.0) {
            // The next frame is read first, because this frame may move to the newest end.
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
