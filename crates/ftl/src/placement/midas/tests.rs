use super::*;
use crate::victim::VictimConfig;

/// Returns the geometry of a drive of 100 segments of 16 pages.
fn drive() -> DriveShape {
    let victim = "greedy".parse::<VictimConfig>().unwrap();
    DriveShape { logical_pages: 1_000, segments: 100, segment_pages: 16, reserve: 4, victim }
}

/// Returns MiDAS with the groups HOT, G1 and G2, with predicted valid shares of 50 and 80 %, and a table of
/// segments after 2,000 writes.
fn at_work(hot: u32, first: u32) -> (Midas, SegmentTable) {
    let mut midas = Midas::start(&MidasConfig::default(), &drive());
    let prediction =
        model::Prediction { waf: 2.0, valid: vec![0.5, 0.8], hot: (0.0, 0.0), learned: Learned::NOTHING };
    midas.adopt(Configuration { hot, sized: vec![first], prediction });
    let mut segments = SegmentTable::new(100, 16, GROUPS + 1);
    (0..2_000).for_each(|_| segments.tick());
    (midas, segments)
}

#[test]
fn the_last_group_too_can_be_irregular() {
    for (valid, is_off) in [(91, true), (89, false), (71, false), (69, true)] {
        let (mut midas, segments) = at_work(0, 0);
        // Groups of size zero have their sizes, now and at the last evaluation, so both groups are evaluated.
        midas.filled = 2;
        midas.window[1] = Collected { segments: 100, valid: 8 * 100, written: 0 };
        midas.window[2] = Collected { segments: 100, valid: 16 * valid, written: 0 };
        midas.look_for_irregularity(&segments);
        let is_last = |event: &Event| matches!(event.why, Why::Irregular(2, ..));
        assert_eq!(midas.events.iter().any(is_last), is_off, "{valid} %: {:?}", midas.events);
    }
}

#[test]
fn groups_get_their_sizes_one_after_the_other() {
    let (mut midas, mut segments) = at_work(1, 2);
    midas.sizes = vec![1, 2, 5];
    midas.last = 3;
    segments.open(SegmentId(0), StreamId(1));
    midas.size_the_next(&segments);
    assert_eq!(midas.first_unsized, 2, "G1 has one segment of two");
    segments.open(SegmentId(1), StreamId(1));
    midas.regroup = None;
    midas.size_the_next(&segments);
    assert!(midas.first_unsized == 3 && midas.regroup.is_some());
    midas.size_the_next(&segments);
    assert_eq!(midas.first_unsized, 3, "there is no other");
}

/// The rule: groups are given up at once if they are worse than the best ones by more than a tenth, and at
/// the end of an epoch if they are worse by more than half a per cent. The cases are the numbers of copies in
/// 1,000 writes since the last evaluation.
#[test]
fn worse_sizes_are_given_up() {
    let had = |configuration, unsized_from| Some(Best { waf: 2.0, configuration, unsized_from });
    for (copied, is_worse) in [(1_300, true), (1_100, false)] {
        let (mut midas, segments) = at_work(1, 2);
        (midas.best, midas.looks) = (had(None, 0), 2);
        midas.looked.since = 1_000;
        midas.stretch.copied = copied;
        assert_eq!(midas.gave_up_at_once(&segments), is_worse, "{copied}");
        let is_back = matches!(midas.events.last(), Some(Event { why: Why::Worse(..), unsized_from: 0, .. }));
        assert_eq!((is_back, midas.sizes.is_empty()), (is_worse, is_worse), "{copied}");
    }
    // At the end of an epoch, the groups return to the best groups, which had sizes.
    for (copied, is_worse) in [(1_020, true), (1_005, false)] {
        let (mut midas, segments) = at_work(1, 2);
        let before = Configuration { hot: 3, ..midas.configuration.clone().unwrap() };
        midas.best = had(Some(before), 2);
        midas.sampler.start(0);
        (0..2_000).for_each(|now| midas.sampler.written((now % 1_000) as u32, now));
        midas.lifetimes = midas.sampler.take();
        (0..2_000).for_each(|now| midas.sampler.written((now % 1_000) as u32, 2_000 + now));
        midas.early.since = 0;
        midas.config.epoch = fulgurite_base::Share::percent(100);
        midas.stretch.copied = 2 * copied;
        midas.end_epoch(&segments);
        let why = midas.events.last().map(|event| event.why);
        assert_eq!(matches!(why, Some(Why::Worse(..))), is_worse, "{copied}: {why:?}");
        assert_eq!(midas.sizes.first() == Some(&3), is_worse, "{copied}: {:?}", midas.sizes);
    }
}

