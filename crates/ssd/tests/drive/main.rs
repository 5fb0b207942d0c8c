//! Tests of the simulated drive as a device: conformance, hand-computed times, contents under garbage
//! collection, and the effect of every parameter.

mod parameters;

use fulgurite_base::{Declared, Lpn, Nanos, Prng, Share, Spec, StreamId};
use fulgurite_device::{Arena, Command, Completion, Device, Operation, Tag, conformance};
use fulgurite_ftl::Collect;
use fulgurite_ftl::placement::PlacementConfig;
use fulgurite_ftl::precondition::Precondition;
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ftl::victim::VictimConfig;
use fulgurite_ssd::{GcUnit, ServedKind, SimDrive, SsdConfig, WriteCache, preset};

/// Returns a drive so small that its times can be computed by hand: one die, 64 pages in an erase block, the
/// timing of the preemptive-GC study (Lee et al., 2013), no host costs.
fn one_die() -> SsdConfig {
    SsdConfig {
        channels: 1,
        chips: 1,
        dies: 1,
        planes: 1,
        blocks: 4,
        pages: 64,
        op: Share::percent(100),
        read: Nanos::from_micros(25),
        program: Nanos::from_micros(200),
        erase: Nanos::from_micros(1_500),
        transfer: Nanos::ZERO,
        collect: Collect { reserve: 1, ..Collect::PLAIN },
        precondition: Precondition::None,
        ..preset::reference_e()
    }
}

fn schedules() -> impl Iterator<Item = Schedule> {
    Schedule::registry().entries.iter().map(|entry| entry.make)
}

fn drive(config: SsdConfig, contents: bool) -> SimDrive {
    SimDrive::new(config, 42, contents).unwrap()
}

fn run(drive: &mut SimDrive, operation: Operation) -> Completion {
    drive.submit(Command { tag: Tag(0), operation }).unwrap();
    let mut completions = Vec::new();
    drive.wait(None, &mut completions);
    assert_eq!(completions.len(), 1);
    completions[0]
}

fn write_and_settle(drive: &mut SimDrive, lpns: impl Iterator<Item = u64>) {
    for lpn in lpns {
        run(drive, Operation::write(Lpn(lpn), 1)).status.unwrap();
    }
    drive.settle();
}

/// Runs a closed loop of mixed requests with a pause in the middle. Returns every figure that a user can
/// observe.
fn observe(config: SsdConfig) -> (u64, u64, u128, fulgurite_ssd::DriveCounters) {
    let mut drive = drive(config, false);
    let mut prng = Prng::new(5, "observe");
    let (pages, depth) = (drive.caps().pages, u64::from(drive.caps().queue_depth.min(300)));
    let mut completions = Vec::new();
    let (mut submitted, mut completed, mut ends) = (0u64, 0u64, 0u128);
    while completed < 12_000 {
        while submitted < 12_000 && submitted - completed < depth {
            let lpn = Lpn(prng.below(pages - 1));
            let pages = 1 + prng.below(2) as u32;
            let operation = if prng.below(10) < 4 {
                Operation::read(lpn, pages)
            } else {
                Operation::Write {
                    lpn,
                    pages,
                    from: None,
                    stream: StreamId((lpn.0 % 3) as u16),
                    durable: false,
                }
            };
            if drive.submit(Command { tag: Tag(submitted), operation }).is_err() {
                break;
            }
            submitted += 1;
            if submitted == 6_000 {
                while completed < submitted {
                    drive.wait(None, &mut completions);
                    completed += completions.drain(..).count() as u64;
                }
                drive.wait(Some(drive.now() + Nanos::from_micros(50_000)), &mut completions);
            }
        }
        drive.wait(None, &mut completions);
        ends += completions.iter().map(|completion| u128::from(completion.at.0)).sum::<u128>();
        completed += completions.drain(..).count() as u64;
    }
    run(&mut drive, Operation::Flush).status.unwrap();
    let now = drive.now().0;
    drive.drain_events();
    drive.verify(true).unwrap();
    (pages, now, ends, drive.counters())
}

