//! Other features of a drive: shared pages, power cuts, streams, wear, energy.

use fulgurite_base::{Lpn, Nanos, Prng, Share, Spec, StreamId};
use fulgurite_device::{Arena, Buffer, Command, Device, IoError, Operation, ShareRun, Tag};
use fulgurite_ftl::placement::PlacementConfig;
use fulgurite_ftl::precondition::Precondition;
use fulgurite_ftl::schedule::ScheduleState;
use fulgurite_ftl::{Collect, SegmentId, SegmentState};
use fulgurite_ssd::{DriveCounters, SimDrive, SsdConfig, WriteCache, preset};
use proptest::prelude::*;
use std::sync::Arc;

/// Four dies of two planes, so small that garbage collection is always near.
fn small() -> SsdConfig {
    SsdConfig {
        channels: 2,
        chips: 2,
        planes: 2,
        blocks: 20,
        pages: 8,
        op: Share::percent(60),
        precondition: Precondition::None,
        ..preset::reference_e()
    }
}

fn with(options: &str) -> SsdConfig {
    small().changed_by(Spec::parse(&format!("small:{options}")).unwrap()).unwrap()
}

/// A drive with contents: each page holds a number.
struct Stamped {
    drive: SimDrive,
    arena: Arc<Arena>,
    bytes: usize,
}

fn stamp_buffer(buffer: &Buffer, stamp: u64) {
    // SAFETY: no command is in flight.
    let bytes = unsafe { buffer.bytes_mut() };
    bytes[..8].copy_from_slice(&stamp.to_le_bytes());
}

impl Stamped {
    fn new(config: SsdConfig) -> Stamped {
        let bytes = config.page_bytes as usize;
        Stamped { drive: SimDrive::new(config, 42, true).unwrap(), arena: Arena::new(bytes), bytes }
    }

    fn buffer(&self) -> Buffer {
        self.arena.buffer(0, self.bytes)
    }

    fn run(&mut self, operation: Operation) -> Result<(), IoError> {
        self.drive.submit(Command { tag: Tag(0), operation }).unwrap();
        let mut completions = Vec::new();
        self.drive.wait(None, &mut completions);
        assert_eq!(completions.len(), 1, "stalled in {:?}", self.drive.state());
        completions[0].status
    }

    fn write(&mut self, lpn: u64, stamp: u64) -> Result<(), IoError> {
        let buffer = self.buffer();
        stamp_buffer(&buffer, stamp);
        self.run(Operation::Write {
            lpn: Lpn(lpn),
            pages: 1,
            from: Some(buffer),
            stream: StreamId(0),
            durable: false,
        })
    }

    fn read(&mut self, lpn: u64) -> u64 {
        let buffer = self.buffer();
        self.run(Operation::Read { lpn: Lpn(lpn), pages: 1, into: Some(buffer.clone()) }).unwrap();
        // SAFETY: the read has completed.
        u64::from_le_bytes(unsafe { buffer.bytes() }[..8].try_into().unwrap())
    }

    fn share(&mut self, destination: u64, source: u64, pages: u32) {
        self.run(Operation::share(Lpn(destination), Lpn(source), pages)).unwrap();
    }

    fn verify(&mut self) {
        self.drive.drain_events();
        self.drive.verify(true).unwrap();
    }
}

#[test]
fn shared_pages_change_independently() {
    let mut stamped = Stamped::new(small());
    stamped.write(1, 11).unwrap();
    stamped.share(2, 1, 1);
    stamped.share(3, 2, 1);
    assert_eq!(stamped.drive.counters().host_pages_written, 1, "sharing writes nothing");
    assert_eq!(stamped.drive.counters().shared_pages, 2);
    stamped.write(1, 12).unwrap();
    assert_eq!([1, 2, 3].map(|lpn| stamped.read(lpn)), [12, 11, 11]);
    stamped.run(Operation::Trim { lpn: Lpn(2), pages: 1 }).unwrap();
    assert_eq!([1, 2, 3].map(|lpn| stamped.read(lpn)), [12, 0, 11]);
    // Sharing an empty page empties the destination.
    stamped.share(3, 2, 1);
    assert_eq!([1, 2, 3].map(|lpn| stamped.read(lpn)), [12, 0, 0]);
    stamped.verify();
    // A page that shares a place already keeps it, alone or with others.
    (0..4).for_each(|lpn| stamped.write(lpn, 100 + lpn).unwrap());
    stamped.share(4, 0, 4);
    stamped.share(0, 4, 4);
    assert_eq!(
        [0, 1, 2, 3, 4, 5, 6, 7].map(|lpn| stamped.read(lpn)),
        [100, 101, 102, 103, 100, 101, 102, 103]
    );
    stamped.verify();
}

/// The rule: pages that share a place are read from it once, and each of them gets its bytes.
#[test]
fn pages_that_share_a_place_are_read_once() {
    let mut stamped = Stamped::new(small());
    stamped.write(1, 11).unwrap();
    stamped.share(2, 1, 1);
    stamped.drive.settle();
    let before = stamped.drive.counters();
    let arena = Arena::new(2 * stamped.bytes);
    let both = arena.buffer(0, 2 * stamped.bytes);
    stamped.run(Operation::Read { lpn: Lpn(1), pages: 2, into: Some(both.clone()) }).unwrap();
    // SAFETY: the read has completed.
    let bytes = unsafe { both.bytes() };
    let stamp = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    assert_eq!([stamp(0), stamp(stamped.bytes)], [11, 11]);
    assert_eq!(stamped.drive.counters().since(&before).flash_pages_read, 1);
}

