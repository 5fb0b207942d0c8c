//! Placement by the host's hints: multi-stream writes (NVMe directives).
//!
//! Hints beyond the number of streams wrap around. Copies stay in the stream of their segment, so that
//! collection never mixes pages which the host separates. A decision takes O(1).

use super::policy::{DriveShape, PlacementPolicy, STREAMS_AT_MOST, WriteContext};
use crate::{SegmentId, SegmentTable};
use fulgurite_base::option::COUNT_16;
use fulgurite_base::{Declared, Opt, StreamId, opt};

/// The options of placement by hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HintsConfig {
    /// The number of streams that are separated.
    pub streams: u16,
}

impl Default for HintsConfig {
    fn default() -> HintsConfig {
        HintsConfig { streams: 8 }
    }
}

impl Declared for HintsConfig {
    const OPTIONS: &'static [Opt<HintsConfig>] =
        &[opt!("streams", streams, COUNT_16, 1 => STREAMS_AT_MOST, "streams kept apart")];
}

/// The policy at work; the number is that of its streams. A host write goes to the stream of its hint, a copy
/// to the stream of its victim.
#[derive(Clone, Debug)]
pub struct Hints(u16);

impl Hints {
    pub(super) fn streams(config: &HintsConfig) -> u16 {
        config.streams
    }

    pub(super) fn start(config: &HintsConfig, _: &DriveShape) -> Hints {
        Hints(config.streams)
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
