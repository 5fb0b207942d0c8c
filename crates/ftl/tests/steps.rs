//! Tests of step-by-step collection, of striping over units, and of rollbacks after a power cut.

mod common;

use common::Programs;
use fulgurite_base::{Ppn, Prng, StreamId};
use fulgurite_ftl::placement::PlacementConfig;
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ftl::{
    Collect, CountingSink, FlashSink, Ftl, FtlConfig, SegmentId, SegmentState, Stripe, UnitId, check,
};

const SEGMENT: u32 = 64;
const ROW: u32 = 4;

/// A sink for the flash operations of one host write.
#[derive(Default)]
struct Done {
    /// The rows from which pages were read for copies, one entry for each change of the row.
    rows: Vec<u32>,
    erased: u32,
}

impl FlashSink for Done {
    fn read(&mut self, ppn: Ppn) {
        if self.rows.last() != Some(&(ppn.0 / ROW)) {
            self.rows.push(ppn.0 / ROW);
        }
    }

    fn program(&mut self, _: Ppn, _: Option<Ppn>) {}

    fn erase(&mut self, _: SegmentId) {
        self.erased += 1;
    }
}

/// The rule: a paced collection stops between two rows and never inside one, since the flash reads all pages
/// of a row together. It stops before it has moved the whole victim.
#[test]
fn collection_in_steps_never_stops_inside_a_row() {
    let pages = 40 * SEGMENT * 3 / 4;
    let collect = Collect { schedule: Schedule::PACED, reserve: 4, ..Collect::PLAIN };
    let config =
        FtlConfig { row_pages: ROW, stripe_pages: ROW, collect, ..FtlConfig::plain(pages, 40, SEGMENT) };
    let mut ftl = Ftl::new(config).unwrap();
    let mut prng = Prng::new(1, "steps");
    let (mut before, mut most) = (None, 0);
    for write in 0..20 * pages {
        let lpn = if write < pages { write } else { prng.below(u64::from(pages)) as u32 };
        let mut done = Done::default();
        ftl.write(lpn, 1, StreamId(0), &mut done);
        if let Some(first) = done.rows.first() {
            assert_ne!(before, Some(*first), "the row was begun by an earlier write");
        }
        most = most.max(done.rows.len());
        // An erased segment may be the next victim again, so the last row before the erase does not count.
        before = if done.erased > 0 { None } else { done.rows.last().copied().or(before) };
    }
    assert!((1..=3).contains(&most), "{most} rows at once");
}

const UNITS: u32 = 4;
const SEGMENTS: u32 = 10;

/// A sink that reports these loads of the units.
struct Busy([u32; UNITS as usize]);

impl FlashSink for Busy {
    fn read(&mut self, _: Ppn) {}

    fn program(&mut self, _: Ppn, _: Option<Ppn>) {}

    fn erase(&mut self, _: SegmentId) {}

    fn load(&self, unit: UnitId) -> u32 {
        self.0[unit.0 as usize]
    }
}

/// Returns a drive of several units with as many logical pages as they can hold, and the number of pages for
/// each unit.
fn units(stripe: Stripe) -> (Ftl, u32) {
    let plain = FtlConfig::plain(1, UNITS * SEGMENTS, SEGMENT);
    // The open segment and the segments kept free in each unit hold no lasting data.
    let holds = (SEGMENTS - plain.collect.reserve - 1) * SEGMENT;
    let logical_pages = UNITS * holds;
    let config =
        FtlConfig { logical_pages, units: UNITS, stripe, row_pages: ROW, stripe_pages: ROW, ..plain };
    (Ftl::new(config).unwrap(), holds)
}

/// Writes a page and returns its unit.
fn unit_of_write(ftl: &mut Ftl, lpn: u32, sink: &mut Busy) -> u32 {
    ftl.write(lpn, 1, StreamId(0), sink);
    ftl.unit_of(ftl.segment(ftl.lookup(lpn).unwrap())).0
}

