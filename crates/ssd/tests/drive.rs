//! The simulated drive as a device: conformance, hand-computed times, contents under garbage
//! collection, and that every parameter matters.

use fulgurite_base::{Lpn, Nanos, Prng, Share, Spec};
use fulgurite_device::{Arena, Command, Completion, Device, Operation, StreamId, Tag, conformance};
use fulgurite_ssd::schedule::Schedule;
use fulgurite_ssd::victim::VictimPolicy;
use fulgurite_ssd::{PARAMS, Precondition, SimDrive, SsdConfig, preset};

/// A drive so small that its times can be worked out by hand: one die, 64 pages in an erase block,
/// the timing of the preemptive-GC study, nothing on the host side.
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
        gc_reserve: 1,
        victim: VictimPolicy::Greedy,
        schedule: Schedule::NonPreemptive,
        precondition: Precondition::None,
        ..preset::reference_e()
    }
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

fn write_and_flush(drive: &mut SimDrive, lpns: impl Iterator<Item = u64>) {
    for lpn in lpns {
        run(drive, Operation::write(Lpn(lpn), 1)).status.unwrap();
    }
    run(drive, Operation::Flush).status.unwrap();
}

#[test]
fn the_simulated_drive_conforms() {
    conformance::check(|| drive(one_die(), true));
    conformance::check(|| {
        drive(
            SsdConfig { schedule: Schedule::Paced, gc_reserve: 2, op: Share::percent(300), ..one_die() },
            true,
        )
    });
    conformance::check(|| {
        drive(SsdConfig { planes: 4, channels: 2, blocks: 8, pages: 16, ..one_die() }, true)
    });
    for preset in preset::PRESETS {
        conformance::check(|| {
            drive(
                SsdConfig {
                    precondition: Precondition::Fill,
                    blocks: 20,
                    pages: 8,
                    op: Share::percent(50),
                    ..(preset.config)()
                },
                true,
            )
        });
    }
}

#[test]
fn collecting_two_valid_pages_takes_1_950_ms() {
    let mut drive = drive(one_die(), false);
    // Segments 0 and 1 are filled; segment 2 takes all but two pages of segment 0 again.
    write_and_flush(&mut drive, (0..128).chain(2..66));
    let start = drive.now();
    // The next write opens the last segment, so segment 0 is collected: two reads, two programs
    // and an erase go before the write's own program.
    write_and_flush(&mut drive, 66..67);
    let collection = drive.now() - start - Nanos::from_micros(200);
    assert_eq!(collection, Nanos::from_micros(1_950));
    assert_eq!((drive.counters().gc_pages_copied, drive.counters().erases), (2, 1));
    drive.verify(true).unwrap();
}

#[test]
fn nothing_overtakes_non_preemptive_collection_but_reads_overtake_paced_one() {
    let read_during_collection = |config: SsdConfig| {
        let mut drive = drive(config, false);
        write_and_flush(&mut drive, (0..128).chain(2..66));
        let start = drive.now();
        run(&mut drive, Operation::write(Lpn(66), 1)).status.unwrap();
        assert_eq!(run(&mut drive, Operation::read(Lpn(100), 1)).status, Ok(()));
        drive.now() - start
    };
    // The read waits for all of the collection (1950 µs), then goes before the host program.
    assert_eq!(read_during_collection(one_die()), Nanos::from_micros(1_950 + 25));
    // Paced, it waits for the one operation under way, a read of 25 µs.
    let paced = SsdConfig {
        schedule: Schedule::Paced,
        gc_reserve: 2,
        blocks: 5,
        op: Share::percent(150),
        ..one_die()
    };
    assert_eq!(read_during_collection(paced), Nanos::from_micros(25 + 25));
}

#[test]
fn planes_are_programmed_and_read_together() {
    let config = SsdConfig { planes: 4, pages: 16, transfer: Nanos::from_micros(10), ..one_die() };
    let mut drive = drive(config, false);
    write_and_flush(&mut drive, 0..4);
    // Four transfers over the one channel, one program.
    assert_eq!(drive.now(), Nanos::from_micros(4 * 10 + 200));
    let start = drive.now();
    run(&mut drive, Operation::read(Lpn(0), 4)).status.unwrap();
    assert_eq!(drive.now() - start, Nanos::from_micros(25 + 4 * 10));
    assert_eq!(drive.counters().flash_operations, 2);
}

