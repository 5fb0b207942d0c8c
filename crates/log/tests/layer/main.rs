//! Tests of the layer: it passes the conformance tests, keeps contents right in any order of the drive's
//! operations, copies exactly as many pages as the same translation layer without virtual time, and loses no
//! page when the drive below fails.

mod failures;

use fulgurite_base::{Lpn, Nanos, Prng, Share, Spec, StreamId};
use fulgurite_device::{
    Arena, Buffer, Caps, Command, Completion, Device, Fault, FaultDevice, IoError, MemDevice, Operation,
    QueueFull, Tag, conformance,
};
use fulgurite_ftl::placement::PlacementConfig;
use fulgurite_ftl::precondition::Precondition;
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ftl::victim::VictimConfig;
use fulgurite_ftl::{Collect, CountingSink, Ftl, UnitId};
use fulgurite_log::{LogConfig, LogCounters, LogDevice, LogError};
use fulgurite_ssd::{SimDrive, SsdConfig, preset};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const PAGE: u32 = 512;

/// Returns a configuration with segments of eight pages; the drive below has half as many pages again as the
/// layer.
fn small() -> LogConfig {
    LogConfig {
        op: Share::percent(50),
        segment_bytes: 8 * u64::from(PAGE),
        depth: 5,
        ..with_schedule(Schedule::SEMI_PREEMPTIVE, LogConfig::default())
    }
}

fn with_placement(placement: PlacementConfig, config: LogConfig) -> LogConfig {
    LogConfig { collect: Collect { placement, ..config.collect }, ..config }
}

fn with_schedule(schedule: Schedule, config: LogConfig) -> LogConfig {
    LogConfig { collect: Collect { schedule, ..config.collect }, ..config }
}

fn mem(pages: u64) -> MemDevice {
    MemDevice::new(pages, PAGE, 32, Nanos::from_micros(10))
}

fn layer<D: Device>(below: D, config: LogConfig) -> LogDevice<D> {
    LogDevice::new(below, config).unwrap()
}

/// A drive that performs commands in any order, each at its completion. This is the least order that a drive
/// may keep.
struct Shuffled {
    below: MemDevice,
    pending: Vec<Command>,
    prng: Prng,
    now: Nanos,
    trims: u64,
    commands: u64,
    registered: usize,
    /// The pages that were read and not trimmed since; `again` counts the repeated reads of such pages.
    seen: BTreeSet<u64>,
    again: u64,
    caps: Caps,
}

impl Shuffled {
    fn new(pages: u64, seed: u64) -> Shuffled {
        let below = MemDevice::new(pages, PAGE, 16, Nanos::ZERO);
        let caps = Caps { share_pages: 0, ..below.caps().clone() };
        let prng = Prng::new(seed, "shuffled");
        Shuffled {
            below,
            pending: Vec::new(),
            prng,
            now: Nanos::ZERO,
            trims: 0,
            commands: 0,
            registered: 0,
            seen: BTreeSet::new(),
            again: 0,
            caps,
        }
    }
}

impl Device for Shuffled {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn erases(&self, lpn: Lpn) -> Option<u64> {
        Some(1_000 + lpn.0)
    }

    fn register(&mut self, _: &Arc<Arena>) {
        self.registered += 1;
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        if self.pending.len() == 16 {
            return Err(QueueFull(command));
        }
        self.commands += 1;
        match command.operation {
            Operation::Read { lpn, pages, .. } => {
                let again = (lpn.0..lpn.0 + u64::from(pages)).filter(|page| !self.seen.insert(*page));
                self.again += again.count() as u64;
            }
            Operation::Trim { lpn, pages } => {
                self.trims += 1;
                self.seen.retain(|page| !(lpn.0..lpn.0 + u64::from(pages)).contains(page));
            }
            _ => {}
        }
        self.pending.push(command);
        Ok(())
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        if self.pending.is_empty() {
            self.now = deadline.unwrap_or(self.now).max(self.now);
            return;
        }
        let at = self.prng.below(self.pending.len() as u64) as usize;
        self.below.submit(self.pending.swap_remove(at)).unwrap();
        let first = completions.len();
        self.below.wait(None, completions);
        self.now += Nanos(1_000);
        completions[first].at = self.now;
    }
}

