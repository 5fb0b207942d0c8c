//! Tests of the schedules of garbage collection, on drives so small that all times can be computed by hand,
//! and against a slow model of one die under random arrivals.

mod model;

use fulgurite_base::{Lpn, Nanos, Share};
use fulgurite_device::{Command, Completion, Device, Operation, Tag};
use fulgurite_ftl::precondition::Precondition;
use fulgurite_ftl::schedule::{Schedule, ScheduleState};
use fulgurite_ftl::victim::VictimConfig;
use fulgurite_ftl::{Collect, SegmentState, UnitId, check};
use fulgurite_ssd::{SimDrive, SsdConfig, WriteCache, preset};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

const READ: u64 = 25;
const PROGRAM: u64 = 200;
const ERASE: u64 = 1_500;

/// Returns a drive of one die with the timing of the preemptive-GC study (Lee et al., 2013). It collects
/// while fewer than two segments are free.
fn one_die(schedule: &str, transfer: u64) -> SsdConfig {
    SsdConfig {
        channels: 1,
        chips: 1,
        dies: 1,
        planes: 1,
        blocks: 5,
        pages: 64,
        op: Share::percent(150),
        read: Nanos::from_micros(READ),
        program: Nanos::from_micros(PROGRAM),
        erase: Nanos::from_micros(ERASE),
        transfer: Nanos::from_micros(transfer),
        write_cache: WriteCache::Off,
        collect: Collect { schedule: Schedule::from_name(schedule).unwrap(), ..Collect::PLAIN },
        precondition: Precondition::None,
        ..preset::reference_e()
    }
}

fn submit(drive: &mut SimDrive, tag: u64, operation: Operation) {
    drive.submit(Command { tag: Tag(tag), operation }).unwrap();
}

/// Performs requests that arrive at the given times (µs after `start`), and returns their response times in
/// µs.
fn replay(drive: &mut SimDrive, start: Nanos, requests: &[(u64, Operation)]) -> Vec<u64> {
    let mut completions: Vec<Completion> = Vec::new();
    for (tag, (at, operation)) in requests.iter().enumerate() {
        let at = start + Nanos::from_micros(*at);
        while drive.now() < at {
            drive.wait(Some(at), &mut completions);
        }
        submit(drive, tag as u64, operation.clone());
    }
    while completions.len() < requests.len() {
        let before = completions.len();
        drive.wait(None, &mut completions);
        assert!(completions.len() > before, "the drive stalled in {:?}", drive.state());
    }
    let mut responses = vec![0; requests.len()];
    for Completion { tag, at, status } in completions {
        status.unwrap();
        responses[tag.0 as usize] = (at - start).0 / 1_000 - requests[tag.0 as usize].0;
    }
    responses
}

/// Returns a drive whose next write begins a collection: only pages 0 and 1 are valid in its victim.
fn about_to_collect(schedule: &str, transfer: u64) -> SimDrive {
    let mut drive = SimDrive::new(one_die(schedule, transfer), 42, false).unwrap();
    for lpn in (0..128).chain(2..66) {
        replay(&mut drive, Nanos::ZERO, &[(0, Operation::write(Lpn(lpn), 1))]);
    }
    drive
}

/// Returns the response time of a read `at` µs after the write that begins the collection.
fn read_response(schedule: &str, at: u64) -> u64 {
    let mut drive = about_to_collect(schedule, 0);
    let start = drive.now();
    let requests = [(0, Operation::write(Lpn(66), 1)), (at, Operation::read(Lpn(100), 1))];
    let response = replay(&mut drive, start, &requests)[1];
    drive.drain_events();
    drive.verify(true).unwrap();
    response
}

#[test]
fn a_read_waits_for_one_residual_operation_at_most() {
    // The die performs the host's program, then the collection: read 0, program 0, read 1, program 1, erase.
    let ends = [PROGRAM, READ, PROGRAM, READ, PROGRAM, ERASE];
    let ends = ends.iter().scan(0, |end, time| {
        *end += time;
        Some(*end)
    });
    let ends: Vec<u64> = ends.collect();
    assert_eq!(*ends.last().unwrap(), PROGRAM + 1_950);
    for at in (1..2_150).step_by(13) {
        let end = ends.iter().copied().find(|end| *end > at).unwrap();
        let residual = end - at;
        assert_eq!(read_response("semi-preemptive", at), residual + READ, "at {at}");
        // With suspension, the read waits at most the 20 µs of suspending, except during a read of
        // collection.
        let is_read = ends.iter().position(|known| *known == end).is_some_and(|op| op == 1 || op == 3);
        let wait = if is_read { residual } else { residual.min(20) };
        assert_eq!(read_response("preemptive", at), wait + READ, "at {at}");
        // Without preemption, a read waits for the whole collection and then for the write.
        let wait = if at < 1_950 { 1_950 - at } else { PROGRAM + 1_950 - at };
        assert_eq!(read_response("non-preemptive", at), wait + READ, "at {at}");
    }
}

