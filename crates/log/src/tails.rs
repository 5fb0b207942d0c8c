//! Keeps the segments of the layer and those of the drive below in step.
//!
//! A drive with streams writes the pages of one stream one after the other. If the layer's segments have the
//! size of the drive's, each layer segment fills one drive segment, and both become invalid together, so the
//! drive copies no page. When placement merges groups (the segments of several streams become one group), the
//! layer seals segments before they are full. The layer still writes the rest of such a segment as padding;
//! otherwise all later segments of its stream would be out of step.

use fulgurite_base::Ppn;
use fulgurite_base::StreamId;
use fulgurite_ftl::Ftl;
use fulgurite_ftl::{SegmentId, SegmentState};

/// The last segment of each stream on the drive below, and the number of its written pages; `None` before a
/// stream's first write.
#[derive(Clone, Debug)]
pub(crate) struct Tails(Vec<Option<(SegmentId, u32)>>);

impl Tails {
    /// Returns the tails of a translation layer above a drive of `streams` streams.
    pub(crate) fn new(ftl: &Ftl, streams: u16) -> Tails {
        let mut tails = Tails(vec![None; usize::from(streams.max(1))]);
        let table = ftl.segments();
        for segment in (0..table.len()).map(SegmentId) {
            // Skips sealed segments: only open segments can still be cut short, that is, sealed before they
            // are full.
            if table.state(segment) == SegmentState::Open && table.written(segment) > 0 {
                let first = Ppn(segment.0 * table.segment_pages());
                tails.wrote(ftl, first, table.written(segment));
            }
        }
        tails
    }

    /// Returns the stream on the drive below for pages at `ppn`: the same number as the layer's stream, or
    /// the last one if the drive has fewer streams.
    fn stream(&self, ftl: &Ftl, ppn: Ppn) -> StreamId {
        let stream = ftl.segments().stream(ftl.segment(ppn));
        StreamId(stream.0.min(self.0.len() as u16 - 1))
    }

    /// Records that pages from `first` are being written. Returns their stream.
    pub(crate) fn wrote(&mut self, ftl: &Ftl, first: Ppn, pages: u32) -> StreamId {
        let stream = self.stream(ftl, first);
        let segment = ftl.segment(first);
        let end = first.0 + pages - segment.0 * ftl.config().segment_pages;
        self.0[usize::from(stream.0)] = Some((segment, end));
        stream
    }

    /// Returns the rest of a segment that was sealed before it was full, if there is one: the stream, the
    /// first page and the number of pages. Returns `None` for a drive of one stream, whose segments cannot be
    /// kept in step.
    pub(crate) fn next_cut_short(&mut self, ftl: &Ftl) -> Option<(StreamId, Ppn, u32)> {
        // One stream mixes the segments of all layer streams, so padding would only add writes.
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

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_base::Prng;
    use fulgurite_ftl::placement::PlacementConfig;
    use fulgurite_ftl::{Collect, CountingSink, FtlConfig};

    /// The rule: the tails of a translation layer that was used before know the open segment of each stream
    /// and its number of written pages.
    #[test]
    fn a_used_layer_continues_at_the_end_of_its_open_segments() {
        let mut ftl = Ftl::new(FtlConfig::plain(64, 16, 8)).unwrap();
        // Segments are filled, collected and opened again, each time in another order.
        for write in 0..1_000u32 {
            let lpn = write * 37 % 61;
            ftl.write(lpn, 1, StreamId(0), &mut CountingSink::default());
            let open = ftl.segment(ftl.lookup(lpn).unwrap());
            let written = ftl.segments().written(open);
            // Skips full segments, because a full segment is sealed only at the next write.
            if written < 8 {
                assert_eq!(Tails::new(&ftl, 3).0, [Some((open, written)), None, None]);
            }
        }
        let mut tails = Tails(vec![None; 3]);
        let segment = ftl.segment(ftl.lookup(0).unwrap());
        assert_eq!(tails.wrote(&ftl, Ppn(segment.0 * 8 + 3), 2), StreamId(0));
        assert_eq!(tails.0, [Some((segment, 5)), None, None]);
    }

    /// The rule: the rest of a segment that is no longer open is written once. If the drive has one stream,
    /// the rest is not written.
    #[test]
    fn the_rest_of_a_segment_cut_short_is_reported_once() {
        let mut ftl = Ftl::new(FtlConfig::plain(64, 16, 8)).unwrap();
        (0..19).for_each(|lpn| ftl.write(lpn, 1, StreamId(0), &mut CountingSink::default()));
        let [full, cut, open] = [0, 8, 18].map(|lpn| ftl.segment(ftl.lookup(lpn).unwrap()));
        let mut tails = Tails(vec![Some((full, 8)), Some((open, 3)), Some((cut, 3))]);
        assert_eq!(tails.next_cut_short(&ftl), Some((StreamId(2), Ppn(cut.0 * 8 + 3), 5)));
        assert_eq!(tails.next_cut_short(&ftl), None);
        assert_eq!(Tails(vec![Some((cut, 3))]).next_cut_short(&ftl), None);
    }

    /// The rule: a page has the same stream on the drive below as in the layer, or the last one if the drive
    /// has fewer.
    #[test]
    fn a_drive_with_fewer_streams_has_the_rest_in_its_last() {
        let placement = "sep-gc".parse::<PlacementConfig>().unwrap();
        let collect = Collect { placement, ..Collect::PLAIN };
        let mut ftl = Ftl::new(FtlConfig { collect, ..FtlConfig::plain(64, 16, 8) }).unwrap();
        let mut prng = Prng::new(1, "writes");
        (0..61).chain((0..1_000).map(|_| prng.below(61) as u32)).for_each(|lpn| {
            ftl.write(lpn, 1, StreamId(0), &mut CountingSink::default());
        });
        let mut seen = [0; 2];
        for ppn in (0..61).map(|lpn| ftl.lookup(lpn).unwrap()) {
            let stream = ftl.segments().stream(ftl.segment(ppn));
            seen[usize::from(stream.0)] += 1;
            for (streams, below) in [(1, StreamId(0)), (2, stream), (3, stream)] {
                assert_eq!(Tails::new(&ftl, streams).wrote(&ftl, ppn, 1), below, "{streams} below");
            }
        }
        assert!(seen.iter().all(|pages| *pages > 0), "{seen:?}");
    }
}
