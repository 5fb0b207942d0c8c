use super::*;
use crate::schedule::Schedule;
use crate::victim::VictimConfig;
use crate::{Collect, CountingSink, Ftl, FtlConfig};

/// One step of intervals is 10 page writes, so the first μ is 30.
const LOGICAL: u32 = 5_120;

/// DOGI, and a table of 40 segments of 16 pages.
fn rig() -> (Dogi, SegmentTable) {
    let (segment_pages, victim) = (16, VictimConfig::GREEDY);
    let drive = DriveShape { logical_pages: LOGICAL, segments: 400, segment_pages, reserve: 2, victim };
    let config = DogiConfig::default();
    (Dogi::start(&config, &drive), SegmentTable::new(40, segment_pages, Dogi::streams(&config)))
}

fn host(lpn: u32, segment: Option<u32>) -> WriteContext {
    WriteContext { lpn, copied: false, hint: StreamId(0), segment: segment.map(SegmentId) }
}

fn pass(table: &mut SegmentTable, writes: u32) {
    (0..writes).for_each(|_| table.tick());
}

/// Writes a host page, and returns its stream.
fn write(dogi: &mut Dogi, table: &mut SegmentTable, context: WriteContext) -> u16 {
    let to = dogi.stream(&context, table);
    dogi.written(&context, to, table);
    table.tick();
    to.0
}

/// The categories 1 and 2 share group 1, with the bound 100; then group 2, with the bound 400; then group 3.
fn with_groups(dogi: &mut Dogi) {
    let network = Network::trained(&[([0.0; FEATURES], 0)], &mut Prng::new(1, "any"));
    let of = [1, 1, 2, 2, 3, 3, 3, 3, 3, 3];
    let groups = Groups { of, bounds: vec![100, 400], copies_to: [1, 2, 3, 3, 3, 3, 3, 3, 3, 3] };
    (dogi.network, dogi.regroup) = (Some((network, groups)), true);
}

/// The rule: a page is hot if the segments that have held it since its last write are younger than μ together. A
/// page that is not mapped is not hot.
#[test]
fn a_page_is_hot_by_the_ages_of_its_segments() {
    let (mut dogi, mut table) = rig();
    assert_eq!(write(&mut dogi, &mut table, host(5, None)), 1);
    table.open(SegmentId(0), StreamId(1));
    pass(&mut table, 29);
    assert_eq!(dogi.stream(&host(5, Some(0)), &table), StreamId(HOT));
    pass(&mut table, 1);
    assert_eq!(dogi.stream(&host(5, Some(0)), &table), StreamId(1));
    dogi.written(&WriteContext::copy(5, SegmentId(0)), StreamId(2), &table);
    table.open(SegmentId(1), StreamId(2));
    pass(&mut table, 1);
    assert_eq!(
        write(&mut dogi, &mut table, host(5, Some(1))),
        1,
        "segment 1 is young, and segment 0 was old"
    );
    table.open(SegmentId(2), StreamId(1));
    assert_eq!(write(&mut dogi, &mut table, host(5, Some(2))), HOT);
}

/// The rule: the features are the page, the page before it, the interval, a bit for each window in which the page was
/// written, the number of these windows, and the number of writes to the 512 pages around it.
#[test]
fn features_describe_the_writes_of_a_page() {
    let (mut dogi, mut table) = rig();
    write(&mut dogi, &mut table, host(5, None));
    write(&mut dogi, &mut table, host(511, None));
    assert_eq!(dogi.features(5, 7), [5.0, 511.0, 7.0, 128.0, 1.0, 2.0]);
    while table.now() < 6_100 {
        write(&mut dogi, &mut table, host(512, None));
    }
    assert_eq!(dogi.features(5, 7), [5.0, 512.0, 7.0, 64.0, 1.0, 2.0], "after a window");
    write(&mut dogi, &mut table, host(5, None));
    assert_eq!(dogi.features(5, 7), [5.0, 5.0, 7.0, 192.0, 2.0, 3.0]);
}

