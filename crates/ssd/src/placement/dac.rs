//! DAC: by update frequency. A page moves to the next hotter group whenever the host writes it again and
//! to the next colder one whenever it is copied.
//!
//! "Using data clustering to improve cleaning performance for flash memory" (Chiang, Lee, Chang, 1999); CAT ("Cost,
//! age and times", 1999) is the cleaner that goes with it. *Ambiguities.* The original promotes only pages that
//! were written again within a time that it does not give: here every rewrite promotes, as where others
//! rebuilt it (SepBIT, FAST 2022). A page's first write goes to the coldest group. The group is that of the
//! segment which holds the page, so no memory is needed. O(1).

use super::{PlacementPolicy, Shape, WriteContext, take_streams};
use crate::ftl::{SegmentId, SegmentTable};
use fulgurite_base::{Spec, SpecError};
use fulgurite_device::StreamId;
use std::fmt;

/// The options of DAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Groups, the coldest is 0.
    pub groups: u16,
}

impl Options {
    pub(super) fn from_spec(spec: &mut Spec) -> Result<Options, SpecError> {
        Ok(Options { groups: take_streams(spec, "groups", 6, 2)? })
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

/// A ladder of groups.
#[derive(Clone, Debug)]
pub struct Dac(u16);

impl Dac {
    pub(super) fn new(options: Options, _: &Shape) -> Dac {
        Dac(options.groups)
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
