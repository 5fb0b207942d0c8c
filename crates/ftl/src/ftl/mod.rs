//! The flash translation layer: a page map over a log of segments, without any I/O of its own.
//!
//! A host write takes the next page of its stream's open segment; the old copy becomes garbage.
//! When free segments run low, a victim segment's valid pages are moved to open segments and it is
//! erased. Every flash operation goes into a [`FlashSink`]: one that counts, or one that plays
//! them on dies in virtual time.
//!
//! There are two ways to use it. [`Ftl::write`] is for studies without time: it collects whatever the
//! schedule wants before it writes. A drive in virtual time takes the steps one by one, each when its
//! flash operation begins: [`Ftl::admit`] and [`Ftl::append`] for the host, [`Ftl::pick`],
//! [`Ftl::copy`] for every page that is still valid then, and [`Ftl::release`].
//!
//! Invariants ([`crate::check::check`] verifies them all): L2P and P2L agree on every valid page; a
//! segment's valid count equals its bits in the bitmap; a free segment holds nothing.

use crate::candidates::Candidates;
use crate::divisor::Divisor;
use crate::mapping::{Mapping, Moving};
use crate::placement::{Placement, PlacementPolicy, Placer, Shape, WriteContext};
use crate::schedule::{FtlState, Progress, Rule, Schedule, State};
use crate::segments::{GroupCounters, SegmentId, SegmentState, SegmentTable};
use crate::victim::VictimPolicy;
use crate::wear::{Wear, WearLeveling};
use fulgurite_base::{Ppn, SpecError, StreamId};

/// Where an FTL's flash operations go.
pub trait FlashSink {
    /// A valid page is read, to be moved.
    fn read(&mut self, ppn: Ppn);
    /// A page is programmed: a host write, or the copy of a page just read from `source`.
    fn program(&mut self, ppn: Ppn, source: Option<Ppn>);
    /// A segment is erased. All operations on it came before.
    fn erase(&mut self, segment: SegmentId);
}

/// A sink that only counts: for studies where time plays no part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountingSink {
    /// Pages read to be moved.
    pub reads: u64,
    /// Pages programmed, for the host and for moves.
    pub programs: u64,
    /// Segments erased.
    pub erases: u64,
}

impl FlashSink for CountingSink {
    #[inline]
    fn read(&mut self, _: Ppn) {
        self.reads += 1;
    }

    #[inline]
    fn program(&mut self, _: Ppn, _: Option<Ppn>) {
        self.programs += 1;
    }

    fn erase(&mut self, _: SegmentId) {
        self.erases += 1;
    }
}

/// The shape and the policies of an FTL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FtlConfig {
    /// Pages that the host sees.
    pub logical_pages: u32,
    /// Segments of the drive.
    pub segments: u32,
    /// Pages in a segment.
    pub segment_pages: u32,
    /// Consecutive pages that the flash reads and programs together: collection step by step does
    /// not stop inside such a row.
    pub row_pages: u32,
    /// Pages in a row over all dies.
    pub stripe_pages: u32,
    /// The soft threshold: free segments below which garbage is collected.
    pub reserve: u32,
    /// The hard threshold: free segments that are collection's own.
    pub hard: u32,
    /// Free segments up to which an idle drive collects in the background; zero: it does not.
    pub background: u32,
    /// Which segment is collected.
    pub victim: VictimPolicy,
    /// Which stream a page goes to.
    pub placement: Placement,
    /// When it is collected.
    pub schedule: Schedule,
    /// How erases are spread.
    pub wear_leveling: WearLeveling,
    /// How far a segment may fall behind in erases where leveling is static.
    pub wear_gap: u32,
    /// Erases that a segment bears, within a tenth; zero: any number.
    pub endurance: u32,
}

