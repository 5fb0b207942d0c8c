//! Placement by the host's hints: multi-stream writes (NVMe directives), or flexible data placement
//! with persistently isolated handles.
//!
//! Hints that exceed the streams wrap round. Copies stay in the stream of the segment they come from,
//! so that what the host kept apart is never mixed by collection. O(1).

use super::{PlacementPolicy, STREAMS_AT_MOST, Shape, WriteContext, take_streams};
use crate::{SegmentId, SegmentTable};
use fulgurite_base::StreamId;
use fulgurite_base::{Spec, SpecError};
use std::fmt;

/// The options of placement by hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many streams are kept apart.
    pub streams: u16,
}

impl Options {
    pub(super) fn from_spec(spec: &mut Spec) -> Result<Options, SpecError> {
        Ok(Options { streams: take_streams(spec, "streams", 8, 1)? })
    }

    pub(super) fn with_streams(streams: u32) -> Result<Options, SpecError> {
        let fits = u16::try_from(streams).ok().filter(|streams| (1..=STREAMS_AT_MOST).contains(streams));
        fits.map(|streams| Options { streams }).ok_or_else(|| {
            SpecError::new(format!("streams={streams} is out of range; accepted: 1 to {STREAMS_AT_MOST}"))
        })
    }

    pub(super) fn streams(&self) -> u16 {
        self.streams
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "streams={}", self.streams)
    }
}

/// The hint's stream, or the victim's.
#[derive(Clone, Debug)]
pub struct Hints(u16);

impl Hints {
    pub(super) fn new(options: Options, _: &Shape) -> Hints {
        Hints(options.streams)
    }
}

impl PlacementPolicy for Hints {
    #[inline]
    fn stream(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        let copies_to =
            context.segment.filter(|_| context.copied).and_then(|victim| self.copies_to(victim, segments));
        copies_to.unwrap_or(StreamId(context.hint.0 % self.0))
    }

    #[inline]
    fn copies_to(&self, victim: SegmentId, segments: &SegmentTable) -> Option<StreamId> {
        Some(segments.stream(victim))
    }
}