/// One to five runs of one to four pages at random addresses.
fn random_runs(prng: &mut Prng, pages: u64) -> Box<[ShareRun]> {
    let count = 1 + prng.below(5);
    let run = |_| ShareRun {
        destination: Lpn(prng.below(pages - 4)),
        source: Lpn(prng.below(pages - 4)),
        pages: 1 + prng.below(4) as u32,
    };
    (0..count).map(run).collect()
}

fn destinations(runs: &[ShareRun]) -> impl Iterator<Item = u64> + '_ {
    runs.iter().flat_map(|run| run.destination.0..run.destination.0 + u64::from(run.pages))
}

fn sources(runs: &[ShareRun]) -> impl Iterator<Item = u64> + '_ {
    runs.iter().flat_map(|run| run.source.0..run.source.0 + u64::from(run.pages))
}

/// The rule: a power cut at any time keeps all runs of a share or none, and completed shares. The
/// destinations then hold the flushed contents of the sources, the sources their latest writes.
#[test]
fn a_power_cut_keeps_a_share_whole_or_not_at_all() {
    for cache in ["protected", "volatile", "off"] {
        let mut counts = [0; 2];
        for cut_us in 0..80 {
            let options = format!("write_cache={cache},write_command_us=20,write_latency_us=9");
            let mut stamped = Stamped::new(with(&options));
            (0..40).for_each(|lpn| stamped.write(lpn, 100 + lpn).unwrap());
            stamped.run(Operation::Flush).unwrap();
            (0..20).for_each(|lpn| stamped.write(lpn, 200 + lpn).unwrap());
            let run = |page: u64| ShareRun { destination: Lpn(39 - page), source: Lpn(page), pages: 1 };
            let operation = Operation::Share { runs: (0..20).map(run).collect() };
            stamped.drive.submit(Command { tag: Tag(1), operation }).unwrap();
            let mut completions = Vec::new();
            let cut_at = stamped.drive.now() + Nanos::from_micros(10 * cut_us);
            stamped.drive.wait(Some(cut_at), &mut completions);
            stamped.drive.power_cut();
            let got: Vec<u64> = (0..20).map(|page| stamped.read(39 - page)).collect();
            let is_new = got.iter().copied().eq(200..220);
            let is_old = got.iter().copied().eq((0..20).map(|page| 139 - page));
            assert!(is_new || is_old, "{cache} after {cut_us}0 us: {got:?}");
            assert!(is_new || completions.is_empty(), "{cache} after {cut_us}0 us: it had completed");
            counts[usize::from(is_new)] += 1;
            stamped.drive.verify(true).unwrap();
        }
        assert!(counts.iter().all(|count| *count > 0), "{cache}: {counts:?}");
    }
}

/// The rule: the limit of pages in one share is the option's value, by default the published number, and 0 if
/// pages cannot leave their place.
#[test]
fn the_pages_of_a_share_are_limited_by_the_options() {
    let pages = |options: &str| with(options).caps(true).share_pages;
    assert_eq!(small().caps(true).share_pages, 250);
    assert_eq!([pages("share_pages=16"), pages("share_pages=0")], [16, 0]);
    assert_eq!([pages("gc_unit=channel,stripe=address"), pages("planes=1,in_place=yes")], [0, 0]);
    for (share_pages, expected) in [(3, Ok(())), (2, Err(IoError::Invalid)), (0, Err(IoError::Unsupported))] {
        let mut stamped = Stamped::new(with(&format!("share_pages={share_pages}")));
        assert_eq!(stamped.run(Operation::share(Lpn(10), Lpn(0), 3)), expected, "{share_pages}");
    }
}

/// The rule: a share takes the time of a command, and of 16 bytes for each of its pages.
#[test]
fn a_share_takes_a_command_and_the_list_of_its_pages() {
    let mut stamped = Stamped::new(with("write_command_us=5,write_page_us=256,write_latency_us=40"));
    let list = |pages: u64| 256_000 * 16 * pages / u64::from(stamped.drive.caps().page_bytes);
    let times = [1, 2, 20].map(|runs| (runs, Nanos(45_000 + list(runs))));
    (0..60).for_each(|lpn| stamped.write(lpn, lpn).unwrap());
    for (runs, expected) in times {
        let run = |page: u64| ShareRun { destination: Lpn(30 + page), source: Lpn(page), pages: 1 };
        let before = stamped.drive.now();
        stamped.run(Operation::Share { runs: (0..runs).map(run).collect() }).unwrap();
        assert_eq!(stamped.drive.now() - before, expected, "{runs} runs");
    }
}

