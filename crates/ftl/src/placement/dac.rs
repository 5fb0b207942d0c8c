//! DAC: by update frequency. A page moves to the next hotter group whenever the host writes it again and
//! to the next colder one whenever it is copied.
//!
//! "Using data clustering to improve cleaning performance for flash memory" (Chiang, Lee, Chang, 1999); CAT ("Cost,
//! age and times", 1999) is the cleaner that goes with it. *Ambiguities.* The original promotes only pages that
//! were written again within a time that it does not give: here every rewrite promotes, as where others
//! rebuilt it (SepBIT, FAST 2022). A page's first write goes to the coldest group. The group is that of the
//! segment which holds the page, so no memory is needed. O(1).

use super::{ConfiguredPlacement, DriveShape, PlacementPolicy, STREAMS_AT_MOST, WriteContext};
use crate::{SegmentId, SegmentTable};
use fulgurite_base::option::COUNT_16;
use fulgurite_base::{Declared, Opt, StreamId, opt};

/// The options of DAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DacConfig {
    /// The number of groups; the coldest is 0.
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

/// A ladder of groups.
#[derive(Clone, Debug)]
pub struct Dac(u16);

impl ConfiguredPlacement for Dac {
    type Config = DacConfig;

    fn streams(config: &DacConfig) -> u16 {
        config.groups
    }

    fn start(config: &DacConfig, _: &DriveShape) -> Dac {
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