impl FtlConfig {
    /// A translation layer of this shape with the plainest policies: one stream, greedy victims,
    /// non-preemptive collection below two free segments, no wear.
    pub const fn plain(logical_pages: u32, segments: u32, segment_pages: u32) -> FtlConfig {
        FtlConfig {
            logical_pages,
            segments,
            segment_pages,
            row_pages: 1,
            stripe_pages: 1,
            reserve: 2,
            hard: 1,
            background: 0,
            victim: VictimPolicy::Greedy,
            placement: Placement::NONE,
            schedule: Schedule::NON_PREEMPTIVE,
            wear_leveling: WearLeveling::None,
            wear_gap: 0,
            endurance: 0,
        }
    }

    /// Pages that can hold data or garbage when non-preemptive collection picks a victim: T in the
    /// closed forms.
    pub fn effective_pages(&self) -> u64 {
        u64::from(self.segments.saturating_sub(self.reserve)) * u64::from(self.segment_pages)
    }

    /// ρ, the effective spare: (T − U) / U.
    pub fn spare_effective(&self) -> f64 {
        spare(self.effective_pages() as f64, self.logical_pages)
    }

    /// Refuses a shape in which collection could not go on for ever.
    pub fn validate(&self) -> Result<(), SpecError> {
        let FtlConfig { logical_pages, segments, segment_pages, reserve, hard, .. } = *self;
        if logical_pages == 0 || segment_pages == 0 {
            return Err(SpecError::new(
                "the logical space and the segments must hold at least one page each",
            ));
        }
        let physical = u64::from(segments) * u64::from(segment_pages);
        if physical >= u64::from(u32::MAX) {
            return Err(SpecError::new(format!(
                "{physical} physical pages are too many; accepted: fewer than 2^32"
            )));
        }
        if u64::from(logical_pages) > physical {
            return Err(SpecError::new(format!(
                "{logical_pages} logical pages exceed the {physical} physical ones; accepted: fewer logical than physical"
            )));
        }
        if self.schedule.has_hard_threshold() && hard < 1 {
            return Err(SpecError::new(format!(
                "gc_hard={hard} is too small; accepted: at least 1, a free segment for collection to write to"
            )));
        }
        let least = if self.schedule.has_hard_threshold() { hard.saturating_add(1) } else { 1 };
        if reserve < least {
            return Err(SpecError::new(format!(
                "gc_reserve={reserve} is too small; accepted: at least {least} here"
            )));
        }
        // One more segment than the data needs must be garbage or open, or a victim may free nothing.
        let need = self.least_segments();
        if u64::from(segments) < need {
            return Err(SpecError::new(format!(
                "{segments} segments of {segment_pages} pages are too few for {logical_pages} logical pages with {reserve} in reserve; accepted: at least {need} segments (smaller segments, more over-provisioning or less logical space)"
            )));
        }
        let most = u64::from(segments) - need + u64::from(reserve);
        if u64::from(self.background) > most {
            return Err(SpecError::new(format!(
                "gc_background={} can never be reached; accepted: 0 to {most} here",
                self.background
            )));
        }
        Ok(())
    }

    /// The segments without which collection could not go on.
    pub(crate) fn least_segments(&self) -> u64 {
        u64::from(self.logical_pages).div_ceil(u64::from(self.segment_pages))
            + u64::from(self.reserve)
            + u64::from(self.placement.streams())
    }

    /// What placement knows of the drive.
    pub fn shape(&self) -> Shape {
        let FtlConfig { logical_pages, segments, segment_pages, reserve, .. } = *self;
        Shape { logical_pages, segments, segment_pages, reserve }
    }
}

fn spare(effective_pages: f64, logical_pages: u32) -> f64 {
    (effective_pages - f64::from(logical_pages)) / f64::from(logical_pages)
}

/// The victim segment that is being collected.
#[derive(Clone, Copy, Debug)]
struct Collection {
    victim: SegmentId,
    /// The first page not yet looked at; not used where a drive looks for itself.
    next: u32,
    progress: Progress,
}