/// The expected contents of each page, now and after a power cut.
struct Model {
    now: Vec<u64>,
    /// Values since the last flush, oldest first, starting with the flushed one.
    since_flush: Vec<Vec<u64>>,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Random writes, shares, trims, flushes and power cuts under garbage collection. The rule: acknowledged
    /// writes remain unless the buffer is volatile, flushed ones always remain, and a share is atomic.
    #[test]
    fn contents_survive_power_cuts(seed: u64, cache in 0usize..3, schedule in 0usize..3, unit in 0usize..6) {
        let cache = [WriteCache::Protected, WriteCache::Volatile, WriteCache::Off][cache];
        let schedule = ["paced", "semi-preemptive+merge+pipeline", "non-preemptive"][schedule];
        let unit = match (unit, cache) {
            (0, _) => "drive",
            (1, WriteCache::Protected | WriteCache::Off) => "channel",
            (2, WriteCache::Protected | WriteCache::Off) => "plane,stripe=least-loaded",
            (3, _) => "chip,stripe=address",
            (4, _) => "plane,stripe=address",
            _ => "channel,stripe=address,gc_overlap=yes",
        };
        // The cache is set last, because not every stripe allows it.
        let config = SsdConfig { write_cache: cache, ..with(&format!("schedule={schedule},gc_unit={unit}")) };
        let mut stamped = Stamped::new(config);
        let pages = stamped.drive.caps().pages;
        let mut model = Model { now: vec![0; pages as usize], since_flush: vec![vec![0]; pages as usize] };
        let mut prng = Prng::new(seed, "power");
        for stamp in 1..2_500u64 {
            let lpn = prng.below(pages);
            let set = |model: &mut Model, lpn: u64, value: u64| {
                model.now[lpn as usize] = value;
                model.since_flush[lpn as usize].push(value);
            };
            match prng.below(200) {
                0..20 => prop_assert_eq!(stamped.read(lpn), model.now[lpn as usize]),
                20..30 => {
                    stamped.run(Operation::Trim { lpn: Lpn(lpn), pages: 1 }).unwrap();
                    set(&mut model, lpn, 0);
                }
                30..40 if stamped.drive.caps().share_pages > 0 => {
                    let runs = random_runs(&mut prng, pages);
                    let status = stamped.run(Operation::Share { runs: runs.clone() });
                    let mut named: Vec<u64> = destinations(&runs).collect();
                    named.sort_unstable();
                    let is_named = |page: &u64| named.binary_search(page).is_ok();
                    if named.windows(2).any(|pair| pair[0] == pair[1]) || sources(&runs).any(|page| is_named(&page)) {
                        prop_assert_eq!(status, Err(IoError::Invalid));
                        continue;
                    }
                    prop_assert_eq!(status, Ok(()));
                    for (page, source) in destinations(&runs).zip(sources(&runs)) {
                        let value = model.now[source as usize];
                        set(&mut model, page, value);
                    }
                    if cache == WriteCache::Volatile {
                        // A completed share is durable together with its sources, so all earlier writes are
                        // in the flash.
                        (0..pages as usize).for_each(|page| model.since_flush[page] = vec![model.now[page]]);
                    }
                }
                40..44 => {
                    stamped.run(Operation::Flush).unwrap();
                    (0..pages as usize).for_each(|page| model.since_flush[page] = vec![model.now[page]]);
                }
                44..46 => {
                    // A command in flight may or may not have taken effect.
                    let (other, buffer) = (prng.below(pages), stamped.buffer());
                    stamp_buffer(&buffer, stamp);
                    let operation =
                        Operation::Write {
                            lpn: Lpn(other),
                            pages: 1,
                            from: Some(buffer),
                            stream: StreamId(0),
                            durable: false,
                        };
                    stamped.drive.submit(Command { tag: Tag(9), operation }).unwrap();
                    stamped.drive.power_cut();
                    for page in 0..pages {
                        let got = stamped.read(page);
                        let (now, known) = (model.now[page as usize], &model.since_flush[page as usize]);
                        let may_be = got == now
                            || page == other && got == stamp
                            || cache == WriteCache::Volatile && known.contains(&got);
                        prop_assert!(may_be, "page {page} holds {got} for {now}, {known:?}");
                        model.now[page as usize] = got;
                        model.since_flush[page as usize] = vec![got];
                    }
                    stamped.drive.verify(true).unwrap();
                }
                _ => {
                    stamped.write(lpn, stamp).unwrap();
                    set(&mut model, lpn, stamp);
                }
            }
        }
        stamped.verify();
        prop_assert!(stamped.drive.counters().gc_pages_copied > 50);
    }
}

/// Pages of each write of [`writes_under_way`].
const EACH: u64 = 5;

/// A full drive with writes of all its pages in flight and none answered. Not all pages have places, and the
/// last placed write has only some of them. Also returns the memory of the writes, in which each page holds
/// twice its number, plus two.
fn writes_under_way(options: &str) -> (Stamped, Arc<Arena>) {
    let mut stamped = Stamped::new(with(&format!("write_latency_us=10000,queue_depth=1024,{options}")));
    let pages = stamped.drive.caps().pages;
    assert!(pages.is_multiple_of(EACH));
    (0..pages).for_each(|lpn| stamped.write(lpn, 1 + lpn).unwrap());
    let memory = Arena::new(stamped.bytes * pages as usize);
    for lpn in 0..pages {
        stamp_buffer(&memory.buffer(stamped.bytes * lpn as usize, stamped.bytes), 2 + 2 * lpn);
    }
    for lpn in (0..pages).step_by(EACH as usize) {
        let from = Some(memory.buffer(stamped.bytes * lpn as usize, stamped.bytes * EACH as usize));
        let operation =
            Operation::Write { lpn: Lpn(lpn), pages: EACH as u32, from, stream: StreamId(0), durable: false };
        stamped.drive.submit(Command { tag: Tag(lpn), operation }).unwrap();
    }
    let mut completions = Vec::new();
    let soon = stamped.drive.now() + Nanos::from_micros(300);
    while stamped.drive.now() < soon {
        stamped.drive.wait(Some(soon), &mut completions);
    }
    assert!(completions.is_empty());
    let placed = stamped.drive.ftl().unwrap().counters().host_pages - pages;
    assert!(
        0 < placed && placed < pages && !placed.is_multiple_of(EACH),
        "{placed} of {pages} pages have places"
    );
    (stamped, memory)
}

