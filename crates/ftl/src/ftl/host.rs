//! The host's operations for callers without virtual time, and their steps for drives: writes, trims and
//! shares.

use super::Ftl;
use super::sink::FlashSink;
use super::unit::UnitId;
use crate::placement::{PlacementPolicy, WriteContext};
use fulgurite_base::{Ppn, StreamId};

impl Ftl {
    /// Writes `pages` host pages from `lpn`, in consecutive physical pages while the open segment has room.
    /// Collects first if the schedule says so. This is the interface for studies without virtual time.
    #[inline]
    pub fn write(&mut self, lpn: u32, pages: u32, hint: StreamId, sink: &mut impl FlashSink) {
        self.write_watched(lpn, pages, hint, sink, |_, _| ());
    }

    /// Writes like [`Ftl::write`], for callers that need the group of every page that goes to `sink`.
    /// `at_pick` is called before and after each pick, because placement may merge its groups there.
    #[inline]
    pub fn write_watched<S: FlashSink>(
        &mut self,
        lpn: u32,
        pages: u32,
        hint: StreamId,
        sink: &mut S,
        mut at_pick: impl FnMut(&Ftl, &mut S),
    ) {
        for lpn in lpn..lpn + pages {
            let (old, context) = self.context(lpn, hint);
            let stream = self.placer.place(&context, &self.segments);
            let unit = match self.has_units() {
                true => self.choose(&context, old, stream, |unit| sink.load(unit), |_| true),
                false => Some(UnitId(0)),
            };
            let unit = unit.expect("some unit has room for the page, or its old place");
            // Makes room only if needed: with room in the open segment and no collection in progress, every
            // schedule serves the write.
            if self.of(unit).collection.is_some() || self.is_full(unit, stream) {
                self.make_room(unit, stream, sink, &mut at_pick);
                // Looks up the page's physical page again, since collection may have moved the page.
                self.append(lpn, hint, unit, stream, sink);
            } else {
                self.put(&context, old, unit, stream, sink);
            }
        }
    }

    /// Collects until the schedule lets a page be written to `stream` in `unit`. If collection need not keep
    /// step with the host, it continues until the schedule wants no more.
    #[cold]
    fn make_room<S: FlashSink>(
        &mut self,
        unit: UnitId,
        stream: StreamId,
        sink: &mut S,
        at_pick: &mut impl FnMut(&Ftl, &mut S),
    ) {
        let keeps_step = self.config.collect.schedule.keeps_step();
        loop {
            // Asks for the state again, because admission may open a segment, which lowers the free count
            // that the schedule decides by.
            let is_admitted = self.admit(unit, stream);
            if !self.state(unit, stream).collects() {
                return;
            }
            if self.victim(unit).is_none() {
                at_pick(self, sink);
                let picked = self.pick(unit);
                at_pick(self, sink);
                if picked.is_some() {
                    continue;
                }
            }
            // Either no segment is sealed, or a schedule in step with the host has moved enough pages for
            // this page.
            if self.victim(unit).is_none() || keeps_step && is_admitted {
                return;
            }
            // `collect_all` updates owners only, so pages with sharers move one by one.
            if keeps_step || self.map.has_sharers() {
                self.collect(unit, if keeps_step { 1 } else { u32::MAX }, sink);
            } else {
                self.collect_all(unit, sink);
            }
        }
    }

    /// Returns the stream for a host page.
    #[inline]
    pub fn stream(&self, lpn: u32, hint: StreamId) -> StreamId {
        self.placer.stream(&self.context(lpn, hint).1, &self.segments)
    }

    /// Returns the physical page of a page that the host is about to write, and the page's context for
    /// placement.
    #[inline]
    pub(super) fn context(&self, lpn: u32, hint: StreamId) -> (Option<Ppn>, WriteContext) {
        let old = self.lookup(lpn);
        let segment = old.map(|ppn| self.segment(ppn));
        (old, WriteContext { lpn, copied: false, hint, segment })
    }

    /// Prefetches the entries that a host write of `lpn` will touch.
    #[inline]
    pub fn prefetch(&self, lpn: u32) {
        self.map.prefetch(lpn);
        self.placer.prefetch(lpn);
    }

    /// Prefetches the valid bit that a host write of `lpn` will clear. The map entry of `lpn` should be in the CPU
    /// cache already, by an earlier [`Ftl::prefetch`].
    #[inline]
    pub fn prefetch_valid(&self, lpn: u32) {
        self.map.prefetch_valid(lpn);
    }

    /// Returns whether a page may be written to `stream` in `unit` now. Opens a segment for it if necessary.
    #[inline]
    pub fn admit(&mut self, unit: UnitId, stream: StreamId) -> bool {
        loop {
            if !self.state(unit, stream).serves_writes() {
                return false;
            }
            if !self.is_full(unit, stream) {
                return true;
            }
            // Opening a segment uses a free one, so the loop asks the schedule again.
            self.renew(unit, stream);
        }
    }