/// What an FTL has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FtlCounters {
    /// Pages written by the host.
    pub host_pages: u64,
    /// Pages moved by garbage collection.
    pub copied_pages: u64,
    /// Segments erased.
    pub erased_segments: u64,
    /// Segments collected because their wear had fallen behind.
    pub leveled_segments: u64,
    /// Pages that took another page's place without a write.
    pub shared_pages: u64,
    /// Victims picked.
    picks: u64,
    /// Pages that nothing was written to, summed over those picks.
    unwritten_at_picks: u64,
}

/// A flash translation layer; see the module.
#[derive(Clone, Debug)]
pub struct Ftl {
    config: FtlConfig,
    segment_of: Divisor,
    pub(crate) map: Mapping,
    pub(crate) segments: SegmentTable,
    candidates: Candidates,
    placer: Placer,
    /// The open segment of each stream; none before its first page.
    open: Vec<Option<SegmentId>>,
    pub(crate) wear: Wear,
    collection: Option<Collection>,
    /// Empty between collections, so that its memory is kept.
    moving: Moving,
    idle: bool,
    urgent: bool,
    counters: FtlCounters,
}

impl Ftl {
    /// An empty drive.
    pub fn new(config: FtlConfig) -> Result<Ftl, SpecError> {
        config.validate()?;
        let streams = config.placement.streams();
        let mut placer = config.placement.start(&config.shape());
        placer.use_victims(config.victim);
        Ok(Ftl {
            config,
            segment_of: Divisor::new(config.segment_pages),
            map: Mapping::new(config.logical_pages, config.segments * config.segment_pages),
            candidates: Candidates::new(config.victim, config.segments, config.segment_pages, streams),
            segments: SegmentTable::new(config.segments, config.segment_pages, streams),
            open: vec![None; usize::from(streams)],
            placer,
            wear: Wear::new(config.wear_leveling, config.segments),
            collection: None,
            moving: Moving::default(),
            idle: false,
            urgent: false,
            counters: FtlCounters::default(),
        })
    }

    /// The configuration.
    pub fn config(&self) -> &FtlConfig {
        &self.config
    }

    /// The segments, to look at.
    pub fn segments(&self) -> &SegmentTable {
        &self.segments
    }

    /// The page map, to look at.
    pub fn mapping(&self) -> &Mapping {
        &self.map
    }

    /// What it has done since the counters were reset.
    pub fn counters(&self) -> FtlCounters {
        self.counters
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        self.map.bytes() + self.segments.bytes() + self.placer.bytes()
    }

    /// Starts counting anew.
    pub fn reset_counters(&mut self) {
        self.counters = FtlCounters::default();
    }

    /// Starts counting anew, and wearing out: from now on segments bear `endurance` erases.
    pub fn start_anew(&mut self, endurance: u32) {
        self.reset_counters();
        self.idle = false;
        self.config.endurance = endurance;
        self.segments.erases.fill(0);
        self.wear.start_anew();
    }

    /// ρ as it was: from the pages that could hold data or garbage when victims were picked, on
    /// average; `None` when nothing was collected.
    pub fn spare_effective(&self) -> Option<f64> {
        let FtlCounters { picks, unwritten_at_picks, .. } = self.counters;
        let physical = f64::from(self.config.segments) * f64::from(self.config.segment_pages);
        let unwritten = unwritten_at_picks as f64 / picks as f64;
        (picks > 0).then(|| spare(physical - unwritten, self.config.logical_pages))
    }

    /// Free segments.
    pub fn free_segments(&self) -> u32 {
        self.wear.free()
    }

    /// Whether so many segments are worn out that writing must end.
    pub fn is_worn_out(&self) -> bool {
        self.wear.is_worn_out
    }

    /// Where `lpn` lies, if it was written and not trimmed since.
    #[inline]
    pub fn lookup(&self, lpn: u32) -> Option<Ppn> {
        self.map.lookup(lpn)
    }

