//! Detects that collection makes no room. Groups of fixed sizes can hold all the garbage while none of them
//! exceeds its size. They can also give segments for ever in which nearly every page is valid.

use crate::{SegmentId, SegmentTable};

/// In a row of victims at least one page in this many must be garbage.
const ONE_IN: u64 = 128;

/// Watches for such collections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Runaway {
    /// Collections in a row without a host write after which it is judged.
    judged_after: u32,
    /// When the last victim was picked, in host page writes.
    picked_at: u64,
    /// Victims picked since the host wrote, and the garbage in them.
    in_a_row: u32,
    garbage: u64,
}

impl Runaway {
    pub fn new(judged_after: u32) -> Runaway {
        Runaway { judged_after, picked_at: 0, in_a_row: 0, garbage: 0 }
    }

    /// Takes note of a victim; whether it and those before it made too little room.
    pub fn picked(&mut self, victim: SegmentId, segments: &SegmentTable) -> bool {
        // Time is host writes, so an unchanged time means that no write came between two picks.
        if self.picked_at != segments.now() || self.in_a_row == self.judged_after {
            *self = Runaway { picked_at: segments.now(), ..Runaway::new(self.judged_after) };
        }
        self.in_a_row += 1;
        self.garbage += u64::from(segments.written(victim) - segments.valid(victim));
        let pages = u64::from(self.in_a_row) * u64::from(segments.segment_pages());
        self.in_a_row == self.judged_after && ONE_IN * self.garbage < pages
    }
}
