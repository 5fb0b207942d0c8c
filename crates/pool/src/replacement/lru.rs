//! LRU: the page that was used least recently leaves first.
//!
//! The textbook policy and the baseline of the others. Every operation is O(1): a doubly linked
//! list threaded through arrays of frame numbers.

use super::{Cursor, ReplacementPolicy};
use crate::FrameTable;
use fulgurite_base::{FrameId, PageId};

#[derive(Clone, Copy, Debug)]
struct Link {
    newer: u32,
    older: u32,
}

/// Frames from the most to the least recently used. The last link is the list's own: its `older`
/// is the newest frame, its `newer` the oldest.
#[derive(Clone, Debug)]
pub struct Lru {
    links: Vec<Link>,
    ends: u32,
}

impl Lru {
    pub(super) fn new(frames: u32) -> Lru {
        Lru { links: vec![Link { newer: frames, older: frames }; frames as usize + 1], ends: frames }
    }

    #[inline]
    fn unlink(&mut self, frame: u32) {
        let Link { newer, older } = self.links[frame as usize];
        self.links[newer as usize].older = older;
        self.links[older as usize].newer = newer;
    }

    #[inline]
    fn link_newest(&mut self, frame: u32) {
        let older = self.links[self.ends as usize].older;
        self.links[frame as usize] = Link { newer: self.ends, older };
        self.links[older as usize].newer = frame;
        self.links[self.ends as usize].older = frame;
    }
}

impl ReplacementPolicy for Lru {
    fn insert(&mut self, frame: FrameId, _: PageId) {
        self.link_newest(frame.0);
    }

    #[inline]
    fn access(&mut self, frame: FrameId, _: bool) {
        self.unlink(frame.0);
        self.link_newest(frame.0);
    }

    fn remove(&mut self, frame: FrameId) {
        self.unlink(frame.0);
    }

    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
        let mut at = if cursor.step == 0 { self.ends } else { cursor.place };
        loop {
            at = self.links[at as usize].newer;
            if at == self.ends {
                // The place before the end, so that asking again gives nothing again.
                return None;
            }
            cursor.step += 1;
            cursor.place = at;
            if !frames.is_pinned(FrameId(at)) {
                return Some(FrameId(at));
            }
        }
    }
}
