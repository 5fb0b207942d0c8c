//! Wear in a unit: which free segment is written next, which segments are worn out, and when a segment of cold
//! data is moved so that it takes its share of the erases.

use crate::FtlConfig;
use crate::segments::{SegmentId, SegmentState, SegmentTable};
use fulgurite_base::Choice;
use std::collections::BTreeSet;
use std::ops::Range;

/// How erases are spread over the segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WearLeveling {
    /// Free segments are used in the order in which they were erased.
    None,
    /// The free segment with the fewest erases is used first.
    Dynamic,
    /// The same, and where a full segment has fallen behind the most erased one by more than a gap
    /// its data is moved away.
    Static,
}

impl Choice for WearLeveling {
    const NAMES: &'static [(&'static str, WearLeveling)] =
        &[("none", WearLeveling::None), ("dynamic", WearLeveling::Dynamic), ("static", WearLeveling::Static)];
}

/// The free segments in the order of use, and what is worn out.
#[derive(Clone, Debug)]
pub(crate) struct Wear {
    leveling: WearLeveling,
    /// All of the unit.
    segments: Range<u32>,
    /// By erases where they count, then by the order of erasing.
    free: BTreeSet<(u32, u64, SegmentId)>,
    freed: u64,
    /// Most erases of any segment.
    most: u32,
    retired: u32,
    /// A segment ought to have been retired, but collection would have had none left to go on with:
    /// it should begin a segment earlier.
    pub(crate) is_short: bool,
    /// No segment can be spared any more, and one ought to be.
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

    /// Forgets all wear; the free segments are used in the order in which they were erased.
    pub(crate) fn start_anew(&mut self) {
        self.free = std::mem::take(&mut self.free)
            .into_iter()
            .map(|(_, order, segment)| (0, order, segment))
            .collect();
        self.most = 0;
    }

    /// How many segments are free.
    #[inline]
    pub(crate) fn free(&self) -> u32 {
        self.free.len() as u32
    }

    pub(crate) fn free_segments(&self) -> impl Iterator<Item = SegmentId> {
        self.free.iter().map(|(_, _, segment)| *segment)
    }

    /// Takes the free segment that is to be written next.
    pub(crate) fn take(&mut self) -> Option<SegmentId> {
        self.free.pop_first().map(|(_, _, segment)| segment)
    }

    /// Segments that are not worn out.
    pub(crate) fn usable(&self) -> u32 {
        self.segments.len() as u32 - self.retired
    }

    /// Takes the segments that are in use after all.
    pub(crate) fn withdraw(&mut self, is_used: impl Fn(SegmentId) -> bool) {
        self.free.retain(|(_, _, segment)| !is_used(*segment));
    }

    /// An erased segment is free again, or retired once it has been erased as often as it bears
    /// and collection can do without it. The unit holds `valid` pages.
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
            // A segment short, collection could not end: it keeps this one until it begins earlier.
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

    /// The full segment with the fewest erases, if it is behind by more than `gap`. A scan, so asked
    /// for once in a while only.
    pub(crate) fn left_behind(&self, segments: &SegmentTable, gap: u32) -> Option<SegmentId> {
        // No segment can have fallen behind by more than the gap yet, so the scan is spared.
        if self.leveling != WearLeveling::Static || self.most <= gap {
            return None;
        }
        let sealed =
            self.segments.clone().map(SegmentId).filter(|id| segments.state(*id) == SegmentState::Sealed);
        sealed.min_by_key(|id| segments.erases(*id)).filter(|id| segments.erases(*id) + gap < self.most)
    }
}