    /// How often the segment that holds `lpn` was erased since the drive was set up, if any holds it.
    pub fn erases(&self, lpn: u32) -> Option<u32> {
        let ppn = self.lookup(lpn)?;
        Some(self.segments.erases(self.segment(ppn)))
    }

    /// Writes `pages` pages from `lpn` for the host, in one run of physical pages where the open
    /// segment has room for it, collecting first as the schedule says: the way without time.
    #[inline]
    pub fn write(&mut self, lpn: u32, pages: u32, hint: StreamId, sink: &mut impl FlashSink) {
        for lpn in lpn..lpn + pages {
            let (old, context) = self.context(lpn, hint);
            let stream = self.placer.stream(&context, &self.segments);
            if self.collection.is_some() || self.is_full(stream) {
                self.make_room(stream, sink);
                self.append(lpn, hint, stream, sink);
            } else {
                self.put(&context, old, stream, sink);
            }
        }
    }

    /// Collects until the schedule lets a page be written to `stream` and, where collection need not
    /// keep step with the host, until it wants no more: without time it is never late.
    #[cold]
    fn make_room(&mut self, stream: StreamId, sink: &mut impl FlashSink) {
        let keeps_step = self.config.schedule.rule == Rule::Paced;
        loop {
            let is_admitted = self.admit(stream);
            if !self.state(stream).collects() {
                return;
            }
            if self.collection.is_none() && self.pick().is_some() {
                continue;
            }
            if self.collection.is_none() || keeps_step && is_admitted {
                return;
            }
            if keeps_step || self.map.has_sharers() {
                self.collect(if keeps_step { 1 } else { u32::MAX }, sink);
            } else {
                self.collect_all(sink);
            }
        }
    }

    /// The stream that a page of the host goes to.
    #[inline]
    pub fn stream(&self, lpn: u32, hint: StreamId) -> StreamId {
        self.placer.stream(&self.context(lpn, hint).1, &self.segments)
    }

    /// Where a page lies that the host is about to write, and what placement knows of it.
    #[inline]
    fn context(&self, lpn: u32, hint: StreamId) -> (Option<Ppn>, WriteContext) {
        let old = self.lookup(lpn);
        let segment = old.map(|ppn| self.segment(ppn));
        (old, WriteContext { lpn, copied: false, hint, segment })
    }

    /// The segment that `ppn` lies in.
    #[inline]
    pub fn segment(&self, ppn: Ppn) -> SegmentId {
        SegmentId(self.segment_of.divide(ppn.0).0)
    }

    /// Begins to fetch what a write of `lpn` by the host will touch.
    #[inline]
    pub fn prefetch(&self, lpn: u32) {
        self.map.prefetch(lpn);
        self.placer.prefetch(lpn);
    }

    /// Tells placement what is to come; see [`Placer::foresee`].
    pub fn foresee(&mut self, next: Vec<u32>) {
        self.placer.foresee(next);
    }

    /// Placement at work, to look at.
    pub fn placer(&self) -> &Placer {
        &self.placer
    }

    /// Whether a page may now be written to `stream`; opens a segment for it where that takes one.
    #[inline]
    pub fn admit(&mut self, stream: StreamId) -> bool {
        loop {
            if !self.state(stream).serves_writes() {
                return false;
            }
            if !self.is_full(stream) {
                return true;
            }
            self.renew(stream);
        }
    }

    /// Writes `lpn` for the host to the next page of `stream`, which must have been admitted.
    #[inline]
    pub fn append(&mut self, lpn: u32, hint: StreamId, stream: StreamId, sink: &mut impl FlashSink) -> Ppn {
        debug_assert!(self.state(stream).serves_writes(), "a host write in {:?}", self.state(stream));
        let (old, context) = self.context(lpn, hint);
        self.put(&context, old, stream, sink)
    }

