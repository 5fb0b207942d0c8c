//! Tests of the calls that placement receives for written pages, for all ways of writing them.

mod common;

use common::Programs;
use fulgurite_base::{Ppn, Prng, StreamId};
use fulgurite_ftl::placement::{
    AnyPlacement, CustomPlacement, DriveShape, PlacementConfig, PlacementPolicy, WriteContext,
};
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ftl::{Collect, CountingSink, Ftl, FtlConfig, SegmentId, SegmentTable, UnitId, check};
use std::collections::BTreeSet;
use std::sync::Arc;

const PAGES: u32 = 400;

/// The record of one written page: its number, whether it is a copy, its stream, and its previous segment.
type Page = (u32, bool, StreamId, Option<SegmentId>);

/// A placement policy that separates host pages by parity, and copies by parity too or, with `TOGETHER`, all
/// in one stream. It keeps all calls.
#[derive(Clone, Debug, Default)]
struct Told<const TOGETHER: bool> {
    written: Vec<Page>,
    trimmed: Vec<u32>,
    picked: Vec<SegmentId>,
}

impl<const TOGETHER: bool> PlacementPolicy for Told<TOGETHER> {
    fn stream(&self, context: &WriteContext, _: &SegmentTable) -> StreamId {
        let copies = if TOGETHER { 2 } else { 2 + (context.lpn % 2) as u16 };
        StreamId(if context.copied { copies } else { (context.lpn % 2) as u16 })
    }

    fn written(&mut self, context: &WriteContext, to: StreamId, _: &SegmentTable) {
        self.written.push((context.lpn, context.copied, to, context.segment));
    }

    fn copies_to(&self, _: SegmentId, _: &SegmentTable) -> Option<StreamId> {
        TOGETHER.then_some(StreamId(2))
    }

    fn trimmed(&mut self, lpn: u32) {
        self.trimmed.push(lpn);
    }

    fn picked(&mut self, victim: SegmentId, _: &SegmentTable) {
        self.picked.push(victim);
    }
}

impl<const TOGETHER: bool> CustomPlacement for Told<TOGETHER> {
    fn name(&self) -> &str {
        "told"
    }

    fn streams(&self) -> u16 {
        4
    }

    fn start(&self, _: &DriveShape) -> Box<dyn AnyPlacement> {
        Box::new(self.clone())
    }
}

/// Writes and trims at random, and shares if asked for. Compares the flash operations with the calls that
/// placement received.
fn told<const TOGETHER: bool>(schedule: Schedule, shares: bool) {
    let placement = PlacementConfig::Custom(Arc::new(Told::<TOGETHER>::default()));
    let collect = Collect { schedule, placement, reserve: 3, ..Collect::PLAIN };
    let mut ftl = Ftl::new(FtlConfig { collect, ..FtlConfig::plain(PAGES, 40, 16) }).unwrap();
    let (mut expected, mut trimmed, mut copies) = (Vec::new(), Vec::new(), 0);
    let (mut prng, mut owner) = (Prng::new(4, "told"), vec![u32::MAX; 40 * 16]);
    for write in 0..6 * PAGES {
        let lpn = if write < PAGES { write } else { prng.below(u64::from(PAGES)) as u32 };
        match prng.below(20) {
            0 => {
                ftl.trim(lpn);
                trimmed.push(lpn);
            }
            1 if shares => ftl.share(lpn, prng.below(u64::from(PAGES)) as u32),
            _ => {}
        }
        let mut programs = Programs::default();
        let before = ftl.lookup(lpn);
        ftl.write(lpn, 1, StreamId(0), &mut programs);
        // Collection may have moved the page before it was written.
        let moved = programs.0.iter().find(|(_, from)| from.is_some() && *from == before).map(|(to, _)| *to);
        for (to, from) in programs.0 {
            let page = from.map_or(lpn, |from| owner[from.0 as usize]);
            let copied = from.is_some();
            copies += u32::from(copied);
            let place = from.or(moved).or(before);
            let stream = match (copied, TOGETHER) {
                (false, _) => page % 2,
                (true, true) => 2,
                (true, false) => 2 + page % 2,
            };
            expected.push((page, copied, StreamId(stream as u16), place.map(|ppn| ftl.segment(ppn))));
            owner[to.0 as usize] = page;
        }
    }
    let placed = ftl.placer().policy::<Told<TOGETHER>>().unwrap();
    if !shares {
        assert_eq!(placed.written, expected);
    }
    let host = placed.written.iter().filter(|page| !page.1).count() as u32;
    assert_eq!((host, placed.written.len() as u32 - host), (6 * PAGES, copies));
    assert!(placed.trimmed == trimmed && copies > 500);
    assert!(placed.picked.len() as u64 >= ftl.counters().erased_segments);
    check::check(&ftl).unwrap();
}

/// The rule: placement is told each written page in order, whether the host wrote it or it was copied, with
/// the chosen stream and the previous segment. Placement is told each trim.
#[test]
fn placement_is_told_every_written_page() {
    for schedule in [Schedule::NON_PREEMPTIVE, Schedule::PACED] {
        for shares in [false, true] {
            told::<false>(schedule, shares);
            told::<true>(schedule, shares);
        }
    }
}