/// The rule: a write that a protected buffer has accepted survives a power cut with its original bytes, even
/// before the host has its answer. The host may reuse its memory after the cut.
#[test]
fn a_write_without_an_answer_keeps_its_bytes_over_a_power_cut() {
    for unit in ["drive", "chip,stripe=address"] {
        let (mut stamped, memory) = writes_under_way(&format!("gc_unit={unit}"));
        let pages = stamped.drive.caps().pages;
        stamped.drive.power_cut();
        for lpn in 0..pages {
            stamp_buffer(&memory.buffer(stamped.bytes * lpn as usize, stamped.bytes), 0);
        }
        (0..pages).for_each(|lpn| assert_eq!(stamped.read(lpn), 2 + 2 * lpn, "{unit}: page {lpn}"));
        stamped.verify();
    }
}

/// The rule: a page counts as written by the host once the drive has accepted it; without a cache, once it
/// has its place. No other page in flight counts.
#[test]
fn accepted_pages_count_as_written() {
    for cache in ["protected", "volatile", "off"] {
        let (mut stamped, _memory) = writes_under_way(&format!("write_cache={cache}"));
        let pages = stamped.drive.caps().pages;
        stamped.drive.submit(Command { tag: Tag(0), operation: Operation::read(Lpn(0), 4) }).unwrap();
        let placed = stamped.drive.ftl().unwrap().counters().host_pages;
        let written = stamped.drive.counters().host_pages_written;
        assert_eq!(written, if cache == "off" { placed } else { 2 * pages }, "{cache}");
    }
}

/// The rule: with a volatile buffer, the old place of a page is not erased before its new place is
/// programmed. Here the page is in the buffer, alone in its row, when an idle drive collects the segment with
/// its old place.
#[test]
fn pages_that_a_power_cut_may_restore_are_not_erased() {
    // With overlap, collection of the next victim begins while the last one is being erased.
    for overlap in ["", ",gc_overlap=yes"] {
        cut_the_power_while_it_collects(&format!("schedule=semi-preemptive{overlap}"));
    }
}

fn cut_the_power_while_it_collects(schedule: &str) {
    let mut erased = Vec::new();
    for cut_ms in (1..60).step_by(2) {
        let mut config = SsdConfig {
            channels: 2,
            chips: 1,
            pages: 4,
            blocks: 8,
            op: Share::percent(300),
            // An erase on one die would end long before the program on the other.
            program: Nanos::from_micros(5_000),
            erase: Nanos::from_micros(1_000),
            write_cache: WriteCache::Volatile,
            ..with(schedule)
        };
        config.collect.background = 5;
        let mut stamped = Stamped::new(config);
        // Two segments, then all pages of the first one again. The last of these pages begins a new row.
        let writes: Vec<u64> = (0..32).chain([16]).chain(0..16).collect();
        for (stamp, lpn) in (1..).zip(&writes) {
            stamped.write(*lpn, stamp).unwrap();
            if stamp == 32 {
                stamped.run(Operation::Flush).unwrap();
            }
        }
        let cut = stamped.drive.now() + Nanos::from_micros(cut_ms * 1_000);
        while stamped.drive.now() < cut {
            stamped.drive.wait(Some(cut), &mut Vec::new());
        }
        erased.push(stamped.drive.counters().erases > 0);
        stamped.drive.power_cut();
        for lpn in 0..32 {
            let known: Vec<u64> =
                (1..).zip(&writes).filter(|(_, page)| **page == lpn).map(|(stamp, _)| stamp).collect();
            let got = stamped.read(lpn);
            assert!(
                known.contains(&got),
                "cut after {cut_ms} ms: page {lpn} holds {got}, was written as {known:?}"
            );
        }
        stamped.verify();
    }
    assert!(
        !erased[0] && erased[erased.len() - 1],
        "the cuts come before, while and after collection erases"
    );
}

/// Writes `count` pages, hot ones with probability 9/10 and stream 1, and returns the counters.
fn skewed_writes(config: SsdConfig, count: u64, hot_share: u64) -> (DriveCounters, SimDrive) {
    let mut drive = SimDrive::new(config, 42, false).unwrap();
    let pages = drive.caps().pages;
    let mut prng = Prng::new(3, "skewed");
    let mut completions = Vec::new();
    for tag in 0..count {
        let is_hot = prng.below(10) < 9;
        let hot = pages * hot_share / 100;
        let lpn = if is_hot { prng.below(hot) } else { hot + prng.below(pages - hot) };
        let operation = Operation::Write {
            lpn: Lpn(lpn),
            pages: 1,
            from: None,
            stream: StreamId(u16::from(is_hot)),
            durable: false,
        };
        drive.submit(Command { tag: Tag(tag), operation }).unwrap();
        drive.wait(None, &mut completions);
        if completions.pop().expect("it ends").status.is_err() {
            break;
        }
    }
    drive.drain_events();
    drive.verify(true).unwrap();
    (drive.counters(), drive)
}

