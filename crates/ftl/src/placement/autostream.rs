//! AutoStream: placement by the frequency and recency of writes to the chunk of a page.
//!
//! "AutoStream: automatic stream management for multi-streamed SSDs" (Yang et al., SYSTOR 2017), the SFR
//! variant. A chunk, a run of consecutive logical pages, counts its writes. Its count is halved for every
//! decay period since its last write. The stream is the integer part of the count's binary logarithm. A write
//! that continues the previous write goes to the same stream.
//!
//! *Ambiguities.* Yang et al. do not fix the number of streams, the chunk and the period. Here they are 5 (as
//! in table 2 of MiDAS, FAST 2024), 512 pages (2 MiB) and 16,384 page writes, as in the program of MiDAS.
//! Copies go to the last stream, as in that program. Placement by chunk cannot see single popular pages. A
//! decision takes O(1).

use super::policy::{DriveShape, PlacementPolicy, STREAMS_AT_MOST, WriteContext};
use crate::{SegmentId, SegmentTable};
use fulgurite_base::option::{COUNT, COUNT_16};
use fulgurite_base::{Declared, Opt, StreamId, opt};

/// The options of AutoStream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutoStreamConfig {
    /// The number of streams. The last stream is for the coldest pages and for copies.
    pub streams: u16,
    /// The number of pages in a chunk.
    pub chunk: u32,
    /// The half-life of a count, in page writes.
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

/// The write counts of the chunks, and the state of the policy.
#[derive(Clone, Debug)]
pub struct AutoStream {
    config: AutoStreamConfig,
    chunks: Vec<Chunk>,
    last: (u32, StreamId),
}

impl AutoStream {
    pub(super) fn streams(config: &AutoStreamConfig) -> u16 {
        config.streams
    }

    pub(super) fn start(config: &AutoStreamConfig, drive: &DriveShape) -> AutoStream {
        let chunks = drive.logical_pages.div_ceil(config.chunk) as usize;
        AutoStream {
            config: *config,
            chunks: vec![Chunk::default(); chunks],
            last: (u32::MAX, StreamId(config.streams - 1)),
        }
    }

    /// Returns the count of a chunk after this write.
    #[inline]
    fn count(&self, lpn: u32, segments: &SegmentTable) -> u32 {
        let chunk = self.chunks[(lpn / self.config.chunk) as usize];
        // Times are kept modulo 2^32, and a wrapping difference of two times is right across the wrap.
        let periods = (segments.now() as u32).wrapping_sub(chunk.written_at) / self.config.decay;
        // Limits the shift, since a shift by the whole width would overflow.
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
        // Copies are not host writes, so no chunk counts them.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::victim::VictimConfig;

    /// A policy with five streams, chunks of 8 pages and counts that are halved after 100 writes, and its
    /// table.
    struct Rig {
        policy: AutoStream,
        table: SegmentTable,
    }

    impl Rig {
        fn new() -> Rig {
            let victim = VictimConfig::GREEDY;
            let drive = DriveShape { logical_pages: 80, segments: 8, segment_pages: 16, reserve: 2, victim };
            let config = AutoStreamConfig { streams: 5, chunk: 8, decay: 100 };
            Rig { policy: AutoStream::start(&config, &drive), table: SegmentTable::new(8, 16, 5) }
        }

        /// Writes a host page and returns its stream.
        fn write(&mut self, lpn: u32) -> u16 {
            let context = WriteContext { lpn, copied: false, hint: StreamId(0), segment: None };
            let stream = self.policy.stream(&context, &self.table);
            self.policy.written(&context, stream, &self.table);
            // Copies are not counted.
            let copy = WriteContext { segment: Some(SegmentId(0)), copied: true, ..context };
            assert_eq!(self.policy.stream(&copy, &self.table), StreamId(4));
            self.policy.written(&copy, StreamId(4), &self.table);
            self.table.tick();
            stream.0
        }

        fn pass(&mut self, writes: u32) {
            (0..writes).for_each(|_| self.table.tick());
        }
    }

    /// The rule: a chunk begins in the coldest stream, and each doubling of its writes moves it to the next
    /// hotter stream, up to the hottest. Other chunks and copies have no effect.
    #[test]
    fn a_chunk_gets_hotter_whenever_its_writes_double() {
        let mut rig = Rig::new();
        for count in 1..=64u32 {
            assert_eq!(rig.write(8 + 2 * (count % 4)), 4 - count.ilog2().min(4) as u16, "write {count}");
        }
        assert_eq!((rig.write(7), rig.write(16)), (4, 4));
    }

    /// The rule: the count is halved for each period since the chunk's last write, and is zero after many
    /// periods.
    #[test]
    fn a_chunk_that_rests_gets_colder() {
        // A chunk with a count of fifteen rests, and one more write follows. Before that write its count is
        // 15, 7, 3 or 0, after 0, 1, 2 or many periods.
        for (rest, stream) in [(98, 0), (99, 1), (198, 1), (199, 2), (1_000, 4), (100_000, 4)] {
            let mut rig = Rig::new();
            for at in 0..15 {
                rig.write(2 * (at % 4));
            }
            rig.pass(rest);
            assert_eq!(rig.write(2), stream, "after {rest} writes");
        }
    }

    /// The rule: a write that continues the previous write goes to its stream.
    #[test]
    fn a_run_stays_in_one_stream() {
        let mut rig = Rig::new();
        for at in 0..3 {
            rig.write(2 * at);
        }
        assert_eq!([rig.write(7), rig.write(8), rig.write(9)], [2, 2, 2]);
        assert_eq!(rig.write(11), 3, "the third write of its chunk");
    }
}