#[test]
fn a_channel_is_shared_and_dies_are_not() {
    let reads_of_two_dies = |channels, chips| {
        let config = SsdConfig { channels, chips, transfer: Nanos::from_micros(10), ..one_die() };
        let mut drive = drive(config, false);
        write_and_flush(&mut drive, 0..2);
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
    for (victim, schedule) in VictimPolicy::ALL.iter().flat_map(|v| Schedule::ALL.map(|s| (v.0, s.0))) {
        let config = SsdConfig {
            planes: 2,
            channels: 2,
            pages: 8,
            blocks: 16,
            op: Share::percent(40),
            gc_reserve: 2,
            victim,
            schedule,
            ..one_die()
        };
        let mut drive = drive(config, true);
        let (pages, bytes) = (drive.caps().pages, drive.caps().page_bytes as usize);
        let arena = Arena::new(bytes);
        let mut expected = vec![0u64; pages as usize];
        let mut prng = Prng::new(3, "contents");
        for stamp in 1..6_000u64 {
            let lpn = prng.below(pages);
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
                    assert_eq!(got, expected[lpn as usize], "page {lpn}, {victim:?}, {schedule:?}");
                }
                _ => {
                    expected[lpn as usize] = stamp;
                    // SAFETY: no command is in flight.
                    let bytes = unsafe { buffer.bytes_mut() };
                    bytes[..8].copy_from_slice(&stamp.to_le_bytes());
                    let operation =
                        Operation::Write { lpn: Lpn(lpn), pages: 1, from: Some(buffer), stream: StreamId(0) };
                    run(&mut drive, operation).status.unwrap();
                }
            }
        }
        run(&mut drive, Operation::Flush).status.unwrap();
        assert!(drive.counters().gc_pages_copied > 100);
        drive.verify(true).unwrap();
    }
}

/// A closed loop of mixed requests; everything that a user can observe of it.
fn observe(config: SsdConfig) -> (u64, u64, u128, fulgurite_ssd::DriveCounters) {
    let mut drive = drive(config, false);
    let mut prng = Prng::new(5, "observe");
    let (pages, depth) = (drive.caps().pages, u64::from(drive.caps().queue_depth.min(300)));
    let mut completions = Vec::new();
    let (mut submitted, mut completed, mut reads) = (0u64, 0u64, 0u128);
    while completed < 12_000 {
        while submitted < 12_000 && submitted - completed < depth {
            let lpn = Lpn(prng.below(pages - 1));
            let length = 1 + prng.below(2) as u32;
            let operation =
                if prng.below(10) < 4 { Operation::read(lpn, length) } else { Operation::write(lpn, length) };
            if drive.submit(Command { tag: Tag(submitted), operation }).is_err() {
                break;
            }
            submitted += 1;
        }
        drive.wait(None, &mut completions);
        reads += completions.iter().map(|completion| u128::from(completion.at.0)).sum::<u128>();
        completed += completions.drain(..).count() as u64;
    }
    run(&mut drive, Operation::Flush).status.unwrap();
    drive.verify(true).unwrap();
    (pages, drive.now().0, reads, drive.counters())
}

#[test]
fn every_parameter_changes_something() {
    let base = SsdConfig {
        channels: 4,
        chips: 2,
        dies: 2,
        planes: 2,
        blocks: 24,
        pages: 16,
        op: Share::percent(30),
        read_command: Nanos(500),
        read_page: Nanos(500),
        read_latency: Nanos(3_000),
        write_command: Nanos(500),
        write_page: Nanos(500),
        write_latency: Nanos(3_000),
        write_buffer: 1 << 20,
        queue_depth: 64,
        gc_reserve: 2,
        ..preset::reference_e()
    };
    let observed = observe(base.clone());
    assert_eq!(observed, observe(base.clone()), "a run repeats exactly");
    for param in PARAMS {
        let changed = match param.key {
            "op" => "45%",
            "page" => "8KiB",
            "write_buffer" => "64KiB",
            "victim" => "fifo",
            "schedule" => "non-preemptive",
            "precondition" => "fill",
            "gc_reserve" => "4",
            // No multi-plane programs there, so the comparison is with one plane.
            "in_place" => "yes",
            "queue_depth" => "8",
            "channels" | "chips" | "dies" | "planes" => "1",
            "blocks" => "32",
            "pages" => "24",
            _ => "77.7",
        };
        assert_ne!(param.show(&base), changed);
        let spec = |text: String| Spec::parse(&text).unwrap();
        let extra = if param.key == "in_place" { ",planes=1" } else { "" };
        let before =
            if extra.is_empty() { observed } else { observe(SsdConfig { planes: 1, ..base.clone() }) };
        let config = base.clone().with_options(spec(format!("x:{}={changed}{extra}", param.key))).unwrap();
        assert_ne!(observe(config), before, "{} changes nothing", param.key);
    }
}

#[test]
fn absurd_parameters_are_refused_with_their_name() {
    for (options, named) in [
        ("channels=0", "channels=0"),
        ("planes=9", "planes=9"),
        ("blocks=4G", "blocks=4000000000 is out of range"),
        ("blocks=16M", "2^32"),
        ("op=0%", "op=0% cannot collect"),
        ("blocks=3", "blocks=3 pages=128"),
        ("gc_reserve=1", "gc_reserve=1"),
        ("page=5KiB", "page"),
        ("write_buffer=4KiB", "write_buffer=4KiB"),
        ("victim=gredy", "did you mean `greedy`"),
        ("schedule=x", "known: non-preemptive paced"),
        ("in_place=maybe", "neither yes nor no"),
        ("precondition=full", "known: none fill steady"),
        ("chanels=3", "did you mean `channels`"),
    ] {
        let sentence =
            preset::configure(Spec::parse(&format!("p4510:{options}")).unwrap()).unwrap_err().to_string();
        assert!(sentence.contains(named), "{options}: {sentence}");
    }
}
