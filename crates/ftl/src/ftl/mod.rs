//! The flash translation layer: a page map over a log of segments, without any I/O of its own.
//!
//! A host write takes the next page of its stream's open segment; the old copy becomes invalid. When free
//! segments run low, the valid pages of a victim segment are moved to open segments and the victim is erased.
//! Every flash operation goes into a [`FlashSink`], which counts it or executes it on a die in virtual time.
//!
//! There are two ways to use the layer. [`Ftl::write`] is for studies without virtual time: it collects as
//! much as the schedule wants and then writes. A drive in virtual time takes the steps one by one, each when
//! its flash operation begins: [`Ftl::append_run`] for the host (behind a [`Gate`](crate::Gate)),
//! [`Ftl::pick`], [`Ftl::copy`] for every page that is still valid then, and [`Ftl::release`].
//!
//! A drive may consist of several units, each with its own segments and its own collection; see [`UnitId`].
//!
//! There are three invariants, which [`crate::check::check`] verifies. The logical-to-physical and the
//! physical-to-logical map agree on every valid page. The valid count of a segment equals the number of its
//! bits in the valid bitmap. A free segment holds no page.

mod unit;
mod groups;
mod sink;
mod collection;
mod host;
mod kept;
mod units;
mod model;

pub use sink::{CountingSink, FlashSink};
pub use unit::UnitId;

use crate::collect::Collect;
use crate::config::{FtlConfig, spare};
use crate::divisor::Divisor;
use crate::mapping::{Mapping, Moving};
use crate::placement::{PlacementPolicy, Placer};
use crate::schedule::{FtlState, Progress, ScheduleState};
use crate::segments::{SegmentId, SegmentState, SegmentTable};
use fulgurite_base::{Ppn, SpecError, StreamId};
use unit::{Turn, Unit};

/// Counters of a translation layer since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FtlCounters {
    /// The number of pages written by the host.
    pub host_pages: u64,
    /// The number of pages moved by garbage collection.
    pub copied_pages: u64,
    /// The number of segments erased.
    pub erased_segments: u64,
    /// The number of segments collected by wear leveling.
    pub leveled_segments: u64,
    /// The number of pages that were mapped to another page's physical page without a write.
    pub shared_pages: u64,
    /// The number of victims picked.
    picks: u64,
    /// The number of unwritten pages in the unit at each pick, summed over the picks.
    unwritten_at_picks: u64,
}

/// A flash translation layer; see the module.
#[derive(Clone, Debug)]
pub struct Ftl {
    config: FtlConfig,
    segment_of: Divisor,
    pub(crate) map: Mapping,
    pub(crate) segments: SegmentTable,
    placer: Placer,
    streams: u16,
    /// The open segment of each stream of each unit; `None` before the first page.
    open: Vec<Option<SegmentId>>,
    units: Vec<Unit>,
    /// The number of segments of a unit.
    unit_segments: Divisor,
    turn: Turn,
    /// The pages of one collection; empty between collections, and kept to reuse its memory.
    moving: Moving,
    idle: bool,
    is_worn_out: bool,
    counters: FtlCounters,
}

impl Ftl {
    /// Creates an empty drive.
    pub fn new(config: FtlConfig) -> Result<Ftl, SpecError> {
        config.validate()?;
        let Collect { placement, .. } = &config.collect;
        let of_unit = config.segments / config.units;
        let mut ftl = Ftl {
            segment_of: Divisor::new(config.segment_pages),
            map: Mapping::new(config.logical_pages, config.segments * config.segment_pages),
            segments: SegmentTable::new(config.segments, config.segment_pages, placement.streams()),
            placer: placement.start(&config.drive_shape()),
            streams: placement.streams(),
            open: vec![None; config.units as usize * usize::from(placement.streams())],
            units: (0..config.units)
                .map(|unit| Unit::new(&config, unit * of_unit..(unit + 1) * of_unit))
                .collect(),
            unit_segments: Divisor::new(of_unit),
            turn: Turn::new(&config),
            moving: Moving::default(),
            idle: false,
            is_worn_out: false,
            counters: FtlCounters::default(),
            config,
        };
        ftl.provide_models();
        Ok(ftl)
    }