#[test]
fn the_simulated_drive_conforms() {
    conformance::check_simulated(|| drive(one_die(), true));
    conformance::check_simulated(|| {
        let paced = Collect { schedule: Schedule::PACED, ..Collect::PLAIN };
        drive(SsdConfig { collect: paced, op: Share::percent(300), ..one_die() }, true)
    });
    conformance::check_simulated(|| {
        drive(SsdConfig { planes: 4, channels: 2, blocks: 8, pages: 16, ..one_die() }, true)
    });
    for (schedule, write_cache) in schedules().flat_map(|schedule| {
        [WriteCache::Protected, WriteCache::Volatile, WriteCache::Off].map(|cache| (schedule, cache))
    }) {
        let collect = Collect { schedule, ..Collect::PLAIN };
        let config = SsdConfig { write_cache, collect, op: Share::percent(300), ..one_die() };
        conformance::check_simulated(|| drive(config.clone(), true));
    }
    for preset in preset::registry().entries.iter().map(|entry| &entry.make) {
        conformance::check_simulated(|| {
            let config = (preset.config)();
            drive(
                SsdConfig {
                    precondition: Precondition::Fill,
                    blocks: 20,
                    // A multiple of the flash pages of a word line.
                    pages: 9,
                    op: Share::percent(50),
                    collect: Collect { reserve: 3, hard: 1, ..config.collect.clone() },
                    ..config
                },
                true,
            )
        });
    }
}

/// The rule: the record of a request says whether the request reads or writes. A share writes.
#[test]
fn the_record_of_a_request_has_its_kind() {
    let mut drive = drive(one_die(), false);
    drive.keep_served();
    let operations = [
        (Operation::read(Lpn(0), 1), ServedKind::Read),
        (Operation::write(Lpn(0), 1), ServedKind::Write),
        (Operation::share(Lpn(9), Lpn(0), 1), ServedKind::Write),
        (Operation::Trim { lpn: Lpn(0), pages: 1 }, ServedKind::Other),
        (Operation::Flush, ServedKind::Other),
    ];
    for (operation, kind) in operations {
        run(&mut drive, operation.clone()).status.unwrap();
        let mut served = Vec::new();
        drive.take_served(&mut served);
        assert_eq!(served.iter().map(|served| served.kind).collect::<Vec<_>>(), [kind], "{operation:?}");
    }
}

/// The rule: a completion that nobody has taken is an event now, before the later events of the drive. Without
/// commands and work of its own, a drive has no event.
#[test]
fn a_completion_to_take_is_an_event_now() {
    let mut drive = drive(one_die(), false);
    write_and_settle(&mut drive, 0..1);
    assert_eq!(drive.next_event(), None);
    drive.submit(Command { tag: Tag(1), operation: Operation::read(Lpn(0), 1) }).unwrap();
    drive.drain_events();
    assert_eq!(drive.next_event(), Some(drive.now()));
    drive.submit(Command { tag: Tag(2), operation: Operation::read(Lpn(0), 1) }).unwrap();
    assert_eq!(drive.next_event(), Some(drive.now()));
    let mut completions = Vec::new();
    drive.wait(Some(drive.now()), &mut completions);
    assert_eq!(completions.len(), 1);
    assert!(drive.next_event() > Some(drive.now()));
}

#[test]
fn collecting_two_valid_pages_takes_1_950_ms() {
    let mut drive = drive(one_die(), false);
    // Segments 0 and 1 are filled; segment 2 supersedes all but two pages of segment 0.
    write_and_settle(&mut drive, (0..128).chain(2..66));
    let start = drive.now();
    // The next write opens the last segment, so segment 0 is collected: two reads, two programs and an erase
    // go before the write's own program.
    write_and_settle(&mut drive, 66..67);
    let collection = drive.now() - start - Nanos::from_micros(200);
    assert_eq!(collection, Nanos::from_micros(1_950));
    assert_eq!((drive.counters().gc_pages_copied, drive.counters().erases), (2, 1));
    drive.verify(true).unwrap();
}