/// The rule: units take rows of pages in turn, or the unit with the least load takes the next row, among
/// equals the next in turn. A begun row is filled first, whatever the load of its unit.
#[test]
fn rows_go_to_units_by_the_stripe() {
    let (mut ftl, _) = units(Stripe::RoundRobin);
    for lpn in 0..100 {
        assert_eq!(unit_of_write(&mut ftl, lpn, &mut Busy([3, 2, 1, 0])), lpn / ROW % UNITS, "page {lpn}");
    }
    let (mut ftl, _) = units(Stripe::LeastLoaded);
    let mut taken = Vec::new();
    for (row, busy) in
        [[2, 1, 0, 3], [5, 1, 1, 3], [1, 5, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]].into_iter().enumerate()
    {
        let first = row as u32 * ROW;
        let unit = unit_of_write(&mut ftl, first, &mut Busy(busy));
        taken.push(unit);
        for lpn in first + 1..first + ROW {
            let mut full = [0; UNITS as usize];
            full[unit as usize] = 9;
            assert_eq!(unit_of_write(&mut ftl, lpn, &mut Busy(full)), unit, "page {lpn}");
        }
    }
    // Unit 3 is the next in turn after 2, but has more load than 1.
    assert_eq!(taken, [2, 1, 2, 3, 0]);
}

/// The rule: each stream of each unit has its own segments.
#[test]
fn streams_of_units_share_no_segment() {
    let (ftl, holds) = units(Stripe::LeastLoaded);
    let collect = Collect { placement: PlacementConfig::by_hints(3), ..ftl.config().collect.clone() };
    let mut ftl =
        Ftl::new(FtlConfig { collect, logical_pages: UNITS * holds / 4, ..ftl.config().clone() }).unwrap();
    for lpn in 0..UNITS * 3 * 2 * ROW {
        // Changes unit and stream between rows, since a row goes to one unit.
        let (unit, stream) = (lpn / ROW % UNITS, lpn / ROW / UNITS % 3);
        let mut loads = [1; UNITS as usize];
        loads[unit as usize] = 0;
        ftl.write(lpn, 1, StreamId(stream as u16), &mut Busy(loads));
        let segment = ftl.segment(ftl.lookup(lpn).unwrap());
        assert_eq!(
            (ftl.unit_of(segment).0, ftl.segments().stream(segment).0),
            (unit, stream as u16),
            "{lpn}"
        );
    }
    check::check(&ftl).unwrap();
}

/// The rule: the flash programs pages at the physical pages in the map, copies included, however many pages
/// move at once.
#[test]
fn programs_go_to_the_places_of_the_map() {
    let pages = 40 * SEGMENT * 3 / 4;
    let collect = Collect { schedule: Schedule::NON_PREEMPTIVE, reserve: 4, ..Collect::PLAIN };
    let mut ftl = Ftl::new(FtlConfig { collect, ..FtlConfig::plain(pages, 40, SEGMENT) }).unwrap();
    let (mut prng, mut copies) = (Prng::new(6, "places"), 0);
    let mut places: Vec<Option<Ppn>> = vec![None; pages as usize];
    let mut owner = vec![u32::MAX; (40 * SEGMENT) as usize];
    for write in 0..4 * pages {
        let lpn = if write < pages { write } else { prng.below(u64::from(pages)) as u32 };
        let mut told = Programs::default();
        ftl.write(lpn, 1, StreamId(0), &mut told);
        for (to, from) in told.0 {
            copies += u32::from(from.is_some());
            let page = from.map_or(lpn, |from| owner[from.0 as usize]);
            (places[page as usize], owner[to.0 as usize]) = (Some(to), page);
        }
        assert_eq!(ftl.lookup(lpn), places[lpn as usize]);
    }
    assert!((0..pages).all(|lpn| ftl.lookup(lpn) == places[lpn as usize]) && copies > 1_000);
}