fn waf(counters: &DriveCounters) -> f64 {
    (counters.host_pages_written + counters.gc_pages_copied) as f64 / counters.host_pages_written as f64
}

#[test]
fn streams_keep_hot_and_cold_apart() {
    let config = |streams, hard| SsdConfig {
        collect: Collect {
            placement: PlacementConfig::by_hints(streams),
            hard,
            reserve: 4,
            ..small().collect
        },
        blocks: 120,
        op: Share::percent(25),
        precondition: Precondition::Fill,
        ..small()
    };
    let mixed = waf(&skewed_writes(config(1, 2), 60_000, 10).0);
    let apart = waf(&skewed_writes(config(2, 2), 60_000, 10).0);
    assert!(apart < mixed * 0.8, "{apart:.3} apart, {mixed:.3} mixed");
}

#[test]
fn wear_is_levelled() {
    let spread = |leveling: &str| {
        let config =
            SsdConfig { precondition: Precondition::Fill, ..with(&format!("blocks=60,op=25%,{leveling}")) };
        let (counters, drive) = skewed_writes(config, 60_000, 5);
        let (least, mean, most) = drive.ftl().unwrap().segments().wear();
        assert!(mean > 20.0);
        (most - least, counters.leveled_segments)
    };
    let (none, dynamic) = (spread("wear_leveling=none"), spread("wear_leveling=dynamic"));
    let (loose, tight) =
        (spread("wear_leveling=static,wear_gap=16"), spread("wear_leveling=static,wear_gap=4"));
    assert_eq!((none.1, dynamic.1), (0, 0));
    assert!(loose.1 > 0 && tight.1 > loose.1, "{loose:?} {tight:?}");
    assert!(tight.0 < loose.0 && loose.0 < dynamic.0, "{tight:?} {loose:?} {dynamic:?} {none:?}");
    assert!(tight.0 <= 8, "{tight:?}");
}

/// The rule: a worn-out drive accepts no changes, and keeps everything that it has acknowledged, in the flash
/// or the buffer.
#[test]
fn a_worn_out_drive_can_still_be_read() {
    let units = ["drive", "plane,stripe=address"];
    for (cache, unit) in
        ["protected", "volatile", "off"].iter().flat_map(|cache| units.map(|unit| (cache, unit)))
    {
        wear_out(&format!("endurance=10,gc_unit={unit},write_cache={cache}"), cache);
    }
}

fn wear_out(options: &str, cache: &str) {
    let mut stamped = Stamped::new(with(options));
    let pages = stamped.drive.caps().pages;
    let mut prng = Prng::new(1, "wear out");
    let mut expected = vec![0; pages as usize];
    let mut written = 0u64;
    let error = loop {
        let lpn = prng.below(pages);
        match stamped.write(lpn, written + 1) {
            Ok(()) => {
                written += 1;
                expected[lpn as usize] = written;
            }
            Err(error) => break error,
        }
        assert!(written < 100_000, "it never wears out");
    };
    assert_eq!(error, IoError::WornOut);
    // A cached write was accepted long before the drive was worn out.
    let in_buffer = stamped.drive.ftl().unwrap().counters().host_pages < written;
    assert_eq!(in_buffer, cache != "off", "{options}");
    let refused = Err(IoError::WornOut);
    assert_eq!(stamped.run(Operation::Trim { lpn: Lpn(0), pages: 1 }), refused);
    assert_eq!(
        stamped.run(Operation::Flush),
        if cache == "volatile" { refused } else { Ok(()) },
        "{options}"
    );
    let check = |stamped: &mut Stamped| {
        (0..pages).for_each(|lpn| assert_eq!(stamped.read(lpn), expected[lpn as usize], "{options}: {lpn}"));
    };
    check(&mut stamped);
    if cache != "volatile" {
        stamped.drive.power_cut();
        check(&mut stamped);
    }
    // The power cut clears the volatile buffer, so no page is left that could not be made durable.
    stamped.drive.power_cut();
    assert_eq!(stamped.run(Operation::Flush), Ok(()), "{options}");
    stamped.verify();
    // About ten erases of every segment.
    let physical = stamped.drive.config().physical_pages() as f64;
    let programmed = stamped.drive.counters().flash_pages_programmed as f64;
    assert!((8.0..12.0).contains(&(programmed / physical)), "{programmed} programs on {physical} pages");
}

