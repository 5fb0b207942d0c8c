//! Tests of units of collection: each unit has its own free segments, victims, thresholds and states, on one
//! map.

use fulgurite_base::{Lpn, Nanos, Prng, Share, Spec, StreamId};
use fulgurite_device::{Command, Completion, Device, Operation, Tag};
use fulgurite_ftl::precondition::Precondition;
use fulgurite_ftl::{SegmentId, SegmentState, UnitId, analytic};
use fulgurite_ssd::{GcUnit, SimDrive, SsdConfig, WriteCache, preset};
use std::collections::BTreeMap;

const STRIPES: [&str; 3] = ["round-robin", "least-loaded", "address"];
const SCHEDULES: [&str; 5] = [
    "non-preemptive",
    "paced",
    "semi-preemptive",
    "semi-preemptive+merge+pipeline",
    "preemptive+merge+pipeline",
];

/// Returns a drive of four channels of two chips of two dies, so small that garbage collection is always
/// near.
fn small(options: &str) -> SsdConfig {
    let small = SsdConfig {
        channels: 4,
        chips: 2,
        dies: 2,
        planes: 1,
        blocks: 30,
        pages: 8,
        op: Share::percent(50),
        precondition: Precondition::Fill,
        ..preset::reference_e()
    };
    small.changed_by(Spec::parse(&format!("small:{options}")).unwrap()).unwrap()
}

/// Performs random writes by 16 users, five times the logical space.
fn overwrite(drive: &mut SimDrive) {
    let pages = drive.caps().pages;
    let mut prng = Prng::new(2, "units");
    let mut completions = Vec::new();
    let (mut submitted, mut completed) = (0, 0);
    while completed < 5 * pages {
        while submitted < 5 * pages && submitted - completed < 16 {
            let operation = Operation::write(Lpn(prng.below(pages)), 1);
            drive.submit(Command { tag: Tag(submitted), operation }).unwrap();
            submitted += 1;
        }
        drive.wait(None, &mut completions);
        assert!(!completions.is_empty(), "stalled after {completed} requests: {:?}", drive.state());
        completed += completions.drain(..).count() as u64;
    }
    drive.drain_events();
    drive.verify(true).unwrap();
}

/// The rule: with every schedule, write amplification is that of the closed form.
fn agrees_with_the_closed_form(unit: &str) {
    // Gives the unit `die` two dies in a chip: with one die in a chip, the units `chip` and `die` would be
    // the same.
    let dies = if unit == "die" { "channels=2,chips=1,dies=2" } else { "dies=1" };
    for (at, schedule) in SCHEDULES.iter().enumerate() {
        let stripe = STRIPES[at % 3];
        let stripe = if unit == "drive" { String::new() } else { format!(",stripe={stripe}") };
        let options = format!(
            "gc_unit={unit}{stripe},schedule={schedule},{dies},planes=2,blocks=200,pages=32,precondition=steady"
        );
        let mut drive = SimDrive::new(small(&options), 7, false).unwrap();
        overwrite(&mut drive);
        let counters = drive.counters();
        let waf = 1.0 + counters.gc_pages_copied as f64 / counters.host_pages_written as f64;
        let rho = drive.ftl().unwrap().spare_effective().unwrap();
        let expected = analytic::waf_greedy(rho, drive.config().pages_per_segment()).unwrap();
        println!("{options}: {waf:.4}, closed form {expected:.4}, {:+.2} %", (waf / expected - 1.0) * 100.0);
        assert!((waf / expected - 1.0).abs() < 0.01, "{options}: {waf}, closed form {expected}");
    }
}

/// Each unit has a test of its own, so that they run in parallel.
#[test]
fn write_amplification_of_a_drive_is_that_of_the_closed_form() {
    agrees_with_the_closed_form("drive");
}

#[test]
fn write_amplification_of_channels_is_that_of_the_closed_form() {
    agrees_with_the_closed_form("channel");
}

#[test]
fn write_amplification_of_chips_is_that_of_the_closed_form() {
    agrees_with_the_closed_form("chip");
}

#[test]
fn write_amplification_of_dies_is_that_of_the_closed_form() {
    agrees_with_the_closed_form("die");
}

#[test]
fn write_amplification_of_planes_is_that_of_the_closed_form() {
    agrees_with_the_closed_form("plane");
}

