//! The steps of a garbage collection: pick a victim, move its valid pages, erase it.

use super::Ftl;
use super::sink::FlashSink;
use super::unit::{Collection, UnitId};
use crate::mapping::{AHEAD, Moving};
use crate::placement::{PlacementPolicy, WriteContext};
use crate::schedule::Progress;
use crate::segments::SegmentId;
use fulgurite_base::{Ppn, StreamId};

impl Ftl {
    /// Moves up to `moves` pages of the current victim of `unit`, and then the rest of the last page's row.
    /// Erases the victim when it has no valid page left.
    pub(super) fn collect(&mut self, unit: UnitId, moves: u32, sink: &mut impl FlashSink) {
        let Some(victim) = self.victim(unit) else { return };
        let end = (victim.0 + 1) * self.config.segment_pages;
        let mut next = self.of(unit).collection.map_or(0, |collection| collection.next);
        let mut left = moves;
        while let Some(from) = self.map.next_valid(next, end) {
            // `next` is one past the last moved page, so `next - 1` is in the row that was begun.
            let in_the_same_row =
                from.0 / self.config.row_pages == next.saturating_sub(1) / self.config.row_pages;
            if left == 0 && !in_the_same_row {
                self.of_mut(unit).collection.as_mut().expect("under way").next = next;
                return;
            }
            left = left.saturating_sub(1);
            next = from.0 + 1;
            self.copy(from, sink);
        }
        self.release(unit, sink);
    }

    /// Moves all remaining pages of the victim at once and erases the victim, as [`Ftl::collect`] does with
    /// unlimited moves. No other operation can come between two moves.
    pub(super) fn collect_all(&mut self, unit: UnitId, sink: &mut impl FlashSink) {
        let Some(Collection { victim, next, .. }) = self.of(unit).collection else { return };
        let end = (victim.0 + 1) * self.config.segment_pages;
        // Takes the list out of `self`, because it is read while the rest of `self` changes.
        let mut moving = std::mem::take(&mut self.moving);
        self.map.valid_in(next, end, &mut moving);
        // Asks placement for each page only if the copies may go to several streams.
        match self.placer.copies_to(victim, &self.segments) {
            Some(stream) => {
                self.placer.copied(&moving.lpns, victim, stream, &self.segments);
                self.move_run(&moving, unit, stream, sink);
            }
            None => {
                // Placement learns the streams that it chose, although a page may go to another one.
                self.placer.copied_each(&moving.lpns, victim, &self.segments, &mut moving.streams);
                self.move_each(&moving, unit, sink);
            }
        }
        // Clears the valid bits of all moved pages at once, since nothing has read them during the moves.
        self.map.fill_valid(next, end, false);
        self.segments.invalidate_all(victim);
        if self.has_units() {
            // `next_page` and `move_run` have counted the pages again in their new segments, so they are
            // subtracted once.
            self.of_mut(unit).valid -= moving.lpns.len() as u32;
        }
        self.counters.copied_pages += moving.lpns.len() as u64;
        moving.from.clear();
        moving.lpns.clear();
        moving.streams.clear();
        self.moving = moving;
        self.release(unit, sink);
    }

    /// Moves pages to one stream of `unit`.
    fn move_run(&mut self, moving: &Moving, unit: UnitId, stream: StreamId, sink: &mut impl FlashSink) {
        let mut done = 0;
        while done < moving.lpns.len() {
            // A run ends at the end of its segment, so each round may open the next segment.
            let to = self.open_for_copies(unit, stream);
            let segment = self.open[self.open_at(unit, to)].expect("a segment was opened");
            let room = self.config.segment_pages - self.segments.written(segment);
            let run = (moving.lpns.len() - done).min(room as usize);
            let first = segment.0 * self.config.segment_pages + self.segments.append(segment, run as u32);
            if self.has_units() {
                self.of_mut(unit).valid += run as u32;
            }
            self.map.map_run(&moving.lpns[done..done + run], first);
            for (at, from) in moving.from[done..done + run].iter().enumerate() {
                sink.read(Ppn(*from));
                sink.program(Ppn(first + at as u32), Some(Ppn(*from)));
            }
            done += run;
        }
    }

    /// Moves pages to the streams that placement chose for each of them.
    fn move_each(&mut self, moving: &Moving, unit: UnitId, sink: &mut impl FlashSink) {
        for (at, ((from, lpn), stream)) in
            moving.from.iter().zip(&moving.lpns).zip(&moving.streams).enumerate()
        {
            if let Some(ahead) = moving.lpns.get(at + AHEAD) {
                self.map.prefetch(*ahead);
            }
            let to = self.open_for_copies(unit, *stream);
            let ppn = self.next_page(unit, to);
            self.map.map(*lpn, ppn);
            sink.read(Ppn(*from));
            sink.program(ppn, Some(Ppn(*from)));
        }
    }

