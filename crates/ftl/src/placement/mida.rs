//! MiDA: placement by age, counted in copies. Host writes enter group 0. Every copy moves a page to the next
//! group; in the last group the page stays.
//!
//! "MiDA: Improving SSD performance through migration-age-aware block placement" (Park et al., APSys 2021),
//! as MiDAS (FAST 2024) describes it, with eight groups as in table 2 of MiDAS. The group of a page is that
//! of the segment which holds the page, so no memory is needed. A decision takes O(1).

use super::policy::{DriveShape, PlacementPolicy, STREAMS_AT_MOST, WriteContext};
use crate::{SegmentId, SegmentTable};
use fulgurite_base::option::COUNT_16;
use fulgurite_base::{Declared, Opt, StreamId, opt};

/// The options of MiDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MidaConfig {
    /// The number of groups; the youngest is group 0.
    pub groups: u16,
}

impl Default for MidaConfig {
    fn default() -> MidaConfig {
        MidaConfig { groups: 8 }
    }
}

impl Declared for MidaConfig {
    const OPTIONS: &'static [Opt<MidaConfig>] =
        &[opt!("groups", groups, COUNT_16, 2 => STREAMS_AT_MOST, "groups; the last one keeps its pages")];
}

/// The policy at work; the number is that of its groups, which are ordered by age.
#[derive(Clone, Debug)]
pub struct Mida(u16);

impl Mida {
    pub(super) fn streams(config: &MidaConfig) -> u16 {
        config.groups
    }

    pub(super) fn start(config: &MidaConfig, _: &DriveShape) -> Mida {
        Mida(config.groups)
    }
}

impl PlacementPolicy for Mida {
    #[inline]
    fn stream(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        let copies_to =
            context.segment.filter(|_| context.copied).and_then(|victim| self.copies_to(victim, segments));
        copies_to.unwrap_or(StreamId(0))
    }

    #[inline]
    fn copies_to(&self, victim: SegmentId, segments: &SegmentTable) -> Option<StreamId> {
        Some(StreamId((segments.stream(victim).0 + 1).min(self.0 - 1)))
    }
}