    /// Writes a page of the host that lies at `old` to the next page of `stream`.
    #[inline]
    fn put(
        &mut self,
        context: &WriteContext,
        old: Option<Ppn>,
        stream: StreamId,
        sink: &mut impl FlashSink,
    ) -> Ppn {
        self.counters.host_pages += 1;
        self.placer.written(context, stream, &self.segments);
        self.segments.now += 1;
        if let Some(old) = old {
            if self.map.has_sharers() {
                self.discard(context.lpn);
            } else {
                self.map.forget(old);
                self.invalidated(old);
            }
        }
        let ppn = self.next_page(stream);
        self.map.map(context.lpn, ppn);
        if let Some(collection) = &mut self.collection {
            collection.progress.host_pages += 1;
        }
        sink.program(ppn, None);
        ppn
    }

    /// Forgets a page.
    pub fn trim(&mut self, lpn: u32) {
        self.placer.trimmed(lpn);
        self.discard(lpn);
    }

    /// Makes `destination` share the place of `source`, or forgets it where `source` has none.
    pub fn share(&mut self, destination: u32, source: u32) {
        let place = self.map.lookup(source);
        if self.map.lookup(destination) == place {
            return;
        }
        self.discard(destination);
        if let Some(ppn) = place {
            self.map.share(destination, ppn);
            self.counters.shared_pages += 1;
        }
    }

    /// Makes the place of `lpn` garbage, unless others share it.
    #[inline]
    fn discard(&mut self, lpn: u32) {
        let Some(ppn) = self.map.unmap(lpn) else { return };
        self.invalidated(ppn);
    }

    #[inline]
    fn invalidated(&mut self, ppn: Ppn) {
        let segment = self.segment(ppn);
        self.segments.valid[segment.0 as usize] -= 1;
        if self.segments.state(segment) == SegmentState::Sealed {
            self.candidates.invalidated(segment, &self.segments);
        }
    }

    #[inline]
    fn is_full(&self, stream: StreamId) -> bool {
        let open = self.open[usize::from(stream.0)];
        open.is_none_or(|segment| self.segments.written(segment) == self.config.segment_pages)
    }

    /// Where the next page of `stream` will be written; `None` when a segment must be opened first.
    pub fn append_point(&self, stream: StreamId) -> Option<Ppn> {
        let segment = self.open[usize::from(stream.0)]?;
        let written = self.segments.written(segment);
        (written < self.config.segment_pages).then(|| Ppn(segment.0 * self.config.segment_pages + written))
    }

    /// Takes the next page of a stream's open segment, which must not be full.
    #[inline]
    fn next_page(&mut self, stream: StreamId) -> Ppn {
        let segment = self.open[usize::from(stream.0)].expect("a segment was opened");
        let written = &mut self.segments.written[segment.0 as usize];
        let ppn = Ppn(segment.0 * self.config.segment_pages + *written);
        debug_assert!(*written < self.config.segment_pages);
        *written += 1;
        self.segments.valid[segment.0 as usize] += 1;
        ppn
    }

    /// The state that the schedule wants, as a write to `stream` sees it.
    #[inline]
    pub fn state(&self, stream: StreamId) -> State {
        let free = self.wear.free();
        self.config.schedule.decide(&FtlState {
            free,
            soft: self.config.reserve + u32::from(self.wear.is_short),
            hard: self.config.hard,
            opens: self.is_full(stream),
            segment_pages: self.config.segment_pages,
            stripe_pages: self.config.stripe_pages,
            collection: self.collection.map(|collection| collection.progress),
            idle: self.idle && free < self.config.background,
            urgent: self.urgent,
        })
    }

    /// Tells that the drive has become idle, or is so no more.
    pub fn set_idle(&mut self, idle: bool) {
        self.idle = idle;
    }

    /// Tells that a write has waited too long; forgotten when the collection ends.
    pub fn set_urgent(&mut self) {
        self.urgent = true;
    }