#[test]
fn the_layer_conforms_over_every_drive() {
    let config = LogConfig { segment_bytes: 16 * u64::from(PAGE), ..small() };
    conformance::check_simulated(|| layer(mem(256), config.clone()));
    conformance::check_simulated(|| layer(mem(256), with_schedule(Schedule::PACED, config.clone())));
    // Below a short queue, commands of the layer wait for room in it.
    let short = || MemDevice::new(256, PAGE, 4, Nanos::from_micros(10));
    conformance::check_simulated(|| layer(short(), config.clone()));
    let drive = SsdConfig {
        channels: 1,
        chips: 1,
        dies: 2,
        planes: 1,
        blocks: 16,
        pages: 64,
        op: Share::percent(60),
        precondition: Precondition::None,
        ..preset::reference_e()
    };
    let page = u64::from(drive.page_bytes);
    let config = LogConfig { segment_bytes: 64 * page, ..small() };
    conformance::check_simulated(|| layer(SimDrive::new(drive.clone(), 42, true).unwrap(), config.clone()));
}

/// Returns a buffer of pages with consecutive versions, from `version` on. All bytes of a page hold its
/// version.
fn stamped(version: u64, pages: u64) -> Buffer {
    let buffer = Arena::new((pages * u64::from(PAGE)) as usize).buffer(0, (pages * u64::from(PAGE)) as usize);
    // SAFETY: no other code has its address.
    for (page, bytes) in unsafe { buffer.bytes_mut() }.chunks_exact_mut(PAGE as usize).enumerate() {
        for word in bytes.chunks_exact_mut(8) {
            word.copy_from_slice(&(version + page as u64).to_le_bytes());
        }
    }
    buffer
}

/// Returns the versions in a buffer, one for each page.
fn versions(buffer: &Buffer) -> Vec<u64> {
    // SAFETY: the command that filled the buffer has completed.
    let pages = unsafe { buffer.bytes() }.chunks_exact(PAGE as usize);
    let version = |page: &[u8]| {
        let mut words = page.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        let first = words.next().unwrap();
        assert!(words.all(|word| word == first), "a page of mixed versions");
        first
    };
    pages.map(version).collect()
}

/// The versions that a read of a page may return: at least the newest version completed when the read began,
/// at most the newest version sent.
#[derive(Clone, Copy, Default)]
struct Known {
    arrived: u64,
    sent: u64,
}

enum Asked {
    Read { lpn: u64, floors: Vec<u64>, into: Buffer },
    Write { lpn: u64, version: u64, pages: u64 },
}

/// Runs random reads and writes of up to four pages, up to 16 at once, checked against [`Known`].
fn shuffle(config: LogConfig, seed: u64) -> LogDevice<Shuffled> {
    let mut device = layer(Shuffled::new(192, seed), config);
    let pages = device.caps().pages;
    let mut known = vec![Known::default(); pages as usize];
    let mut prng = Prng::new(seed, "requests");
    let mut asked = BTreeMap::new();
    let (mut next, mut completions) = (1, Vec::new());
    for tag in 0..6_000 {
        let count = 1 + prng.below(4);
        // Half of all requests go to an eighth of the pages.
        let range = if prng.chance(Share::percent(50)) { pages / 8 } else { pages };
        let lpn = prng.below(range - count);
        let operation = if prng.chance(Share::percent(40)) {
            let into = stamped(0, count);
            let floors = (lpn..lpn + count).map(|page| known[page as usize].arrived).collect();
            asked.insert(tag, Asked::Read { lpn, floors, into: into.clone() });
            Operation::Read { lpn: Lpn(lpn), pages: count as u32, into: Some(into) }
        } else {
            asked.insert(tag, Asked::Write { lpn, version: next, pages: count });
            (0..count).for_each(|page| known[(lpn + page) as usize].sent = next + page);
            let from = Some(stamped(next, count));
            next += count;
            Operation::Write {
                lpn: Lpn(lpn),
                pages: count as u32,
                from,
                stream: StreamId::default(),
                durable: false,
            }
        };
        device.submit(Command { tag: Tag(tag), operation }).unwrap();
        while asked.len() == 16 || tag == 5_999 && !asked.is_empty() {
            device.wait(None, &mut completions);
            assert!(!completions.is_empty(), "the layer stalled");
            for completion in completions.drain(..) {
                assert_eq!(completion.status, Ok(()));
                match asked.remove(&completion.tag.0).expect("it completes once") {
                    Asked::Read { lpn, floors, into } => {
                        for ((page, floor), version) in (lpn..).zip(floors).zip(versions(&into)) {
                            let newest = known[page as usize].sent;
                            assert!(
                                (floor..=newest).contains(&version),
                                "page {page}: {version} is not in {floor}..={newest}"
                            );
                        }
                    }
                    Asked::Write { lpn, version, pages } => {
                        for page in 0..pages {
                            let known = &mut known[(lpn + page) as usize];
                            known.arrived = known.arrived.max(version + page);
                        }
                    }
                }
            }
        }
    }
    device.drain_events();
    device.verify(true).unwrap();
    // At the end, each page holds the last version sent to it.
    for page in 0..pages {
        assert_eq!(read(&mut device, page), Ok(known[page as usize].sent), "page {page} at the end");
    }
    device
}