fn configuration(hot: u32, sized: &[u32]) -> Configuration {
    let prediction =
        model::Prediction { waf: 2.0, valid: vec![0.5, 0.8], hot: (0.0, 0.0), learned: Learned::NOTHING };
    Configuration { hot, sized: sized.to_vec(), prediction }
}

/// The rule: segments keep their group if the group has a size before and after. Segments of GN and of
/// removed groups move to GN.
#[test]
fn segments_of_the_last_group_stay_in_it() {
    let mut midas = Midas::start(&MidasConfig::default(), &drive());
    let mut groups = |sized: &[u32]| -> Vec<u16> {
        midas.adopt(configuration(1, sized));
        // All groups have reached their sizes.
        midas.first_unsized = midas.last;
        midas.take_regrouping().unwrap().into_iter().map(|stream| stream.0).take(9).collect()
    };
    assert_eq!(groups(&[2, 2]), [0, 1, 2, 3, 3, 3, 3, 3, 3]);
    assert_eq!(groups(&[2, 2, 2, 2, 2]), [0, 1, 2, 6, 4, 5, 6, 6, 6]);
    assert_eq!(groups(&[2]), [0, 1, 2, 2, 2, 2, 2, 2, 2]);
    assert_eq!(midas.take_regrouping(), None);
}

/// The rule: the best groups return as they were: with all their sizes, with the first of them, or with none.
/// The search for better groups ends after that.
#[test]
fn the_best_groups_return_with_their_sizes() {
    let all = configuration(3, &[4, 5, 6]);
    for (unsized_from, sizes, last) in
        [(0, vec![], 8), (2, vec![3, 4], 10), (3, vec![3, 4, 5], 11), (4, vec![3, 4, 5, 6], 4)]
    {
        let (mut midas, segments) = at_work(1, 2);
        midas.best = Some(Best { waf: 2.0, configuration: Some(all.clone()), unsized_from });
        midas.go_back(&segments, 3.0);
        assert_eq!((&midas.sizes, midas.last, midas.settled), (&sizes, last, true));
        let event = midas.events.last().unwrap();
        assert_eq!(
            (event.why, event.unsized_from, midas.events.len()),
            (Why::Worse(2.0, 3.0), unsized_from, 1)
        );
        let taken = if unsized_from == 0 { configuration(1, &[2]) } else { all.clone() };
        assert_eq!(midas.configuration, Some(taken), "from {unsized_from}");
    }
}

/// Returns lifetimes of 100 and 1,900 writes, half of the writes each.
fn two_lifetimes() -> Lifetimes {
    let mut counts = vec![0; 1_000];
    (counts[25], counts[475]) = (500, 500);
    Lifetimes::from_counts(4, &counts, &[], 0).unwrap()
}

/// The rule: HOT's inflow and valid share are measured once sixteen of its segments were collected. If HOT is
/// empty, no page is hot.
#[test]
fn hot_is_learned_from_sixteen_segments() {
    // The number of segments that HOT has now, the number of its segments that were collected, the number that
    // it should have, and whether its inflow and valid share are known.
    for (has, collected, size, is_known) in
        [(3, 16, 1, true), (3, 15, 1, false), (0, 16, 1, false), (3, 16, 0, true), (3, 15, 0, false)]
    {
        let (mut midas, mut segments) = at_work(size, 2);
        (0..has).for_each(|segment| segments.open(SegmentId(segment), StreamId(HOT)));
        midas.lifetimes = Some(two_lifetimes());
        midas.learned = Learned { hot_traffic: 0.7, ..Learned::NOTHING };
        let mut recent = Stretch::new(1_000);
        recent.collected[0] = Collected { segments: collected, valid: 64, written: 250 };
        midas.learn(&recent, &segments);
        if is_known {
            // A quarter of the writes goes to the 48 pages of HOT; of 256 collected pages 64 were valid. Half
            // of the writes have lifetimes up to 192.
            let learned = Learned { hot_traffic: 0.5, hot_valid: 0.25, hot_residence: 192.0, last: 1.0 };
            assert_eq!(midas.learned, learned, "{has} {collected}");
        } else {
            let hot_traffic = if size == 0 { 0.7 } else { 0.0 };
            assert_eq!(midas.learned, Learned { hot_traffic, ..Learned::NOTHING }, "{has} {collected}");
        }
    }
}