/// The rule: without a network, copies go to the next of the groups 1 to 3, and pages that were never overwritten go
/// to the frozen group. A page that was not overwritten for 5.96 capacities counts as such.
#[test]
fn copies_go_by_age_until_there_is_a_network() {
    let (mut dogi, mut table) = rig();
    for (segment, group) in [HOT, 1, 2, 3, FROZEN].into_iter().enumerate() {
        table.open(SegmentId(segment as u32), StreamId(group));
    }
    let groups = |dogi: &Dogi, table: &SegmentTable| -> Vec<u16> {
        (0..5).map(|victim| dogi.stream(&WriteContext::copy(7, SegmentId(victim)), table).0).collect()
    };
    write(&mut dogi, &mut table, host(7, None));
    assert_eq!(groups(&dogi, &table), [FROZEN; 5]);
    write(&mut dogi, &mut table, host(7, Some(1)));
    assert_eq!(groups(&dogi, &table), [1, 2, 3, 3, 3]);
    while table.now() < 30_515 {
        assert_eq!(groups(&dogi, &table), [1, 2, 3, 3, 3]);
        (0..100).for_each(|_| _ = write(&mut dogi, &mut table, host(9, None)));
    }
    assert_eq!(groups(&dogi, &table), [FROZEN; 5]);
}

/// The rule: with a network the first copy of a page goes by its category, a later copy to the next group, and a hot
/// page to group 1. All groups but the last and the frozen one have a queue.
#[test]
fn copies_go_by_category_once() {
    let (mut dogi, mut table) = rig();
    with_groups(&mut dogi);
    for (segment, group) in [HOT, 1, 2, 3].into_iter().enumerate() {
        table.open(SegmentId(segment as u32), StreamId(group));
    }
    let copy = |dogi: &mut Dogi, victim: u32| {
        let context = WriteContext::copy(7, SegmentId(victim));
        let to = dogi.stream(&context, &table);
        dogi.written(&context, to, &table);
        to.0
    };
    for (category, from, first, second) in
        [(0, HOT, 1, 1), (1, 1, 1, 2), (2, 1, 2, 2), (3, 2, 3, 3), (9, 3, 3, 3)]
    {
        dogi.pages[7] = Page { state: category | Page::UPDATED, ..Page::default() };
        let victim = u32::from(from);
        assert_eq!(
            (copy(&mut dogi, victim), copy(&mut dogi, victim)),
            (first, second),
            "category {category}"
        );
    }
    let queues = [HOT, 1, 2, 3, FROZEN].map(|group| dogi.queue(StreamId(group)));
    assert_eq!(queues, [Some(HOT), Some(1), Some(2), None, None]);
    let groups = dogi.take_regrouping().unwrap().into_iter().map(|group| group.0);
    assert_eq!(groups.collect::<Vec<u16>>(), [0, 1, 2, 3, 3, 3, 3, 3, 3, 3, 3, FROZEN]);
    assert_eq!(dogi.take_regrouping(), None);
}

/// The rule: the next victim is in the first group with a segment older than the bound of the group; μ is the bound
/// of the hot group.
#[test]
fn segments_wait_for_the_bound_of_their_group() {
    let (mut dogi, mut table) = rig();
    with_groups(&mut dogi);
    for (segment, group) in [(0, 3), (1, 2), (2, 1), (3, HOT)] {
        table.open(SegmentId(segment), StreamId(group));
        table.append(SegmentId(segment), 16);
        table.seal(SegmentId(segment));
    }
    table.invalidate(SegmentId(0));
    for (now, group) in [(30, None), (31, Some(HOT)), (500, Some(HOT))] {
        let writes = now - table.now() as u32;
        pass(&mut table, writes);
        assert_eq!(dogi.overfull(&table), group, "at {now}");
    }
    for (victim, group) in [(3, Some(1)), (2, Some(2)), (1, None)] {
        table.begin_collection(SegmentId(victim));
        assert_eq!(dogi.overfull(&table), group);
    }
}