fn run<D: Device>(device: &mut LogDevice<D>, operation: Operation) -> Result<(), IoError> {
    let mut completions = Vec::new();
    device.submit(Command { tag: Tag(7), operation }).unwrap();
    device.wait(None, &mut completions);
    assert_eq!(completions.len(), 1, "the layer stalled");
    completions[0].status
}

fn read<D: Device>(device: &mut LogDevice<D>, page: u64) -> Result<u64, IoError> {
    let into = stamped(u64::MAX, 1);
    run(device, Operation::Read { lpn: Lpn(page), pages: 1, into: Some(into.clone()) })?;
    Ok(versions(&into)[0])
}

fn write<D: Device>(device: &mut LogDevice<D>, page: u64, version: u64) -> Result<(), IoError> {
    let (from, stream) = (Some(stamped(version, 1)), StreamId::default());
    run(device, Operation::Write { lpn: Lpn(page), pages: 1, from, stream, durable: false })
}

#[test]
fn contents_are_right_in_any_order_of_the_drives_operations() {
    for name in PlacementConfig::registry().names() {
        let placement = name.parse::<PlacementConfig>().unwrap();
        if placement.needs_future() || placement.streams() > 3 {
            continue;
        }
        for seed in 0..4 {
            let device = shuffle(with_placement(placement.clone(), small()), seed);
            assert!(device.counters().copied_pages > 100, "{name} has hardly copied anything");
        }
    }
    for schedule in [Schedule::NON_PREEMPTIVE, Schedule::PACED] {
        shuffle(with_schedule(schedule, small()), 1);
    }
    shuffle(LogConfig { trim: false, depth: 1, ..small() }, 1);
    shuffle(LogConfig { trim: false, ..with_schedule(Schedule::NON_PREEMPTIVE, small()) }, 2);
}

/// The rule: consecutive pages on the drive below take one command.
#[test]
fn pages_side_by_side_take_one_command() {
    let mut device = layer(Shuffled::new(192, 1), small());
    let four = |lpn: u64| Operation::write(Lpn(lpn), 4);
    // Two writes of four pages fill a segment of eight; the next four pages begin another segment.
    for (lpn, commands) in [(0, 1), (4, 2), (8, 3)] {
        run(&mut device, four(lpn)).unwrap();
        assert_eq!(device.below().commands, commands);
    }
    for (lpn, pages, commands) in [(1, 3, 4), (6, 4, 6), (2, 6, 7)] {
        run(&mut device, Operation::read(Lpn(lpn), pages)).unwrap();
        assert_eq!(device.below().commands, commands, "a read of {pages} pages from {lpn} on");
    }
}

/// The rule: collection reads a page of its victim once, even if the host continues meanwhile.
#[test]
fn a_page_of_the_victim_is_fetched_once() {
    for depth in [1, 5] {
        let mut device = layer(Shuffled::new(192, 1), LogConfig { depth, ..small() });
        let (mut prng, mut completions) = (Prng::new(1, "writes"), Vec::new());
        for tag in 0..2_000 {
            let operation = Operation::write(Lpn(prng.below(device.caps().pages)), 1);
            device.submit(Command { tag: Tag(tag), operation }).unwrap();
            while tag + 1 > completions.len() as u64 + 7 {
                device.wait(None, &mut completions);
            }
        }
        device.drain_events();
        assert!(device.counters().copied_pages > 1_000);
        assert_eq!(device.below().again, 0, "{depth} at once");
    }
}

/// The rule: a command is submitted to the drive below at once, and a flush ends when the drive below has
/// flushed.
#[test]
fn a_flush_ends_when_the_drive_below_has_flushed() {
    let mut device = layer(Shuffled::new(192, 1), small());
    device.submit(Command { tag: Tag(1), operation: Operation::Flush }).unwrap();
    assert!(device.below().commands == 1 && !device.is_idle());
    let mut completions = Vec::new();
    device.wait(None, &mut completions);
    assert_eq!(completions, [Completion { tag: Tag(1), at: Nanos(1_000), status: Ok(()) }]);
    assert!(device.is_idle());
}

/// The rule: memory that is announced to the layer is announced to the drive below, which reads and writes
/// that memory.
#[test]
fn memory_is_announced_to_the_drive_below() {
    let mut device = layer(Shuffled::new(192, 1), small());
    device.register(&Arena::new(512));
    assert_eq!(device.below().registered, 1);
}

