//! Greedy: the segment with the fewest valid pages; among equals, the one that got there last.
//!
//! Optimal for uniform traffic. Segments hang in one list per number of valid pages, so that
//! sealing, invalidating and picking are O(1) (picking amortised: the lowest count only rises past
//! lists that are empty).

use super::Victim;
use crate::{SegmentId, SegmentTable};

const NONE: u32 = u32::MAX;

/// Sealed segments in lists by their number of valid pages.
#[derive(Clone, Debug)]
pub struct Greedy {
    /// First segment of the list for each count.
    heads: Vec<u32>,
    previous: Vec<u32>,
    next: Vec<u32>,
    /// No list below this one has a segment.
    lowest: u32,
}

impl Greedy {
    /// An empty index.
    pub(super) fn new(segments: u32, segment_pages: u32) -> Greedy {
        Greedy {
            heads: vec![NONE; segment_pages as usize + 1],
            previous: vec![NONE; segments as usize],
            next: vec![NONE; segments as usize],
            lowest: segment_pages + 1,
        }
    }

    fn link(&mut self, segment: u32, valid: u32) {
        let head = std::mem::replace(&mut self.heads[valid as usize], segment);
        self.previous[segment as usize] = NONE;
        self.next[segment as usize] = head;
        if head != NONE {
            self.previous[head as usize] = segment;
        }
        self.lowest = self.lowest.min(valid);
    }

    fn unlink(&mut self, segment: u32, valid: u32) {
        let (previous, next) = (self.previous[segment as usize], self.next[segment as usize]);
        match previous {
            NONE => self.heads[valid as usize] = next,
            _ => self.next[previous as usize] = next,
        }
        if next != NONE {
            self.previous[next as usize] = previous;
        }
    }
}

impl Victim for Greedy {
    fn sealed(&mut self, segment: SegmentId, table: &SegmentTable) {
        self.link(segment.0, table.valid(segment));
    }

    #[inline]
    fn invalidated(&mut self, segment: SegmentId, table: &SegmentTable) {
        let valid = table.valid(segment);
        self.unlink(segment.0, valid + 1);
        self.link(segment.0, valid);
    }

    fn pick(&mut self, _: &SegmentTable) -> Option<SegmentId> {
        while self.heads.get(self.lowest as usize).is_some_and(|head| *head == NONE) {
            self.lowest += 1;
        }
        let segment = *self.heads.get(self.lowest as usize)?;
        self.unlink(segment, self.lowest);
        Some(SegmentId(segment))
    }

    fn remove(&mut self, segment: SegmentId, table: &SegmentTable) {
        self.unlink(segment.0, table.valid(segment));
    }
}