    /// Seals the stream's open segment and opens a free one.
    fn renew(&mut self, stream: StreamId) {
        let fresh = self.wear.take().expect("FtlConfig::validate keeps a segment free for every stream");
        let full = self.open[usize::from(stream.0)].replace(fresh);
        self.segments.state[fresh.0 as usize] = SegmentState::Open;
        self.segments.stream[fresh.0 as usize] = stream.0;
        self.segments.opened_at[fresh.0 as usize] = self.segments.now;
        self.segments.in_stream[usize::from(stream.0)] += 1;
        if let Some(full) = full {
            self.seal(full);
        }
    }

    /// Gives every segment the group that placement has for those of its group. Append points of groups that
    /// are no more are sealed as they are.
    fn regroup(&mut self, groups: &[StreamId]) {
        for (stream, group) in
            groups.iter().enumerate().filter(|(stream, group)| *stream != usize::from(group.0))
        {
            if let Some(open) = self.open[stream].take() {
                self.segments.seal(open);
            }
            let moved = std::mem::take(&mut self.segments.in_stream[stream]);
            self.segments.in_stream[usize::from(group.0)] += moved;
        }
        for stream in &mut self.segments.stream {
            *stream = groups[usize::from(*stream)].0;
        }
        self.candidates.sort(&self.placer, &self.segments);
        // What is now too large passes its oldest segments on as they are: nothing need be copied for that.
        let mut passed_on = false;
        while let Some(queue) = self.placer.overfull(&self.segments)
            && let Some(segment) = self.candidates.oldest(queue)
            && let Some(group) = self.placer.copies_to(segment, &self.segments)
            && group != self.segments.stream(segment)
        {
            self.candidates.remove(segment, &self.segments);
            let from = std::mem::replace(&mut self.segments.stream[segment.0 as usize], group.0);
            self.segments.in_stream[usize::from(from)] -= 1;
            self.segments.in_stream[usize::from(group.0)] += 1;
            self.candidates.sealed(segment, &self.placer, &self.segments);
            passed_on = true;
        }
        if passed_on {
            // By age again.
            self.candidates.sort(&self.placer, &self.segments);
        }
    }

    /// A segment may now be picked.
    fn seal(&mut self, segment: SegmentId) {
        self.segments.seal(segment);
        self.candidates.sealed(segment, &self.placer, &self.segments);
    }

    /// Moves up to `moves` pages of the current victim segment, and the rest of the last one's row;
    /// erases it when nothing valid is left.
    fn collect(&mut self, moves: u32, sink: &mut impl FlashSink) {
        let Some(victim) = self.victim() else { return };
        let end = (victim.0 + 1) * self.config.segment_pages;
        let mut next = self.collection.map_or(0, |collection| collection.next);
        let mut left = moves;
        while let Some(from) = self.map.next_valid(next, end) {
            let in_the_same_row =
                from.0 / self.config.row_pages == next.saturating_sub(1) / self.config.row_pages;
            if left == 0 && !in_the_same_row {
                self.collection.as_mut().expect("under way").next = next;
                return;
            }
            left = left.saturating_sub(1);
            next = from.0 + 1;
            self.copy(from, sink);
        }
        self.release(sink);
    }

    /// What [`Ftl::collect`] does page by page, for all pages that are left: nothing can come between them.
    fn collect_all(&mut self, sink: &mut impl FlashSink) {
        let Some(Collection { victim, next, .. }) = self.collection else { return };
        let end = (victim.0 + 1) * self.config.segment_pages;
        let mut moving = std::mem::take(&mut self.moving);
        self.map.valid_in(next, end, &mut moving);
        match self.placer.copies_to(victim, &self.segments) {
            Some(stream) => {
                self.placer.copied(&moving.lpns, victim, stream, &self.segments);
                self.move_run(&moving, stream, sink);
            }
            None => self.move_each(&moving, victim, sink),
        }
        self.map.fill_valid(next, end, false);
        self.segments.valid[victim.0 as usize] = 0;
        self.counters.copied_pages += moving.lpns.len() as u64;
        moving.from.clear();
        moving.lpns.clear();
        self.moving = moving;
        self.release(sink);
    }

