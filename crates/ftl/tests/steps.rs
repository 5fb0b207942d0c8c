//! How collection goes on in steps, how pages are spread over units, and what comes back after a power cut.

use fulgurite_base::{Ppn, Prng, StreamId};
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ftl::{
    Collect, CountingSink, FlashSink, Ftl, FtlConfig, SegmentId, SegmentState, Stripe, UnitId, check,
};

const SEGMENT: u32 = 64;
const ROW: u32 = 4;

/// What a write of the host made the flash do.
#[derive(Default)]
struct Done {
    /// Rows of which pages were read to be moved, each time that another row came.
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

/// The rule: where collection keeps step with the host, it stops between two rows and never inside one, since the flash reads all
/// pages of a row together; and it stops, rather than move the whole victim at once.
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
        // An erased segment may be the next victim again.
        before = if done.erased > 0 { None } else { done.rows.last().copied().or(before) };
    }
    assert!((1..=3).contains(&most), "{most} rows at once");
}

const UNITS: u32 = 4;
const SEGMENTS: u32 = 10;

/// Units that have as much to do as it says.
struct Busy([u32; UNITS as usize]);

impl FlashSink for Busy {
    fn read(&mut self, _: Ppn) {}

    fn program(&mut self, _: Ppn, _: Option<Ppn>) {}

    fn erase(&mut self, _: SegmentId) {}

    fn load(&self, unit: UnitId) -> u32 {
        self.0[unit.0 as usize]
    }
}

/// A drive of units with as many logical pages as they can hold, and how many that are for each unit.
fn units(stripe: Stripe) -> (Ftl, u32) {
    let plain = FtlConfig::plain(1, UNITS * SEGMENTS, SEGMENT);
    // Of each unit the segments that are kept free and the open one hold nothing that lasts.
    let holds = (SEGMENTS - plain.collect.reserve - 1) * SEGMENT;
    let logical_pages = UNITS * holds;
    let config =
        FtlConfig { logical_pages, units: UNITS, stripe, row_pages: ROW, stripe_pages: ROW, ..plain };
    (Ftl::new(config).unwrap(), holds)
}

/// Writes a page; returns the unit that it went to.
fn unit_of_write(ftl: &mut Ftl, lpn: u32, sink: &mut Busy) -> u32 {
    ftl.write(lpn, 1, StreamId(0), sink);
    ftl.unit_of(ftl.segment(ftl.lookup(lpn).unwrap())).0
}

/// The rule: units take rows of pages in turn, or the one with the least to do takes the next row, among equals the next in turn.
/// A row that is begun is filled first, whatever its unit has to do meanwhile.
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
    // Unit 3 is the next in turn after 2, and has more to do than 1.
    assert_eq!(taken, [2, 1, 2, 3, 0]);
}

/// The rule: no unit takes more pages than it can collect among, however little it has to do. Where all are full, a page stays
/// in its unit.
#[test]
fn a_unit_takes_as_many_pages_as_it_can_hold() {
    let (mut ftl, holds) = units(Stripe::LeastLoaded);
    let mut idle = Busy([0, 1, 2, 3]);
    for lpn in 0..UNITS * holds {
        assert_eq!(unit_of_write(&mut ftl, lpn, &mut idle), lpn / holds, "page {lpn} of {holds} each");
    }
    for lpn in (0..UNITS * holds).step_by(7) {
        assert_eq!(unit_of_write(&mut ftl, lpn, &mut idle), lpn / holds, "page {lpn} again");
    }
}

/// The rule: pages whose last write is taken back are where they were before, shared ones too, everything adds up, and the next
/// victims are those with the fewest valid pages by that.
#[test]
fn what_is_taken_back_is_as_it_was() {
    for stripe in [Stripe::RoundRobin, Stripe::Address] {
        let (mut ftl, holds) = units(stripe);
        let (pages, mut sink) = (UNITS * holds / 2, CountingSink::default());
        let mut prng = Prng::new(2, "taken back");
        for lpn in (0..pages).chain((0..pages).map(|_| prng.below(u64::from(pages)) as u32)) {
            ftl.write(lpn, 1, StreamId(0), &mut sink);
        }
        // A third of the pages share a place with another, and a page beyond them is new.
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
