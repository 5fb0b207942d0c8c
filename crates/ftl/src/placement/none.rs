//! No placement: one stream for host writes and copies alike.
//!
//! This is the baseline of every study of placement. Hot and cold pages share segments, so skewed traffic
//! costs more copies than necessary.

use super::policy::{DriveShape, PlacementPolicy, WriteContext};
use crate::{SegmentId, SegmentTable};
use fulgurite_base::{NoOptions, StreamId};

/// The policy that always chooses the same stream.
#[derive(Clone, Debug)]
pub struct NoPlacement;

impl NoPlacement {
    pub(super) fn streams(_: &NoOptions) -> u16 {
        1
    }

    pub(super) fn start(_: &NoOptions, _: &DriveShape) -> NoPlacement {
        NoPlacement
    }
}

impl PlacementPolicy for NoPlacement {
    #[inline]
    fn stream(&self, _: &WriteContext, _: &SegmentTable) -> StreamId {
        StreamId(0)
    }

    #[inline]
    fn copies_to(&self, _: SegmentId, _: &SegmentTable) -> Option<StreamId> {
        Some(StreamId(0))
    }
}
