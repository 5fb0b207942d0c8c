//! The flash translation layer: a page map over a log of segments, without any I/O of its own.
//!
//! A host write takes the next page of its stream's open segment; the old copy becomes garbage.
//! When free segments run low, a victim segment's valid pages are moved to open segments and it is
//! erased. Every flash operation goes into a [`FlashSink`]: one that counts, or one that plays
//! them on dies in virtual time. State changes at once; the sink may perform the operations later
//! as long as it keeps their order on each die.
//!
//! Invariants ([`crate::check::check`] verifies them all): L2P and P2L agree on every valid page; a
//! segment's valid count equals its bits in the bitmap; a free segment holds nothing.

mod mapping;
mod segments;

pub use mapping::Mapping;
pub use segments::{SegmentId, SegmentState, SegmentTable};

use crate::layout::Divisor;
use crate::placement::{Placement, WriteContext};
use crate::schedule::{Budget, FtlState, Progress, Schedule};
use crate::victim::{Victim, VictimPolicy, Victims};
use fulgurite_base::{Ppn, SpecError};
use fulgurite_device::StreamId;
use std::collections::VecDeque;

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
    /// Consecutive pages that the flash reads and programs together: collection under way does
    /// not stop inside such a row.
    pub row_pages: u32,
    /// Free segments below which garbage is collected.
    pub reserve: u32,
    /// Which segment is collected.
    pub victim: VictimPolicy,
    /// Which stream a page goes to.
    pub placement: Placement,
    /// When it is collected.
    pub schedule: Schedule,
}

impl FtlConfig {
    /// Pages that can hold data or garbage when a victim is picked: T in the closed forms.
    pub fn effective_pages(&self) -> u64 {
        u64::from(self.segments.saturating_sub(self.reserve)) * u64::from(self.segment_pages)
    }

    /// ρ, the effective spare: (T − U) / U.
    pub fn spare_effective(&self) -> f64 {
        let logical = f64::from(self.logical_pages);
        (self.effective_pages() as f64 - logical) / logical
    }

    /// The least reserve with which collection always finds room: paced collection may begin
    /// another segment before the victim is free.
    fn least_reserve(&self) -> u32 {
        u32::from(self.placement.streams()) + u32::from(self.schedule == Schedule::Paced)
    }

    /// Refuses a shape in which collection could not go on for ever.
    pub fn validate(&self) -> Result<(), SpecError> {
        let FtlConfig { logical_pages, segments, segment_pages, reserve, .. } = *self;
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
        if reserve < self.least_reserve() {
            return Err(SpecError::new(format!(
                "gc_reserve={reserve} is too small; accepted: at least {} here",
                self.least_reserve()
            )));
        }
        // One more segment than the data needs must be garbage or open, or a victim may free nothing.
        let need = u64::from(logical_pages).div_ceil(u64::from(segment_pages))
            + u64::from(reserve)
            + u64::from(self.placement.streams());
        if u64::from(segments) < need {
            return Err(SpecError::new(format!(
                "{segments} segments of {segment_pages} pages are too few for {logical_pages} logical pages with {reserve} in reserve; accepted: at least {need} segments (smaller segments, more over-provisioning or less logical space)"
            )));
        }
        Ok(())
    }
}

/// The victim segment that is being collected.
#[derive(Clone, Copy, Debug)]
struct Collection {
    victim: SegmentId,
    /// The first page not yet looked at.
    next: u32,
    progress: Progress,
}

/// A flash translation layer; see the module.
#[derive(Clone, Debug)]
pub struct Ftl {
    config: FtlConfig,
    segment_of: Divisor,
    pub(crate) map: Mapping,
    pub(crate) segments: SegmentTable,
    victims: Victims,
    /// The open segment of each stream.
    open: Vec<SegmentId>,
    /// Erased segments, the longest erased first: this alone levels wear among segments in use.
    pub(crate) free: VecDeque<SegmentId>,
    collection: Option<Collection>,
    host_pages: u64,
    copied_pages: u64,
    erased_segments: u64,
}

