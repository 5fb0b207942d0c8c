//! AutoStream: by the frequency and recency of the chunk that a page lies in.
//!
//! "AutoStream: automatic stream management for multi-streamed SSDs" (Yang et al., SYSTOR 2017), the SFR variant:
//! a chunk counts its writes; its count is halved for every decay period since it was last written; the
//! stream is the integer part of the count's binary logarithm; a write that continues the one before it goes to the
//! same stream. *Ambiguities.* The number of streams, the chunk and the period are not fixed by the paper: here
//! 5 (as in MiDAS's table 2), 512 pages (2 MiB) and 16,384 page writes, as in MiDAS's program. Copies go
//! to the last class, as there. Placement by chunk sees nothing of pages that are popular one by one. O(1).

use super::{PlacementPolicy, Shape, WriteContext, take_streams};
use crate::{SegmentId, SegmentTable};
use fulgurite_base::StreamId;
use fulgurite_base::{Spec, SpecError};
use std::fmt;

/// The options of AutoStream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Streams; the last one is that of the coldest pages and of copies.
    pub streams: u16,
    /// Pages in a chunk.
    pub chunk: u32,
    /// Page writes after which a count is halved.
    pub decay: u32,
}

impl Options {
    pub(super) fn from_spec(spec: &mut Spec) -> Result<Options, SpecError> {
        let streams = take_streams(spec, "streams", 5, 2)?;
        let chunk = spec.take::<u32>("chunk")?.unwrap_or(512);
        let decay = spec.take::<u32>("decay")?.unwrap_or(16_384);
        if chunk == 0 || decay == 0 {
            return Err(SpecError::new(format!(
                "chunk={chunk} and decay={decay} of autostream; accepted: at least 1 each"
            )));
        }
        Ok(Options { streams, chunk, decay })
    }

    pub(super) fn streams(&self) -> u16 {
        self.streams
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "streams={},chunk={},decay={}", self.streams, self.chunk, self.decay)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Chunk {
    count: u32,
    written_at: u32,
}

/// The chunks' counts.
#[derive(Clone, Debug)]
pub struct AutoStream {
    options: Options,
    chunks: Vec<Chunk>,
    last: (u32, StreamId),
}

impl AutoStream {
    pub(super) fn new(options: Options, shape: &Shape) -> AutoStream {
        let chunks = shape.logical_pages.div_ceil(options.chunk) as usize;
        AutoStream {
            options,
            chunks: vec![Chunk::default(); chunks],
            last: (u32::MAX, StreamId(options.streams - 1)),
        }
    }

    /// The count of a chunk after this write.
    #[inline]
    fn count(&self, lpn: u32, segments: &SegmentTable) -> u32 {
        let chunk = self.chunks[(lpn / self.options.chunk) as usize];
        let periods = (segments.now() as u32).wrapping_sub(chunk.written_at) / self.options.decay;
        (chunk.count >> periods.min(31)) + 1
    }
}

impl PlacementPolicy for AutoStream {
    #[inline]
    fn stream(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        let coldest = self.options.streams - 1;
        if context.copied {
            return StreamId(coldest);
        }
        if context.lpn == self.last.0.wrapping_add(1) {
            return self.last.1;
        }
        let level = self.count(context.lpn, segments).ilog2() as u16;
        StreamId(coldest - level.min(coldest))
    }

    #[inline]
    fn written(&mut self, context: &WriteContext, to: StreamId, segments: &SegmentTable) {
        if context.copied {
            return;
        }
        self.last = (context.lpn, to);
        let count = self.count(context.lpn, segments);
        self.chunks[(context.lpn / self.options.chunk) as usize] =
            Chunk { count, written_at: segments.now() as u32 };
    }

    #[inline]
    fn copies_to(&self, _: SegmentId, _: &SegmentTable) -> Option<StreamId> {
        Some(StreamId(self.options.streams - 1))
    }

    #[inline]
    fn copied(&mut self, _: &[u32], _: SegmentId, _: StreamId, _: &SegmentTable) {}

    fn bytes(&self) -> usize {
        size_of_val(&self.chunks[..])
    }
}