/// The rule: the wear of a page is that of its page on the drive below. An unmapped page, or one beyond the
/// layer, has no wear.
#[test]
fn wear_is_that_of_the_page_below() {
    let mut device = layer(Shuffled::new(192, 1), small());
    let last = device.caps().pages - 1;
    assert_eq!(device.erases(Lpn(last)), None, "it was never written");
    for page in [5, last, 5] {
        write(&mut device, page, 1).unwrap();
        let below = device.ftl().lookup(page as u32).unwrap().0;
        assert_eq!(device.erases(Lpn(page)), Some(1_000 + u64::from(below)));
    }
    assert_eq!(device.pages_written(), 3);
    for beyond in [last + 1, u64::from(u32::MAX), (1 << 32) + 5] {
        assert_eq!(device.erases(Lpn(beyond)), None, "{beyond}");
    }
}

/// The rule: the layer shares pages in its own map and separates the streams of its placement's hints,
/// whatever the drive below can do.
#[test]
fn the_layer_has_its_own_capabilities() {
    let hints = "hints:streams=4".parse::<PlacementConfig>().unwrap();
    for (placement, streams) in [(PlacementConfig::ONE_STREAM, 1), (hints, 4)] {
        let device = layer(Shuffled::new(192, 1), with_placement(placement, small()));
        let Caps { share_pages, streams: kept, .. } = *device.caps();
        assert_eq!((share_pages, kept), (LogConfig::SHARE_PAGES, streams));
    }
}

#[test]
fn every_freed_segment_is_trimmed_if_asked_for() {
    for trim in [true, false] {
        let device = shuffle(LogConfig { trim, ..small() }, 3);
        let freed = device.counters().segments_freed;
        assert!(freed > 100, "{freed}");
        assert_eq!(device.below().trims, if trim { freed } else { 0 });
    }
}

/// The rule: a layer continues the collection that its translation layer had begun when it was used without
/// virtual time.
#[test]
fn an_unfinished_collection_is_continued() {
    let config = with_schedule(Schedule::PACED, small());
    let mut ftl = Ftl::new(config.ftl(256, PAGE).unwrap()).unwrap();
    let (pages, mut prng) = (u64::from(ftl.config().logical_pages), Prng::new(5, "before"));
    let valid_in_victim = |ftl: &Ftl| ftl.victim(UnitId(0)).map_or(0, |victim| ftl.segments().valid(victim));
    let mut writes = 0;
    while valid_in_victim(&ftl) == 0 {
        ftl.write(prng.below(pages) as u32, 1, StreamId::default(), &mut CountingSink::default());
        writes += 1;
        assert!(writes < 10_000, "no collection is left unfinished");
    }
    let mut device = LogDevice::with_ftl(mem(256), config, ftl);
    assert!(!device.is_idle(), "it goes on at once");
    assert_eq!(device.next_event(), Some(device.now()), "it has commands to hand down");
    while let Some(next) = device.next_event() {
        device.wait(Some(next), &mut Vec::new());
    }
    assert!(device.is_idle(), "without a command of the host, it stops when its own have ended");
    for version in 0..500 {
        write(&mut device, prng.below(pages), version).unwrap();
    }
    device.drain_events();
    device.verify(true).unwrap();
}

#[test]
fn it_copies_as_much_as_the_same_translation_layer_without_time() {
    for victim in [VictimConfig::GREEDY, VictimConfig::COST_BENEFIT, VictimConfig::FIFO] {
        let usual = small();
        let collect = Collect { victim: victim.clone(), schedule: Schedule::NON_PREEMPTIVE, ..usual.collect };
        let config = LogConfig { collect, ..usual };
        let mut device = layer(mem(4_096), config.clone());
        let mut counted = Ftl::new(config.ftl(4_096, PAGE).unwrap()).unwrap();
        let mut prng = Prng::new(3, "writes");
        for _ in 0..40_000 {
            let lpn = prng.below(device.caps().pages);
            run(&mut device, Operation::write(Lpn(lpn), 1)).unwrap();
            counted.write(lpn as u32, 1, StreamId::default(), &mut CountingSink::default());
        }
        device.drain_events();
        device.verify(true).unwrap();
        assert_eq!(device.counters().copied_pages, counted.counters().copied_pages, "{victim}");
        assert!(device.counters().copied_pages > 10_000);
    }
}