/// The rule: a drive that wears out during several writes of several pages answers each of them. Its buffer
/// then holds only the pages that it has accepted.
#[test]
fn a_drive_that_wears_out_answers_every_write() {
    let units = ["drive", "plane,stripe=address"];
    for (cache, unit) in
        ["protected", "volatile", "off"].iter().flat_map(|cache| units.map(|unit| (cache, unit)))
    {
        let options = format!("endurance=10,write_buffer=64KiB,gc_unit={unit},write_cache={cache}");
        let mut drive = SimDrive::new(with(&options), 42, false).unwrap();
        let mut prng = Prng::new(1, "wear out");
        let (mut submitted, mut answered, mut refused) = (0, 0, 0);
        let (mut written, mut sizes) = (0, Vec::new());
        let mut completions = Vec::new();
        while refused < 100 {
            while submitted < answered + 12 {
                let lpn = Lpn(prng.below(drive.caps().pages - 4));
                let pages = 1 + prng.below(4) as u32;
                sizes.push(u64::from(pages));
                drive
                    .submit(Command { tag: Tag(submitted), operation: Operation::write(lpn, pages) })
                    .unwrap();
                submitted += 1;
            }
            drive.wait(None, &mut completions);
            assert!(!completions.is_empty(), "{options}: {answered} of {submitted} writes are answered");
            answered += completions.len() as u64;
            for done in completions.drain(..) {
                match done.status {
                    Ok(()) => written += sizes[done.tag.0 as usize],
                    Err(error) => {
                        assert_eq!(error, IoError::WornOut);
                        refused += 1;
                    }
                }
            }
        }
        // Some pages of refused writes may have been written.
        assert!(written <= drive.counters().host_pages_written, "{options}: {written} pages were answered");
        drive.drain_events();
        drive.verify(true).unwrap();
    }
}

/// The rule: preconditioning stands for years of use with an idle time at its end. A new drive has no overdue
/// collection, and no erase counts against its endurance. A collection in step with the host continues from
/// its position.
#[test]
fn a_preconditioned_drive_is_idle_and_without_wear() {
    for (schedule, unit, seed) in ["paced", "semi-preemptive"].iter().flat_map(|schedule| {
        ["drive", "channel"].iter().flat_map(move |unit| (0..8).map(move |seed| (schedule, unit, seed)))
    }) {
        let options = format!("schedule={schedule},gc_unit={unit},precondition=steady,endurance=3");
        let drive = SimDrive::new(with(&options), seed, false).unwrap();
        let ftl = drive.ftl().unwrap();
        let has = |state| (0..ftl.segments().len()).any(|id| ftl.segments().state(SegmentId(id)) == state);
        assert!(!has(SegmentState::Retired), "{options}: a segment is worn out");
        assert!(*schedule == "paced" || !has(SegmentState::Victim), "{options}: a victim is half collected");
        assert!(drive.state() < ScheduleState::Pressed, "{options}: {:?}", drive.state());
        assert_eq!(drive.counters().erases, 0, "{options}");
    }
}

/// The rule: a medium that is overwritten in place is completely written if it is preconditioned, and
/// completely unwritten otherwise. A read of an unwritten page is answered without the medium.
#[test]
fn a_preconditioned_medium_in_place_is_written() {
    for (precondition, read) in [(Precondition::None, 0), (Precondition::Fill, 1), (Precondition::Steady, 1)]
    {
        let mut stamped = Stamped::new(SsdConfig { in_place: true, planes: 1, precondition, ..small() });
        assert_eq!(stamped.read(5), 0);
        assert_eq!(stamped.drive.counters().flash_pages_read, read, "{precondition:?}");
    }
}

/// The rule: pages that a power cut loses are not counted as programmed; pages that the drive still programs
/// are.
#[test]
fn a_lost_page_counts_as_not_programmed() {
    for (cache, programmed) in [("protected", 1), ("volatile", 0), ("off", 1)] {
        let mut drive = SimDrive::new(with(&format!("write_cache={cache}")), 42, false).unwrap();
        drive.submit(Command { tag: Tag(0), operation: Operation::write(Lpn(3), 1) }).unwrap();
        let amid = drive.now() + Nanos::from_micros(100);
        drive.wait(Some(amid), &mut Vec::new());
        drive.wait(Some(amid), &mut Vec::new());
        assert_eq!(drive.counters().flash_pages_programmed, 0, "{cache}");
        drive.power_cut();
        assert_eq!(drive.counters().flash_pages_programmed, programmed, "{cache}");
        drive.verify(true).unwrap();
    }
}

#[test]
fn bad_blocks_cost_spare_space() {
    let config = |bad: &str| SsdConfig {
        precondition: Precondition::Steady,
        ..with(&format!("blocks=100,op=60%,bad_blocks={bad}"))
    };
    let (good, bad) = (config("0%"), config("5%"));
    assert_eq!(good.segments(), 100);
    assert!((85..95).contains(&bad.segments()), "the worst of 8 planes has {} good blocks", bad.segments());
    assert_eq!(good.logical_pages(), bad.logical_pages());
    let (good, bad) = (skewed_writes(good, 20_000, 90).0, skewed_writes(bad, 20_000, 90).0);
    assert!(waf(&bad) > 1.05 * waf(&good), "{} {}", waf(&bad), waf(&good));
}