#[test]
fn suspension_costs_its_overhead_and_nothing_else() {
    let collected = |at: Option<u64>| {
        let mut drive = about_to_collect("preemptive", 0);
        let start = drive.now();
        let read = at.map(|at| (at, Operation::read(Lpn(100), 1)));
        replay(
            &mut drive,
            start,
            &[(0, Operation::write(Lpn(66), 1))].into_iter().chain(read).collect::<Vec<_>>(),
        );
        drive.drain_events();
        ((drive.now() - start).0 / 1_000, drive.counters().suspensions)
    };
    assert_eq!(collected(None), (PROGRAM + 1_950, 0));
    // The read arrives during the erase.
    assert_eq!(collected(Some(1_000)), (PROGRAM + 1_950 + 20 + READ, 1));
}

#[test]
fn merging_saves_exactly_the_reads_of_collection() {
    let run = |schedule: &str, reads: &[(u64, u64)]| {
        let mut drive = about_to_collect(schedule, 0);
        let (start, before) = (drive.now(), drive.counters());
        let reads = reads.iter().map(|(at, lpn)| (*at, Operation::read(Lpn(*lpn), 1)));
        let requests: Vec<_> = [(0, Operation::write(Lpn(66), 1))].into_iter().chain(reads).collect();
        let responses = replay(&mut drive, start, &requests);
        drive.drain_events();
        drive.verify(true).unwrap();
        let after = drive.counters();
        let elapsed = (drive.now() - start).0 / 1_000;
        // The number of merged reads is the number of reads saved.
        assert_eq!(after.merged_pages - before.merged_pages, u64::from(schedule.contains("merge")));
        (responses[1..].to_vec(), after.flash_pages_read - before.flash_pages_read, elapsed)
    };
    let all = PROGRAM + 1_950;
    // Page 1 has not been moved yet when the host reads it, during the read of page 0 (200 to 225 µs).
    assert_eq!(run("semi-preemptive", &[(210, 1)]), (vec![15 + READ], 3, all + READ));
    assert_eq!(run("semi-preemptive+merge", &[(210, 1)]), (vec![15 + READ], 2, all));
    // The host reads page 0 while collection is reading it.
    assert_eq!(run("semi-preemptive", &[(210, 0)]), (vec![15 + READ], 3, all + READ));
    assert_eq!(run("semi-preemptive+merge", &[(210, 0)]), (vec![15], 2, all));
    // Page 0 is in the copy buffer while the die reads page 100 for the host.
    assert_eq!(run("semi-preemptive", &[(210, 100), (230, 0)]), (vec![40, 20 + READ], 4, all + 2 * READ));
    assert_eq!(run("semi-preemptive+merge", &[(210, 100), (230, 0)]), (vec![40, 0], 3, all + READ));
}

#[test]
fn a_host_write_makes_a_move_unnecessary() {
    for (lpn, copies) in [(1, 1), (0, 1), (100, 2)] {
        let mut drive = about_to_collect("semi-preemptive", 0);
        let (start, before) = (drive.now(), drive.counters());
        // The write arrives while page 0 is read. At the end of the read, page 0 is in the copy buffer, and
        // page 1 is not moved yet.
        let requests = [(0, Operation::write(Lpn(66), 1)), (210, Operation::write(Lpn(lpn), 1))];
        assert_eq!(replay(&mut drive, start, &requests), [PROGRAM, 15 + PROGRAM]);
        drive.drain_events();
        drive.verify(true).unwrap();
        assert_eq!(drive.counters().gc_pages_copied - before.gc_pages_copied, copies, "page {lpn}");
    }
}