/// Returns the number of copied pages when runs of `length` pages, which together fill the logical space, are
/// first written in order, and then trimmed and rewritten as a whole in random order.
fn copied(drive: &mut SimDrive, length: u64) -> u64 {
    let runs = drive.caps().pages / length;
    let mut prng = Prng::new(4, "runs");
    let mut completions = Vec::new();
    let mut perform = |operation: Operation| {
        drive.submit(Command { tag: Tag(0), operation }).unwrap();
        while completions.is_empty() {
            drive.wait(None, &mut completions);
        }
        completions.drain(..).for_each(|done| done.status.unwrap());
    };
    for round in 0..6 * runs {
        let run = if round < runs { round } else { prng.below(runs) };
        if round >= runs {
            perform(Operation::Trim { lpn: Lpn(run * length), pages: length as u32 });
        }
        (0..length).for_each(|page| perform(Operation::write(Lpn(run * length + page), 1)));
    }
    drive.drain_events();
    drive.verify(true).unwrap();
    drive.counters().gc_pages_copied
}

/// The rule of `Caps::erase_pages`: rewriting runs of that many pages causes no copies. Rewriting runs of a
/// quarter of that length does.
#[test]
fn runs_of_an_erase_unit_cause_no_copies() {
    for unit in ["drive", "channel", "chip", "plane"] {
        let config = small(&format!("gc_unit={unit},precondition=none,op=40%"));
        let erased = u64::from(config.caps(false).erase_pages);
        let with = |length| copied(&mut SimDrive::new(config.clone(), 7, false).unwrap(), length);
        assert_eq!(with(erased), 0, "{unit}: {erased} pages");
        assert!(with(erased / 4) > 1_000, "{unit}: a quarter of {erased} pages");
    }
}

/// Returns the completion times of requests (ns, operation) in the order of submission.
fn times(drive: &mut SimDrive, requests: &[(u64, Operation)]) -> Vec<u64> {
    let mut completions: Vec<Completion> = Vec::new();
    for (tag, (at, operation)) in requests.iter().enumerate() {
        while drive.now() < Nanos(*at) {
            drive.wait(Some(Nanos(*at)), &mut completions);
        }
        drive.submit(Command { tag: Tag(tag as u64), operation: operation.clone() }).unwrap();
    }
    while completions.len() < requests.len() {
        let before = completions.len();
        drive.wait(None, &mut completions);
        assert!(completions.len() > before, "stalled in {:?}", drive.state());
    }
    let by_tag: BTreeMap<u64, u64> = completions.iter().map(|done| (done.tag.0, done.at.0)).collect();
    drive.drain_events();
    drive.verify(true).unwrap();
    by_tag.into_values().collect()
}

/// A request to the whole drive: its time, its first page, its pages, whether it reads, and the hint of a
/// write.
#[derive(Clone, Copy)]
struct Request {
    at: u64,
    first: u64,
    pages: u32,
    reads: bool,
    hint: StreamId,
}

impl Request {
    fn operation(self) -> Operation {
        let Request { first, pages, reads, hint, .. } = self;
        match reads {
            true => Operation::read(Lpn(first), pages),
            false => Operation::Write { lpn: Lpn(first), pages, from: None, stream: hint, durable: false },
        }
    }

    /// Returns the part of the request for `channel` of the four, as a request to a drive of that channel
    /// alone. Rows of `row` pages go to the channels in turn.
    fn of_channel(self, channel: u64, row: u64) -> Option<Request> {
        let mut mine =
            (self.first..self.first + u64::from(self.pages)).filter(|page| page / row % 4 == channel);
        let first = mine.next()?;
        Some(Request { first: first / row / 4 * row + first % row, pages: 1 + mine.count() as u32, ..self })
    }
}

/// The rule, and the oracle for all separate work of units: a drive with striping by address whose channels
/// collect separately equals as many drives of one channel, to the nanosecond. A request for several channels
/// ends when its last part ends.
#[test]
fn channels_by_address_equal_separate_drives() {
    for (at, schedule) in SCHEDULES.iter().enumerate() {
        for (cache, urgent, row) in [
            ("protected", 2_000, 1),
            ("protected", 9_000, 2),
            ("off", 2_000, 2),
            ("off", 9_000, 1),
            ("protected", 400, 1),
            ("off", 400, 1),
        ] {
            let urgent = if at == 0 { String::new() } else { format!(",urgent_us={urgent}") };
            let options = format!(
                "op=100%,blocks=20,planes={row},schedule={schedule},write_cache={cache},gc_reserve=4,streams=3{urgent}"
            );
            let whole = small(&format!("{options},gc_unit=channel,stripe=address"));
            let single = small(&format!("{options},channels=1"));
            let pages = whole.logical_pages();
            assert_eq!(pages, 4 * single.logical_pages());
            let mut prng = Prng::new(9, "channels");
            let mut at = 0;
            let requests: Vec<Request> = (0..6_000)
                .map(|_| {
                    // Arrivals come in bursts, so that writes must wait for collection.
                    at += if prng.below(20) == 0 { prng.below(20_000_000) } else { prng.below(160_000) };
                    let rows = if prng.below(3) > 0 {
                        prng.below(pages / row / 4)
                    } else {
                        prng.below(pages / row - 4)
                    };
                    // Reads have one page, because a read of several pages waits until none of their channels
                    // bars it. A write has at most one row for each channel, since a drive of one channel
                    // would place its rows together.
                    let reads = prng.below(10) < 4;
                    let pages = if reads { 1 } else { 1 + prng.below(4 * row) as u32 };
                    Request { at, first: rows * row, pages, reads, hint: StreamId(prng.below(3) as u16) }
                })
                .collect();
            let all: Vec<_> = requests.iter().map(|request| (request.at, request.operation())).collect();
            let mut drive = SimDrive::new(whole, 42, false).unwrap();
            let together = times(&mut drive, &all);
            assert!(drive.counters().gc_pages_copied > 1_000, "{options}");
            let mut alone = vec![0; requests.len()];
            for channel in 0..4 {
                let part: Vec<(usize, Request)> = requests
                    .iter()
                    .enumerate()
                    .filter_map(|(at, request)| Some((at, request.of_channel(channel, row)?)))
                    .collect();
                let operations: Vec<_> =
                    part.iter().map(|(_, request)| (request.at, request.operation())).collect();
                let ended = times(&mut SimDrive::new(single.clone(), 42, false).unwrap(), &operations);
                part.iter().zip(ended).for_each(|((at, _), ended)| alone[*at] = ended.max(alone[*at]));
            }
            let first = alone.iter().zip(&together).position(|(alone, together)| alone != together);
            assert_eq!(first, None, "{options}: the first request that differs");
        }
    }
}

