//! Wear in a unit: the free segment to write next, the segments that are worn out, and the segment whose cold
//! data wear leveling moves.

use crate::config::{FtlConfig, WearLeveling};
use crate::segments::{SegmentId, SegmentState, SegmentTable};
use std::collections::BTreeSet;
use std::ops::Range;

/// The free segments in the order of use, and the wear of the unit's segments.
#[derive(Clone, Debug)]
pub(crate) struct Wear {
    leveling: WearLeveling,
    /// The range of all segments of the unit.
    segments: Range<u32>,
    /// The free segments, ordered by erases if wear leveling is on, then by the order of erasing.
    free: BTreeSet<(u32, u64, SegmentId)>,
    freed: u64,
    /// The most erases of any segment.
    most: u32,
    retired: u32,
    /// Whether a segment should have been retired, but collection could not spare it. Collection
    /// must begin one segment earlier until the segment is retired.
    pub(crate) is_short: bool,
    /// Whether a segment should be retired, but the unit can spare none any more.
    pub(crate) is_worn_out: bool,
}

impl Wear {
    pub(crate) fn new(leveling: WearLeveling, segments: Range<u32>) -> Wear {
        let free = segments.clone().map(|segment| (0, u64::from(segment), SegmentId(segment))).collect();
        Wear {
            leveling,
            free,
            freed: u64::from(segments.end),
            segments,
            most: 0,
            retired: 0,
            is_short: false,
            is_worn_out: false,
        }
    }

    /// Resets all wear. The free segments are then used in the order in which they were erased.
    pub(crate) fn start_anew(&mut self) {
        self.free = std::mem::take(&mut self.free)
            .into_iter()
            .map(|(_, order, segment)| (0, order, segment))
            .collect();
        self.most = 0;
    }

    /// Returns the number of free segments.
    #[inline]
    pub(crate) fn free(&self) -> u32 {
        self.free.len() as u32
    }

    pub(crate) fn free_segments(&self) -> impl Iterator<Item = SegmentId> {
        self.free.iter().map(|(_, _, segment)| *segment)
    }

    /// Takes the free segment to write next; `None` if none is free.
    pub(crate) fn take(&mut self) -> Option<SegmentId> {
        self.free.pop_first().map(|(_, _, segment)| segment)
    }

    /// Returns the number of segments that are not retired.
    pub(crate) fn usable(&self) -> u32 {
        self.segments.len() as u32 - self.retired
    }

    /// Removes segments that turn out to be in use from the free segments.
    pub(crate) fn withdraw(&mut self, is_used: impl Fn(SegmentId) -> bool) {
        self.free.retain(|(_, _, segment)| !is_used(*segment));
    }

    /// Frees an erased segment. Retires it instead if it has reached its endurance and collection can spare
    /// it. The unit holds `valid` valid pages.
    pub(crate) fn erased(
        &mut self,
        segment: SegmentId,
        valid: u32,
        segments: &mut SegmentTable,
        config: &FtlConfig,
    ) {
        let erases = segments.erased(segment);
        self.most = self.most.max(erases);
        if erases >= limit(segment, config.endurance) {
            self.is_worn_out = u64::from(self.usable()) <= config.least_segments(valid);
            // Keeps the segment until collection begins earlier: with one segment fewer, the current
            // collection could not end.
            self.is_short = !self.is_worn_out && self.free() < config.collect.hard;
            if !self.is_worn_out && !self.is_short {
                segments.set_usable(segment, false);
                self.retired += 1;
                return;
            }
        }
        segments.set_usable(segment, true);
        let key = if self.leveling == WearLeveling::None { 0 } else { erases };
        self.free.insert((key, self.freed, segment));
        self.freed += 1;
    }