#[test]
fn pipelining_saves_exactly_the_overlap() {
    const TRANSFER: u64 = 10;
    let response = |schedule: &str, at: u64, operation: Operation| {
        let mut drive = about_to_collect(schedule, TRANSFER);
        let start = drive.now();
        let response = replay(&mut drive, start, &[(0, Operation::write(Lpn(66), 1)), (at, operation)])[1];
        drive.drain_events();
        drive.verify(true).unwrap();
        response
    };
    // The read of page 0 is from 210 to 245 µs.
    let read = |schedule| response(schedule, 220, Operation::read(Lpn(100), 1));
    assert_eq!(read("semi-preemptive"), 2 * (READ + TRANSFER) - 10);
    assert_eq!(read("semi-preemptive+pipeline"), READ + READ.max(TRANSFER) + TRANSFER - 10);
    // The program of page 0 is from 245 to 455 µs.
    let write = |schedule| response(schedule, 300, Operation::write(Lpn(100), 1));
    assert_eq!(write("semi-preemptive"), 2 * (TRANSFER + PROGRAM) - 55);
    assert_eq!(write("semi-preemptive+pipeline"), TRANSFER + PROGRAM + PROGRAM - 55);
    // A program that begins just before the program of page 0 ends only waits for its own transfer.
    let late = response("semi-preemptive+pipeline", 450, Operation::write(Lpn(100), 1));
    assert_eq!(late, TRANSFER + PROGRAM);
    // An operation of the other kind does not overlap.
    let other = |schedule| response(schedule, 300, Operation::read(Lpn(100), 1));
    assert_eq!(other("semi-preemptive+pipeline"), other("semi-preemptive"));
}

/// The rule: the wait of an overlapping operation for collection ends when the operation begins.
#[test]
fn an_overlapping_operation_waits_until_it_begins() {
    let waits = |at, operation| {
        let mut drive = about_to_collect("semi-preemptive+pipeline", 10);
        drive.keep_served();
        let start = drive.now();
        replay(&mut drive, start, &[(0, Operation::write(Lpn(66), 1)), (at, operation)]);
        let mut served = Vec::new();
        drive.take_served(&mut served);
        let last = served.iter().find(|served| served.tag == Tag(1)).unwrap();
        (last.waits.gc / 1_000, last.waits.die, last.waits.channel)
    };
    // The die's array is free at 235 µs, when the read of page 0 leaves it. The channel is free at 255 µs,
    // when the program of page 0 is in the array.
    assert_eq!(waits(220, Operation::read(Lpn(100), 1)), (15, 0, 0));
}

/// The rule: a read that joins a collection read waits for collection from its arrival at the flash.
#[test]
fn a_joined_read_waits_for_collection() {
    let mut drive = about_to_collect("semi-preemptive+merge", 10);
    drive.keep_served();
    let start = drive.now();
    // The read of page 0 is from 210 to 245 µs.
    let read = Operation::read(Lpn(0), 1);
    let responses = replay(&mut drive, start, &[(0, Operation::write(Lpn(66), 1)), (220, read)]);
    let mut served = Vec::new();
    drive.take_served(&mut served);
    let waits = served.iter().find(|served| served.tag == Tag(1)).unwrap().waits;
    assert_eq!((responses[1], waits.gc, waits.die), (25, 25_000, 0));
}

/// The rule: a power cut drops the reads that wait for a collection read. A later collection read of the same
/// page completes none of them.
#[test]
fn a_power_cut_drops_joined_reads() {
    let mut drive = about_to_collect("semi-preemptive+merge", 10);
    let start = drive.now();
    submit(&mut drive, 0, Operation::write(Lpn(66), 1));
    let mut completions = Vec::new();
    // As above, the read of page 0 is from 210 to 245 µs.
    drive.wait(Some(start + Nanos::from_micros(220)), &mut completions);
    submit(&mut drive, 1, Operation::read(Lpn(0), 1));
    drive.wait(Some(start + Nanos::from_micros(230)), &mut completions);
    drive.power_cut();
    drive.drain_events();
    drive.verify(true).unwrap();
    drive.wait(Some(drive.now()), &mut completions);
    assert!(completions.iter().all(|done| done.tag != Tag(1)), "{completions:?}");
}

/// Returns a drive that holds page 100 and has no invalid page.
fn with_page_100(schedule: &str) -> SimDrive {
    let mut drive = SimDrive::new(one_die(schedule, 0), 42, false).unwrap();
    replay(&mut drive, Nanos::ZERO, &[(0, Operation::write(Lpn(100), 1))]);
    drive
}

