//! No placement: one stream for host writes and copies alike.
//!
//! The baseline of every study of placement. Hot and cold pages share segments, so that skewed
//! traffic costs more copies than it need.

use super::{PlacementPolicy, Shape, WriteContext};
use crate::ftl::{SegmentId, SegmentTable};
use fulgurite_base::{Spec, SpecError};
use fulgurite_device::StreamId;
use std::fmt;

/// None.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options;

impl Options {
    pub(super) fn from_spec(_: &mut Spec) -> Result<Options, SpecError> {
        Ok(Options)
    }

    pub(super) fn streams(&self) -> u16 {
        1
    }
}

impl fmt::Display for Options {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

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