    /// Returns the victim that is being collected in `unit`; `None` if no collection is in progress.
    #[inline]
    pub fn victim(&self, unit: UnitId) -> Option<SegmentId> {
        self.of(unit).collection.map(|collection| collection.victim)
    }

    /// Picks a victim in `unit` and begins its collection; `None` if no segment is full.
    pub fn pick(&mut self, unit: UnitId) -> Option<SegmentId> {
        if let Some(groups) = self.placer.take_regrouping() {
            self.regroup(&groups);
        }
        // Asks wear leveling first, because a victim policy would hardly ever pick a segment of cold data.
        // Wear leveling names such a segment only rarely.
        let victim = self
            .left_behind(unit)
            .or_else(|| self.units[unit.0 as usize].candidates.pick(&self.placer, &self.segments))?;
        self.placer.picked(victim, &self.segments);
        self.segments.begin_collection(victim);
        let valid_at_pick = self.segments.valid(victim);
        let (pages, free) = (self.config.segment_pages, self.of(unit).wear.free());
        let in_open: u32 =
            self.open_in(unit).iter().flatten().map(|open| pages - self.segments.written(*open)).sum();
        let room_at_pick =
            free.saturating_sub(self.config.collect.hard).saturating_mul(pages).saturating_add(in_open);
        let progress = Progress { valid_at_pick, room_at_pick, moved: 0, host_pages: 0 };
        self.of_mut(unit).collection =
            Some(Collection { victim, next: victim.0 * self.config.segment_pages, progress });
        self.counters.picks += 1;
        self.counters.unwritten_at_picks += u64::from(free) * u64::from(pages) + u64::from(in_open);
        Some(victim)
    }

    /// Picks the next victim of `unit` while the previous victim, which has no valid page left, is being
    /// erased. Returns `None` if the schedule would not collect with the erased segment free.
    /// [`Ftl::release_erased`] ends the previous collection.
    pub fn pick_ahead(&mut self, unit: UnitId, stream: StreamId) -> Option<SegmentId> {
        let last = self.of(unit).collection?;
        if self.of(unit).erasing.is_some() || self.segments.valid(last.victim) > 0 {
            return None;
        }
        let free = self.of(unit).wear.free() + 1;
        if !self.decide(unit, stream, free, None).collects() {
            return None;
        }
        let picked = self.pick(unit)?;
        self.of_mut(unit).erasing = Some(last.victim);
        Some(picked)
    }

    /// Returns the segment that wear leveling wants collected. On large drives only some picks scan for it,
    /// so that the average pick scans at most 256 segments.
    fn left_behind(&mut self, unit: UnitId) -> Option<SegmentId> {
        if !self.counters.picks.is_multiple_of(u64::from(self.config.segments).div_ceil(256)) {
            return None;
        }
        let unit = &mut self.units[unit.0 as usize];
        let segment = unit.wear.left_behind(&self.segments, self.config.wear_gap)?;
        // Removes the segment from the candidates, which would otherwise offer it again.
        unit.candidates.remove(segment, &self.segments);
        self.counters.leveled_segments += 1;
        Some(segment)
    }

    /// Returns the stream for the copy of the page `from` of the victim.
    #[inline]
    pub fn copy_stream(&self, from: Ppn) -> StreamId {
        let context = self.copy_context(from);
        let unit = self.unit_of(self.segment(from));
        self.with_room(unit, self.placer.stream(&context, &self.segments))
    }

    /// Returns `stream`, or the stream with the most room if `stream` needs a new segment and none is free.
    /// The copies of a victim always fit into the last free segment.
    #[inline]
    fn with_room(&self, unit: UnitId, stream: StreamId) -> StreamId {
        let has_free = self.of(unit).wear.free() > 0;
        if has_free || !self.is_full(unit, stream) { stream } else { self.roomiest(unit) }
    }

    /// Returns the stream of `unit` that receives copies meant for `stream`. It has room for at least one
    /// page.
    #[inline]
    fn open_for_copies(&mut self, unit: UnitId, stream: StreamId) -> StreamId {
        let to = self.with_room(unit, stream);
        if self.is_full(unit, to) {
            self.renew(unit, to);
        }
        to
    }

    #[cold]
    fn roomiest(&self, unit: UnitId) -> StreamId {
        let open =
            self.open_in(unit).iter().enumerate().filter_map(|(stream, open)| Some((stream, (*open)?)));
        let (stream, _) =
            open.min_by_key(|(_, open)| self.segments.written(*open)).expect("a segment is open");
        StreamId(stream as u16)
    }

    #[inline]
    pub(super) fn copy_context(&self, from: Ppn) -> WriteContext {
        WriteContext::copy(self.map.owner(from), self.segment(from))
    }

    /// Moves the valid page `from` of a victim to the stream that placement chooses for it, in the same unit.
    /// Returns the new physical page.
    #[inline]
    pub fn copy(&mut self, from: Ppn, sink: &mut impl FlashSink) -> Ppn {
        let stream = self.placer.stream(&self.copy_context(from), &self.segments);
        self.copy_to(from, stream, sink)
    }

