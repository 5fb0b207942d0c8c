//! Host writes and copies apart: two streams.
//!
//! What survived a collection is colder than what was just written (Van Houdt, "On the necessity of hot and cold
//! data identification to reduce the write amplification in flash-based SSDs", 2014). Knows nothing of pages. O(1).

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
        2
    }
}

impl fmt::Display for Options {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

/// Stream 0 for the host, 1 for copies.
#[derive(Clone, Debug)]
pub struct SepGc;

impl SepGc {
    pub(super) fn new(_: Options, _: &Shape) -> SepGc {
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
