//! Support for layers that keep their map on the drive. Such a layer starts with an existing map. Its host
//! pages may consist of several flash pages, which get physical pages all together or not at all. The layer
//! is collected as one unit.
//!
//! Flash pages may be smaller here than the write unit of the drive below. Several flash pages then form a
//! *block*. [`Ftl::end_blocks`] makes the next page of each stream begin a new block, so that no block is
//! written twice.

use super::Ftl;
use super::sink::FlashSink;
use super::unit::UnitId;
use crate::placement::PlacementPolicy;
use crate::segments::SegmentId;
use fulgurite_base::{Ppn, StreamId};

/// The only unit of such a drive.
const WHOLE: UnitId = UnitId(0);

impl Ftl {
    /// Adopts an existing map: logical pages with their physical pages. The drive must be new, and no two
    /// logical pages may have the same physical page. Returns false if a logical or a physical page is out of
    /// range or occurs twice; the drive is then unusable.
    ///
    /// Segments with pages count as full. The exceptions are the segments with the most room behind their
    /// last page, one for each stream: writing continues there, so that an interrupted collection can end.
    /// They continue with a new block of `block_pages` pages; a segment is a multiple of `block_pages`.
    pub fn adopt(&mut self, places: impl Iterator<Item = (u32, Ppn)>, block_pages: u32) -> bool {
        assert!(!self.has_units(), "a layer that keeps its map is collected as a whole");
        let segment_pages = self.config.segment_pages;
        let mut ends = vec![0; self.config.segments as usize];
        for (lpn, ppn) in places {
            let is_there = lpn < self.config.logical_pages && ppn.0 < self.config.segments * segment_pages;
            if !is_there || self.map.is_valid(ppn) || self.map.lookup(lpn).is_some() {
                return false;
            }
            let segment = self.segment(ppn);
            let end = &mut ends[segment.0 as usize];
            *end = (ppn.0 % segment_pages + 1).max(*end);
            self.map.map(lpn, ppn);
            self.segments.revive(segment);
        }
        ends.iter_mut().for_each(|end| *end = end.next_multiple_of(block_pages));
        self.of_mut(WHOLE).wear.withdraw(|segment| ends[segment.0 as usize] > 0);
        let used = (0..self.config.segments).map(SegmentId).filter(|segment| ends[segment.0 as usize] > 0);
        let mut used: Vec<SegmentId> = used.collect();
        used.sort_by_key(|segment| ends[segment.0 as usize]);
        for (at, segment) in used.into_iter().enumerate() {
            let end = ends[segment.0 as usize];
            match self.open.get_mut(at) {
                Some(open) if end < segment_pages => {
                    *open = Some(segment);
                    self.segments.adopt(segment, StreamId(at as u16), end);
                }
                _ => {
                    self.segments.adopt(segment, StreamId(0), segment_pages);
                    self.seal(segment);
                }
            }
        }
        true
    }

    /// Returns the number of pages that copies can still be written to before a segment is released.
    pub fn room_for_copies(&self) -> u64 {
        let (pages, open) = (self.config.segment_pages, self.open.iter().flatten());
        let in_open: u64 = open.map(|open| u64::from(pages - self.segments.written(*open))).sum();
        in_open + u64::from(self.of(WHOLE).wear.free()) * u64::from(pages)
    }

    /// Returns the number of unwritten pages in the open segment of a stream.
    fn room_in(&self, stream: StreamId) -> u32 {
        let pages = self.config.segment_pages;
        self.append_point(WHOLE, stream).map_or(0, |ppn| pages - ppn.0 % pages)
    }

    /// Leaves the rest of a stream's open segment unwritten, so that the stream's next page opens another
    /// segment.
    fn end_segment(&mut self, stream: StreamId) {
        if let Some(open) = self.open[self.open_at(WHOLE, stream)] {
            self.skip(open, self.room_in(stream));
        }
    }