#[test]
fn planes_are_programmed_and_read_together() {
    let config = SsdConfig { planes: 4, pages: 16, transfer: Nanos::from_micros(10), ..one_die() };
    let mut drive = drive(config, false);
    write_and_settle(&mut drive, 0..4);
    // The time is that of four transfers over the one channel, and one program.
    assert_eq!(drive.now(), Nanos::from_micros(4 * 10 + 200));
    let start = drive.now();
    run(&mut drive, Operation::read(Lpn(0), 4)).status.unwrap();
    assert_eq!(drive.now() - start, Nanos::from_micros(25 + 4 * 10));
    assert_eq!(drive.counters().flash_operations, 2);
}

/// The rule: one program writes a whole word line of all planes if it is programmed in one shot, and one
/// flash page of each plane otherwise. A read takes one array time for each flash page of the word line, and
/// none for more pages of a flash page or of another plane.
#[test]
fn a_word_line_is_programmed_at_once_and_read_by_flash_page() {
    let tlc = |one_shot| SsdConfig {
        planes: 2,
        pages: 48,
        flash_page_bytes: 16 << 10,
        cell_bits: 3,
        one_shot,
        op: Share::percent(200),
        transfer: Nanos::from_micros(1),
        ..one_die()
    };
    let read = |drive: &mut SimDrive, lpn, pages| {
        let start = drive.now();
        run(drive, Operation::read(Lpn(lpn), pages)).status.unwrap();
        (drive.now() - start).0 / 1_000
    };
    let mut drive_at_once = drive(tlc(true), false);
    write_and_settle(&mut drive_at_once, 0..24);
    assert_eq!(drive_at_once.now(), Nanos::from_micros(24 + 200));
    // The pages of a row fill a flash page, then the other plane, then the next flash page of the word line.
    assert_eq!(read(&mut drive_at_once, 0, 8), 25 + 8, "a flash page of both planes");
    assert_eq!(read(&mut drive_at_once, 4, 8), 2 * 25 + 8, "two flash pages of a word line");
    assert_eq!(read(&mut drive_at_once, 0, 24), 3 * 25 + 24);
    let mut by_page = drive(tlc(false), false);
    write_and_settle(&mut by_page, 0..24);
    assert_eq!(by_page.now(), Nanos::from_micros(3 * (8 + 200)));
    assert_eq!(read(&mut by_page, 0, 24), 3 * (25 + 8));
    assert_eq!([&drive_at_once, &by_page].map(|drive| drive.counters().flash_operations), [1 + 3, 3 + 3]);
}

/// The rule: with slots for n commands, the next one waits in the drive until one of them is answered, and
/// commands wait in order, so a read waits for a write before it.
#[test]
fn commands_without_a_slot_wait_in_order() {
    let responses = |slots| {
        let config = SsdConfig { slots, write_latency: Nanos::from_micros(70), ..one_die() };
        let mut drive = drive(config, false);
        write_and_settle(&mut drive, 0..1);
        let start = drive.now();
        for (tag, operation) in
            [Operation::write(Lpn(1), 1), Operation::write(Lpn(2), 1), Operation::read(Lpn(0), 1)]
                .into_iter()
                .enumerate()
        {
            drive.submit(Command { tag: Tag(tag as u64), operation }).unwrap();
        }
        let mut completions = Vec::new();
        while completions.len() < 3 {
            drive.wait(None, &mut completions);
        }
        completions.sort_by_key(|completion| completion.tag.0);
        let ends: Vec<u64> = completions.iter().map(|end| (end.at - start).0 / 1_000).collect();
        drive.drain_events();
        drive.verify(true).unwrap();
        ends
    };
    // The read waits for the program of the write on the same die.
    assert_eq!(responses(0)[..2], [70, 70]);
    assert_eq!(responses(1)[..2], [70, 140]);
    assert!(responses(0)[2] <= 225 && responses(1)[2] > 140);
    assert_eq!(responses(2)[..2], [70, 70]);
    assert!(responses(2)[2] > 70, "it waits for a slot");
}