#[test]
fn energy_is_power_times_time() {
    let config = SsdConfig { read_mw: 1, program_mw: 10, erase_mw: 100, transfer_mw: 1_000, ..small() };
    let mut drive = SimDrive::new(config, 42, false).unwrap();
    let mut completions = Vec::new();
    for operation in [Operation::write(Lpn(0), 2), Operation::read(Lpn(0), 1)] {
        drive.submit(Command { tag: Tag(0), operation }).unwrap();
        drive.wait(None, &mut completions);
        drive.settle();
    }
    // Two programs of 200 µs, a read of 40 µs, three transfers of 5.12 µs.
    let expected = 2.0 * 200e-6 * 10e-3 + 40e-6 * 1e-3 + 3.0 * 5.12e-6;
    assert!((drive.counters().energy_j / expected - 1.0).abs() < 1e-12);
    assert!(drive.now() > Nanos::ZERO);
    // Collection adds erases of 2 ms each, on every plane of a segment.
    let pages = drive.caps().pages;
    for lpn in (0..4 * pages).map(|at| at * 7 % pages) {
        drive.submit(Command { tag: Tag(0), operation: Operation::write(Lpn(lpn), 1) }).unwrap();
        drive.wait(None, &mut completions);
    }
    drive.settle();
    drive.drain_events();
    let DriveCounters { flash_pages_read, flash_pages_programmed, erases, energy_j, .. } = drive.counters();
    assert!(erases > 0);
    let (read, programmed, erased) =
        (flash_pages_read as f64, flash_pages_programmed as f64, 8.0 * erases as f64);
    let expected = read * 40e-6 * 1e-3
        + programmed * 200e-6 * 10e-3
        + erased * 2e-3 * 100e-3
        + (read + programmed) * 5.12e-6;
    assert!((energy_j / expected - 1.0).abs() < 1e-9, "{energy_j} J, {expected} J expected");
}

/// The rule: a power cut ends everything in progress. No command completes later, the queue is empty, and the
/// drive continues like a new one.
#[test]
fn a_power_cut_ends_what_is_under_way() {
    const DEPTH: u64 = 64;
    let options = [
        "write_cache=protected",
        "write_cache=volatile",
        "write_cache=off",
        "gc_unit=chip,write_cache=off",
        "gc_overlap=yes,write_cache=volatile",
        "gc_unit=chip,stripe=address",
        "gc_unit=chip,stripe=address,write_cache=volatile",
    ];
    for (option, cut_us) in
        options.into_iter().flat_map(|option| (1..1_500).step_by(149).map(move |at| (option, at)))
    {
        let config = SsdConfig {
            queue_depth: DEPTH as u32,
            write_buffer: 16 * 4096,
            read_latency: Nanos::from_micros(30),
            write_command: Nanos::from_micros(10),
            write_latency: Nanos::from_micros(20),
            ..with(option)
        };
        let mut drive = SimDrive::new(config, 42, false).unwrap();
        let pages = drive.caps().pages;
        let mut prng = Prng::new(cut_us, option);
        let submit = |drive: &mut SimDrive, prng: &mut Prng, tag: u64| {
            let lpn = Lpn(prng.below(pages - 4));
            let operation = match prng.below(12) {
                0 => Operation::Flush,
                1 => Operation::Trim { lpn, pages: 2 },
                2 => Operation::share(Lpn(pages - 1), lpn, 1),
                3..7 => Operation::read(lpn, 3),
                _ => Operation::write(lpn, 4),
            };
            drive.submit(Command { tag: Tag(tag), operation }).unwrap();
        };
        let mut completions = Vec::new();
        // Enough writes for a collection to be in progress.
        for tag in 0..4 * pages {
            submit(&mut drive, &mut prng, tag);
            drive.wait(None, &mut completions);
        }
        completions.clear();
        for tag in 0..DEPTH {
            submit(&mut drive, &mut prng, tag);
        }
        let cut = drive.now() + Nanos::from_micros(cut_us);
        while drive.now() < cut {
            drive.wait(Some(cut), &mut completions);
            // The queue is full.
            for _ in completions.drain(..) {
                submit(&mut drive, &mut prng, 0);
            }
        }
        drive.power_cut();
        completions.clear();
        for tag in 0..DEPTH {
            submit(&mut drive, &mut prng, 1_000_000 + tag);
        }
        while completions.len() < DEPTH as usize {
            let before = completions.len();
            drive.wait(None, &mut completions);
            assert!(completions.len() > before, "{option}, cut after {cut_us} µs: the drive stalls");
        }
        let mut tags: Vec<u64> = completions.iter().map(|completion| completion.tag.0).collect();
        tags.sort_unstable();
        assert_eq!(
            tags,
            (1_000_000..1_000_000 + DEPTH).collect::<Vec<_>>(),
            "{option}, cut after {cut_us} µs"
        );
        drive.settle();
        drive.drain_events();
        drive.verify(true).unwrap();
        let mut late = Vec::new();
        drive.wait(None, &mut late);
        assert_eq!(late, [], "{option}, cut after {cut_us} µs");
    }
}

