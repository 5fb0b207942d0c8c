//! Tests of further features of a drive: shared pages, power cuts, streams, wear, energy.

mod power;
mod sharing;
mod wear;

use fulgurite_base::{Lpn, Nanos, Prng, Share, Spec, StreamId};
use fulgurite_device::{Arena, Buffer, Command, Device, IoError, Operation, ShareRun, Tag};
use fulgurite_ftl::placement::PlacementConfig;
use fulgurite_ftl::precondition::Precondition;
use fulgurite_ftl::schedule::ScheduleState;
use fulgurite_ftl::{Collect, SegmentId, SegmentState};
use fulgurite_ssd::{DriveCounters, SimDrive, SsdConfig, WriteCache, preset};
use proptest::prelude::*;
use std::sync::Arc;

/// Returns a drive of four dies of two planes, so small that garbage collection is always near.
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

/// A drive with contents, on which each page holds a number, its stamp.
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

/// Writes `count` pages, or fewer if a write fails: with probability 9/10 a hot page in stream 1, otherwise a
/// cold page in stream 0. Returns the counters and the drive.
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
    // The energy is that of two programs of 200 µs, a read of 40 µs, and three transfers of 5.12 µs.
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

/// The rule: a settling drive completes a row early only when no page waits for its physical page. So it
/// programs as few rows as a drive that first runs until no event is left, except for the row that was open
/// at the start.
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

/// Returns one to five runs of one to four pages at random addresses.
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