/// The rule: with parity in one of n rows, n programs hold the pages of n − 1 in every erase block, and a
/// drive has that much less room. Write amplification counts them.
#[test]
fn parity_is_programmed_after_its_rows() {
    let config = SsdConfig { channels: 2, planes: 2, blocks: 12, parity: 4, ..one_die() };
    let mut drive = drive(config.clone(), false);
    // An erase block has 64 rows: 48 of data and 16 of parity.
    assert_eq!(config.pages_per_segment(), 2 * 2 * 48);
    let segments = 3;
    write_and_settle(&mut drive, 0..u64::from(config.pages_per_segment()) * segments);
    drive.drain_events();
    drive.verify(true).unwrap();
    let counters = drive.counters();
    assert_eq!(counters.host_pages_written, segments * 2 * 2 * 48);
    assert_eq!(counters.flash_pages_programmed, segments * 2 * 2 * 64);
    // A die takes a program of 200 µs for each of its rows, of data or of parity.
    assert_eq!(drive.now(), Nanos::from_micros(segments * 64 * 200));
}

#[test]
fn a_channel_is_shared_and_dies_are_not() {
    let reads_of_two_dies = |channels, chips| {
        let config = SsdConfig { channels, chips, transfer: Nanos::from_micros(10), ..one_die() };
        let mut drive = drive(config, false);
        write_and_settle(&mut drive, 0..2);
        let start = drive.now();
        for lpn in 0..2 {
            drive.submit(Command { tag: Tag(lpn), operation: Operation::read(Lpn(lpn), 1) }).unwrap();
        }
        let mut completions = Vec::new();
        while completions.len() < 2 {
            drive.wait(None, &mut completions);
        }
        drive.now() - start
    };
    assert_eq!(reads_of_two_dies(1, 2), Nanos::from_micros(25 + 10 + 10));
    assert_eq!(reads_of_two_dies(2, 1), Nanos::from_micros(25 + 10));
}

#[test]
fn a_page_in_the_write_buffer_is_read_without_the_flash() {
    let mut drive = drive(one_die(), false);
    run(&mut drive, Operation::write(Lpn(0), 1)).status.unwrap();
    let start = drive.now();
    run(&mut drive, Operation::read(Lpn(0), 1)).status.unwrap();
    assert_eq!(drive.now(), start);
    assert_eq!(drive.counters().flash_pages_read, 0);
}

/// The rule: a flush waits for exactly the writes that a power cut could lose.
#[test]
fn a_flush_waits_for_programs_where_the_buffer_is_volatile() {
    let latency = Nanos::from_micros(40);
    let (accepted, programmed) = (latency, Nanos::from_micros(200) + latency);
    for (write_cache, written, flushed) in [
        (WriteCache::Protected, accepted, accepted + latency),
        (WriteCache::Volatile, accepted, programmed),
        (WriteCache::Off, programmed, programmed + latency),
    ] {
        let mut drive = drive(SsdConfig { write_cache, write_latency: latency, ..one_die() }, false);
        assert_eq!(run(&mut drive, Operation::write(Lpn(0), 1)).at, written, "{write_cache:?}");
        assert_eq!(run(&mut drive, Operation::Flush).at, flushed, "{write_cache:?}");
    }
}

/// Returns a drive whose next page must wait for a collection of 1,950 µs (computed above), and the time.
fn drive_that_must_collect(options: SsdConfig) -> (SimDrive, Nanos) {
    let mut drive = drive(options, true);
    write_and_settle(&mut drive, (0..128).chain(2..66));
    let now = drive.now();
    (drive, now)
}

fn write_byte(drive: &mut SimDrive, lpn: u64, byte: u8) -> Completion {
    let from = Arena::new(4096).buffer(0, 4096);
    // SAFETY: no command has the buffer yet.
    unsafe { from.bytes_mut() }.fill(byte);
    let completion = run(
        drive,
        Operation::Write {
            lpn: Lpn(lpn),
            pages: 1,
            from: Some(from.clone()),
            stream: StreamId(0),
            durable: false,
        },
    );
    // SAFETY: the write has completed, so the device has released the buffer.
    unsafe { from.bytes_mut() }.fill(0xee);
    completion
}