/// The rule: GN's copies are compared with the prediction once sixteen of its segments were collected. The
/// correction is limited to a factor of eight.
#[test]
fn the_last_group_is_learned_from_sixteen_segments() {
    // The prediction is four copies for each page that GN frees.
    for (collected, valid, last) in
        [(16, 128, 0.25), (15, 128, 1.0), (16, 240, 3.75), (16, 254, 8.0), (16, 0, 0.125)]
    {
        let (mut midas, segments) = at_work(0, 2);
        midas.lifetimes = Some(two_lifetimes());
        let mut recent = Stretch::new(1_000);
        recent.collected[2] = Collected { segments: collected, valid, written: 0 };
        midas.learn(&recent, &segments);
        assert!((midas.learned.last - last).abs() < 1e-9, "{collected} {valid}: {:?}", midas.learned);
    }
}

/// The rule: still pages are those in full segments of groups without a size that were sealed a whole
/// capacity ago and have no invalid page.
#[test]
fn still_pages_had_no_death_in_a_capacity() {
    let (midas, _) = at_work(1, 2);
    let mut segments = SegmentTable::new(100, 16, GROUPS + 1);
    let sealed = |segment: u32, stream: u16, segments: &mut SegmentTable| {
        segments.open(SegmentId(segment), StreamId(stream));
        segments.append(SegmentId(segment), 16);
        segments.seal(SegmentId(segment));
    };
    for (segment, stream) in [(0, 2), (1, 1), (2, 5), (3, 2)] {
        sealed(segment, stream, &mut segments);
    }
    segments.invalidate(SegmentId(3));
    segments.tick();
    sealed(4, 2, &mut segments);
    (0..999).for_each(|_| segments.tick());
    assert_eq!(midas.still_pages(&segments), 2.0 * 16.0);
    segments.tick();
    assert_eq!(midas.still_pages(&segments), 3.0 * 16.0);
}

/// The rule: a group counts as irregular, and its valid share is reported, only if sixteen of its segments
/// were collected.
#[test]
fn shares_are_measured_on_sixteen_segments() {
    for (segments, is_measured) in [(15, false), (16, true)] {
        let (mut midas, table) = at_work(0, 0);
        midas.filled = 2;
        midas.window[2] = Collected { segments, valid: 0, written: 0 };
        midas.stretch.collected[2] = Collected { segments, valid: u64::from(8 * segments), written: 0 };
        midas.look_for_irregularity(&table);
        assert_eq!(midas.events.len(), usize::from(is_measured));
        midas.note(&table, Why::Runaway);
        let event = &midas.events[0];
        let expected = is_measured.then_some(0.5);
        // The event lists HOT, G1 and the others up to GN: eight groups more after sizes were given up.
        assert_eq!(event.measured[..3], [None, None, expected]);
        assert_eq!(event.measured.len(), if is_measured { 11 } else { 3 });
    }
}

/// The rule: copies of a victim count the same one by one or all at once: as copied pages, as pages written
/// to their group, and for the filter. They are not host writes, so they have no lifetime.
#[test]
fn copies_count_the_same_one_by_one_and_at_once() {
    for group in [0, 1, 2] {
        let (mut one_by_one, mut segments) = at_work(1, 2);
        let victim = SegmentId(7);
        segments.open(victim, StreamId(group));
        one_by_one.sampler.start(0);
        // Three writes of pages of HOT make them hot.
        let hot = SegmentId(8);
        segments.open(hot, StreamId(HOT));
        (0..9).for_each(|write| one_by_one.filter.written(write % 3, hot, &segments));
        let mut at_once = one_by_one.clone();
        for _ in 0..2 {
            at_once.copied(&[0, 1, 2], victim, StreamId(group + 1), &segments);
            for lpn in 0..3 {
                one_by_one.written(&WriteContext::copy(lpn, victim), StreamId(group + 1), &segments);
            }
        }
        for midas in [&mut one_by_one, &mut at_once] {
            let written = midas.stretch.collected[usize::from(group) + 1].written;
            assert_eq!((midas.stretch.copied, written), (6, 6), "group {group}");
            let counts = (0..4).map(|lpn| midas.filter.count(lpn)).collect::<Vec<u8>>();
            assert_eq!(counts, [[0, 0, 0, 0], [1, 1, 1, 0], [3, 3, 3, 0]][usize::from(group)]);
            assert_eq!(midas.sampler.take(), None);
        }
    }
}