/// The rule: the next victim is picked while the previous victim is being erased, once that one has no valid
/// page left. Only one victim is picked ahead, and only if the schedule would collect even with the erased
/// segment free.
#[test]
fn the_next_victim_is_picked_ahead_only_if_wanted() {
    const RESERVE: u32 = 6;
    let pages = 40 * SEGMENT / 2;
    let collect = Collect { schedule: Schedule::SEMI_PREEMPTIVE, reserve: RESERVE, ..Collect::PLAIN };
    let mut ftl = Ftl::new(FtlConfig { collect, ..FtlConfig::plain(pages, 40, SEGMENT) }).unwrap();
    let (unit, stream, mut sink) = (UnitId(0), StreamId(0), CountingSink::default());
    let mut prng = Prng::new(7, "ahead");
    // Writes until no write is served; no victim is collected meanwhile.
    while ftl.append_run(prng.below(u64::from(pages)) as u32, 1, stream, &mut sink, |_, _, _, _| ()) == 1 {}
    let move_all = |ftl: &mut Ftl, victim: SegmentId| {
        for ppn in (victim.0 * SEGMENT..(victim.0 + 1) * SEGMENT).map(Ppn) {
            if ftl.mapping().is_valid(ppn) {
                assert_eq!(ftl.pick_ahead(unit, stream), None, "a page is still to be moved");
                ftl.copy(ppn, &mut CountingSink::default());
            }
        }
    };
    let mut victim = ftl.pick(unit).unwrap();
    let mut ahead = 0;
    loop {
        move_all(&mut ftl, victim);
        let is_wanted = ftl.free_segments() + 1 < RESERVE;
        let Some(next) = ftl.pick_ahead(unit, stream) else {
            assert!(!is_wanted, "{} are free", ftl.free_segments());
            break;
        };
        assert!(is_wanted, "{} are free, and one more soon", ftl.free_segments());
        ahead += 1;
        let mut valid = (next.0 * SEGMENT..(next.0 + 1) * SEGMENT).map(Ppn);
        while let Some(ppn) = valid.find(|ppn| ftl.mapping().is_valid(*ppn)) {
            ftl.copy(ppn, &mut sink);
        }
        assert_eq!(ftl.pick_ahead(unit, stream), None, "the last but one is still being erased");
        ftl.release_erased(unit, &mut sink);
        victim = next;
    }
    assert!(ahead > 1, "{ahead}");
    ftl.release(unit, &mut sink);
    assert!(!ftl.state(unit, stream).collects());
    check::check(&ftl).unwrap();
}

/// The rule: no unit accepts more pages than its collection can handle, however small its load. If all units
/// are full, a page stays in its unit.
#[test]
fn a_unit_accepts_only_pages_that_it_can_hold() {
    let (mut ftl, holds) = units(Stripe::LeastLoaded);
    let mut idle = Busy([0, 1, 2, 3]);
    for lpn in 0..UNITS * holds {
        assert_eq!(unit_of_write(&mut ftl, lpn, &mut idle), lpn / holds, "page {lpn} of {holds} each");
    }
    for lpn in (0..UNITS * holds).step_by(7) {
        assert_eq!(unit_of_write(&mut ftl, lpn, &mut idle), lpn / holds, "page {lpn} again");
    }
}

/// The rule: pages whose last write is rolled back return to their previous physical pages, shared pages too.
/// All counts agree, and the next victims are those with the fewest valid pages after the rollback.
#[test]
fn rolled_back_pages_are_as_before() {
    for stripe in [Stripe::RoundRobin, Stripe::Address] {
        let (mut ftl, holds) = units(stripe);
        let (pages, mut sink) = (UNITS * holds / 2, CountingSink::default());
        let mut prng = Prng::new(2, "taken back");
        for lpn in (0..pages).chain((0..pages).map(|_| prng.below(u64::from(pages)) as u32)) {
            ftl.write(lpn, 1, StreamId(0), &mut sink);
        }
        // A third of the pages share a physical page with another page, and one page beyond them is new.
        (0..pages / 6).for_each(|lpn| ftl.share_run(lpn, pages / 2 + lpn, 1));
        let places = |ftl: &Ftl| -> Vec<Option<Ppn>> { (0..=pages).map(|lpn| ftl.lookup(lpn)).collect() };
        let (before, erases, mut undo) = (places(&ftl), sink.erases, Vec::new());
        for lpn in (0..60).map(|_| prng.below(u64::from(pages)) as u32).chain([pages, 0, pages / 2, pages]) {
            let old = ftl.lookup(lpn);
            ftl.write(lpn, 1, StreamId(0), &mut sink);
            undo.push((ftl.lookup(lpn).unwrap(), old));
        }
        assert_eq!(sink.erases, erases, "what was before is still there");
        undo.into_iter().rev().for_each(|(ppn, old)| ftl.take_back(ppn, old));
        assert!(places(&ftl) == before, "{stripe:?}");
        check::check(&ftl).unwrap();
        for unit in 0..UNITS {
            let sealed = (unit * SEGMENTS..(unit + 1) * SEGMENTS)
                .map(SegmentId)
                .filter(|segment| ftl.segments().state(*segment) == SegmentState::Sealed);
            let fewest = sealed.map(|segment| ftl.segments().valid(segment)).min();
            let picked = ftl.pick(UnitId(unit));
            assert_eq!(picked.map(|victim| ftl.segments().valid(victim)), fewest, "{stripe:?}, unit {unit}");
        }
        (0..4 * pages)
            .for_each(|_| ftl.write(prng.below(u64::from(pages)) as u32, 1, StreamId(0), &mut sink));
        check::check(&ftl).unwrap();
    }
}