fn read_byte(drive: &mut SimDrive, lpn: u64) -> u8 {
    let into = Arena::new(4096).buffer(0, 4096);
    run(drive, Operation::Read { lpn: Lpn(lpn), pages: 1, into: Some(into.clone()) }).status.unwrap();
    // SAFETY: the read has completed.
    let bytes = unsafe { into.bytes() };
    bytes[4095]
}

/// The rule: the buffer accepts a write that the schedule delays, and the host gets its answer at once. Reads
/// find the page in the buffer.
#[test]
fn a_write_is_accepted_before_it_has_its_place() {
    let (mut drive, start) = drive_that_must_collect(one_die());
    let placed = |drive: &SimDrive| drive.ftl().unwrap().counters().host_pages;
    let (before, written) = (placed(&drive), drive.counters().host_pages_written);
    for (byte, lpn) in [(1, 66), (2, 67), (3, 66)] {
        assert_eq!(write_byte(&mut drive, lpn, byte).at, start);
    }
    assert_eq!(placed(&drive), before, "none has its place");
    assert_eq!(drive.counters().host_pages_written, written + 3, "the drive has them");
    let read = drive.counters().flash_pages_read;
    assert_eq!([66, 67].map(|lpn| read_byte(&mut drive, lpn)), [3, 2]);
    // This schedule bars reads until collection has read two pages.
    assert_eq!(drive.counters().flash_pages_read, read + 2);
    // A trim waits until the earlier writes have physical pages, which takes a collection.
    let trimmed = run(&mut drive, Operation::Trim { lpn: Lpn(67), pages: 1 });
    assert!(trimmed.at > start + Nanos::from_micros(1_500));
    assert_eq!([66, 67].map(|lpn| read_byte(&mut drive, lpn)), [3, 0]);
    drive.settle();
    assert_eq!((placed(&drive), drive.counters().host_pages_written), (before + 3, written + 3));
    drive.drain_events();
    drive.verify(true).unwrap();
    // Without a cache, a write waits for its physical page and its program.
    let (mut drive, start) = drive_that_must_collect(SsdConfig { write_cache: WriteCache::Off, ..one_die() });
    assert_eq!(write_byte(&mut drive, 66, 1).at - start, Nanos::from_micros(1_950 + 200));
}

/// The rule: if only some pages of a write have physical pages, each page is still read correctly.
#[test]
fn a_partly_placed_write_is_read_correctly() {
    let mut drive = drive(one_die(), true);
    // Leaves two pages of the open segment unwritten. The host can use the next segment only after a
    // collection.
    write_and_settle(&mut drive, (0..128).chain(2..64));
    let (placed, from) =
        (drive.ftl().unwrap().counters().host_pages, Arena::new(4 * 4096).buffer(0, 4 * 4096));
    // SAFETY: no command has the buffer yet.
    unsafe { from.bytes_mut() }.chunks_mut(4096).zip(1..).for_each(|(page, byte)| page.fill(byte));
    let operation =
        Operation::Write { lpn: Lpn(64), pages: 4, from: Some(from), stream: StreamId(0), durable: false };
    run(&mut drive, operation).status.unwrap();
    assert_eq!(drive.ftl().unwrap().counters().host_pages - placed, 2);
    drive.power_cut();
    assert_eq!([64, 65, 66, 67].map(|lpn| read_byte(&mut drive, lpn)), [1, 2, 3, 4]);
    drive.drain_events();
    assert_eq!([64, 65, 66, 67].map(|lpn| read_byte(&mut drive, lpn)), [1, 2, 3, 4]);
    drive.verify(true).unwrap();
}

