//! MiDA: by age, counted in moves. The host's writes enter group 0; every copy takes a page to the next
//! group, and in the last one it stays.
//!
//! "MiDA: Improving SSD performance through migration-age-aware block placement" (Park et al., APSys 2021), as
//! MiDAS (FAST 2024) describes it, with eight groups as in its table 2. The group is that of the segment which
//! holds the page, so no memory is needed. O(1).

use super::{PlacementPolicy, Shape, WriteContext, take_streams};
use crate::ftl::{SegmentId, SegmentTable};
use fulgurite_base::{Spec, SpecError};
use fulgurite_device::StreamId;
use std::fmt;

/// The options of MiDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Groups, the youngest is 0.
    pub groups: u16,
}

impl Options {
    pub(super) fn from_spec(spec: &mut Spec) -> Result<Options, SpecError> {
        Ok(Options { groups: take_streams(spec, "groups", 8, 2)? })
    }

    pub(super) fn streams(&self) -> u16 {
        self.groups
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "groups={}", self.groups)
    }
}

/// A chain of groups.
#[derive(Clone, Debug)]
pub struct Mida(u16);

impl Mida {
    pub(super) fn new(options: Options, _: &Shape) -> Mida {
        Mida(options.groups)
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