/// The erases that `segment` bears: within a tenth of the rated endurance, since no two blocks are
/// alike. Zero stands for no limit.
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

    /// A unit of eight segments, all free.
    struct Rig {
        wear: Wear,
        table: SegmentTable,
        config: FtlConfig,
    }

    impl Rig {
        /// Two segments of data, two in reserve and an open one are the least that collection can go on with.
        const LEAST: u32 = 5;

        fn new(leveling: WearLeveling, endurance: u32) -> Rig {
            let config = FtlConfig { endurance, ..FtlConfig::plain(32, 8, 16) };
            Rig { wear: Wear::new(leveling, 0..8), table: SegmentTable::new(8, 16, 1), config }
        }

        /// A segment that is in use is erased.
        fn erase(&mut self, segment: u32, valid: u32) {
            self.table.open(SegmentId(segment), StreamId(0));
            self.wear.erased(SegmentId(segment), valid, &mut self.table, &self.config);
        }

        /// A segment is used and erased until it has been erased `erases` times.
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

        /// What the segment is doing, the segments not worn out, and whether one is short or too many are worn out.
        fn seen(&self, segment: u32) -> (SegmentState, u32, bool, bool) {
            let Wear { is_short, is_worn_out, .. } = self.wear;
            (self.table.state(SegmentId(segment)), self.wear.usable(), is_short, is_worn_out)
        }
    }

    /// The rule: free segments are used in the order in which they were erased. With wear leveling the one with the fewest erases goes
    /// first, until all wear is forgotten.
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

    /// The rule: segments bear the rated erases within a tenth, spread evenly, and one at least. Zero stands for no limit.
    #[test]
    fn segments_bear_what_is_rated_within_a_tenth() {
        let limits: Vec<u32> = (0..1_000).map(|segment| limit(SegmentId(segment), 1_000)).collect();
        let (least, most) = (*limits.iter().min().unwrap(), *limits.iter().max().unwrap());
        assert!((900..905).contains(&least) && (1_095..=1_100).contains(&most), "{least} to {most}");
        let mean = limits.iter().sum::<u32>() / 1_000;
        assert!((995..1_005).contains(&mean), "{mean}");
        assert_eq!(limit(SegmentId(7), 1), 1);
        assert_eq!(limit(SegmentId(7), 0), u32::MAX);
    }

    /// The rule: a segment that was erased as often as it bears is never used again, and no segment is before.
    #[test]
    fn a_segment_is_retired_once_it_has_borne_its_erases() {
        let mut rig = Rig::new(WearLeveling::None, 100);
        rig.erase_to(6, limit(SegmentId(6), 100) - 1, 0);
        assert_eq!(rig.seen(6), (SegmentState::Free, 8, false, false));
        rig.wear_out(6, 0);
        assert_eq!(rig.seen(6), (SegmentState::Retired, 7, false, false));
        assert_eq!(rig.free(), [0, 1, 2, 3, 4, 5, 7]);
    }

    /// The rule: as many segments stay in use as collection needs for what the unit holds, and the drive then counts as worn out.
    #[test]
    fn the_last_segments_that_collection_needs_are_not_retired() {
        // Pages of two segments, and of three: one segment fewer may be retired.
        for (valid, least) in [(32, Rig::LEAST), (33, Rig::LEAST + 1)] {
            let mut rig = Rig::new(WearLeveling::None, 100);
            for segment in 0..8 - least {
                rig.wear_out(segment, valid);
                assert_eq!(rig.seen(segment), (SegmentState::Retired, 7 - segment, false, false));
            }
            // Without a free segment, too: a unit that is worn out is not short of one.
            rig.wear.withdraw(|_| true);
            rig.wear_out(7, valid);
            assert_eq!(rig.seen(7), (SegmentState::Free, least, false, true));
            assert_eq!(rig.free(), [7]);
        }
    }

    /// The rule: a worn-out segment stays in use while fewer are free than only collection may use, and collection is told to begin
    /// a segment earlier. It is retired the next time that it is erased.
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

    /// The rule: static leveling names the full segment with the fewest erases, where it is behind the most erased one by more than the
    /// gap. Segments that are written have their turn still to come.
    #[test]
    fn the_full_segment_that_is_furthest_behind_is_named() {
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
        // The wear from before counts no more.
        rig.table.forget_wear();
        rig.wear.start_anew();
        assert_eq!(rig.wear.left_behind(&rig.table, 0), None);
        let rig = filled(WearLeveling::Dynamic);
        assert_eq!(rig.wear.left_behind(&rig.table, 3), None);
    }
}