/// The rule: waiting pages keep their room in the buffer, which accepts no more pages than it has room for.
#[test]
fn a_buffer_accepts_only_what_fits() {
    let (mut drive, start) = drive_that_must_collect(SsdConfig { write_buffer: 16 * 4096, ..one_die() });
    for lpn in 0..16 {
        assert_eq!(write_byte(&mut drive, lpn, 1).at, start);
    }
    assert_eq!(write_byte(&mut drive, 16, 1).at - start, Nanos::from_micros(1_950 + 200));
    // Pages that stay in the buffer over a power cut keep their room.
    let (mut drive, _) = drive_that_must_collect(SsdConfig { write_buffer: 16 * 4096, ..one_die() });
    for lpn in 0..16 {
        write_byte(&mut drive, lpn, 1);
    }
    drive.power_cut();
    let start = drive.now();
    assert!(write_byte(&mut drive, 16, 1).at > start);
}

/// The rule: with a protected buffer, acknowledged writes survive a power cut, even before they have physical
/// pages.
#[test]
fn an_accepted_write_survives_a_power_cut_in_a_protected_buffer() {
    for (write_cache, kept) in [(WriteCache::Protected, [1, 2]), (WriteCache::Volatile, [0, 0])] {
        let (mut drive, _) = drive_that_must_collect(SsdConfig { write_cache, ..one_die() });
        write_byte(&mut drive, 66, 7);
        write_byte(&mut drive, 66, 1);
        write_byte(&mut drive, 67, 2);
        for _ in 0..3 {
            drive.power_cut();
            assert_eq!([66, 67].map(|lpn| read_byte(&mut drive, lpn)), kept, "{write_cache:?}");
        }
        drive.drain_events();
        assert_eq!([66, 67].map(|lpn| read_byte(&mut drive, lpn)), kept, "{write_cache:?}");
        drive.verify(true).unwrap();
    }
}

/// The rule: after a power cut the submitter may reuse its memory, even that of a write that was accepted and
/// not yet answered.
#[test]
fn bytes_that_survive_a_power_cut_belong_to_the_drive() {
    let (mut drive, start) =
        drive_that_must_collect(SsdConfig { write_latency: Nanos::from_micros(40), ..one_die() });
    let from = Arena::new(4096).buffer(0, 4096);
    // SAFETY: no command has the buffer yet.
    unsafe { from.bytes_mut() }.fill(7);
    let operation = Operation::Write {
        lpn: Lpn(66),
        pages: 1,
        from: Some(from.clone()),
        stream: StreamId(0),
        durable: false,
    };
    drive.submit(Command { tag: Tag(1), operation }).unwrap();
    let mut completions = Vec::new();
    drive.wait(Some(start + Nanos::from_micros(20)), &mut completions);
    drive.power_cut();
    // SAFETY: a power cut drops all commands.
    unsafe { from.bytes_mut() }.fill(0xee);
    assert_eq!((read_byte(&mut drive, 66), completions.len()), (7, 0));
    drive.drain_events();
    assert_eq!(read_byte(&mut drive, 66), 7);
    drive.verify(true).unwrap();
}

#[test]
fn a_full_write_buffer_stalls_writes_until_a_program_ends() {
    let config = SsdConfig { write_buffer: 16 * 4096, ..one_die() };
    let mut drive = drive(config, false);
    for lpn in 0..17 {
        drive.submit(Command { tag: Tag(lpn), operation: Operation::write(Lpn(lpn), 1) }).unwrap();
    }
    let mut completions = Vec::new();
    while completions.len() < 17 {
        drive.wait(None, &mut completions);
    }
    assert_eq!(completions[15].at, Nanos::ZERO);
    assert_eq!(completions[16].at, Nanos::from_micros(200));
}