/// Returns the number of valid pages in each unit of a drive.
fn valid_by_unit(drive: &SimDrive) -> Vec<u32> {
    let ftl = drive.ftl().unwrap();
    let mut valid = vec![0; drive.config().units() as usize];
    for lpn in 0..drive.caps().pages as u32 {
        if let Some(ppn) = ftl.lookup(lpn) {
            valid[ftl.unit_of(ftl.segment(ppn)).0 as usize] += 1;
        }
    }
    valid
}

/// The rule: no unit holds more valid pages than its limit. Without a limit, pages that leave one unit and
/// return to all units would make some units fuller and fuller.
#[test]
fn no_unit_becomes_too_full_to_collect() {
    for stripe in ["round-robin", "least-loaded"] {
        let config = small(&format!("gc_unit=channel,stripe={stripe},op=20%,blocks=40"));
        let (spared, segment) = (config.collect.reserve + 1, config.pages_per_segment());
        let most = (config.segments() - spared) * segment;
        let mut drive = SimDrive::new(config, 42, false).unwrap();
        for _ in 0..120 {
            let ftl = drive.ftl().unwrap();
            let lies_in_first = |lpn: &u64| {
                ftl.lookup(*lpn as u32).is_some_and(|ppn| ftl.unit_of(ftl.segment(ppn)) == UnitId(0))
            };
            let leaving: Vec<u64> = (0..drive.caps().pages).filter(lies_in_first).take(500).collect();
            let now = drive.now().0;
            let trims = leaving.iter().map(|lpn| (now, Operation::Trim { lpn: Lpn(*lpn), pages: 1 }));
            times(&mut drive, &trims.collect::<Vec<_>>());
            let now = drive.now().0;
            let writes = leaving.iter().map(|lpn| (now, Operation::write(Lpn(*lpn), 1)));
            times(&mut drive, &writes.collect::<Vec<_>>());
            assert!(
                valid_by_unit(&drive).iter().all(|valid| *valid <= most),
                "{:?}, {most}",
                valid_by_unit(&drive)
            );
        }
        assert!(
            valid_by_unit(&drive)[1..].contains(&most),
            "the limit was reached: {:?}",
            valid_by_unit(&drive)
        );
    }
}

#[test]
fn each_stripe_distributes_pages_by_its_rule() {
    for gc_unit in [GcUnit::Channel, GcUnit::Chip, GcUnit::Die] {
        for stripe in STRIPES {
            let config = small(&format!("stripe={stripe},gc_unit=channel,precondition=none"));
            let config = SsdConfig { gc_unit, write_cache: WriteCache::Off, ..config };
            let units = config.units();
            let mut drive = SimDrive::new(config, 42, false).unwrap();
            let unit = |drive: &SimDrive, lpn: u32| {
                let ftl = drive.ftl().unwrap();
                ftl.unit_of(ftl.segment(ftl.lookup(lpn).unwrap())).0
            };
            times(&mut drive, &[(0, Operation::write(Lpn(5), 1)), (0, Operation::write(Lpn(6), 1))]);
            let [first, second] = [5, 6].map(|lpn| unit(&drive, lpn));
            let by_address = stripe == "address";
            assert_eq!([first, second], if by_address { [5 % units, 6 % units] } else { [0, 1] }, "{stripe}");
            // Brings the turn to unit 0, which then executes a read, so only `least-loaded` chooses another
            // unit.
            let now = drive.now().0;
            times(&mut drive, &[(now, Operation::write(Lpn(7), 1)), (now, Operation::write(Lpn(8), 1))]);
            for _ in 0..units - 4 {
                let now = drive.now().0;
                times(&mut drive, &[(now, Operation::write(Lpn(9), 1))]);
            }
            let now = drive.now().0;
            let busy = [(now, Operation::read(Lpn(5), 1)), (now + 10_000, Operation::write(Lpn(10), 1))];
            times(&mut drive, &busy);
            let expected = match stripe {
                "address" => 10 % units,
                "least-loaded" => 1,
                _ => 0,
            };
            assert_eq!(unit(&drive, 10), expected, "{gc_unit:?} {stripe}");
        }
    }
}