    /// Moves pages to one stream.
    fn move_run(&mut self, moving: &Moving, stream: StreamId, sink: &mut impl FlashSink) {
        let mut done = 0;
        while done < moving.lpns.len() {
            let to = self.open_for_copies(stream);
            let segment = self.open[usize::from(to.0)].expect("a segment was opened").0 as usize;
            let written = self.segments.written[segment];
            let first = segment as u32 * self.config.segment_pages + written;
            let run = (moving.lpns.len() - done).min((self.config.segment_pages - written) as usize);
            self.map.map_run(&moving.lpns[done..done + run], first);
            for (at, from) in moving.from[done..done + run].iter().enumerate() {
                sink.read(Ppn(*from));
                sink.program(Ppn(first + at as u32), Some(Ppn(*from)));
            }
            self.segments.written[segment] += run as u32;
            self.segments.valid[segment] += run as u32;
            done += run;
        }
    }

    /// Moves pages each to a stream of its own.
    fn move_each(&mut self, moving: &Moving, victim: SegmentId, sink: &mut impl FlashSink) {
        const AHEAD: usize = 16;
        for (at, (from, lpn)) in moving.from.iter().zip(&moving.lpns).enumerate() {
            if let Some(ahead) = moving.lpns.get(at + AHEAD) {
                self.prefetch(*ahead);
            }
            let context = WriteContext::copy(*lpn, victim);
            let stream = self.placer.stream(&context, &self.segments);
            let to = self.open_for_copies(stream);
            self.placer.written(&context, stream, &self.segments);
            let ppn = self.next_page(to);
            self.map.map(*lpn, ppn);
            sink.read(Ppn(*from));
            sink.program(ppn, Some(Ppn(*from)));
        }
    }

    /// The victim segment under collection.
    #[inline]
    pub fn victim(&self) -> Option<SegmentId> {
        self.collection.map(|collection| collection.victim)
    }

    /// Begins the collection of a victim segment; `None` when none is full.
    pub fn pick(&mut self) -> Option<SegmentId> {
        if let Some(groups) = self.placer.take_regrouping() {
            self.regroup(&groups);
        }
        let victim = self.left_behind().or_else(|| self.candidates.pick(&self.placer, &self.segments))?;
        self.placer.picked(victim, &self.segments);
        self.segments.state[victim.0 as usize] = SegmentState::Victim;
        let valid_at_pick = self.segments.valid(victim);
        let group = &mut self.segments.groups[usize::from(self.segments.stream[victim.0 as usize])];
        *group =
            GroupCounters { collected: group.collected + 1, valid: group.valid + u64::from(valid_at_pick) };
        let (pages, free) = (self.config.segment_pages, self.wear.free());
        let in_open: u32 = self.open.iter().flatten().map(|open| pages - self.segments.written(*open)).sum();
        let room_at_pick =
            free.saturating_sub(self.config.hard).saturating_mul(pages).saturating_add(in_open);
        let progress = Progress { valid_at_pick, room_at_pick, moved: 0, host_pages: 0 };
        self.collection = Some(Collection { victim, next: victim.0 * self.config.segment_pages, progress });
        self.counters.picks += 1;
        self.counters.unwritten_at_picks += u64::from(free) * u64::from(pages) + u64::from(in_open);
        Some(victim)
    }

    /// The segment that wear leveling wants collected. On large drives it is looked for in some picks
    /// only, so that a pick costs no more than a look at 256 segments.
    fn left_behind(&mut self) -> Option<SegmentId> {
        if !self.counters.picks.is_multiple_of(u64::from(self.config.segments).div_ceil(256)) {
            return None;
        }
        let segment = self.wear.left_behind(&self.segments, self.config.wear_gap)?;
        self.candidates.remove(segment, &self.segments);
        self.counters.leveled_segments += 1;
        Some(segment)
    }