/// The rule: the stream of a copy is known before the copy, even if it is not the stream that placement
/// chose, because no segment is free.
#[test]
fn the_stream_of_a_copy_is_known_before() {
    for reserve in [1, 2] {
        let placement = PlacementConfig::Custom(Arc::new(Told::<false>::default()));
        let collect = Collect { placement, reserve, ..Collect::PLAIN };
        let mut ftl = Ftl::new(FtlConfig { collect, ..FtlConfig::plain(PAGES, 40, 16) }).unwrap();
        let (mut prng, mut sink) = (Prng::new(4, "before"), CountingSink::default());
        let (mut as_chosen, mut elsewhere) = (0, 0);
        for write in 0..6 * PAGES {
            let lpn = if write < PAGES { write } else { prng.below(u64::from(PAGES)) as u32 };
            let stream = ftl.stream(lpn, StreamId(0));
            while !ftl.admit(UnitId(0), stream) {
                let victim = ftl.pick(UnitId(0)).expect("a segment is full");
                for ppn in (victim.0 * 16..(victim.0 + 1) * 16).map(Ppn) {
                    if ftl.mapping().is_valid(ppn) {
                        let (stream, page) = (ftl.copy_stream(ppn), ftl.mapping().owner(ppn));
                        let to = ftl.copy(ppn, &mut sink);
                        assert_eq!(ftl.segments().stream(ftl.segment(to)), stream);
                        let chosen = u32::from(stream.0) == 2 + page % 2;
                        *if chosen { &mut as_chosen } else { &mut elsewhere } += 1;
                    }
                }
                ftl.release(UnitId(0), &mut sink);
            }
            let place = ftl.append(lpn, StreamId(0), UnitId(0), stream, &mut sink);
            assert_eq!((stream, ftl.lookup(lpn)), (StreamId((lpn % 2) as u16), Some(place)));
        }
        assert_eq!((as_chosen > 500, elsewhere > 500), (reserve == 2, reserve == 1));
        check::check(&ftl).unwrap();
    }
}

/// The rule: the counts of the counting sink agree with the layer's counters.
#[test]
fn the_counting_sink_agrees_with_the_counters() {
    // SepBIT chooses a stream for each copy; the other placement has one stream for all.
    let ways =
        [("none", Schedule::NON_PREEMPTIVE), ("none", Schedule::PACED), ("sepbit", Schedule::NON_PREEMPTIVE)];
    for (placement, schedule) in ways {
        let placement = placement.parse::<PlacementConfig>().unwrap();
        let collect = Collect { schedule, placement, ..Collect::PLAIN };
        let mut ftl = Ftl::new(FtlConfig { collect, ..FtlConfig::plain(PAGES, 40, 16) }).unwrap();
        let (mut prng, mut sink) = (Prng::new(4, "counts"), CountingSink::default());
        for write in 0..6 * PAGES {
            let lpn = if write < PAGES { write } else { prng.below(u64::from(PAGES)) as u32 };
            ftl.write(lpn, 1, StreamId(0), &mut sink);
        }
        let done = ftl.counters();
        assert_eq!(sink.programs, done.host_pages + done.copied_pages);
        assert_eq!((sink.reads, sink.erases), (done.copied_pages, done.erased_segments));
        assert!(done.copied_pages > 500 && done.host_pages == 6 * u64::from(PAGES));
    }
}

/// The rule: a policy that names one stream for all copies of a victim chooses the same stream for each of
/// them. Only policies that decide by page name none.
#[test]
fn the_stream_for_all_copies_is_that_of_each_copy() {
    for name in PlacementConfig::registry().names().filter(|name| !["oracle", "nodap"].contains(name)) {
        let placement = name.parse::<PlacementConfig>().unwrap();
        let collect = Collect { placement, reserve: 4, ..Collect::PLAIN };
        let mut ftl = Ftl::new(FtlConfig { collect, ..FtlConfig::plain(4 * PAGES, 150, 16) }).unwrap();
        let (mut prng, mut sink) = (Prng::new(4, "at once"), CountingSink::default());
        let (mut told, mut streams) = (0, BTreeSet::new());
        for write in 0..40 * PAGES {
            let lpn = if write < 4 * PAGES { write } else { prng.below(u64::from(4 * PAGES)) as u32 };
            ftl.write(lpn, 1, StreamId((lpn % 7) as u16), &mut sink);
            let (lpn, segments) = (prng.below(u64::from(4 * PAGES)) as u32, ftl.segments());
            let Some(segment) = ftl.lookup(lpn).map(|ppn| ftl.segment(ppn)) else { continue };
            if let Some(stream) = ftl.placer().copies_to(segment, segments) {
                assert_eq!(
                    ftl.placer().stream(&WriteContext::copy(lpn, segment), segments),
                    stream,
                    "{name}"
                );
                streams.insert(stream);
                told += 1;
            }
        }
        assert!((told > 0) != ["sepbit", "dogi", "fulgurite"].contains(&name), "{name}: {told}");
        // The two streams of 2R change roles; those of the others depend on the victim.
        let has_several = ["dac", "mida", "midas", "hints", "2r"].contains(&name);
        assert_eq!(streams.len() > 1, has_several, "{name}: {streams:?}");
    }
}