    /// Leaves pages of an open segment unwritten. A paced collection must make room for them as for host
    /// pages.
    fn skip(&mut self, open: SegmentId, pages: u32) {
        self.segments.skip(open, pages);
        if let Some(collection) = &mut self.of_mut(WHOLE).collection {
            collection.progress.host_pages += pages;
        }
    }

    /// Writes the `pages` host pages from `first` on to consecutive physical pages in one segment, in the
    /// stream of the first page, and calls `placed` with the physical pages. `pages` is at most a segment.
    /// Returns false and writes nothing if the schedule does not serve writes now, or if the pages need a
    /// segment that is reserved for collection.
    pub fn append_whole(
        &mut self,
        first: u32,
        pages: u32,
        hint: StreamId,
        sink: &mut impl FlashSink,
        mut placed: impl FnMut(Ppn),
    ) -> bool {
        debug_assert!(pages <= self.config.segment_pages);
        let stream = self.stream(first, hint);
        let fits = self.room_in(stream) >= pages;
        let may_open = self.of(WHOLE).wear.free() > self.config.collect.hard;
        if !(fits || may_open) || !self.state(WHOLE, stream).serves_writes() {
            return false;
        }
        if !fits {
            self.end_segment(stream);
        }
        for lpn in first..first + pages {
            if self.is_full(WHOLE, stream) {
                self.renew(WHOLE, stream);
            }
            let (old, context) = self.context(lpn, hint);
            placed(self.put(&context, old, WHOLE, stream, sink));
        }
        true
    }

    /// Moves valid pages that belong together, and calls `placed` with their new physical pages. They go to
    /// consecutive physical pages in one segment, in the stream that placement chooses for the first page. If
    /// too few segments are free to leave pages unused, the pages may be separated.
    pub fn copy_whole(&mut self, from: &[Ppn], sink: &mut impl FlashSink, mut placed: impl FnMut(Ppn)) {
        let Some(first) = from.first() else { return };
        let stream = self.placer.stream(&self.copy_context(*first), &self.segments);
        // The copies of a victim always fit into the last free segment, if no page is left unwritten from
        // then on.
        if self.room_in(stream) < from.len() as u32 && self.of(WHOLE).wear.free() > 1 {
            self.end_segment(stream);
        }
        from.iter().for_each(|page| placed(self.copy_to(*page, stream, sink)));
    }