/// The rule: after a power cut with a volatile buffer, lost pages have their previous contents, even pages
/// that were written several times. Pages that collection has moved are still found.
#[test]
fn lost_pages_have_their_previous_contents() {
    let mut stamped = Stamped::new(with("write_cache=volatile"));
    for (stamp, lpn) in [(1, 7), (2, 8)] {
        stamped.write(lpn, stamp).unwrap();
    }
    stamped.run(Operation::Flush).unwrap();
    for (stamp, lpn) in [(3, 7), (4, 7), (5, 9)] {
        stamped.write(lpn, stamp).unwrap();
    }
    // No page is programmed at once.
    stamped.drive.power_cut();
    assert_eq!([7, 8, 9].map(|lpn| stamped.read(lpn)), [1, 2, 0]);
    stamped.verify();
    // While collection runs, the power is cut at every step of it, and flushed pages remain.
    let pages = stamped.drive.caps().pages;
    let mut prng = Prng::new(3, "pages");
    let mut known = vec![0; pages as usize];
    for stamp in 10..1_500 {
        let lpn = prng.below(pages);
        stamped.write(lpn, stamp).unwrap();
        known[lpn as usize] = stamp;
        if stamp % 10 == 0 {
            stamped.run(Operation::Flush).unwrap();
            let cut = stamped.drive.now() + Nanos::from_micros(prng.below(400));
            while stamped.drive.now() < cut {
                stamped.drive.wait(Some(cut), &mut Vec::new());
            }
            stamped.drive.power_cut();
            let lpn = prng.below(pages);
            assert_eq!(
                stamped.read(lpn),
                known[lpn as usize].max(match lpn {
                    7 => 1,
                    8 => 2,
                    _ => 0,
                }),
                "page {lpn}"
            );
        }
    }
    for lpn in 0..pages {
        let first = match lpn {
            7 => 1,
            8 => 2,
            _ => 0,
        };
        assert_eq!(stamped.read(lpn), known[lpn as usize].max(first), "page {lpn}");
    }
    assert!(stamped.drive.counters().gc_pages_copied > 100);
    stamped.verify();
}

/// The rule: pages that a protected buffer has accepted get their places after a power cut, even without
/// requests.
#[test]
fn pages_left_in_the_buffer_by_a_power_cut_are_written() {
    for unit in ["drive", "chip,stripe=address"] {
        let (mut stamped, _memory) = writes_under_way(&format!("gc_unit={unit}"));
        let pages = stamped.drive.caps().pages;
        stamped.drive.power_cut();
        stamped.verify();
        assert_eq!(stamped.drive.ftl().unwrap().counters().host_pages, 2 * pages, "{unit}");
    }
}

/// The rule: a settling drive completes a row early only when no page waits for its place. So it programs as
/// few rows as a drive that first runs until no event is left, except for the row that was open at the start.
#[test]
fn a_settling_drive_fills_its_rows() {
    for write_cache in ["protected", "volatile"] {
        let config = with(&format!("planes=4,schedule=paced,placement=sep-gc,write_cache={write_cache}"));
        let operations = |leave_alone: bool| {
            let mut drive = SimDrive::new(config.clone(), 42, false).unwrap();
            let (pages, mut prng) = (drive.caps().pages, Prng::new(5, "settle"));
            let mut answers = Vec::new();
            for tag in 0..6 * pages {
                let operation = Operation::write(Lpn(prng.below(pages)), 1);
                drive.submit(Command { tag: Tag(tag), operation }).unwrap();
                drive.wait(None, &mut answers);
            }
            let placed = drive.ftl().unwrap().counters().host_pages;
            assert!(placed + 500 < 6 * pages, "pages wait for their places: {placed}");
            if leave_alone {
                drive.drain_events();
            }
            drive.settle();
            drive.drain_events();
            drive.counters().flash_operations
        };
        let (settled, left_alone) = (operations(false), operations(true));
        assert!(settled <= left_alone + 1, "{write_cache}: {settled}, {left_alone}");
    }
}

/// The rule: completions that were not taken before a power cut are never delivered.
#[test]
fn untaken_completions_are_lost_in_a_power_cut() {
    let mut drive = SimDrive::new(small(), 42, false).unwrap();
    drive.submit(Command { tag: Tag(1), operation: Operation::read(Lpn(0), 1) }).unwrap();
    drive.drain_events();
    drive.power_cut();
    let mut completions = Vec::new();
    drive.wait(None, &mut completions);
    assert_eq!(completions, []);
}

/// The rule: a page written without bytes reads as zeros, even if it overwrites bytes in place.
#[test]
fn a_page_written_without_bytes_is_empty() {
    for in_place in [false, true] {
        let mut stamped = Stamped::new(SsdConfig { in_place, planes: 1, ..small() });
        stamped.write(3, 7).unwrap();
        assert_eq!(stamped.read(3), 7);
        stamped.run(Operation::write(Lpn(3), 1)).unwrap();
        assert_eq!(stamped.read(3), 0, "in place: {in_place}");
    }
}

/// The rule: the erase count of a page is that of its erase block, for all pages of the drive.
#[test]
fn the_drive_reports_erases_by_page() {
    let mut stamped = Stamped::new(small());
    let pages = stamped.drive.caps().pages;
    stamped.write(0, 1).unwrap();
    assert_eq!([0, pages, 1 << 40].map(|lpn| stamped.drive.erases(Lpn(lpn))), [Some(0), None, None]);
    // Sequential writes in rounds: each segment is erased as a whole.
    (0..8 * pages).for_each(|at| stamped.write(at % pages, at).unwrap());
    let told: Vec<u64> = (0..pages).filter_map(|lpn| stamped.drive.erases(Lpn(lpn))).collect();
    assert_eq!(told.len() as u64, pages);
    assert!(told.iter().all(|erases| *erases > 0), "{told:?}");
    let in_place = SimDrive::new(SsdConfig { in_place: true, planes: 1, ..small() }, 42, false).unwrap();
    assert_eq!(in_place.erases(Lpn(0)), None);
}