/// The rule: μ grows by a step after a window with a write amplification that is 5 % lower, and loses the last step
/// after one that is 5 % higher.
#[test]
fn mu_grows_while_that_helps() {
    let (mut dogi, _) = rig();
    let windows = [(200, 3), (180, 4), (160, 5), (158, 5), (180, 4), (200, 4), (195, 4), (150, 5)];
    for (written, mu) in windows {
        dogi.window = Window { host: 100, copies: written - 100 };
        dogi.move_mu();
        assert_eq!(dogi.mu, mu, "{written}");
    }
}

/// Writes 16 capacities: half of the writes go to one of 64 pages in turn, the others at random to the rest.
fn trained(placement: &str) -> Ftl {
    let pages = 1u32 << 16;
    let placement = placement.parse().unwrap();
    let collect = Collect {
        placement,
        victim: VictimConfig::GREEDY,
        schedule: Schedule::NON_PREEMPTIVE,
        ..Collect::PLAIN
    };
    let mut ftl = Ftl::new(FtlConfig { collect, ..FtlConfig::plain(pages, 560, 128) }).unwrap();
    let (mut prng, mut sink) = (Prng::new(2, "dogi"), CountingSink::default());
    let short = pages / 64;
    for write in 0..16 * pages {
        let lpn = match write {
            _ if write < pages => write,
            _ if write % 2 == 0 => write / 2 % short,
            _ => short + prng.below(u64::from(pages - short)) as u32,
        };
        ftl.write(lpn, 1, StreamId(0), &mut sink);
    }
    ftl
}

/// The rule: the network learns which pages live shortly, so that they get groups of their own. Fewer pages are
/// copied than without a network.
#[test]
fn training_separates_lifetimes() {
    let (ftl, without) = (trained("dogi"), trained("dogi:retrain=100000%"));
    let dogi: &Dogi = ftl.placer().policy().unwrap();
    let (network, groups) = dogi.network.as_ref().unwrap();
    let group = |lpn: u32| {
        let segment = ftl.lookup(lpn).map(|ppn| ftl.segment(ppn));
        let interval = dogi.interval(lpn, segment, ftl.segments());
        groups.of[network.category(&dogi.features(lpn, interval))]
    };
    let mean = |lpns: std::ops::Range<u32>| {
        let count = lpns.len() as f64;
        lpns.map(|lpn| f64::from(group(lpn))).sum::<f64>() / count
    };
    let (short, long) = (mean(0..1_024), mean(1_024..65_536));
    assert!(short + 0.5 < long, "{short} and {long}: {groups:?}");
    let copies = |ftl: &Ftl| ftl.counters().copied_pages;
    assert!(copies(&ftl) < copies(&without), "{} and {}", copies(&ftl), copies(&without));
}

/// The rule: a network that is right in less than a tenth of the logged samples is not used. Every tenth sample is
/// logged, the others are used for training.
#[test]
fn a_network_that_is_wrong_is_not_used() {
    let (mut dogi, table) = rig();
    for (logged, is_used) in [(1, true), (5_000, false)] {
        dogi.samples = Samples::new(10_000);
        for lpn in 0..100_000 {
            dogi.samples.offer(lpn, [0.0; FEATURES], 0);
        }
        dogi.samples.end_period();
        for sample in 0..10_000 {
            let life = if sample % 10 == 0 { logged } else { 1 };
            dogi.samples.died(10 * sample + 9, life);
        }
        dogi.train(&table);
        assert_eq!((dogi.network.is_some(), dogi.regroup), (is_used, true), "{logged}");
    }
}

/// The rule: a clone goes on as the original would, also between the choice of a stream and the write. Here the page
/// is hot, until it is copied.
#[test]
fn a_clone_predicts_the_same() {
    let (mut dogi, mut table) = rig();
    with_groups(&mut dogi);
    table.open(SegmentId(0), StreamId(1));
    pass(&mut table, 25);
    let context = host(5, Some(0));
    let to = dogi.stream(&context, &table);
    dogi.written(&WriteContext::copy(5, SegmentId(0)), StreamId(1), &table);
    let mut clone = dogi.clone();
    for dogi in [&mut dogi, &mut clone] {
        dogi.written(&context, to, &table);
    }
    assert_eq!(dogi.pages[5].state, clone.pages[5].state);
}