    /// Returns the full segment with the fewest erases, if it is behind the most erased segment by more than
    /// `gap`. This scans all segments, so it is called rarely.
    pub(crate) fn left_behind(&self, segments: &SegmentTable, gap: u32) -> Option<SegmentId> {
        // Skips the scan while no segment can be behind by more than the gap.
        if self.leveling != WearLeveling::Static || self.most <= gap {
            return None;
        }
        let sealed =
            self.segments.clone().map(SegmentId).filter(|id| segments.state(*id) == SegmentState::Sealed);
        sealed.min_by_key(|id| segments.erases(*id)).filter(|id| segments.erases(*id) + gap < self.most)
    }
}

/// Returns the number of erases that `segment` endures: within a tenth of the rated endurance, since blocks
/// differ. A rating of 0 means no limit.
fn limit(segment: SegmentId, endurance: u32) -> u32 {
    if endurance == 0 {
        return u32::MAX;
    }
    // Fibonacci hashing spreads consecutive numbers evenly over −10 % … +10 %.
    let spread = u64::from(segment.0).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 43;
    // The shift leaves 21 bits, so the product below stays far from 2^64.
    let tenth = u64::from(endurance) / 10;
    (u64::from(endurance) - tenth + ((2 * tenth * spread) >> 21)).max(1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_base::StreamId;

    /// A unit of eight segments, all free at first, and its table.
    struct Rig {
        wear: Wear,
        table: SegmentTable,
        config: FtlConfig,
    }

    impl Rig {
        /// The fewest segments for collection: two of data, two in reserve and an open one.
        const LEAST: u32 = 5;

        fn new(leveling: WearLeveling, endurance: u32) -> Rig {
            let config = FtlConfig { endurance, ..FtlConfig::plain(32, 8, 16) };
            Rig { wear: Wear::new(leveling, 0..8), table: SegmentTable::new(8, 16, 1), config }
        }

        /// Erases a segment that is in use.
        fn erase(&mut self, segment: u32, valid: u32) {
            self.table.open(SegmentId(segment), StreamId(0));
            self.wear.erased(SegmentId(segment), valid, &mut self.table, &self.config);
        }

        /// Uses and erases a segment until it has been erased `erases` times.
        fn erase_to(&mut self, segment: u32, erases: u32, valid: u32) {
            while self.table.erases(SegmentId(segment)) < erases {
                self.wear.withdraw(|free| free.0 == segment);
                self.erase(segment, valid);
            }
        }

        fn wear_out(&mut self, segment: u32, valid: u32) {
            self.erase_to(segment, limit(SegmentId(segment), self.config.endurance), valid);
        }

        fn free(&self) -> Vec<u32> {
            self.wear.free_segments().map(|segment| segment.0).collect()
        }

        /// Returns the state of the segment, the number of usable segments, and the flags `is_short` and
        /// `is_worn_out`.
        fn seen(&self, segment: u32) -> (SegmentState, u32, bool, bool) {
            let Wear { is_short, is_worn_out, .. } = self.wear;
            (self.table.state(SegmentId(segment)), self.wear.usable(), is_short, is_worn_out)
        }
    }

    /// The rule: free segments are used in the order in which they were erased. With wear leveling the
    /// segment with the fewest erases goes first, until the wear is reset.
    #[test]
    fn the_least_erased_segment_is_used_first() {
        for (leveling, order) in [(WearLeveling::None, [1, 3, 0, 2]), (WearLeveling::Dynamic, [1, 0, 2, 3])] {
            let mut rig = Rig::new(leveling, 0);
            while rig.wear.take().is_some() {}
            for segment in [3, 1] {
                rig.erase(segment, 0);
            }
            assert_eq!(rig.wear.take(), Some(SegmentId(3)), "among equals the first");
            for segment in [3, 0, 2] {
                rig.erase(segment, 0);
            }
            assert_eq!(rig.free(), order, "{leveling:?}");
            rig.wear.start_anew();
            assert_eq!(rig.free(), [1, 3, 0, 2], "{leveling:?}");
        }
    }

    /// The rule: segments endure the rated erases within a tenth, spread evenly, and at least one. A rating
    /// of 0 means no limit.
    #[test]
    fn segments_endure_the_rated_erases_within_a_tenth() {
        let limits: Vec<u32> = (0..1_000).map(|segment| limit(SegmentId(segment), 1_000)).collect();
        let (least, most) = (*limits.iter().min().unwrap(), *limits.iter().max().unwrap());
        assert!((900..905).contains(&least) && (1_095..=1_100).contains(&most), "{least} to {most}");
        let mean = limits.iter().sum::<u32>() / 1_000;
        assert!((995..1_005).contains(&mean), "{mean}");
        assert_eq!(limit(SegmentId(7), 1), 1);
        assert_eq!(limit(SegmentId(7), 0), u32::MAX);
    }

    /// The rule: a segment is retired exactly when it has reached its endurance.
    #[test]
    fn a_segment_is_retired_at_its_endurance() {
        let mut rig = Rig::new(WearLeveling::None, 100);
        rig.erase_to(6, limit(SegmentId(6), 100) - 1, 0);
        assert_eq!(rig.seen(6), (SegmentState::Free, 8, false, false));
        rig.wear_out(6, 0);
        assert_eq!(rig.seen(6), (SegmentState::Retired, 7, false, false));
        assert_eq!(rig.free(), [0, 1, 2, 3, 4, 5, 7]);
    }

    /// The rule: the unit keeps as many segments as collection needs for its valid pages, and then counts as
    /// worn out.
    #[test]
    fn the_last_segments_that_collection_needs_are_not_retired() {
        // The cases are valid pages of two segments, and of three: with three, one segment fewer may be
        // retired.
        for (valid, least) in [(32, Rig::LEAST), (33, Rig::LEAST + 1)] {
            let mut rig = Rig::new(WearLeveling::None, 100);
            for segment in 0..8 - least {
                rig.wear_out(segment, valid);
                assert_eq!(rig.seen(segment), (SegmentState::Retired, 7 - segment, false, false));
            }
            // This holds without free segments, too: a worn-out unit does not count as one segment short.
            rig.wear.withdraw(|_| true);
            rig.wear_out(7, valid);
            assert_eq!(rig.seen(7), (SegmentState::Free, least, false, true));
            assert_eq!(rig.free(), [7]);
        }
    }

    /// The rule: a worn-out segment stays in use while collection cannot spare it, and collection is told to
    /// begin one segment earlier. The segment is retired after its next erase.
    #[test]
    fn a_segment_that_cannot_be_spared_is_retired_later() {
        let mut rig = Rig::new(WearLeveling::None, 100);
        rig.wear.withdraw(|_| true);
        rig.wear_out(3, 0);
        assert_eq!(rig.seen(3), (SegmentState::Free, 8, true, false));
        assert_eq!(rig.wear.take(), Some(SegmentId(3)));
        rig.erase(4, 0);
        rig.erase(3, 0);
        assert_eq!(rig.seen(3), (SegmentState::Retired, 7, false, false));
        assert_eq!(rig.free(), [4]);
    }

    /// The rule: static leveling names the full segment with the fewest erases, if it is behind the most
    /// erased segment by more than the gap. Open segments do not count.
    #[test]
    fn the_full_segment_furthest_behind_is_named() {
        let filled = |leveling| {
            let mut rig = Rig::new(leveling, 0);
            for (segment, erases) in [(1, 1), (2, 2), (3, 5)] {
                rig.erase_to(segment, erases, 0);
            }
            for segment in [0, 1, 2].map(SegmentId) {
                rig.table.open(segment, StreamId(0));
            }
            [1, 2].map(SegmentId).into_iter().for_each(|segment| rig.table.seal(segment));
            rig
        };
        let mut rig = filled(WearLeveling::Static);
        assert_eq!(rig.wear.left_behind(&rig.table, 3), Some(SegmentId(1)));
        assert_eq!(rig.wear.left_behind(&rig.table, 4), None);
        // After a reset, earlier wear does not count.
        rig.table.forget_wear();
        rig.wear.start_anew();
        assert_eq!(rig.wear.left_behind(&rig.table, 0), None);
        let rig = filled(WearLeveling::Dynamic);
        assert_eq!(rig.wear.left_behind(&rig.table, 3), None);
    }
}