#[test]
fn contents_survive_garbage_collection() {
    let collected = |placement, blocks, victim, schedule| SsdConfig {
        planes: 2,
        channels: 2,
        pages: 8,
        blocks,
        op: Share::percent(40),
        collect: Collect { placement, victim, schedule, ..Collect::PLAIN },
        ..one_die()
    };
    let under_schedules = |victim: VictimConfig| schedules().map(move |schedule| (victim.clone(), schedule));
    let mut configs: Vec<SsdConfig> = VictimConfig::registry()
        .names()
        .flat_map(|name| under_schedules(name.parse::<VictimConfig>().unwrap()))
        .map(|(victim, schedule)| collected(PlacementConfig::ONE_STREAM, 16, victim, schedule))
        .collect();
    for name in PlacementConfig::registry().names().filter(|name| !["oracle", "nodap"].contains(name)) {
        let placement = name.parse::<PlacementConfig>().unwrap();
        let victim = VictimConfig::COST_BENEFIT;
        // Each stream has its own open segment, so there must be enough segments for all streams.
        configs.extend(
            under_schedules(victim)
                .map(|(victim, schedule)| collected(placement.clone(), 96, victim, schedule)),
        );
    }
    for config in configs {
        let (Collect { victim, schedule, placement, .. }, blocks) = (config.collect.clone(), config.blocks);
        let mut drive = drive(config, true);
        let (pages, bytes) = (drive.caps().pages, drive.caps().page_bytes as usize);
        let arena = Arena::new(bytes);
        let mut expected = vec![0u64; pages as usize];
        let mut prng = Prng::new(3, "contents");
        let stamps = if blocks == 16 { 6_000 } else { 20_000 };
        for stamp in 1..stamps {
            // A quarter of the pages gets most of the writes.
            let lpn = if prng.below(4) > 0 { prng.below(pages / 4) } else { prng.below(pages) };
            let buffer = arena.buffer(0, bytes);
            match prng.below(10) {
                0 => {
                    expected[lpn as usize] = 0;
                    run(&mut drive, Operation::Trim { lpn: Lpn(lpn), pages: 1 }).status.unwrap();
                }
                1..5 => {
                    run(&mut drive, Operation::Read { lpn: Lpn(lpn), pages: 1, into: Some(buffer.clone()) })
                        .status
                        .unwrap();
                    // SAFETY: the read has completed.
                    let got = u64::from_le_bytes(unsafe { buffer.bytes() }[..8].try_into().unwrap());
                    assert_eq!(got, expected[lpn as usize], "page {lpn}, {victim}, {schedule}, {placement}");
                }
                _ => {
                    expected[lpn as usize] = stamp;
                    // SAFETY: no command is in flight.
                    let bytes = unsafe { buffer.bytes_mut() };
                    bytes[..8].copy_from_slice(&stamp.to_le_bytes());
                    let operation = Operation::Write {
                        lpn: Lpn(lpn),
                        pages: 1,
                        from: Some(buffer),
                        stream: StreamId(0),
                        durable: false,
                    };
                    run(&mut drive, operation).status.unwrap();
                }
            }
        }
        run(&mut drive, Operation::Flush).status.unwrap();
        assert!(drive.counters().gc_pages_copied > 100, "{victim}, {schedule}, {placement}");
        drive.verify(true).unwrap();
    }
}

/// The rule: conservation, Little's law and the rules of NAND hold under a mix of all operations (checked by
/// `verify`).
#[test]
fn every_schedule_obeys_every_law_under_load() {
    let names = [
        "non-preemptive",
        "paced",
        "semi-preemptive",
        "semi-preemptive+merge",
        "semi-preemptive+pipeline",
        "semi-preemptive+merge+pipeline",
        "preemptive",
        "preemptive+merge+pipeline",
    ];
    for (name, write_cache) in names.iter().flat_map(|name| {
        [WriteCache::Protected, WriteCache::Volatile, WriteCache::Off].map(|cache| (*name, cache))
    }) {
        let config = SsdConfig {
            channels: 2,
            chips: 2,
            planes: 2,
            pages: 8,
            blocks: 40,
            op: Share::percent(40),
            transfer: Nanos::from_micros(20),
            write_cache,
            collect: Collect {
                schedule: Schedule::from_name(name).unwrap(),
                background: 4,
                ..preset::reference_e().collect
            },
            precondition: Precondition::Steady,
            ..preset::reference_e()
        };
        let counters = observe(config).3;
        assert!(counters.gc_pages_copied > 1_000, "{name}: {counters:?}");
        assert_eq!(counters.merged_pages > 0, name.contains("merge"), "{name}: {counters:?}");
        // If programs are suspended, there is rarely one left to overlap with.
        let overlaps = counters.overlaps > 0 || name.starts_with("preemptive");
        assert_eq!(overlaps && name.contains("pipeline"), name.contains("pipeline"), "{name}: {counters:?}");
        assert!(counters.overlaps == 0 || name.contains("pipeline"), "{name}: {counters:?}");
        assert_eq!(counters.suspensions > 0, name.starts_with("preemptive"), "{name}: {counters:?}");
    }
}

