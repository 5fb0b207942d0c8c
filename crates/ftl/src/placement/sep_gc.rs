//! Placement of host writes and copies in separate streams.
//!
//! A page that survived a collection is colder than a page that was just written (Van Houdt, "On the
//! necessity of hot and cold data identification to reduce the write amplification in flash-based SSDs",
//! 2014). The policy needs no information about pages. A decision takes O(1).

use super::policy::{DriveShape, PlacementPolicy, WriteContext};
use crate::{SegmentId, SegmentTable};
use fulgurite_base::{NoOptions, StreamId};

/// The policy with stream 0 for the host and stream 1 for copies.
#[derive(Clone, Debug)]
pub struct SepGc;

impl SepGc {
    pub(super) fn streams(_: &NoOptions) -> u16 {
        2
    }

    pub(super) fn start(_: &NoOptions, _: &DriveShape) -> SepGc {
        SepGc
    }
}

impl PlacementPolicy for SepGc {
    #[inline]
    fn stream(&self, context: &WriteContext, _: &SegmentTable) -> StreamId {
        StreamId(u16::from(context.copied))
    }

    #[inline]
    fn copies_to(&self, _: SegmentId, _: &SegmentTable) -> Option<StreamId> {
        Some(StreamId(1))
    }
}
