//! No placement: one stream for host writes and copies alike.
//!
//! The baseline of every study of placement. Hot and cold pages share segments, so that skewed
//! traffic costs more copies than it need.

use super::{PlacementPolicy, Shape, WriteContext};
use crate::{SegmentId, SegmentTable};
use fulgurite_base::StreamId;

/// None.
pub type Options = super::NoOptions<1>;

/// Always the one stream.
#[derive(Clone, Debug)]
pub struct NoPlacement;

impl NoPlacement {
    pub(super) fn new(_: Options, _: &Shape) -> NoPlacement {
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