/// The rule: at most sixteen reads in a row go before a waiting program, and then sixteen more before the
/// next program.
#[test]
fn a_burst_of_reads_lets_programs_through() {
    let mut drive = with_page_100("semi-preemptive");
    let start = drive.now();
    let reads = |count| (0..count).map(|_| (0, Operation::read(Lpn(100), 1)));
    let writes = (0..2).map(|lpn| (0, Operation::write(Lpn(lpn), 1)));
    let requests: Vec<_> = reads(10).chain(writes).chain(reads(40)).collect();
    let responses = replay(&mut drive, start, &requests);
    let round = 16 * READ + PROGRAM;
    assert_eq!(responses[10..12], [round, 2 * round]);
    assert_eq!(responses[51], 2 * round + 18 * READ, "the other reads come after both");
}

/// The rule: a program is suspended at most eight times, however many reads arrive, and is not suspended if
/// it would end sooner.
#[test]
fn an_operation_is_suspended_a_few_times_and_ends() {
    const SUSPEND: u64 = 20;
    let mut drive = with_page_100("preemptive");
    let start = drive.now();
    // A read arrives 5 µs after each resumption of the program. So 10 µs of the program pass each time, until
    // it is no longer suspended.
    let gap = 5 + SUSPEND + READ;
    let reads = (0..40).map(|at| (5 + at * gap, Operation::read(Lpn(100), 1)));
    let requests: Vec<_> = [(0, Operation::write(Lpn(0), 1))].into_iter().chain(reads).collect();
    let responses = replay(&mut drive, start, &requests);
    assert_eq!(drive.counters().suspensions, 8);
    assert_eq!(responses[1..9], [SUSPEND + READ; 8]);
    let end = PROGRAM + 8 * (SUSPEND + READ);
    assert_eq!(responses[0], end);
    let waits = end - (5 + 8 * gap);
    assert_eq!(responses[9], waits + READ, "the ninth read waits for the end");
}

/// The rule: a program is suspended at its next safe point, and not if the program ends there. It goes on
/// after the time that resuming takes. An erase has no safe points.
#[test]
fn a_program_is_suspended_at_its_safe_points() {
    const SUSPEND: u64 = 20;
    let response = |points, at| {
        let config = SsdConfig { suspend_points: points, ..one_die("paced+suspend", 0) };
        let mut drive = SimDrive::new(config, 42, false).unwrap();
        replay(&mut drive, Nanos::ZERO, &[(0, Operation::write(Lpn(100), 1))]);
        let start = drive.now();
        replay(&mut drive, start, &[(0, Operation::write(Lpn(0), 1)), (at, Operation::read(Lpn(100), 1))])
    };
    let resumed = SsdConfig { resume: Nanos::from_micros(30), ..one_die("paced+suspend", 0) };
    let mut drive = SimDrive::new(resumed, 42, false).unwrap();
    replay(&mut drive, Nanos::ZERO, &[(0, Operation::write(Lpn(100), 1))]);
    let start = drive.now();
    let requests = [(0, Operation::write(Lpn(0), 1)), (5, Operation::read(Lpn(100), 1))];
    assert_eq!(replay(&mut drive, start, &requests), [PROGRAM + SUSPEND + READ + 30, SUSPEND + READ]);
    // The safe points are 50 µs apart.
    assert_eq!(response(4, 5), [PROGRAM + SUSPEND + READ, 45 + SUSPEND + READ]);
    assert_eq!(response(4, 50), [PROGRAM + SUSPEND + READ, SUSPEND + READ]);
    assert_eq!(response(4, 151), [PROGRAM, 49 + READ], "it waits for the end");
    assert_eq!(response(0, 151), [PROGRAM + SUSPEND + READ, SUSPEND + READ], "at any time");
}