    /// Returns the configuration.
    pub fn config(&self) -> &FtlConfig {
        &self.config
    }

    /// Returns the table of segments, for reading.
    pub fn segments(&self) -> &SegmentTable {
        &self.segments
    }

    /// Returns the page map, for reading.
    pub fn mapping(&self) -> &Mapping {
        &self.map
    }

    /// Returns the counters since the last reset.
    pub fn counters(&self) -> FtlCounters {
        self.counters
    }

    /// Returns the memory held, in bytes.
    pub fn bytes(&self) -> usize {
        self.map.bytes() + self.segments.bytes() + self.placer.bytes()
    }

    /// Resets the counters.
    fn reset_counters(&mut self) {
        self.counters = FtlCounters::default();
    }

    /// Resets counters and wear. From now on segments endure `endurance` erases; 0 for unlimited.
    pub fn start_anew(&mut self, endurance: u32) {
        self.reset_counters();
        self.idle = false;
        self.config.endurance = endurance;
        self.segments.forget_wear();
        // Resets the free lists together with the table, since they are ordered by erases.
        self.units.iter_mut().for_each(|unit| unit.wear.start_anew());
    }

    /// Returns the measured over-provisioning ρ. It follows from the average number of pages in a unit that
    /// could hold valid or invalid data when victims were picked. `None` if no victim was picked.
    pub fn spare_effective(&self) -> Option<f64> {
        let FtlCounters { picks, unwritten_at_picks, .. } = self.counters;
        let FtlConfig { segments, segment_pages, units, logical_pages, .. } = self.config;
        let units = f64::from(units);
        let physical = f64::from(segments) * f64::from(segment_pages) / units;
        // Without picks this is NaN, but then the last line returns `None`.
        let unwritten = unwritten_at_picks as f64 / picks as f64;
        (picks > 0).then(|| spare(physical - unwritten, f64::from(logical_pages) / units))
    }

    /// Returns the number of free segments of all units.
    pub fn free_segments(&self) -> u32 {
        self.units.iter().map(|unit| unit.wear.free()).sum()
    }

    /// Returns whether so many segments of a unit are worn out that writes must stop.
    pub fn is_worn_out(&self) -> bool {
        self.is_worn_out
    }

    /// Returns the physical page of `lpn`; `None` if `lpn` is unmapped.
    #[inline]
    pub fn lookup(&self, lpn: u32) -> Option<Ppn> {
        self.map.lookup(lpn)
    }

    /// Returns the number of erases of the segment that holds `lpn` since the drive was set up; `None` if
    /// `lpn` is unmapped.
    pub fn erases(&self, lpn: u32) -> Option<u32> {
        let ppn = self.lookup(lpn)?;
        Some(self.segments.erases(self.segment(ppn)))
    }

    /// Returns the segment that contains `ppn`.
    #[inline]
    pub fn segment(&self, ppn: Ppn) -> SegmentId {
        SegmentId(self.segment_of.divide(ppn.0).0)
    }

    /// Tells placement the future writes; see [`PlacementPolicy::foresee`].
    pub fn foresee(&mut self, next: Vec<u32>) {
        self.placer.foresee(next);
    }

    /// Returns the placement policy in use, for reading.
    pub fn placer(&self) -> &Placer {
        &self.placer
    }

    #[inline]
    fn is_full(&self, unit: UnitId, stream: StreamId) -> bool {
        let open = self.open[self.open_at(unit, stream)];
        open.is_none_or(|segment| self.segments.written(segment) == self.config.segment_pages)
    }

