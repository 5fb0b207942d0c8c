//! ARC: keeps two LRU lists, of pages seen once and of pages seen more often, and adapts their sizes to the
//! misses.
//!
//! "ARC: A Self-Tuning, Low Overhead Replacement Cache" (Megiddo and Modha, FAST 2003). T1 is the list of
//! frames whose pages were seen once, and T2 the list of the other frames. B1 and B2 remember pages that were
//! evicted from T1 and T2. A miss on a page in B1 shows that T1 is too small and raises its target size p; a
//! miss on a page in B2 lowers p. The step is the ratio of the sizes of B1 and B2, at least one. O(1).
//! *Ambiguities.* p is a real number, because the ratio is one. B1 and B2 are trimmed during the eviction for
//! a miss, so with several concurrent misses, the list of the last missed page decides.

use super::ghosts::Ghosts;
use super::lists::{List, Lists};
use super::policy::{Arrival, Cursor, Recall, ReplacementPolicy};
use crate::FrameTable;
use fulgurite_base::{FrameId, NoOptions, PageId, SpecError};

const T1: List = List(0);
const T2: List = List(1);
const B1: List = List(0);
const B2: List = List(1);
const IN_B1: Recall = Recall(1);
const IN_B2: Recall = Recall(2);

/// ARC's lists T1, T2, B1 and B2, and the target size p of T1.
pub struct Arc {
    lists: Lists,
    /// For each frame, whether it is in T2.
    is_frequent: Vec<bool>,
    /// The numbers of frames in T1 and in T2.
    held: [u32; 2],
    ghosts: Ghosts,
    /// The target size of T1, in frames.
    p: f64,
    frames: u32,
    /// The list that remembered the page of the last miss.
    last: Recall,
}

impl Arc {
    pub(super) fn new(_: &NoOptions, frames: u32) -> Result<Arc, SpecError> {
        Ok(Arc {
            lists: Lists::new(frames, 2),
            is_frequent: vec![false; frames as usize],
            held: [0; 2],
            // B1 and B2 together remember as many pages as the pool has frames, and one more for a moment.
            ghosts: Ghosts::new(frames + 1, 2),
            p: 0.0,
            frames,
            last: Recall::default(),
        })
    }

    /// Returns whether the next victim is in T1 if T1 holds `t1` frames.
    #[inline]
    fn recent_gives(&self, t1: u32) -> bool {
        let t1 = f64::from(t1);
        // If T1 has its target size, the paper takes the page from T1 only for a miss in B2.
        t1 > 0.0 && (t1 > self.p || (t1 == self.p && self.last == IN_B2))
    }

    /// Forgets a page if necessary, so that T1 and B1 together have at most as many pages as the pool has
    /// frames, and all four lists twice as many. Returns whether a page that is evicted from T1 must be
    /// remembered.
    fn trim(&mut self) -> bool {
        let (all, ghosts) = (self.frames as usize, [self.ghosts.len(B1), self.ghosts.len(B2)]);
        let recent = self.held[0] as usize + ghosts[0];
        if recent >= all {
            self.ghosts.pop(B1);
            // If B1 is empty, T1 alone fills the pool, and the paper forgets the oldest page of T1.
            return ghosts[0] > 0;
        }
        if recent + self.held[1] as usize + ghosts[1] >= 2 * all {
            self.ghosts.pop(B2);
        }
        true
    }
}

impl ReplacementPolicy for Arc {
    fn miss(&mut self, page: PageId) -> Recall {
        // The sizes of B1 and B2 are taken before the page is removed, so the divisor is at least one.
        let sizes = [self.ghosts.len(B1) as f64, self.ghosts.len(B2) as f64];
        self.last = match self.ghosts.remove(page) {
            Some(B1) => {
                self.p = (self.p + (sizes[1] / sizes[0]).max(1.0)).min(f64::from(self.frames));
                IN_B1
            }
            Some(_) => {
                self.p = (self.p - (sizes[0] / sizes[1]).max(1.0)).max(0.0);
                IN_B2
            }
            None => Recall::default(),
        };
        self.last
    }

    fn insert(&mut self, frame: FrameId, _: PageId, arrival: Arrival) {
        let frequent = arrival.recall != Recall::default();
        self.is_frequent[frame.index()] = frequent;
        self.held[usize::from(frequent)] += 1;
        match frequent {
            false => self.lists.enter(T1, frame.0, arrival),
            true => self.lists.push_newest(T2, frame.0),
        }
    }

    #[inline]
    fn access(&mut self, frame: FrameId, _: bool) {
        if !std::mem::replace(&mut self.is_frequent[frame.index()], true) {
            self.held[0] -= 1;
            self.held[1] += 1;
        }
        self.lists.move_newest(T2, frame.0);
    }

    fn remove(&mut self, frame: FrameId) {
        self.held[usize::from(self.is_frequent[frame.index()])] -= 1;
        self.lists.unlink(frame.0);
    }

    /// Reads the order without evicting. `step` counts the frames that were read from T1.
    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
        let [recent, frequent, _] = &mut cursor.places;
        // The order has no more frames from T1 than T1 holds, so the difference is not negative.
        if !self.recent_gives(self.held[0] - cursor.step as u32) {
            let frame = self.lists.next_unpinned(T2, frames, frequent);
            if frame.is_some() {
                return frame;
            }
        }
        if let Some(frame) = self.lists.next_unpinned(T1, frames, recent) {
            cursor.step += 1;
            return Some(frame);
        }
        self.lists.next_unpinned(T2, frames, frequent)
    }

    fn evict(&mut self, frames: &FrameTable) -> Option<FrameId> {
        let remember = self.last != Recall::default() || self.trim();
        let frame = self.next(frames, &mut Cursor::default())?;
        let page = frames.page(frame);
        match self.is_frequent[frame.index()] {
            true => self.ghosts.push(B2, page),
            false if remember => self.ghosts.push(B1, page),
            false => {}
        }
        self.remove(frame);
        Some(frame)
    }

    #[inline]
    fn prefetch(&self, frame: u32) {
        self.lists.prefetch(frame);
        fulgurite_base::prefetch(&self.is_frequent, frame as usize);
    }

    #[inline]
    fn likely_victim(&self) -> Option<u32> {
        self.lists.oldest(if self.recent_gives(self.held[0]) { T1 } else { T2 })
    }
}
