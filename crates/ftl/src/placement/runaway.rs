//! Detects that collection gains no space. With groups of fixed sizes, this can happen in two ways: the
//! invalid pages are in groups that do not exceed their size, or a group keeps giving up segments in which
//! nearly every page is valid.

use crate::{SegmentId, SegmentTable};

/// At least one page in this many must be invalid in a row of victims, which are picked without a host write
/// in between.
const ONE_IN: u64 = 128;

/// Watches for collections that gain no space.
#[derive(Clone, Copy, Debug)]
pub(super) struct Runaway {
    /// The number of collections in a row without a host write after which their gain is evaluated.
    judged_after: u32,
    /// The time of the last pick, in host page writes.
    picked_at: u64,
    /// The number of victims picked since the last host write; `garbage` is the number of their invalid
    /// pages.
    in_a_row: u32,
    garbage: u64,
}

impl Runaway {
    pub(crate) fn new(judged_after: u32) -> Runaway {
        Runaway { judged_after, picked_at: 0, in_a_row: 0, garbage: 0 }
    }

    /// Records a victim. Returns whether this row of victims has gained too little space.
    pub(crate) fn picked(&mut self, victim: SegmentId, segments: &SegmentTable) -> bool {
        // Compares the times: time counts host writes, so an unchanged time means that no write came between
        // two picks.
        if self.picked_at != segments.now() || self.in_a_row == self.judged_after {
            *self = Runaway { picked_at: segments.now(), ..Runaway::new(self.judged_after) };
        }
        self.in_a_row += 1;
        self.garbage += u64::from(segments.written(victim) - segments.valid(victim));
        let pages = u64::from(self.in_a_row) * u64::from(segments.segment_pages());
        self.in_a_row == self.judged_after && ONE_IN * self.garbage < pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_base::StreamId;

    /// Returns the number of victims after which a row is found to gain too little, if any. Each victim has
    /// 64 pages and as many invalid ones as `garbage` says; the host may write before each victim.
    fn judged_after(garbage: &[u32], host_writes: impl Fn(u32) -> bool) -> Option<u32> {
        let mut table = SegmentTable::new(1, 64, 1);
        let mut runaway = Runaway::new(4);
        (1..=40).find(|pick| {
            let victim = SegmentId(0);
            table.open(victim, StreamId(0));
            table.append(victim, 64);
            (0..garbage[(*pick - 1) as usize % garbage.len()]).for_each(|_| table.invalidate(victim));
            if host_writes(*pick) {
                table.tick();
            }
            let is_too_little = runaway.picked(victim, &table);
            table.invalidate_all(victim);
            table.erased(victim);
            is_too_little
        })
    }

    /// The rule: in each row of victims, one page in 128 must be invalid. A host write begins a new row.
    #[test]
    fn victims_that_gain_no_space_are_found() {
        let never = |_| false;
        assert_eq!(judged_after(&[0], never), Some(4));
        // Four victims of 64 pages have 256 pages, of which two must be invalid.
        assert_eq!(judged_after(&[0, 1, 0, 0], never), Some(4));
        assert_eq!(judged_after(&[0, 1, 0, 1], never), None);
        assert_eq!(judged_after(&[2, 0, 0, 0], never), None);
        // The second row of four is evaluated separately.
        assert_eq!(judged_after(&[9, 0, 0, 0, 0, 0, 0, 1], never), Some(8));
        assert_eq!(judged_after(&[0], |pick| pick % 3 == 0), None);
        assert_eq!(judged_after(&[0], |pick| pick == 3), Some(6));
    }
}
