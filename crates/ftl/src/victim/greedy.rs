//! Greedy victim selection: the segment with the fewest valid pages. Ties go to the segment that reached its
//! valid count last.
//!
//! Greedy is optimal for uniform traffic. Segments are linked in one list per number of valid pages, so
//! sealing, invalidating and picking are O(1). The cost of picking is amortised: the lowest count only
//! advances over empty lists.

use super::per_segment::PerSegment;
use super::policy::VictimPolicy;
use crate::{SegmentId, SegmentTable};
use fulgurite_base::NoOptions;
use std::ops::Range;

/// The end of a list.
const NO_SEGMENT: u32 = u32::MAX;

/// The sealed segments in lists by their number of valid pages.
#[derive(Clone, Debug)]
pub(crate) struct Greedy {
    /// The first segment of the list for each valid count.
    heads: Vec<u32>,
    previous: PerSegment<u32>,
    next: PerSegment<u32>,
    /// The lowest valid count that may have segments: all lists below it are empty.
    lowest: u32,
}

impl Greedy {
    pub(super) fn start(_: &NoOptions, segments: Range<u32>, segment_pages: u32) -> Greedy {
        Greedy {
            heads: vec![NO_SEGMENT; segment_pages as usize + 1],
            previous: PerSegment::filled(segments.clone(), NO_SEGMENT),
            next: PerSegment::filled(segments, NO_SEGMENT),
            lowest: segment_pages + 1,
        }
    }

    fn link(&mut self, segment: u32, valid: u32) {
        let head = std::mem::replace(&mut self.heads[valid as usize], segment);
        self.previous[SegmentId(segment)] = NO_SEGMENT;
        self.next[SegmentId(segment)] = head;
        if head != NO_SEGMENT {
            self.previous[SegmentId(head)] = segment;
        }
        self.lowest = self.lowest.min(valid);
    }

    /// Returns the fewest valid pages of a segment; `None` if there is no segment.
    pub(super) fn least(&mut self) -> Option<u32> {
        while self.heads.get(self.lowest as usize).is_some_and(|head| *head == NO_SEGMENT) {
            self.lowest += 1;
        }
        ((self.lowest as usize) < self.heads.len()).then_some(self.lowest)
    }

    fn unlink(&mut self, segment: u32, valid: u32) {
        let (previous, next) = (self.previous[SegmentId(segment)], self.next[SegmentId(segment)]);
        match previous {
            NO_SEGMENT => self.heads[valid as usize] = next,
            _ => self.next[SegmentId(previous)] = next,
        }
        if next != NO_SEGMENT {
            self.previous[SegmentId(next)] = previous;
        }
    }
}

impl VictimPolicy for Greedy {
    fn sealed(&mut self, segment: SegmentId, table: &SegmentTable) {
        self.link(segment.0, table.valid(segment));
    }

    #[inline]
    fn invalidated(&mut self, segment: SegmentId, table: &SegmentTable) {
        let valid = table.valid(segment);
        // Unlinks at the old count: the table has the new count already, but the segment is still in the list
        // of the old count.
        self.unlink(segment.0, valid + 1);
        self.link(segment.0, valid);
    }

    fn pick(&mut self, _: &SegmentTable) -> Option<SegmentId> {
        let least = self.least()?;
        let segment = self.heads[least as usize];
        self.unlink(segment, least);
        Some(SegmentId(segment))
    }

    fn remove(&mut self, segment: SegmentId, table: &SegmentTable) {
        self.unlink(segment.0, table.valid(segment));
    }
}