    /// Moves the valid page `from` of a victim to a stream that placement has chosen. Returns the new
    /// physical page.
    #[inline]
    pub(super) fn copy_to(&mut self, from: Ppn, stream: StreamId, sink: &mut impl FlashSink) -> Ppn {
        let context = self.copy_context(from);
        let unit = self.unit_of(self.segment(from));
        let to = self.open_for_copies(unit, stream);
        // Tells placement the stream that it chose, as in `collect_all`, even if the page goes to another
        // stream.
        self.placer.written(&context, stream, &self.segments);
        let to = self.next_page(unit, to);
        self.map.relocate(from, to);
        self.invalidated(from);
        self.counters.copied_pages += 1;
        if let Some(collection) = &mut self.of_mut(unit).collection {
            collection.progress.moved += 1;
        }
        sink.read(from);
        sink.program(to, Some(from));
        to
    }

    /// Ends the collection of the victim of `unit`, which has no valid page left.
    pub fn release(&mut self, unit: UnitId, sink: &mut impl FlashSink) {
        if let Some(Collection { victim, .. }) = self.of_mut(unit).collection.take() {
            self.set_free(unit, victim, sink);
        }
    }

    /// Ends the collection before the one that [`Ftl::pick_ahead`] began, when its victim is erased.
    pub fn release_erased(&mut self, unit: UnitId, sink: &mut impl FlashSink) {
        if let Some(victim) = self.of_mut(unit).erasing.take() {
            self.set_free(unit, victim, sink);
        }
    }

    fn set_free(&mut self, unit: UnitId, victim: SegmentId, sink: &mut impl FlashSink) {
        debug_assert_eq!(self.segments.valid(victim), 0);
        let unit = &mut self.units[unit.0 as usize];
        unit.urgent = false;
        unit.wear.erased(victim, unit.valid, &mut self.segments, &self.config);
        self.is_worn_out |= unit.wear.is_worn_out;
        self.counters.erased_segments += 1;
        sink.erase(victim);
    }
}

#[cfg(test)]
mod tests {
    use crate::ftl::FtlCounters;
    use crate::{Collect, CountingSink, Ftl, FtlConfig, WearLeveling, check};
    use fulgurite_base::{Prng, StreamId};

    /// Overwrites a part of a drive repeatedly, while the first pages stay. `look` gets the counters before
    /// each write.
    fn unevenly_worn(
        segments: u32,
        segment_pages: u32,
        gap: u32,
        mut look: impl FnMut(&Ftl, FtlCounters),
    ) -> Ftl {
        let (cold, hot) = (2 * segment_pages, segment_pages);
        let collect = Collect { reserve: 2, ..Collect::PLAIN };
        let plain = FtlConfig::plain(cold + hot, segments, segment_pages);
        let config = FtlConfig { collect, wear_leveling: WearLeveling::Static, wear_gap: gap, ..plain };
        let mut ftl = Ftl::new(config).unwrap();
        let (mut sink, mut prng) = (CountingSink::default(), Prng::new(9, "wear"));
        for write in 0..cold + 40 * segments * segment_pages {
            let lpn = if write < cold + hot { write } else { cold + prng.below(u64::from(hot)) as u32 };
            let before = ftl.counters;
            ftl.write(lpn, 1, StreamId(0), &mut sink);
            look(&ftl, before);
        }
        check::check(&ftl).unwrap();
        ftl
    }

    /// The rule: a full segment whose erases are behind those of the most erased segment by more than the gap
    /// is collected before the victim policy is asked, and counted. So no segment stays behind for long.
    #[test]
    fn a_segment_that_is_behind_is_collected_first() {
        const GAP: u32 = 3;
        let mut first = None;
        let ftl = unevenly_worn(12, 16, GAP, |ftl, before| {
            let (least, _, most) = ftl.segments().wear();
            if first.is_none() && ftl.counters.leveled_segments > before.leveled_segments {
                first = Some(most);
            }
            assert!(most - least <= GAP + 3, "{least} to {most}");
        });
        assert_eq!(first, Some(GAP + 1), "the most erases when one was first collected");
        assert!(ftl.counters.leveled_segments > 10, "{}", ftl.counters.leveled_segments);
    }

    /// The rule: on a drive with many segments only some picks scan for a segment whose erases are behind:
    /// one in three for 600 segments.
    #[test]
    fn large_drives_scan_in_some_picks_only() {
        let mut found = 0;
        unevenly_worn(600, 4, 2, |ftl, before| {
            let after = ftl.counters;
            if after.picks == before.picks + 1 && after.leveled_segments > before.leveled_segments {
                assert_eq!(before.picks % 3, 0);
                found += 1;
            }
        });
        assert!(found > 3, "{found}");
    }
}