    /// Makes the next page of every stream begin a new block of `block_pages` pages; a segment is a multiple
    /// of `block_pages`. The rest of the current blocks becomes invalid.
    pub fn end_blocks(&mut self, block_pages: u32) {
        for stream in 0..self.open.len() {
            if let Some(open) = self.open[stream] {
                let written = self.segments.written(open);
                self.skip(open, written.next_multiple_of(block_pages) - written);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::check;
    use crate::placement::PlacementConfig;
    use crate::schedule::Schedule;
    use crate::segments::SegmentState;
    use crate::{Collect, CountingSink, FtlConfig};
    use fulgurite_base::Prng;

    fn drive() -> Ftl {
        let collect = Collect { schedule: Schedule::SEMI_PREEMPTIVE, reserve: 4, hard: 2, ..Collect::PLAIN };
        Ftl::new(FtlConfig { collect, ..FtlConfig::plain(400, 40, 16) }).unwrap()
    }

    fn drive_of_two_streams() -> Ftl {
        let collect = Collect { placement: PlacementConfig::by_hints(2), ..drive().config.collect };
        Ftl::new(FtlConfig { collect, ..FtlConfig::plain(400, 40, 16) }).unwrap()
    }

    /// Returns whether physical pages are consecutive and in one segment.
    fn are_together(places: &[Ppn]) -> bool {
        let follow = places.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0);
        follow && places[0].0 / 16 == places[places.len() - 1].0 / 16
    }

    /// Writes runs of one to four pages, and collects a victim whenever a run is refused.
    fn use_drive(ftl: &mut Ftl, seed: u64) {
        let mut prng = Prng::new(seed, "kept");
        let mut sink = CountingSink::default();
        for _ in 0..4_000 {
            let (first, pages) = (4 * prng.below(100) as u32, 1 + prng.below(4) as u32);
            let mut places = Vec::new();
            while !ftl.append_whole(first, pages, StreamId(0), &mut sink, |ppn| places.push(ppn)) {
                assert!(places.is_empty(), "a refused run has no places");
                assert!(ftl.free_segments() <= 4, "refused only where segments are short");
                ftl.pick(WHOLE).expect("a segment is full");
                ftl.collect(WHOLE, u32::MAX, &mut sink);
            }
            assert_eq!(places.len(), pages as usize);
            let found: Vec<Ppn> = (first..first + pages).filter_map(|lpn| ftl.lookup(lpn)).collect();
            assert_eq!(found, places);
            assert!(are_together(&found), "{found:?}");
        }
        assert!(sink.erases > 100);
    }

    #[test]
    fn an_adopted_map_can_be_written_on() {
        let mut before = drive();
        use_drive(&mut before, 1);
        let kept = |ftl: &Ftl| -> Vec<(u32, Ppn)> {
            (0..400).filter_map(|lpn| Some((lpn, ftl.lookup(lpn)?))).collect()
        };
        let mut after = drive();
        assert!(after.adopt(kept(&before).into_iter(), 1));
        assert_eq!(check(&after), Ok(()));
        assert_eq!(kept(&after), kept(&before));
        use_drive(&mut after, 2);
        assert_eq!(check(&after), Ok(()));
    }

    #[test]
    fn an_inconsistent_map_is_refused() {
        let refused =
            |places: &[(u32, u32)]| !drive().adopt(places.iter().map(|(lpn, ppn)| (*lpn, Ppn(*ppn))), 1);
        assert!(!refused(&[(0, 0), (1, 639)]));
        assert!(refused(&[(0, 640)]), "a place beyond the drive");
        assert!(refused(&[(400, 0)]), "a page beyond the drive");
        assert!(refused(&[(3, 7), (4, 7)]), "two pages in one place");
        assert!(refused(&[(3, 7), (3, 9)]), "a page in two places");
    }

    #[test]
    fn an_adopted_open_segment_is_written_on() {
        let mut ftl = drive();
        // Every segment has a page, so none is free; only the pages behind the last pages are unwritten.
        assert!(ftl.adopt((0..40).map(|segment| (segment, Ppn(segment * 16 + segment % 16))), 1));
        assert_eq!((ftl.free_segments(), ftl.room_for_copies()), (0, 15));
        let mut sink = CountingSink::default();
        ftl.pick(WHOLE).expect("segments are full");
        ftl.collect(WHOLE, u32::MAX, &mut sink);
        assert_eq!((ftl.free_segments(), check(&ftl)), (1, Ok(())));
    }

    /// The rule: after `end_blocks` every stream continues with a new block, even if its segment is then
    /// full. Collection reclaims the skipped pages, and copies begin blocks of their own.
    #[test]
    fn ended_blocks_are_not_written_on() {
        let mut ftl = drive();
        let mut sink = CountingSink::default();
        let mut prng = Prng::new(5, "blocks");
        let mut last = None;
        for step in 0..3_000 {
            let (first, pages) = (4 * prng.below(100) as u32, 1 + prng.below(4) as u32);
            let mut places = Vec::new();
            while !ftl.append_whole(first, pages, StreamId(0), &mut sink, |ppn| places.push(ppn)) {
                ftl.pick(WHOLE).expect("a segment is full");
                ftl.collect(WHOLE, u32::MAX, &mut sink);
                ftl.end_blocks(4);
                last = None;
            }
            ftl.trim_run(first + pages, 4 - pages);
            if let Some(Ppn(last)) = last {
                assert_ne!(places[0].0 / 4, last / 4, "step {step}: a block is written a second time");
            }
            let ends = prng.below(3) == 0;
            last = ends.then(|| places[places.len() - 1]);
            if ends {
                ftl.end_blocks(4);
            }
        }
        assert_eq!(check(&ftl), Ok(()));
        assert!(sink.erases > 100);
    }

    #[test]
    fn an_adopted_open_segment_continues_with_a_new_block() {
        let mut ftl = drive();
        assert!(ftl.adopt([(0, Ppn(0)), (1, Ppn(5))].into_iter(), 4));
        assert_eq!(ftl.append_point(WHOLE, StreamId(0)), Some(Ppn(8)));
    }

    /// The rule: segments without a page stay free. The segments with the most room, one for each stream, are
    /// written on behind their last page. All others count as full segments of the first stream.
    #[test]
    fn the_segments_with_the_most_room_are_written_on() {
        let mut ftl = drive_of_two_streams();
        // These are the last written pages of segments 3, 5, 7 and 8. Segment 3 has no room behind its last
        // page.
        assert!(ftl.adopt([63, 88, 113, 139].map(Ppn).into_iter().zip(0..).map(|(ppn, lpn)| (lpn, ppn)), 1));
        let free: Vec<SegmentId> = ftl.free_in(WHOLE).collect();
        let unused = (0..40).filter(|segment| ![3, 5, 7, 8].contains(segment));
        assert_eq!(free, unused.map(SegmentId).collect::<Vec<_>>());
        let next = [0, 1].map(|stream| ftl.append_point(WHOLE, StreamId(stream)));
        assert_eq!(next, [Some(Ppn(114)), Some(Ppn(89))]);
        assert_eq!(ftl.room_for_copies(), 14 + 7 + 36 * 16);
        let table = ftl.segments();
        assert_eq!([0, 1].map(|stream| table.in_stream(StreamId(stream))), [3, 1]);
        for segment in [3, 8].map(SegmentId) {
            assert_eq!((table.state(segment), table.written(segment)), (SegmentState::Sealed, 16));
        }
        assert_eq!(check(&ftl), Ok(()));
    }

    /// The rule: a segment without room behind its last page is not written on, and may be collected at once.
    #[test]
    fn a_full_segment_is_not_written_on() {
        let mut ftl = drive_of_two_streams();
        assert!(ftl.adopt([(0, Ppn(31))].into_iter(), 1));
        assert_eq!(ftl.open, [None, None]);
        assert_eq!(ftl.pick(WHOLE), Some(SegmentId(1)));
    }

    /// The rule: a run that fits into the rest of a segment goes there, down to the last page of the segment,
    /// for the host and for copies.
    #[test]
    fn a_segment_is_filled_to_its_last_page() {
        let mut ftl = drive();
        let mut sink = CountingSink::default();
        let mut write = |ftl: &mut Ftl, first, pages| {
            assert!(ftl.append_whole(first, pages, StreamId(0), &mut sink, |_| ()));
            ftl.lookup(first).unwrap()
        };
        assert_eq!([write(&mut ftl, 0, 12), write(&mut ftl, 12, 4)], [Ppn(0), Ppn(12)]);
        assert_eq!(write(&mut ftl, 16, 12), Ppn(16));
        assert_eq!(ftl.pick(WHOLE), Some(SegmentId(0)));
        ftl.copy_whole(&[0, 1, 2, 3].map(Ppn), &mut sink, |_| ());
        assert_eq!(ftl.lookup(0), Some(Ppn(28)));
    }

    /// The rule: copies that belong together begin another segment rather than be separated, unless only one
    /// segment is free.
    #[test]
    fn the_last_free_segment_is_filled_completely() {
        for (used, places) in [(38, [608, 609, 610]), (39, [14, 15, 624])] {
            let mut ftl = drive();
            // The last three pages of each segment are written; the first segment has two unwritten pages at
            // its end.
            let ends = (0..used).map(|segment| if segment == 0 { 14 } else { 16 * (segment + 1) });
            let known = ends.flat_map(|end| end - 3..end).map(Ppn);
            assert!(ftl.adopt((0..).zip(known), 1));
            let victim = ftl.pick(WHOLE).expect("segments are full");
            let (group, mut copies) = ([13, 14, 15].map(|page| Ppn(16 * victim.0 + page)), Vec::new());
            ftl.copy_whole(&group, &mut CountingSink::default(), |ppn| copies.push(ppn.0));
            assert_eq!(copies, places, "{} free", 40 - used);
        }
    }

    /// The rule: skipped pages use up room like host pages, so a paced collection counts them.
    #[test]
    fn skipped_pages_count_for_the_pace_of_collection() {
        let mut ftl = drive();
        let mut sink = CountingSink::default();
        assert!(ftl.append_whole(0, 16, StreamId(0), &mut sink, |_| ()));
        assert!(ftl.append_whole(16, 1, StreamId(0), &mut sink, |_| ()));
        ftl.pick(WHOLE).expect("a segment is full");
        assert!(ftl.append_whole(17, 1, StreamId(0), &mut sink, |_| ()));
        ftl.end_blocks(8);
        assert_eq!(ftl.of(WHOLE).collection.unwrap().progress.host_pages, 1 + 6);
    }

    /// The rule: pages that belong together stay together when they move, even if placement would separate
    /// them, while more than one segment is free. A victim can always be emptied.
    #[test]
    fn pages_that_belong_together_move_together() {
        let collect = Collect {
            schedule: Schedule::SEMI_PREEMPTIVE,
            placement: PlacementConfig::SepBit(Default::default()),
            reserve: 4,
            hard: 2,
            ..Collect::PLAIN
        };
        let mut ftl = Ftl::new(FtlConfig { collect, ..FtlConfig::plain(600, 48, 16) }).unwrap();
        let (mut prng, mut sink) = (Prng::new(9, "together"), CountingSink::default());
        let (mut together, mut apart) = (0, 0);
        for _ in 0..6_000 {
            let (first, pages) = (4 * prng.below(150) as u32, 2 + prng.below(3) as u32);
            while !ftl.append_whole(first, pages, StreamId(0), &mut sink, |_| ()) {
                let victim = ftl.pick(WHOLE).expect("a segment is full");
                let valid = |ftl: &Ftl| {
                    let places = (victim.0 * 16..victim.0 * 16 + 16).map(Ppn);
                    places.filter(|ppn| ftl.mapping().is_valid(*ppn)).collect::<Vec<Ppn>>()
                };
                let all = valid(&ftl);
                for group in all
                    .chunk_by(|a, b| ftl_page(&ftl, *a) == ftl_page(&ftl, *b))
                    .map(<[Ppn]>::to_vec)
                    .collect::<Vec<_>>()
                {
                    let mut places = Vec::new();
                    let may_leave_room = ftl.free_segments() > 1;
                    ftl.copy_whole(&group, &mut sink, |ppn| places.push(ppn));
                    assert_eq!(places.len(), group.len());
                    match are_together(&places) {
                        true => together += 1,
                        false => apart += 1,
                    }
                    assert!(are_together(&places) || !may_leave_room, "{group:?} has moved to {places:?}");
                }
                assert!(valid(&ftl).is_empty());
                ftl.release(WHOLE, &mut sink);
            }
            ftl.trim_run(first + pages, 4 - pages);
        }
        assert_eq!(check(&ftl), Ok(()));
        assert!(together > 1_000 && together > 20 * apart, "{together} and {apart}");
    }

    fn ftl_page(ftl: &Ftl, ppn: Ppn) -> u32 {
        ftl.mapping().owner(ppn) / 4
    }
}