    /// Writes `lpn` for the host to the next page of `stream` in `unit`, which must have been admitted.
    /// Returns the new physical page.
    #[inline]
    pub fn append(
        &mut self,
        lpn: u32,
        hint: StreamId,
        unit: UnitId,
        stream: StreamId,
        sink: &mut impl FlashSink,
    ) -> Ppn {
        let state = self.state(unit, stream);
        debug_assert!(state.serves_writes(), "a host write in {state:?}");
        let (old, context) = self.context(lpn, hint);
        self.put(&context, old, unit, stream, sink)
    }

    /// Writes a host page, whose physical page is `old`, to the next page of `stream` in `unit`. Returns the
    /// new physical page.
    #[inline]
    pub(super) fn put(
        &mut self,
        context: &WriteContext,
        old: Option<Ppn>,
        unit: UnitId,
        stream: StreamId,
        sink: &mut impl FlashSink,
    ) -> Ppn {
        self.counters.host_pages += 1;
        // Reports the write before the clock ticks, so that placement sees the same time as when it was
        // asked.
        self.placer.written(context, stream, &self.segments);
        self.segments.tick();
        if let Some(old) = old {
            // Without sharers the old physical page is certainly invalid, and the map entry is overwritten
            // below.
            if self.map.has_sharers() {
                self.discard(context.lpn);
            } else {
                self.map.forget(old);
                self.invalidated(old);
            }
        }
        let ppn = self.next_page(unit, stream);
        self.map.map(context.lpn, ppn);
        if self.has_units() {
            self.pass_turn(unit, ppn);
        }
        if let Some(collection) = &mut self.of_mut(unit).collection {
            collection.progress.host_pages += 1;
        }
        sink.program(ppn, None);
        ppn
    }

    /// Writes host pages from `first` on while the schedule serves writes to their streams, and returns their
    /// number. `written` is called for each page with its index in the run, its new physical page and its
    /// previous one.
    #[inline]
    pub fn append_run<S: FlashSink>(
        &mut self,
        first: u32,
        pages: u32,
        hint: StreamId,
        sink: &mut S,
        mut written: impl FnMut(&mut S, u32, Ppn, Option<Ppn>),
    ) -> u32 {
        for page in 0..pages {
            let (old, context) = self.context(first + page, hint);
            let stream = self.placer.stream(&context, &self.segments);
            let Some(unit) = self.admit_to_any(&context, old, stream, sink) else { return page };
            let ppn = self.put(&context, old, unit, stream, sink);
            written(sink, page, ppn, old);
        }
        pages
    }

    /// Returns the unit that a host page goes to now; `None` if the page must wait.
    #[inline]
    fn admit_to_any(
        &mut self,
        context: &WriteContext,
        old: Option<Ppn>,
        stream: StreamId,
        sink: &impl FlashSink,
    ) -> Option<UnitId> {
        if !self.has_units() {
            return self.admit(UnitId(0), stream).then_some(UnitId(0));
        }
        loop {
            let serves = |unit| self.state(unit, stream).serves_writes();
            let unit = self.choose(context, old, stream, |unit| sink.load(unit), serves)?;
            // Tries again if the unit refuses: opening a segment may change its state, and the unit is
            // skipped the next time.
            if self.admit(unit, stream) {
                return Some(unit);
            }
        }
    }

    /// Trims `pages` logical pages from `first` on.
    pub fn trim_run(&mut self, first: u32, pages: u32) {
        (first..first + pages).for_each(|lpn| self.trim(lpn));
    }

    /// Makes logical pages share the physical pages of other logical pages. The two ranges must be disjoint.
    pub fn share_run(&mut self, destination: u32, source: u32, pages: u32) {
        debug_assert!(destination.abs_diff(source) >= pages, "{pages} pages from {source} to {destination}");
        (0..pages).for_each(|page| self.share(destination + page, source + page));
    }

    /// Trims a page.
    pub fn trim(&mut self, lpn: u32) {
        self.placer.trimmed(lpn);
        self.discard(lpn);
    }

    /// Makes `destination` share the physical page of `source`, or trims `destination` if `source` is
    /// unmapped.
    pub fn share(&mut self, destination: u32, source: u32) {
        let place = self.map.lookup(source);
        // Returns early: if a page were shared with itself, it would lose its physical page.
        if self.map.lookup(destination) == place {
            return;
        }
        self.discard(destination);
        if let Some(ppn) = place {
            self.map.share(destination, ppn);
            self.counters.shared_pages += 1;
        }
    }
}