/// The rule: a drive with an operation in progress has no image. Such an operation is an unanswered request,
/// or a page on its way to the flash.
#[test]
fn a_busy_drive_has_no_image() {
    let mut drive = drive(one_die(), false);
    assert!(drive.image().is_some());
    drive.submit(Command { tag: Tag(0), operation: Operation::write(Lpn(0), 1) }).unwrap();
    assert!(drive.image().is_none(), "nothing has come to the flash yet");
    let mut completions = Vec::new();
    drive.wait(None, &mut completions);
    assert_eq!(completions.len(), 1);
    assert!(drive.image().is_none(), "the page is being programmed");
    drive.drain_events();
    assert!(drive.image().is_some());
}

/// The rule: a drive that starts with an image has the bytes and the invalid pages of the original, and zero
/// counters. Writing to it changes neither the image nor another drive.
#[test]
fn a_drive_starts_with_the_contents_of_another() {
    let in_place = SsdConfig { in_place: true, ..one_die() };
    // Rows have several pages; one row is incomplete at the end.
    let planes = SsdConfig { planes: 4, pages: 16, ..one_die() };
    for config in [one_die(), in_place, planes] {
        let mut first = drive(config.clone(), true);
        let arena = Arena::new(4096);
        let (buffer, pages) = (arena.buffer(0, 4096), first.caps().pages);
        let write = |drive: &mut SimDrive, lpn: u64, byte: u8| {
            // SAFETY: no command is in flight.
            unsafe { buffer.bytes_mut() }.fill(byte);
            let (lpn, stream) = (Lpn(lpn), StreamId::default());
            run(
                drive,
                Operation::Write { lpn, pages: 1, from: Some(buffer.clone()), stream, durable: false },
            )
            .status
            .unwrap();
            run(drive, Operation::Flush).status.unwrap();
        };
        let read = |drive: &mut SimDrive, lpn: u64| {
            let read = Operation::Read { lpn: Lpn(lpn), pages: 1, into: Some(buffer.clone()) };
            run(drive, read).status.unwrap();
            // SAFETY: no command is in flight.
            let bytes = unsafe { buffer.bytes() };
            bytes[4095]
        };
        // Writes more pages than the drive has, so that collection has moved some of them.
        (0..4 * pages + 1).for_each(|at| write(&mut first, at % (pages - 1), (at % 251) as u8));
        first.settle();
        first.drain_events();
        let image = first.image().unwrap();
        let mut second = SimDrive::with_image(config.clone(), &image);
        assert_eq!((second.counters(), second.now()), (Default::default(), Nanos::ZERO));
        for lpn in 0..pages {
            assert_eq!(read(&mut second, lpn), read(&mut first, lpn), "page {lpn}");
        }
        assert_ne!(read(&mut second, 3), read(&mut second, 4));
        (0..pages).for_each(|lpn| write(&mut second, lpn, 252));
        second.drain_events();
        second.verify(true).unwrap();
        let mut third = SimDrive::with_image(config, &image);
        for lpn in 0..pages {
            assert_eq!(read(&mut third, lpn), read(&mut first, lpn), "page {lpn}");
        }
    }
}

/// The bounds of the presets are those of the table in the book.
#[test]
fn bounds_of_twins_are_those_of_the_book() {
    let page = include_str!("../../../../docs/validation/real-drives.md");
    let mut told = 0;
    for preset in preset::registry().entries.iter().map(|entry| &entry.make) {
        let Some(bounds) = preset.bounds else { continue };
        let cells = bounds.values().map(|[least, most]| format!("{least:.2} to {most:.2}"));
        let line = format!("| {} | {} |", preset.name, cells.join(" | "));
        assert!(page.contains(&line), "the page has no line {line}");
        told += 1;
    }
    assert_eq!(told, 7);
}