    /// Returns the next page of `stream` in `unit`; `None` if a segment must be opened first.
    #[inline]
    pub fn append_point(&self, unit: UnitId, stream: StreamId) -> Option<Ppn> {
        let segment = self.open[self.open_at(unit, stream)]?;
        let written = self.segments.written(segment);
        (written < self.config.segment_pages).then(|| Ppn(segment.0 * self.config.segment_pages + written))
    }

    /// Takes the next page of a stream's open segment, which must not be full.
    #[inline]
    fn next_page(&mut self, unit: UnitId, stream: StreamId) -> Ppn {
        let segment = self.open[self.open_at(unit, stream)].expect("a segment was opened");
        if self.has_units() {
            self.of_mut(unit).valid += 1;
        }
        debug_assert!(self.segments.written(segment) < self.config.segment_pages);
        // `FtlConfig::validate` keeps the number of physical pages below 2^32, so the product fits.
        Ppn(segment.0 * self.config.segment_pages + self.segments.append(segment, 1))
    }

    /// Returns the state that the schedule wants in `unit` for a write to `stream`.
    #[inline]
    pub fn state(&self, unit: UnitId, stream: StreamId) -> ScheduleState {
        let Unit { wear, collection, .. } = self.of(unit);
        self.decide(unit, stream, wear.free(), collection.as_ref().map(|collection| &collection.progress))
    }

    /// Returns the state that the schedule would want with `free` free segments and the progress
    /// `collection`.
    #[inline]
    fn decide(
        &self,
        unit: UnitId,
        stream: StreamId,
        free: u32,
        collection: Option<&Progress>,
    ) -> ScheduleState {
        let Unit { wear, urgent, .. } = self.of(unit);
        self.config.collect.schedule.decide(&FtlState {
            free,
            // Begins collection one segment earlier if the unit is short, that is, if a worn-out segment
            // could not be retired.
            soft: self.config.collect.reserve + u32::from(wear.is_short),
            hard: self.config.collect.hard,
            opens: self.is_full(unit, stream),
            segment_pages: self.config.segment_pages,
            stripe_pages: self.config.stripe_pages,
            collection,
            idle: self.idle && free < self.config.collect.background,
            urgent: *urgent,
        })
    }

    /// Tells the layer whether the drive is idle.
    pub fn set_idle(&mut self, idle: bool) {
        self.idle = idle;
    }

    /// Tells the layer that a write to `unit` has waited too long. The end of the unit's collection clears
    /// this.
    pub(crate) fn set_urgent(&mut self, unit: UnitId) {
        self.of_mut(unit).urgent = true;
    }

    /// Tells the layer that no write has waited too long any more.
    pub fn end_urgency(&mut self) {
        self.units.iter_mut().for_each(|unit| unit.urgent = false);
    }

    /// Seals the stream's open segment in `unit` and opens a free segment instead.
    fn renew(&mut self, unit: UnitId, stream: StreamId) {
        let fresh = self.of_mut(unit).wear.take();
        let fresh = fresh.expect("FtlConfig::validate keeps a segment free for every stream");
        let at = self.open_at(unit, stream);
        let full = self.open[at].replace(fresh);
        self.segments.open(fresh, stream);
        if let Some(full) = full {
            self.seal(full);
        }
    }

    /// Seals an open segment before it is full. The next page of its stream goes to a fresh segment.
    pub fn seal_early(&mut self, segment: SegmentId) {
        let open = self.open.iter_mut().find(|open| **open == Some(segment));
        if open.and_then(Option::take).is_some() {
            self.seal(segment);
        }
    }

    /// Seals a segment, so that it can be picked as a victim.
    fn seal(&mut self, segment: SegmentId) {
        self.segments.seal(segment);
        let unit = self.unit_of(segment).0 as usize;
        self.units[unit].candidates.sealed(segment, &self.placer, &self.segments);
    }

    /// Unmaps `lpn`. Its physical page becomes invalid, unless other logical pages share it.
    #[inline]
    fn discard(&mut self, lpn: u32) {
        let Some(ppn) = self.map.unmap(lpn) else { return };
        self.invalidated(ppn);
    }

