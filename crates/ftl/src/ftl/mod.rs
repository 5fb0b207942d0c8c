//! The flash translation layer: a page map over a log of segments, without any I/O of its own.
//!
//! A host write takes the next page of its stream's open segment; the old copy becomes garbage.
//! When free segments run low, a victim segment's valid pages are moved to open segments and it is
//! erased. Every flash operation goes into a [`FlashSink`]: one that counts, or one that plays
//! them on dies in virtual time.
//!
//! There are two ways to use it. [`Ftl::write`] is for studies without time: it collects what the schedule
//! wants before it writes. A drive in time takes the steps one by one, each when its flash operation begins:
//! [`Ftl::append_run`] for the host (behind a [`Gate`](crate::Gate)), [`Ftl::pick`], [`Ftl::copy`] for
//! every page that is still valid then, and [`Ftl::release`].
//!
//! Invariants ([`crate::check::check`] verifies them all): L2P and P2L agree on every valid page; a
//! segment's valid count equals its bits in the bitmap; a free segment holds nothing.

mod collection;
mod config;
mod groups;
mod host;
mod kept;
mod sink;

pub use config::FtlConfig;
pub use sink::{CountingSink, FlashSink};

use crate::candidates::Candidates;
use crate::collect::Collect;
use crate::divisor::Divisor;
use crate::mapping::{Mapping, Moving};
use crate::placement::{PlacementPolicy, Placer};
use crate::schedule::{FtlState, Progress, ScheduleState};
use crate::segments::{SegmentId, SegmentState, SegmentTable};
use crate::wear::Wear;
use config::spare;
use fulgurite_base::{Ppn, SpecError, StreamId};

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
        let Collect { placement, victim, .. } = &config.collect;
        let streams = placement.streams();
        Ok(Ftl {
            segment_of: Divisor::new(config.segment_pages),
            map: Mapping::new(config.logical_pages, config.segments * config.segment_pages),
            candidates: Candidates::new(victim.clone(), config.segments, config.segment_pages, streams),
            segments: SegmentTable::new(config.segments, config.segment_pages, streams),
            open: vec![None; usize::from(streams)],
            placer: placement.start(&config.drive_shape()),
            wear: Wear::new(config.wear_leveling, config.segments),
            collection: None,
            moving: Moving::default(),
            idle: false,
            urgent: false,
            counters: FtlCounters::default(),
            config,
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

    /// Counts and wear start anew: from now on segments bear `endurance` erases.
    pub fn start_anew(&mut self, endurance: u32) {
        self.reset_counters();
        self.idle = false;
        self.config.endurance = endurance;
        self.segments.forget_wear();
        // The free list is ordered by erases, so it forgets them together with the table.
        self.wear.start_anew();
    }

    /// The measured ρ: from the mean number of pages that could hold data or garbage when victims were
    /// picked; `None` when nothing was collected.
    pub fn spare_effective(&self) -> Option<f64> {
        let FtlCounters { picks, unwritten_at_picks, .. } = self.counters;
        let physical = f64::from(self.config.segments) * f64::from(self.config.segment_pages);
        // Without picks this is NaN; the last line then gives `None`.
        let unwritten = unwritten_at_picks as f64 / picks as f64;
        (picks > 0).then(|| spare(physical - unwritten, self.config.logical_pages))
    }

    /// Free segments.
    pub fn free_segments(&self) -> u32 {
        self.wear.free()
    }

    /// Whether too many segments are worn out for writing to go on.
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

    /// The segment that `ppn` lies in.
    #[inline]
    pub fn segment(&self, ppn: Ppn) -> SegmentId {
        SegmentId(self.segment_of.divide(ppn.0).0)
    }

    /// Tells placement what is to come; see [`PlacementPolicy::foresee`].
    pub fn foresee(&mut self, next: Vec<u32>) {
        self.placer.foresee(next);
    }

    /// Placement at work, to look at.
    pub fn placer(&self) -> &Placer {
        &self.placer
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
        debug_assert!(self.segments.written(segment) < self.config.segment_pages);
        // `FtlConfig::validate` keeps the number of physical pages below 2^32, so the product fits.
        Ppn(segment.0 * self.config.segment_pages + self.segments.append(segment, 1))
    }

    /// The state that the schedule wants, as a write to `stream` sees it.
    #[inline]
    pub fn state(&self, stream: StreamId) -> ScheduleState {
        let free = self.wear.free();
        self.config.collect.schedule.decide(&FtlState {
            free,
            // A worn-out segment could not be spared, so collection begins one segment earlier.
            soft: self.config.collect.reserve + u32::from(self.wear.is_short),
            hard: self.config.collect.hard,
            opens: self.is_full(stream),
            segment_pages: self.config.segment_pages,
            stripe_pages: self.config.stripe_pages,
            collection: self.collection.map(|collection| collection.progress),
            idle: self.idle && free < self.config.collect.background,
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
        self.segments.open(fresh, stream);
        if let Some(full) = full {
            self.seal(full);
        }
    }

    /// A segment may now be picked.
    fn seal(&mut self, segment: SegmentId) {
        self.segments.seal(segment);
        self.candidates.sealed(segment, &self.placer, &self.segments);
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
        self.segments.invalidate(segment);
        // Open segments and the victim are in no index.
        if self.segments.state(segment) == SegmentState::Sealed {
            self.candidates.invalidated(segment, &self.segments);
        }
    }
}
