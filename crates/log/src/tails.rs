//! Keeping segments of the layer and of the drive below in step.
//!
//! A drive that is told of streams puts the pages of one stream behind each other. So long as the layer's segments
//! are as large as the drive's, each lies in one of the drive's and both die together: the drive copies nothing.
//! A segment that the layer seals before it is full (when groups are dissolved) would put all later ones of its
//! stream out of step, so the rest of it is written all the same.

use fulgurite_base::Ppn;
use fulgurite_base::StreamId;
use fulgurite_ftl::Ftl;
use fulgurite_ftl::{SegmentId, SegmentState};

/// The last segment of each stream below, and how far it is written.
#[derive(Clone, Debug)]
pub(crate) struct Tails(Vec<Option<(SegmentId, u32)>>);

impl Tails {
    /// The tails of a translation layer above a drive of `streams` streams.
    pub fn new(ftl: &Ftl, streams: u16) -> Tails {
        let mut tails = Tails(vec![None; usize::from(streams.max(1))]);
        let table = ftl.segments();
        for segment in (0..table.len()).map(SegmentId) {
            // Only open segments can still be cut short.
            if table.state(segment) == SegmentState::Open && table.written(segment) > 0 {
                let first = Ppn(segment.0 * table.segment_pages());
                tails.wrote(ftl, first, table.written(segment));
            }
        }
        tails
    }

    /// The stream below of pages at `ppn`: the same as the layer's, or the last one where the drive has fewer.
    fn stream(&self, ftl: &Ftl, ppn: Ppn) -> StreamId {
        let stream = ftl.segments().stream(ftl.segment(ppn));
        StreamId(stream.0.min(self.0.len() as u16 - 1))
    }

    /// Pages from `first` are on their way; returns their stream.
    pub fn wrote(&mut self, ftl: &Ftl, first: Ppn, pages: u32) -> StreamId {
        let stream = self.stream(ftl, first);
        let segment = ftl.segment(first);
        let end = first.0 + pages - segment.0 * ftl.config().segment_pages;
        self.0[usize::from(stream.0)] = Some((segment, end));
        stream
    }

    /// What is left of a segment that will not be written to the end, if there is one: the stream, the first
    /// page and how many. With one stream below there is no step to keep.
    pub fn next_cut_short(&mut self, ftl: &Ftl) -> Option<(StreamId, Ppn, u32)> {
        // Segments of all streams are mixed below then, and padding would only add writes.
        if self.0.len() == 1 {
            return None;
        }
        let segment_pages = ftl.config().segment_pages;
        let is_cut_short = |tail: &Option<(SegmentId, u32)>| {
            tail.is_some_and(|(segment, written)| {
                written < segment_pages && ftl.segments().state(segment) != SegmentState::Open
            })
        };
        let stream = self.0.iter().position(is_cut_short)?;
        let (segment, written) = self.0[stream].take()?;
        let first = Ppn(segment.0 * segment_pages + written);
        Some((StreamId(stream as u16), first, segment_pages - written))
    }
}
