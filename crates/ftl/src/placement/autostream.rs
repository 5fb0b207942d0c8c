//! AutoStream: by the frequency and recency of the chunk that a page lies in.
//!
//! "AutoStream: automatic stream management for multi-streamed SSDs" (Yang et al., SYSTOR 2017), the SFR variant:
//! a chunk counts its writes; its count is halved for every decay period since it was last written; the stream is
//! the integer part of the count's binary logarithm; a write that continues the one before it goes to the same
//! stream. *Ambiguities.* The number of streams, the chunk and the period are not fixed by the paper: here 5 (as
//! in MiDAS's table 2), 512 pages (2 MiB) and 16,384 page writes, as in MiDAS's program. Copies go to the last
//! class, as there. Placement by chunk sees nothing of pages that are popular one by one. O(1).

use super::{ConfiguredPlacement, DriveShape, PlacementPolicy, STREAMS_AT_MOST, WriteContext};
use crate::{SegmentId, SegmentTable};
use fulgurite_base::option::{COUNT, COUNT_16};
use fulgurite_base::{Declared, Opt, StreamId, opt};

/// The options of AutoStream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutoStreamConfig {
    /// Streams; the last one is that of the coldest pages and of copies.
    pub streams: u16,
    /// Pages in a chunk.
    pub chunk: u32,
    /// Page writes after which a count is halved.
    pub decay: u32,
}

impl Default for AutoStreamConfig {
    fn default() -> AutoStreamConfig {
        AutoStreamConfig { streams: 5, chunk: 512, decay: 16_384 }
    }
}

impl Declared for AutoStreamConfig {
    const OPTIONS: &'static [Opt<AutoStreamConfig>] = &[
        opt!("streams", streams, COUNT_16, 2 => STREAMS_AT_MOST, "streams; the last one takes all copies"),
        opt!("chunk", chunk, COUNT, 1 => u32::MAX, "pages in a chunk"),
        opt!("decay", decay, COUNT, 1 => u32::MAX, "page writes after which a count is halved"),
    ];
}

#[derive(Clone, Copy, Debug, Default)]
struct Chunk {
    count: u32,
    written_at: u32,
}

/// The chunks' counts.
#[derive(Clone, Debug)]
pub struct AutoStream {
    config: AutoStreamConfig,
    chunks: Vec<Chunk>,
    last: (u32, StreamId),
}

impl ConfiguredPlacement for AutoStream {
    type Config = AutoStreamConfig;

    fn streams(config: &AutoStreamConfig) -> u16 {
        config.streams
    }

    fn start(config: &AutoStreamConfig, drive: &DriveShape) -> AutoStream {
        let chunks = drive.logical_pages.div_ceil(config.chunk) as usize;
        AutoStream {
            config: *config,
            chunks: vec![Chunk::default(); chunks],
            last: (u32::MAX, StreamId(config.streams - 1)),
        }
    }
}

impl AutoStream {
    /// The count of a chunk after this write.
    #[inline]
    fn count(&self, lpn: u32, segments: &SegmentTable) -> u32 {
        let chunk = self.chunks[(lpn / self.config.chunk) as usize];
        // Times are kept modulo 2^32, and a wrapping difference of two is right across the wrap.
        let periods = (segments.now() as u32).wrapping_sub(chunk.written_at) / self.config.decay;
        // A shift by the whole width would overflow.
        (chunk.count >> periods.min(31)) + 1
    }
}

impl PlacementPolicy for AutoStream {
    #[inline]
    fn stream(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        let coldest = self.config.streams - 1;
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
        // Copies are no writes of the host, so no chunk counts them.
        if context.copied {
            return;
        }
        self.last = (context.lpn, to);
        let count = self.count(context.lpn, segments);
        self.chunks[(context.lpn / self.config.chunk) as usize] =
            Chunk { count, written_at: segments.now() as u32 };
    }

    #[inline]
    fn copies_to(&self, _: SegmentId, _: &SegmentTable) -> Option<StreamId> {
        Some(StreamId(self.config.streams - 1))
    }

    #[inline]
    fn copied(&mut self, _: &[u32], _: SegmentId, _: StreamId, _: &SegmentTable) {}

    fn bytes(&self) -> usize {
        size_of_val(&self.chunks[..])
    }
}