/// The rule: without `trim`, a segment without valid pages is free at once, and waiting commands are served
/// though no command is in flight.
#[test]
fn no_command_waits_for_a_collection_without_copies() {
    for schedule in [Schedule::NON_PREEMPTIVE, Schedule::PACED, Schedule::SEMI_PREEMPTIVE] {
        for trim in [true, false] {
            let mut device = layer(mem(256), LogConfig { trim, ..with_schedule(schedule, small()) });
            let pages = device.caps().pages;
            for round in 0..10 {
                for page in 0..pages {
                    write(&mut device, page, round * pages + page).unwrap();
                }
            }
            device.verify(true).unwrap();
            assert_eq!(read(&mut device, 5), Ok(9 * pages + 5));
        }
    }
}

#[test]
fn impossible_options_are_refused_with_a_reason() {
    let refused = |config: LogConfig| LogDevice::new(mem(256), config).err().unwrap().to_string();
    let oracle = "oracle".parse::<PlacementConfig>().unwrap();
    assert!(refused(with_placement(oracle, small())).contains("accepted in gc alone"));
    assert!(refused(with_schedule(Schedule::PREEMPTIVE, small())).contains("semi-preemptive"));
    assert_eq!(LogConfig { depth: 3, ..LogConfig::default() }.canonical(), "log:depth=3");
    for segment_bytes in [0, 700] {
        assert!(refused(LogConfig { segment_bytes, ..small() }).contains("whole pages"));
    }
    assert!(LogDevice::new(mem(256), LogConfig { segment_bytes: u64::from(PAGE), ..small() }).is_ok());
    assert!(
        refused(LogConfig { segment_bytes: 1 << 16, ..small() }).contains("at least")
            && refused(LogConfig { segment_bytes: 1 << 20, ..small() }).contains("larger than the drive")
    );
    let sentence = |text: &str| LogConfig::from_spec(Spec::parse(text).unwrap()).unwrap_err().to_string();
    assert!(sentence("log:dept=3").contains("did you mean `depth`?"));
    assert!(sentence("log:depth=0").contains("accepted: 1 to 4096"));
    assert!(sentence("log:gc_hard=4294967295").contains("accepted: 1 to"));
    assert!(sentence("log:op=0%").contains("accepted: 0.0001%"));
    assert!(
        refused(LogConfig { collect: Collect { reserve: 2, hard: 2, ..small().collect }, ..small() })
            .contains("more than gc_hard=2")
    );
}

/// Returns the number of pages that the drive below copies, with segments of the layer's size and `streams`
/// streams, and the layer's counters.
fn copied_below(placement: &str, streams: u16) -> (u64, LogCounters) {
    let drive = SsdConfig {
        channels: 2,
        chips: 1,
        dies: 2,
        planes: 1,
        blocks: 192,
        pages: 32,
        op: Share::percent(12),
        collect: Collect { placement: PlacementConfig::by_hints(streams), ..preset::reference_e().collect },
        precondition: Precondition::None,
        ..preset::reference_e()
    };
    let config = LogConfig {
        segment_bytes: u64::from(drive.page_bytes * drive.pages_per_segment()),
        op: Share::percent(20),
        ..with_placement(placement.parse::<PlacementConfig>().unwrap(), LogConfig::default())
    };
    let mut device = layer(SimDrive::new(drive, 42, false).unwrap(), config);
    let mut prng = Prng::new(5, "writes");
    let pages = device.caps().pages;
    for _ in 0..200_000 {
        // Half of all writes go to an eighth of the pages.
        let range = if prng.chance(Share::percent(50)) { pages / 8 } else { pages };
        run(&mut device, Operation::write(Lpn(prng.below(range)), 1)).unwrap();
    }
    run(&mut device, Operation::Flush).unwrap();
    device.drain_events();
    device.verify(true).unwrap();
    device.below_mut().drain_events();
    device.below().verify(true).unwrap();
    assert_eq!(device.below().counters().host_pages_written, device.counters().pages_written());
    (device.below().counters().gc_pages_copied, device.counters())
}

/// The rule: if the drive below has a stream for each of the layer's, its segments become invalid as a whole,
/// and it copies no page. With one stream, pages of different layer segments share a drive segment, and it
/// copies pages.
#[test]
fn a_drive_with_streams_copies_no_pages() {
    let (copied, counters) = copied_below("sep-gc", 2);
    assert_eq!((copied, counters.padded_pages), (0, 0));
    assert!(counters.copied_pages > 50_000);
    assert!(copied_below("sep-gc", 1).0 > 10_000);
}

/// The rule: MiDAS merges groups and so seals open segments early; the layer writes the rest of these
/// segments as padding, and the drive below copies no page.
#[test]
fn segments_stay_in_step_when_some_are_cut_short() {
    let (copied, counters) = copied_below("midas", 17);
    assert!(counters.padded_pages > 0);
    assert_eq!(copied, 0);
}