/// The rule: with `+suspend-erases`, a read suspends an erase and no program.
#[test]
fn erases_alone_are_suspended() {
    let collected = |schedule: &str, at| {
        let mut drive = about_to_collect(schedule, 0);
        let start = drive.now();
        let requests = [(0, Operation::write(Lpn(66), 1)), (at, Operation::read(Lpn(100), 1))];
        replay(&mut drive, start, &requests)[1]
    };
    // Collection reads and programs pages from 200 to 650 µs and then erases.
    for (schedule, in_program, in_erase) in [
        ("semi-preemptive", 25 + READ, 1_150 + READ),
        ("semi-preemptive+suspend-erases", 25 + READ, 20 + READ),
        ("semi-preemptive+suspend", 20 + READ, 20 + READ),
    ] {
        assert_eq!(
            (collected(schedule, 400), collected(schedule, 1_000)),
            (in_program, in_erase),
            "{schedule}"
        );
    }
}

/// The rule: suspended work counts as waiting work, so a burst of reads delays it only for a bounded time.
#[test]
fn suspended_work_resumes_after_a_burst_of_reads() {
    let mut drive = with_page_100("preemptive");
    let start = drive.now();
    let reads = (0..40).map(|_| (50, Operation::read(Lpn(100), 1)));
    let requests: Vec<_> = [(0, Operation::write(Lpn(0), 1))].into_iter().chain(reads).collect();
    // The program is suspended at 50 µs, which takes 20 µs. The read that suspended it and sixteen more
    // follow, and then the rest of the program.
    assert_eq!(replay(&mut drive, start, &requests)[0], 50 + 20 + 17 * READ + 150);
}

#[test]
fn an_idle_drive_collects_until_a_request_arrives() {
    let op = Share::percent(250);
    let usual = one_die("semi-preemptive", 0);
    let collect = Collect { background: 4, ..usual.collect.clone() };
    let config = SsdConfig { blocks: 7, op, collect, ..usual };
    let mut drive = SimDrive::new(config, 42, false).unwrap();
    // In the first segment, only pages 0 and 1 are valid.
    for lpn in (0..64).chain(2..64).chain([2, 3]).chain(64..128) {
        replay(&mut drive, Nanos::ZERO, &[(0, Operation::write(Lpn(lpn), 1))]);
    }
    replay(&mut drive, Nanos::ZERO, &[(0, Operation::write(Lpn(4), 1))]);
    let start = drive.now();
    assert_eq!((drive.ftl().unwrap().free_segments(), drive.counters().erases), (3, 0));
    // Collection begins after a millisecond with read 0 and program 0. A host read during the program of page
    // 0 ends the idle time.
    let requests = [(1_100, Operation::read(Lpn(20), 1)), (1_500, Operation::read(Lpn(20), 1))];
    assert_eq!(replay(&mut drive, start, &requests), [125 + READ, READ]);
    assert_eq!(drive.state(), ScheduleState::Idle);
    drive.drain_events();
    drive.verify(true).unwrap();
    assert_eq!((drive.ftl().unwrap().free_segments(), drive.counters().erases), (4, 1));
}

/// The rule: a drive that starts in the middle of a collection, or is turned on again, continues the
/// collection before any request.
#[test]
fn an_unfinished_collection_is_continued() {
    for schedule in ["non-preemptive", "semi-preemptive", "preemptive"] {
        let mut drive = about_to_collect(schedule, 0);
        submit(&mut drive, 0, Operation::write(Lpn(66), 1));
        let at = drive.now() + Nanos::from_micros(300);
        drive.wait(Some(at), &mut Vec::new());
        let begun = drive.ftl().unwrap();
        let (victim, free) = (begun.victim(UnitId(0)), begun.free_segments());
        assert!(victim.is_some(), "{schedule}");
        let mut again = SimDrive::with_ftl(drive.config().clone(), Some(begun.clone()), false);
        again.drain_events();
        let ended = again.ftl().unwrap();
        check::check(ended).unwrap();
        assert_eq!((ended.victim(UnitId(0)), ended.free_segments()), (None, free + 1), "{schedule}");
        assert_eq!(again.state(), ScheduleState::Idle, "{schedule}");
        // The same holds after a power cut during the collection.
        drive.power_cut();
        drive.drain_events();
        drive.verify(true).unwrap();
        let ended = drive.ftl().unwrap();
        assert_eq!((ended.victim(UnitId(0)), ended.free_segments()), (None, free + 1), "{schedule}");
    }
}

