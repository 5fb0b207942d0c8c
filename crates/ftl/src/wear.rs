//! Wear: which free segment is written next, which segments are worn out, and when a segment of cold
//! data is moved so that it takes its share of the erases.

use crate::FtlConfig;
use crate::segments::{SegmentId, SegmentState, SegmentTable};
use fulgurite_base::Choice;
use std::collections::BTreeSet;

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
    pub(crate) fn new(leveling: WearLeveling, segments: u32) -> Wear {
        let free = (0..segments).map(|segment| (0, u64::from(segment), SegmentId(segment))).collect();
        Wear {
            leveling,
            free,
            freed: u64::from(segments),
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

    /// Takes the segments that are in use after all.
    pub(crate) fn withdraw(&mut self, is_used: impl Fn(SegmentId) -> bool) {
        self.free.retain(|(_, _, segment)| !is_used(*segment));
    }

    /// An erased segment is free again, or retired once it has been erased as often as it bears
    /// and collection can do without it.
    pub(crate) fn erased(&mut self, segment: SegmentId, segments: &mut SegmentTable, config: &FtlConfig) {
        let erases = segments.erased(segment);
        self.most = self.most.max(erases);
        if erases >= limit(segment, config.endurance) {
            self.is_worn_out = u64::from(config.segments - self.retired) <= config.least_segments();
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
            (0..segments.len()).map(SegmentId).filter(|id| segments.state(*id) == SegmentState::Sealed);
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