impl Ftl {
    /// An empty drive.
    pub fn new(config: FtlConfig) -> Result<Ftl, SpecError> {
        config.validate()?;
        let mut segments = SegmentTable::new(config.segments, config.segment_pages);
        let mut free: VecDeque<_> = (0..config.segments).map(SegmentId).collect();
        let open: Vec<_> = free.drain(..usize::from(config.placement.streams())).collect();
        for segment in &open {
            segments.state[segment.0 as usize] = SegmentState::Open;
        }
        Ok(Ftl {
            config,
            segment_of: Divisor::new(config.segment_pages),
            map: Mapping::new(config.logical_pages, config.segments * config.segment_pages),
            victims: config.victim.index(config.segments, config.segment_pages),
            segments,
            open,
            free,
            collection: None,
            host_pages: 0,
            copied_pages: 0,
            erased_segments: 0,
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

    /// Pages written by the host.
    pub fn host_pages(&self) -> u64 {
        self.host_pages
    }

    /// Pages moved by garbage collection.
    pub fn copied_pages(&self) -> u64 {
        self.copied_pages
    }

    /// Segments erased.
    pub fn erased_segments(&self) -> u64 {
        self.erased_segments
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        self.map.bytes() + self.segments.bytes()
    }

    /// Starts counting anew.
    pub fn reset_counters(&mut self) {
        (self.host_pages, self.copied_pages, self.erased_segments) = (0, 0, 0);
    }

    /// Where `lpn` lies, if it was written and not trimmed since.
    #[inline]
    pub fn lookup(&self, lpn: u32) -> Option<Ppn> {
        self.map.lookup(lpn)
    }

    /// Writes `pages` pages from `lpn` for the host, in one run of physical pages where the open
    /// segment has room for it, collecting first as the schedule says.
    #[inline]
    pub fn write(&mut self, lpn: u32, pages: u32, hint: StreamId, sink: &mut impl FlashSink) {
        self.host_pages += u64::from(pages);
        let stream = self.config.placement.stream(&WriteContext { lpn, copied: false, hint });
        (lpn..lpn + pages).for_each(|lpn| self.discard(lpn));
        if self.collection.is_some() {
            self.make_room(stream, sink);
        }
        for lpn in lpn..lpn + pages {
            if self.is_full(self.open[usize::from(stream.0)]) {
                self.make_room(stream, sink);
            }
            let ppn = self.append(stream);
            self.map.map(lpn, ppn);
            sink.program(ppn, None);
        }
        if let Some(collection) = &mut self.collection {
            collection.progress.host_pages += pages;
        }
    }

    /// Forgets a page.
    pub fn trim(&mut self, lpn: u32) {
        self.discard(lpn);
    }

    /// Makes the current copy of `lpn` garbage.
    #[inline]
    fn discard(&mut self, lpn: u32) {
        let Some(ppn) = self.map.unmap(lpn) else { return };
        let segment = SegmentId(self.segment_of.divide(ppn.0).0);
        self.segments.valid[segment.0 as usize] -= 1;
        if self.segments.state(segment) == SegmentState::Sealed {
            self.victims.invalidated(segment, &self.segments);
        }
    }

    #[inline]
    fn is_full(&self, segment: SegmentId) -> bool {
        self.segments.written(segment) == self.config.segment_pages
    }

    /// Takes the next page of a stream's open segment, which must not be full.
    #[inline]
    fn append(&mut self, stream: StreamId) -> Ppn {
        let segment = self.open[usize::from(stream.0)];
        let written = &mut self.segments.written[segment.0 as usize];
        let ppn = Ppn(segment.0 * self.config.segment_pages + *written);
        debug_assert!(*written < self.config.segment_pages);
        *written += 1;
        self.segments.valid[segment.0 as usize] += 1;
        ppn
    }

    /// Performs the schedule's decision and leaves a page free in the stream's open segment.
    #[cold]
    fn make_room(&mut self, stream: StreamId, sink: &mut impl FlashSink) {
        loop {
            if self.is_full(self.open[usize::from(stream.0)]) {
                self.renew(stream);
            }
            match self.config.schedule.decide(&self.state()) {
                Budget::Moves(moves) => self.collect(moves, sink),
                Budget::Refill => {
                    while self.free.len() < self.config.reserve as usize {
                        self.collect(u32::MAX, sink);
                    }
                }
            }
            // Copies may have filled the segment again: a FIFO victim can be all valid.
            if !self.is_full(self.open[usize::from(stream.0)]) {
                break;
            }
        }
    }

    fn state(&self) -> FtlState {
        FtlState {
            free: self.free.len() as u32,
            reserve: self.config.reserve,
            segment_pages: self.config.segment_pages,
            collection: self.collection.map(|collection| collection.progress),
        }
    }

    /// Seals the stream's open segment and opens a free one.
    fn renew(&mut self, stream: StreamId) {
        let fresh = self.free.pop_front().expect("FtlConfig::validate keeps a segment free for every stream");
        let full = std::mem::replace(&mut self.open[usize::from(stream.0)], fresh);
        self.segments.state[fresh.0 as usize] = SegmentState::Open;
        self.segments.state[full.0 as usize] = SegmentState::Sealed;
        self.victims.sealed(full, &self.segments);
    }

    /// Moves up to `moves` pages of the current victim segment, picking one if there is none;
    /// erases it when nothing valid is left.
    fn collect(&mut self, moves: u32, sink: &mut impl FlashSink) {
        if moves == 0 {
            return;
        }
        let Some(mut collection) = self.collection.take().or_else(|| self.pick()) else { return };
        let end = (collection.victim.0 + 1) * self.config.segment_pages;
        let mut left = moves;
        while let Some(from) = self.map.next_valid(collection.next, end) {
            let in_the_same_row =
                from.0 / self.config.row_pages == collection.next.saturating_sub(1) / self.config.row_pages;
            if left == 0 && !in_the_same_row {
                self.collection = Some(collection);
                return;
            }
            left = left.saturating_sub(1);
            collection.next = from.0 + 1;
            collection.progress.moved += 1;
            self.relocate(from, sink);
        }
        self.free_victim(collection.victim, sink);
    }

    fn pick(&mut self) -> Option<Collection> {
        let victim = self.victims.pick(&self.segments)?;
        self.segments.state[victim.0 as usize] = SegmentState::Victim;
        let valid_at_pick = self.segments.valid(victim);
        let progress = Progress { valid_at_pick, moved: 0, host_pages: 0 };
        Some(Collection { victim, next: victim.0 * self.config.segment_pages, progress })
    }

    /// Moves one valid page to the stream that placement chooses for it.
    #[inline]
    fn relocate(&mut self, from: Ppn, sink: &mut impl FlashSink) {
        let lpn = self.map.owner(from);
        sink.read(from);
        self.discard(lpn);
        let stream = self.config.placement.stream(&WriteContext { lpn, copied: true, hint: StreamId(0) });
        if self.is_full(self.open[usize::from(stream.0)]) {
            self.renew(stream);
        }
        let to = self.append(stream);
        self.map.map(lpn, to);
        self.copied_pages += 1;
        sink.program(to, Some(from));
    }

    fn free_victim(&mut self, victim: SegmentId, sink: &mut impl FlashSink) {
        debug_assert_eq!(self.segments.valid(victim), 0);
        self.segments.written[victim.0 as usize] = 0;
        self.segments.state[victim.0 as usize] = SegmentState::Free;
        self.free.push_back(victim);
        self.erased_segments += 1;
        sink.erase(victim);
    }
}
