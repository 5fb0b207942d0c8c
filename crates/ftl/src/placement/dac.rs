//! DAC: placement by update frequency. Each host write moves a page to the next hotter group, and each copy
//! moves it to the next colder group.
//!
//! "Using data clustering to improve cleaning performance for flash memory" (Chiang, Lee, Chang, 1999); CAT
//! ("Cost, age and times", 1999) is its cleaner.
//!
//! *Ambiguities.* Chiang et al. only promote pages that are rewritten within a time that they do not give.
//! Here every rewrite promotes, as in other reimplementations (SepBIT, FAST 2022). The first write of a page
//! goes to the coldest group. The group of a page is that of the segment which holds the page, so no memory
//! is needed. A decision takes O(1).

use super::policy::{DriveShape, PlacementPolicy, STREAMS_AT_MOST, WriteContext};
use crate::{SegmentId, SegmentTable};
use fulgurite_base::option::COUNT_16;
use fulgurite_base::{Declared, Opt, StreamId, opt};

/// The options of DAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DacConfig {
    /// The number of groups; the coldest is group 0.
    pub groups: u16,
}

impl Default for DacConfig {
    fn default() -> DacConfig {
        DacConfig { groups: 6 }
    }
}

impl Declared for DacConfig {
    const OPTIONS: &'static [Opt<DacConfig>] =
        &[opt!("groups", groups, COUNT_16, 2 => STREAMS_AT_MOST, "groups; the coldest is the first")];
}

/// The policy at work; the number is that of its groups, which are ordered from cold to hot.
#[derive(Clone, Debug)]
pub struct Dac(u16);

impl Dac {
    pub(super) fn streams(config: &DacConfig) -> u16 {
        config.groups
    }

    pub(super) fn start(config: &DacConfig, _: &DriveShape) -> Dac {
        Dac(config.groups)
    }
}

impl PlacementPolicy for Dac {
    #[inline]
    fn stream(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        let Some(segment) = context.segment else { return StreamId(0) };
        let group = segments.stream(segment).0;
        StreamId(if context.copied { group.saturating_sub(1) } else { (group + 1).min(self.0 - 1) })
    }

    #[inline]
    fn copies_to(&self, victim: SegmentId, segments: &SegmentTable) -> Option<StreamId> {
        Some(StreamId(segments.stream(victim).0.saturating_sub(1)))
    }
}