/// The rule: measuring begins with the first victim, and no earlier write or copy counts.
#[test]
fn measuring_begins_with_the_first_victim() {
    let mut midas = Midas::start(&MidasConfig::default(), &drive());
    let mut segments = SegmentTable::new(100, 16, GROUPS + 1);
    (0..500).for_each(|_| segments.tick());
    for segment in 0..2 {
        segments.open(SegmentId(segment), StreamId(1));
        segments.append(SegmentId(segment), 16);
        segments.invalidate(SegmentId(segment));
    }
    (midas.stretch.copied, midas.early.copied) = (9, 8);
    midas.picked(SegmentId(0), &segments);
    let seen =
        |midas: &Midas| (midas.stretch.since, midas.early.since, midas.stretch.copied, midas.early.copied);
    assert_eq!(seen(&midas), (500, 500, 0, 0));
    // An epoch is four capacities.
    assert_eq!((midas.epoch_ends, midas.check_at), (4_500, 1_700));
    segments.tick();
    midas.stretch.copied = 5;
    midas.picked(SegmentId(1), &segments);
    assert_eq!((seen(&midas), midas.epoch_ends), ((500, 500, 5, 0), 4_500));
    assert_eq!(midas.stretch.collected[1], Collected { segments: 2, valid: 30, written: 0 });
}

/// The rule: sizes are given up for good once 64 victims in a row have gained no space. Groups without sizes
/// have none to give up.
#[test]
fn sizes_that_gain_no_space_are_given_up() {
    for is_sized in [true, false] {
        let (mut midas, mut segments) = at_work(1, 2);
        if !is_sized {
            midas = Midas::start(&MidasConfig::default(), &drive());
        }
        segments.open(SegmentId(0), StreamId(1));
        segments.append(SegmentId(0), 16);
        (0..63).for_each(|_| midas.picked(SegmentId(0), &segments));
        assert!(midas.events.is_empty() && !midas.settled);
        midas.picked(SegmentId(0), &segments);
        let whys: Vec<Why> = midas.events.iter().map(|event| event.why).collect();
        let expected: &[Why] = if is_sized { &[Why::Runaway] } else { &[] };
        assert_eq!((&whys[..], midas.settled, midas.sizes.is_empty()), (expected, is_sized, true));
    }
}

/// The state of MiDAS at the end of an epoch.
#[derive(Clone, Copy, Debug)]
struct End {
    /// Whether these lifetimes are in force.
    known: bool,
    sized: bool,
    settled: bool,
    choices: u32,
    judge: bool,
    program: bool,
    /// The start of the last part of the epoch, which ends after 4,000 writes.
    since: u64,
    /// The write amplification of the best groups, divided by the prediction of the next choice; `None` if
    /// there are no best groups.
    had: Option<f64>,
}

impl End {
    const LEARNING: End = End {
        known: true,
        sized: true,
        settled: false,
        choices: 0,
        judge: true,
        program: false,
        since: 2_000,
        had: None,
    };
    const FIRST: End = End { known: false, sized: false, ..End::LEARNING };