/// The rule: a drive is idle when no request has been in progress for the idle time. A request that completed
/// within that time, or that is still in progress, keeps the drive busy.
#[test]
fn a_drive_with_a_request_in_progress_is_not_idle() {
    let usual = one_die("semi-preemptive", 0);
    let collect = Collect { background: 4, ..usual.collect.clone() };
    let op = Share::percent(250);
    let config = SsdConfig { blocks: 7, op, collect, gc_idle: Nanos::from_micros(100), ..usual };
    let mut drive = SimDrive::new(config, 42, false).unwrap();
    for lpn in (0..64).chain(2..64).chain([2, 3]).chain(64..128).chain([4]) {
        replay(&mut drive, Nanos::ZERO, &[(0, Operation::write(Lpn(lpn), 1))]);
    }
    assert_eq!(drive.ftl().unwrap().free_segments(), 3);
    let start = drive.now();
    let mut completions = Vec::new();
    // The write takes 200 µs, so it is in progress when 100 µs have passed since the last request ended. The
    // next read ends 25 µs later, and the write after the read 200 µs after that.
    for (at, operation) in [
        (90, Operation::write(Lpn(5), 1)),
        (95, Operation::write(Lpn(6), 1)),
        (270, Operation::read(Lpn(20), 1)),
    ] {
        drive.wait(Some(start + Nanos::from_micros(at)), &mut completions);
        submit(&mut drive, at, operation);
    }
    for at in (271..516).step_by(4) {
        drive.wait(Some(start + Nanos::from_micros(at)), &mut completions);
        assert_eq!(drive.state(), ScheduleState::Idle, "after {at} µs");
    }
    let ends: Vec<u64> = completions.iter().map(|done| (done.at - start).0 / 1_000).collect();
    assert_eq!(ends, [290, 315, 515]);
    drive.wait(Some(start + Nanos::from_micros(614)), &mut completions);
    assert_eq!(drive.state(), ScheduleState::Idle);
    drive.wait(Some(start + Nanos::from_micros(616)), &mut completions);
    assert_eq!(drive.state(), ScheduleState::Collecting);
    // A request ends the idle time at once.
    submit(&mut drive, 616, Operation::read(Lpn(20), 1));
    assert_eq!(drive.state(), ScheduleState::Idle);
}

/// The rule: a drive without a request since its start, or since a power cut, is idle too, and collects in
/// the background.
#[test]
fn a_drive_that_was_turned_on_is_idle() {
    let usual = one_die("semi-preemptive", 0);
    let collect = Collect { background: 4, ..usual.collect.clone() };
    let config = SsdConfig { blocks: 7, op: Share::percent(250), collect, ..usual };
    let mut drive = SimDrive::new(config.clone(), 42, false).unwrap();
    for lpn in (0..64).chain(2..64).chain([2, 3]).chain(64..128).chain([4]) {
        replay(&mut drive, Nanos::ZERO, &[(0, Operation::write(Lpn(lpn), 1))]);
    }
    let mut again = SimDrive::with_ftl(config, drive.ftl().cloned(), false);
    drive.power_cut();
    for drive in [&mut drive, &mut again] {
        assert_eq!(drive.ftl().unwrap().free_segments(), 3);
        drive.drain_events();
        assert_eq!(drive.ftl().unwrap().free_segments(), 4);
    }
}

#[test]
fn an_urgent_write_makes_all_operations_wait_for_collection() {
    let config = |urgent| {
        let urgent = Nanos::from_micros(urgent);
        let usual = one_die("semi-preemptive", 0);
        let collect = Collect { urgent, ..usual.collect.clone() };
        SsdConfig { collect, queue_depth: 1 << 13, ..usual }
    };
    let write_response = |config| {
        let mut drive = SimDrive::new(config, 42, false).unwrap();
        for lpn in (0..128).chain(2..66) {
            replay(&mut drive, Nanos::ZERO, &[(0, Operation::write(Lpn(lpn), 1))]);
        }
        let start = drive.now();
        // The last free segment of the host is filled at once, and reads occupy the die all the time.
        let writes = (0..65).map(|lpn| (0, Operation::write(Lpn(2 + lpn), 1)));
        let reads = (0..4_000).map(|index| (index * 10, Operation::read(Lpn(100), 1)));
        let requests: Vec<_> = writes.chain(reads).collect();
        replay(&mut drive, start, &requests)[64]
    };
    let (patient, urgent) = (write_response(config(1_000_000)), write_response(config(2_000)));
    assert!(urgent < patient / 2, "{urgent} µs with the limit, {patient} µs without");
}