    /// The stream that the copy of a page of the victim goes to.
    #[inline]
    pub fn copy_stream(&self, from: Ppn) -> StreamId {
        self.with_room(self.placer.stream(&self.copy_context(from), &self.segments))
    }

    /// `stream`, or where that must open a segment and none is free, the one with the most room: the copies of
    /// a victim always fit into the last segment that was free.
    #[inline]
    fn with_room(&self, stream: StreamId) -> StreamId {
        if self.wear.free() > 0 || !self.is_full(stream) { stream } else { self.roomiest() }
    }

    /// The stream that copies meant for `stream` go to, with room for one at least.
    #[inline]
    fn open_for_copies(&mut self, stream: StreamId) -> StreamId {
        let to = self.with_room(stream);
        if self.is_full(to) {
            self.renew(to);
        }
        to
    }

    #[cold]
    fn roomiest(&self) -> StreamId {
        let open = self.open.iter().enumerate().filter_map(|(stream, open)| Some((stream, (*open)?)));
        let (stream, _) =
            open.min_by_key(|(_, open)| self.segments.written(*open)).expect("a segment is open");
        StreamId(stream as u16)
    }

    #[inline]
    fn copy_context(&self, from: Ppn) -> WriteContext {
        WriteContext::copy(self.map.owner(from), self.segment(from))
    }

    /// Moves the valid page `from` of the victim to the stream that placement chooses for it.
    #[inline]
    pub fn copy(&mut self, from: Ppn, sink: &mut impl FlashSink) -> Ppn {
        let context = self.copy_context(from);
        let stream = self.placer.stream(&context, &self.segments);
        let to = self.open_for_copies(stream);
        self.placer.written(&context, stream, &self.segments);
        let to = self.next_page(to);
        self.map.relocate(from, to);
        self.invalidated(from);
        self.counters.copied_pages += 1;
        if let Some(collection) = &mut self.collection {
            collection.progress.moved += 1;
        }
        sink.read(from);
        sink.program(to, Some(from));
        to
    }

    /// Puts the victim back among the full segments, half collected as it is: after a power cut.
    pub fn give_up_collection(&mut self) {
        (self.idle, self.urgent) = (false, false);
        let Some(Collection { victim, .. }) = self.collection.take() else { return };
        self.seal(victim);
    }

    /// Gives the logical page at `ppn`, if it is still there, its place before: after a power cut.
    pub fn take_back(&mut self, ppn: Ppn, old: Option<Ppn>) {
        if !self.map.is_valid(ppn) {
            return;
        }
        let lpn = self.map.owner(ppn);
        let Some(old) = old else { return self.discard(lpn) };
        if self.map.is_valid(old) {
            // Others share the old place.
            self.discard(lpn);
            return self.map.share(lpn, old);
        }
        self.map.relocate(ppn, old);
        self.invalidated(ppn);
        let segment = self.segment(old);
        let is_sealed = self.segments.state(segment) == SegmentState::Sealed;
        if is_sealed {
            self.candidates.remove(segment, &self.segments);
        }
        self.segments.valid[segment.0 as usize] += 1;
        if is_sealed {
            self.seal(segment);
        }
    }

    /// Ends the collection of the victim, of which nothing is valid any more.
    pub fn release(&mut self, sink: &mut impl FlashSink) {
        let Some(Collection { victim, .. }) = self.collection.take() else { return };
        debug_assert_eq!(self.segments.valid(victim), 0);
        self.urgent = false;
        self.segments.written[victim.0 as usize] = 0;
        let group = usize::from(self.segments.stream(victim).0);
        self.segments.in_stream[group] -= 1;
        self.wear.erased(victim, &mut self.segments, &self.config);
        self.counters.erased_segments += 1;
        sink.erase(victim);
    }
}
