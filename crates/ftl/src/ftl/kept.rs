//! For layers that keep their map on the drive: a map that was there before, and host pages of several flash pages,
//! which get their places together or not at all.

use super::{FlashSink, Ftl};
use crate::segments::SegmentId;
use fulgurite_base::{Ppn, StreamId};

impl Ftl {
    /// Takes over a map that was kept: logical pages with their places. The drive must be new, and no two logical
    /// pages may have the same place. Returns false, and leaves the drive unusable, where a place or a page is not there, or
    /// has two owners.
    ///
    /// Segments that hold pages count as full, except the ones with the most room behind their last page, one for each stream:
    /// they are written on from there, so that what the last collection had begun can be ended.
    pub fn adopt(&mut self, places: impl Iterator<Item = (u32, Ppn)>) -> bool {
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
        self.wear.withdraw(|segment| ends[segment.0 as usize] > 0);
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

    /// Pages that copies may still go to before a segment is released.
    pub fn room_for_copies(&self) -> u64 {
        let (pages, open) = (self.config.segment_pages, self.open.iter().flatten());
        let in_open: u64 = open.map(|open| u64::from(pages - self.segments.written(*open))).sum();
        in_open + u64::from(self.wear.free()) * u64::from(pages)
    }

    /// Writes the `pages` pages from `first` on for the host, behind one another in the stream of the first one, and gives
    /// `placed` their places. At most as many as a segment has. All of them or none: returns false where the schedule does
    /// not serve writes now, or where they need a segment that only collection may use.
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
        let room = self
            .append_point(stream)
            .map_or(0, |ppn| self.config.segment_pages - ppn.0 % self.config.segment_pages);
        let fits = room >= pages || self.wear.free() > self.config.collect.hard;
        if !fits || !self.state(stream).serves_writes() {
            return false;
        }
        for lpn in first..first + pages {
            if self.is_full(stream) {
                self.renew(stream);
            }
            let (old, context) = self.context(lpn, hint);
            placed(self.put(&context, old, stream, sink));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::check;
    use crate::schedule::Schedule;
    use crate::{Collect, CountingSink, FtlConfig};
    use fulgurite_base::Prng;

    fn drive() -> Ftl {
        let collect = Collect { schedule: Schedule::SEMI_PREEMPTIVE, reserve: 4, hard: 2, ..Collect::PLAIN };
        Ftl::new(FtlConfig { collect, ..FtlConfig::plain(400, 40, 16) }).unwrap()
    }

    /// Writes runs of one to four pages, collecting a victim whenever a run is refused.
    fn use_drive(ftl: &mut Ftl, seed: u64) {
        let mut prng = Prng::new(seed, "kept");
        let mut sink = CountingSink::default();
        for _ in 0..4_000 {
            let (first, pages) = (4 * prng.below(100) as u32, 1 + prng.below(4) as u32);
            let mut places = Vec::new();
            while !ftl.append_whole(first, pages, StreamId(0), &mut sink, |ppn| places.push(ppn)) {
                assert!(places.is_empty(), "a refused run has no places");
                assert!(ftl.free_segments() <= 4, "refused only where segments are short");
                ftl.pick().expect("a segment is full");
                ftl.collect(u32::MAX, &mut sink);
            }
            assert_eq!(places.len(), pages as usize);
            let found: Vec<Ppn> = (first..first + pages).filter_map(|lpn| ftl.lookup(lpn)).collect();
            assert_eq!(found, places);
        }
        assert!(sink.erases > 100);
    }

    #[test]
    fn a_map_that_was_kept_is_taken_over_and_goes_on() {
        let mut before = drive();
        use_drive(&mut before, 1);
        let kept = |ftl: &Ftl| -> Vec<(u32, Ppn)> {
            (0..400).filter_map(|lpn| Some((lpn, ftl.lookup(lpn)?))).collect()
        };
        let mut after = drive();
        assert!(after.adopt(kept(&before).into_iter()));
        assert_eq!(check(&after), Ok(()));
        assert_eq!(kept(&after), kept(&before));
        use_drive(&mut after, 2);
        assert_eq!(check(&after), Ok(()));
    }

    #[test]
    fn a_map_that_makes_no_sense_is_refused() {
        let refused =
            |places: &[(u32, u32)]| !drive().adopt(places.iter().map(|(lpn, ppn)| (*lpn, Ppn(*ppn))));
        assert!(!refused(&[(0, 0), (1, 639)]));
        assert!(refused(&[(0, 640)]), "a place beyond the drive");
        assert!(refused(&[(400, 0)]), "a page beyond the drive");
        assert!(refused(&[(3, 7), (4, 7)]), "two pages in one place");
        assert!(refused(&[(3, 7), (3, 9)]), "a page in two places");
    }

    #[test]
    fn a_segment_that_was_open_is_written_on() {
        let mut ftl = drive();
        // Every segment has a page: none is free, and only the room behind the pages is left.
        assert!(ftl.adopt((0..40).map(|segment| (segment, Ppn(segment * 16 + segment % 16)))));
        assert_eq!((ftl.free_segments(), ftl.room_for_copies()), (0, 15));
        let mut sink = CountingSink::default();
        ftl.pick().expect("segments are full");
        ftl.collect(u32::MAX, &mut sink);
        assert_eq!((ftl.free_segments(), check(&ftl)), (1, Ok(())));
    }
}