    #[inline]
    fn invalidated(&mut self, ppn: Ppn) {
        let segment = self.segment(ppn);
        let unit = self.unit_of(segment).0 as usize;
        self.segments.invalidate(segment);
        if self.has_units() {
            self.units[unit].valid -= 1;
        }
        // Informs only the candidates, since open segments and the victim are in no index.
        if self.segments.state(segment) == SegmentState::Sealed {
            self.units[unit].candidates.invalidated(segment, &self.segments);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WearLeveling;
    use crate::check::check;
    use crate::config::Stripe;
    use crate::schedule::Schedule;
    use fulgurite_base::Prng;

    /// A sink that keeps the erased segments in order.
    #[derive(Default)]
    struct Erased(Vec<SegmentId>);

    impl FlashSink for Erased {
        fn read(&mut self, _: Ppn) {}

        fn program(&mut self, _: Ppn, _: Option<Ppn>) {}

        fn erase(&mut self, segment: SegmentId) {
            self.0.push(segment);
        }
    }

    /// Returns a drive after writing all its pages and then `writes` random pages, with the segments that it
    /// has erased.
    fn used(config: FtlConfig, writes: u32) -> (Ftl, Erased) {
        let (mut ftl, mut erased, mut prng) =
            (Ftl::new(config).unwrap(), Erased::default(), Prng::new(3, "used"));
        let pages = ftl.config().logical_pages;
        for write in 0..pages + writes {
            let lpn = if write < pages { write } else { prng.below(u64::from(pages)) as u32 };
            ftl.write(lpn, 1, StreamId(0), &mut erased);
        }
        assert_eq!(check(&ftl), Ok(()));
        (ftl, erased)
    }

    /// The rule: after setting up a drive, the counters and the erases are zero, and each unit uses its free
    /// segments in the order in which they were erased. From then on segments endure the rated erases.
    #[test]
    fn a_drive_starts_anew_after_setup() {
        let collect = Collect { reserve: 4, background: 8, ..Collect::PLAIN };
        let plain = FtlConfig { collect, ..FtlConfig::plain(600, 64, 16) };
        let config = FtlConfig { units: 2, wear_leveling: WearLeveling::Dynamic, ..plain };
        let (mut ftl, erased) = used(config, 20_000);
        ftl.set_idle(true);
        assert!(ftl.counters().erased_segments > 500);
        ftl.start_anew(7);
        assert_eq!((ftl.counters(), ftl.segments().wear()), (FtlCounters::default(), (0, 0.0, 0)));
        assert_eq!((ftl.config().endurance, ftl.idle), (7, false));
        let last = |segment: &SegmentId| erased.0.iter().rposition(|erased| erased == segment);
        for unit in ftl.units() {
            let free: Vec<Option<usize>> = ftl.free_in(unit).map(|segment| last(&segment)).collect();
            assert!(free.len() > 2 && free.is_sorted() && free[0].is_some(), "{free:?}");
        }
    }

    /// The rule: if collection begins at the reserve, the measured over-provisioning ρ equals the effective ρ
    /// of the closed forms, also with several units. It is absent if no victim was picked.
    #[test]
    fn the_measured_spare_is_that_at_the_picks() {
        for units in [1, 4] {
            let config = FtlConfig { units, ..FtlConfig::plain(1_000, 100, 16) };
            let stated = config.spare_effective();
            let (ftl, _) = used(config.clone(), 0);
            assert_eq!(ftl.spare_effective(), None);
            let (ftl, _) = used(config, 10_000);
            let measured = ftl.spare_effective().unwrap();
            assert!((measured - stated).abs() < 1e-9, "{units} units: {measured} and {stated}");
        }
    }

    /// The rule: a stream has an append point (a next page to write) while its open segment has room, and
    /// none if another segment must be opened first.
    #[test]
    fn a_full_segment_has_no_next_page() {
        let mut ftl = Ftl::new(FtlConfig::plain(400, 40, 16)).unwrap();
        for lpn in 0..40 {
            let next = (lpn % 16 > 0).then_some(Ppn(lpn));
            assert_eq!(ftl.append_point(UnitId(0), StreamId(0)), next);
            ftl.write(lpn, 1, StreamId(0), &mut Erased::default());
        }
    }

    /// The rule: the erases of a page are those of its segment, and an unmapped page has none.
    #[test]
    fn the_erases_of_a_page_are_those_of_its_segment() {
        let (mut ftl, erased) = used(FtlConfig::plain(400, 40, 16), 10_000);
        for lpn in 0..400 {
            let segment = ftl.segment(ftl.lookup(lpn).unwrap());
            let erases = erased.0.iter().filter(|erased| **erased == segment).count();
            assert!(erases > 0);
            assert_eq!(ftl.erases(lpn), Some(erases as u32));
        }
        ftl.trim(3);
        assert_eq!(ftl.erases(3), None);
    }

    /// The rule: a drive is worn out if, and only if, a unit has too few segments left.
    #[test]
    fn a_drive_wears_out() {
        let (mut ftl, mut erased) = used(FtlConfig { endurance: 10, ..FtlConfig::plain(400, 40, 16) }, 0);
        let mut prng = Prng::new(4, "wears out");
        while !ftl.is_worn_out() {
            assert!(ftl.counters().host_pages < 20_000);
            ftl.write(prng.below(400) as u32, 1, StreamId(0), &mut erased);
        }
        // The copies exceed the logical pages, so counting copies as valid pages would leave more segments in
        // use below.
        assert!(ftl.counters().copied_pages > 400);
        let erases = erased.0.len();
        while erased.0.len() < erases + 5 {
            ftl.write(prng.below(400) as u32, 1, StreamId(0), &mut erased);
            assert!(ftl.is_worn_out(), "it does not recover");
        }
        let retired = |segment: &u32| ftl.segments().state(SegmentId(*segment)) == SegmentState::Retired;
        // 25 segments of data, two in reserve and an open one remain.
        assert_eq!((0..40).filter(retired).count(), 40 - 28);
    }

    /// The rule: an idle drive collects until as many segments are free as the background threshold says.
    #[test]
    fn an_idle_drive_collects_up_to_the_background_threshold() {
        let schedule = Schedule::SEMI_PREEMPTIVE;
        let state_of = |ftl: &Ftl| ftl.state(UnitId(0), StreamId(0));
        for (background, state) in [(13, ScheduleState::Idle), (14, ScheduleState::Collecting)] {
            let collect = Collect { schedule, background, ..Collect::PLAIN };
            let (mut ftl, _) = used(FtlConfig { collect, ..FtlConfig::plain(400, 40, 16) }, 32);
            assert_eq!(ftl.free_segments(), 13);
            assert_eq!(state_of(&ftl), ScheduleState::Idle, "the host is busy");
            ftl.set_idle(true);
            assert_eq!(state_of(&ftl), state);
            ftl.set_idle(false);
            assert_eq!(state_of(&ftl), ScheduleState::Idle);
            // After a power cut the drive is not idle.
            ftl.set_idle(true);
            ftl.give_up_collection();
            assert_eq!(state_of(&ftl), ScheduleState::Idle);
        }
    }

    /// The rule: if a worn-out segment could not be retired, collection begins one free segment earlier.
    #[test]
    fn a_drive_short_of_a_segment_collects_earlier() {
        let collect = Collect { schedule: Schedule::SEMI_PREEMPTIVE, reserve: 13, ..Collect::PLAIN };
        let (mut ftl, _) = used(FtlConfig { collect, ..FtlConfig::plain(400, 40, 16) }, 32);
        let state_of = |ftl: &Ftl| ftl.state(UnitId(0), StreamId(0));
        assert_eq!((ftl.free_segments(), state_of(&ftl)), (13, ScheduleState::Idle));
        ftl.of_mut(UnitId(0)).wear.is_short = true;
        assert_eq!(state_of(&ftl), ScheduleState::Collecting);
    }

    /// The rule: while a write has waited too long, its unit serves no host operation. When no write has
    /// waited too long any more, and after a power cut, every unit serves reads again.
    #[test]
    fn urgency_ends_in_every_unit() {
        let collect = Collect { schedule: Schedule::SEMI_PREEMPTIVE, ..Collect::PLAIN };
        let plain = FtlConfig::plain(80, 12, 16);
        let mut ftl = Ftl::new(FtlConfig { collect, units: 2, ..plain }).unwrap();
        // No victim is collected, so both units eventually refuse writes.
        for lpn in (0..80).cycle() {
            if ftl.append_run(lpn, 1, StreamId(0), &mut Erased::default(), |_, _, _, _| ()) == 0 {
                break;
            }
        }
        let states = |ftl: &Ftl| [0, 1].map(|unit| ftl.state(UnitId(unit), StreamId(0)));
        assert_eq!(states(&ftl), [ScheduleState::Pressed; 2]);
        ftl.set_urgent(UnitId(1));
        assert_eq!(states(&ftl), [ScheduleState::Pressed, ScheduleState::Exclusive]);
        for end in [Ftl::end_urgency, Ftl::give_up_collection] {
            [0, 1].map(UnitId).into_iter().for_each(|unit| ftl.set_urgent(unit));
            assert_eq!(states(&ftl), [ScheduleState::Exclusive; 2]);
            end(&mut ftl);
            assert_eq!(states(&ftl), [ScheduleState::Pressed; 2]);
        }
        // The end of the collection that the write waited for ends the urgency.
        ftl.set_urgent(UnitId(1));
        while states(&ftl)[1] == ScheduleState::Exclusive {
            ftl.pick(UnitId(1)).expect("a segment is full");
            ftl.collect(UnitId(1), u32::MAX, &mut Erased::default());
            assert!(!ftl.of(UnitId(1)).urgent);
        }
    }

    /// The rule: a drive of one unit counts no valid pages for the unit, after writes, copies and rollbacks:
    /// it needs as many segments as its logical pages fill.
    #[test]
    fn one_unit_counts_no_valid_pages() {
        let (mut ftl, mut erased) = used(FtlConfig::plain(400, 40, 16), 4_000);
        assert!(ftl.counters().copied_pages > 400);
        for lpn in 0..8 {
            let old = ftl.lookup(lpn);
            ftl.write(lpn, 1, StreamId(0), &mut erased);
            ftl.take_back(ftl.lookup(lpn).unwrap(), old);
            assert_eq!((ftl.lookup(lpn), ftl.valid_in(UnitId(0))), (old, 0));
        }
        assert_eq!(check(&ftl), Ok(()));
    }

    /// The rule: a write that was overwritten since is not rolled back. An open segment that gets a page back
    /// stays open.
    #[test]
    fn an_overwritten_page_is_not_rolled_back() {
        let mut ftl = Ftl::new(FtlConfig::plain(400, 40, 16)).unwrap();
        let write = |ftl: &mut Ftl, lpn: u32| {
            ftl.write(lpn, 1, StreamId(0), &mut Erased::default());
            ftl.lookup(lpn)
        };
        let [first, second, third] = [7; 3].map(|lpn| write(&mut ftl, lpn));
        ftl.take_back(second.unwrap(), first);
        assert_eq!(ftl.lookup(7), third);
        ftl.take_back(third.unwrap(), second);
        assert_eq!((ftl.lookup(7), ftl.segments().state(SegmentId(0))), (second, SegmentState::Open));
        assert_eq!(check(&ftl), Ok(()));
        assert!((0..300).all(|lpn| write(&mut ftl, lpn).is_some()));
        assert_eq!(check(&ftl), Ok(()));
    }

    /// The rule: a clone of a drive behaves as the drive does, and neither changes the other.
    #[test]
    fn a_clone_of_a_drive_is_independent() {
        let collect = Collect { victim: crate::victim::VictimConfig::COST_BENEFIT, ..Collect::PLAIN };
        let (mut ftl, _) = used(FtlConfig { collect, ..FtlConfig::plain(400, 40, 16) }, 1_000);
        ftl.share(3, 4);
        let places = |ftl: &Ftl| (0..400).map(|lpn| ftl.lookup(lpn)).collect::<Vec<_>>();
        let (mut copy, before) = (ftl.clone(), places(&ftl));
        let went_on = |ftl: &mut Ftl| {
            let mut prng = Prng::new(5, "copy");
            (0..3_000)
                .for_each(|_| ftl.write(prng.below(400) as u32, 1, StreamId(0), &mut Erased::default()));
            assert_eq!(check(ftl), Ok(()));
            (places(ftl), ftl.counters())
        };
        let of_copy = went_on(&mut copy);
        assert_eq!(places(&ftl), before);
        assert_eq!(went_on(&mut ftl), of_copy);
    }

    /// The rule: a run is written, trimmed or shared page by page, and the host learns each written page with
    /// its new and its previous physical page.
    #[test]
    fn runs_are_processed_page_by_page() {
        for (units, stripe) in [(1, Stripe::RoundRobin), (4, Stripe::RoundRobin), (4, Stripe::Address)] {
            let config =
                FtlConfig { units, stripe, row_pages: 2, stripe_pages: 2, ..FtlConfig::plain(400, 80, 16) };
            let mut ftl = Ftl::new(config).unwrap();
            let mut erased = Erased::default();
            for first in [100, 103] {
                let before: Vec<Option<Ppn>> = (first..first + 5).map(|lpn| ftl.lookup(lpn)).collect();
                let mut told = Vec::new();
                let written = ftl.append_run(first, 5, StreamId(0), &mut erased, |_, page, to, from| {
                    told.push((page, to, from))
                });
                assert_eq!(written, 5);
                let expected =
                    (0..5).map(|page| (page, ftl.lookup(first + page).unwrap(), before[page as usize]));
                assert_eq!(told, expected.collect::<Vec<_>>());
                let home = |lpn: u32| ftl.unit_of(ftl.segment(ftl.lookup(lpn).unwrap())).0;
                assert!(stripe != Stripe::Address || (first..first + 5).all(|lpn| home(lpn) == lpn / 2 % 4));
            }
            let written: Vec<u32> = (0..400).filter(|lpn| ftl.lookup(*lpn).is_some()).collect();
            assert_eq!(written, (100..108).collect::<Vec<u32>>());
            // Page 110 is unmapped, so page 203 becomes unmapped too.
            ftl.append_run(203, 1, StreamId(0), &mut erased, |_, _, _, _| ());
            ftl.share_run(200, 107, 4);
            let shared = [200, 201, 202, 203].map(|lpn| ftl.lookup(lpn));
            assert_eq!(shared, [ftl.lookup(107), None, None, None]);
            ftl.share_run(210, 100, 3);
            assert_eq!(
                [210, 211, 212].map(|lpn| ftl.lookup(lpn)),
                [100, 101, 102].map(|lpn| ftl.lookup(lpn))
            );
            assert_eq!(ftl.counters().shared_pages, 4);
            // Page 210 shares this physical page already, so the share is not counted.
            ftl.share_run(210, 100, 1);
            assert_eq!((ftl.counters().shared_pages, ftl.lookup(210)), (4, ftl.lookup(100)));
            ftl.trim_run(101, 3);
            let kept: Vec<u32> = (0..400).filter(|lpn| ftl.lookup(*lpn).is_some()).collect();
            assert_eq!(kept, [100, 104, 105, 106, 107, 200, 210, 211, 212]);
            assert_eq!(check(&ftl), Ok(()));
        }
    }
}