/// The rule: all laws hold when everything happens at once in every unit: pages of many requests wait, and
/// many units collect.
#[test]
fn every_unit_obeys_every_law_under_load() {
    for unit in ["channel", "chip", "die", "plane"] {
        for (stripe, schedule) in
            STRIPES.iter().flat_map(|stripe| SCHEDULES.map(|schedule| (stripe, schedule)))
        {
            for cache in ["protected", "volatile", "off"] {
                if cache == "volatile" && *stripe != "address" {
                    continue;
                }
                let overlap = if ["channel", "chip"].contains(&unit) { ",gc_overlap=yes" } else { "" };
                let options = format!(
                    "planes=2,gc_unit={unit},stripe={stripe},schedule={schedule},write_cache={cache},\
                     gc_background=4{overlap}"
                );
                let mut drive = SimDrive::new(small(&options), 42, false).unwrap();
                let mut prng = Prng::new(5, "laws");
                let pages = drive.caps().pages;
                let mut at = 0;
                let requests: Vec<(u64, Operation)> = (0..4_000)
                    .map(|_| {
                        at += if prng.below(50) == 0 { prng.below(20_000_000) } else { prng.below(20_000) };
                        let (lpn, pages) = (Lpn(prng.below(pages - 6)), 1 + prng.below(6) as u32);
                        let operation = match prng.below(100) {
                            0..40 => Operation::read(lpn, pages),
                            40..43 => Operation::Trim { lpn, pages },
                            43..45 => Operation::Flush,
                            _ => Operation::write(lpn, pages),
                        };
                        (at, operation)
                    })
                    .collect();
                assert_eq!(times(&mut drive, &requests).len(), requests.len(), "{options}");
                assert!(drive.counters().gc_pages_copied > 500, "{options}: {:?}", drive.counters());
            }
        }
    }
}

/// Returns the most victims that unit 1 has at a time under load. With `cut`, the power is cut when the unit
/// first has two victims, and only later victims count.
fn victims_at_once(options: &str, cut: bool) -> usize {
    let mut drive = SimDrive::new(small(options), 42, false).unwrap();
    let mut prng = Prng::new(2, "ahead");
    let pages = drive.caps().pages;
    let (mut most, mut lost, mut completions) = (0, 0, Vec::new());
    for tag in 0..3_000 {
        let operation = Operation::write(Lpn(prng.below(pages)), 1);
        drive.submit(Command { tag: Tag(tag), operation }).unwrap();
        drive.wait(Some(drive.now() + Nanos::from_micros(100)), &mut completions);
        let ftl = drive.ftl().unwrap();
        let victims = (0..ftl.segments().len())
            .map(SegmentId)
            .filter(|id| ftl.unit_of(*id) == UnitId(1) && ftl.segments().state(*id) == SegmentState::Victim);
        most = most.max(victims.count());
        if cut && lost == 0 && most == 2 {
            drive.power_cut();
            lost = tag as usize + 1 - completions.len();
            assert!(lost > 0);
            most = 0;
        }
        while tag as usize + 1 - lost - completions.len() > 100 {
            drive.wait(None, &mut completions);
        }
    }
    drive.drain_events();
    drive.verify(true).unwrap();
    most
}

#[test]
fn the_next_victim_is_begun_while_the_last_is_erased() {
    let options = "gc_unit=channel,schedule=semi-preemptive,gc_reserve=6";
    assert_eq!(victims_at_once(options, false), 1);
    assert_eq!(victims_at_once(&format!("{options},gc_overlap=yes"), false), 2);
}

/// The rule: a power cut ends the collection of both victims, and later collections overlap as before.
#[test]
fn a_power_cut_ends_both_victims() {
    for cache in ["protected", "volatile", "off"] {
        let options = format!(
            "gc_unit=channel,schedule=semi-preemptive,gc_reserve=6,gc_overlap=yes,stripe=address,write_cache={cache}"
        );
        assert_eq!(victims_at_once(&options, true), 2, "{cache}");
    }
}