    /// Returns the reason for a change of the groups, or for none. `measured` is the write amplification in
    /// the last part of the epoch, divided by the prediction of the next choice; no page was copied before
    /// the last part.
    fn why(self, measured: f64) -> &'static str {
        let follows = if self.program { Definition::Program } else { Definition::Paper };
        let update = fulgurite_base::Share::percent(50);
        let config = MidasConfig { judge: self.judge, follows, update, ..MidasConfig::default() };
        let mut midas = Midas::start(&config, &drive());
        let mut segments = SegmentTable::new(100, 16, GROUPS + 1);
        (0..4_000).for_each(|_| segments.tick());
        for segment in (0..84).map(SegmentId) {
            segments.open(segment, StreamId(1));
            segments.append(segment, 16);
            segments.seal(segment);
        }
        if self.sized {
            midas.adopt(configuration(0, &[2]));
        }
        // Nine of ten writes go to a tenth of the pages.
        let writes = |midas: &mut Midas| {
            let mut prng = fulgurite_base::Prng::new(6, "end");
            for now in 0..4_000 {
                let range = if prng.below(10) < 9 { 100 } else { 1_000 };
                midas.sampler.written(prng.below(range) as u32, now);
            }
        };
        midas.sampler.start(0);
        writes(&mut midas);
        if self.known {
            midas.lifetimes = midas.sampler.take();
            midas.sampler.start(0);
            writes(&mut midas);
        }
        (midas.settled, midas.choices) = (self.settled, self.choices);
        // Without sizes the new lifetimes are adopted, even if they have hardly changed.
        let in_force = midas.lifetimes.clone().filter(|_| self.sized);
        let lifetimes = in_force.or_else(|| midas.sampler.clone().take()).unwrap();
        let mut space = midas.space(&segments);
        if self.judge && !self.sized {
            // No page was found to be hot.
            space.learned.hot_traffic = 0.0;
        }
        let promised = space.select(&lifetimes).expect("some sizes promise something").prediction.waf;
        midas.best =
            self.had.map(|times| Best { waf: times * promised, configuration: None, unsized_from: 0 });
        let copied = (measured * promised - 1.0) * (4_000 - self.since) as f64;
        (midas.stretch.copied, midas.early.since) = (copied.round() as u64, self.since);
        midas.end_epoch(&segments);
        assert_eq!((midas.lifetimes().is_some(), midas.events.len()), (true, 1));
        match midas.events[0].why {
            Why::Lifetimes(_) => "lifetimes",
            Why::Learned(..) => "learned",
            Why::NoGain(..) => "no gain",
            Why::Unchanged(_) => "unchanged",
            Why::Worse(..) => "worse",
            other => panic!("{other:?}"),
        }
    }
}

/// The rule: after new lifetimes, and for groups without sizes, a choice is adopted if its prediction is
/// better than the measured write amplification. Under the same lifetimes its prediction must be better by
/// half a per cent.
#[test]
fn sizes_are_adopted_if_their_prediction_is_better() {
    let given_up = End { sized: false, ..End::LEARNING };
    for (end, expected) in [
        (End::FIRST, ["no gain", "lifetimes", "lifetimes"]),
        (given_up, ["no gain", "lifetimes", "lifetimes"]),
        (End::LEARNING, ["unchanged", "unchanged", "learned"]),
        (End { program: true, ..End::FIRST }, ["no gain", "lifetimes", "lifetimes"]),
    ] {
        assert_eq!([0.99, 1.002, 1.02].map(|measured| end.why(measured)), expected, "{end:?}");
    }
}

/// The rule: with `judge=no`, a choice is adopted once, whatever was measured. With `as=program`, its
/// prediction is compared with the whole epoch; here no page was copied in the first half.
#[test]
fn without_judge_sizes_are_adopted_once() {
    let first = End { judge: false, ..End::FIRST };
    assert_eq!([0.6, 1.5].map(|measured| first.why(measured)), ["lifetimes"; 2]);
    let given_up = End { known: true, settled: true, ..first };
    assert_eq!([0.6, 1.5].map(|measured| given_up.why(measured)), ["lifetimes"; 2]);
    let sized = End { judge: false, ..End::LEARNING };
    assert_eq!([0.6, 1.5].map(|measured| sized.why(measured)), ["unchanged"; 2]);
    let program = End { program: true, ..first };
    assert_eq!([1.01, 9.0].map(|measured| program.why(measured)), ["no gain", "lifetimes"]);
}

/// The rule: groups that are worse than the best groups are replaced by the next choice if its prediction is
/// better, up to three choices, and after that by the best groups. Stretches below three tenths of an epoch
/// are not evaluated, nor are settled groups.
#[test]
fn three_choices_are_evaluated() {
    let worse = End { had: Some(1.1), ..End::LEARNING };
    let why = |end: End| end.why(1.3);
    assert_eq!([0, 2, 3].map(|choices| why(End { choices, ..worse })), ["learned", "learned", "worse"]);
    assert_eq!(why(End { had: Some(0.9), ..worse }), "worse");
    assert_eq!([0.9, 1.2].map(|had| why(End { had: Some(had), choices: 3, ..worse })), ["worse"; 2]);
    assert_eq!(why(End { had: Some(1.31), choices: 3, ..worse }), "learned");
    assert_eq!([2_800, 2_801].map(|since| why(End { since, choices: 3, ..worse })), ["worse", "learned"]);
    assert_eq!([true, false].map(|sized| why(End { sized, settled: true, ..worse })), ["unchanged"; 2]);
}
