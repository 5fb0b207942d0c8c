//! Tests of the waits of requests, and of the timeline, on drives whose times can be computed by hand.

use fulgurite_base::{Lpn, Nanos, Prng, Share};
use fulgurite_device::{Command, Completion, Device, Operation, Tag};
use fulgurite_ftl::Collect;
use fulgurite_ftl::precondition::Precondition;
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ssd::{Served, SimDrive, Span, SpanKind, SsdConfig, Track, WriteCache, preset};
use std::collections::BTreeMap;

const READ: u64 = 25_000;
const PROGRAM: u64 = 200_000;
const ERASE: u64 = 1_500_000;
const TRANSFER: u64 = 10_000;
const READ_LATENCY: u64 = 7_000;
const WRITE_LATENCY: u64 = 11_000;

/// Returns a drive with dies of one plane on one channel, so that each page is an operation of its own.
fn config(dies: u32, schedule: &str) -> SsdConfig {
    SsdConfig {
        channels: 1,
        chips: 1,
        dies,
        planes: 1,
        blocks: 6,
        pages: 32,
        op: Share::percent(100),
        read: Nanos(READ),
        program: Nanos(PROGRAM),
        erase: Nanos(ERASE),
        transfer: Nanos(TRANSFER),
        read_latency: Nanos(READ_LATENCY),
        write_latency: Nanos(WRITE_LATENCY),
        write_cache: WriteCache::Off,
        write_buffer: 16 * 4096,
        collect: Collect { schedule: Schedule::from_name(schedule).unwrap(), ..Collect::PLAIN },
        precondition: Precondition::None,
        ..preset::reference_e()
    }
}

/// Performs requests of one page that arrive at the given times after now. Returns the waits and the response
/// time of each.
fn perform(drive: &mut SimDrive, requests: &[(u64, Operation)]) -> Vec<(Served, u64)> {
    drive.keep_served();
    let (start, mut completions, mut served) = (drive.now().0, Vec::new(), Vec::new());
    for (tag, (at, operation)) in (0..).zip(requests) {
        while drive.now().0 < start + at {
            drive.wait(Some(Nanos(start + at)), &mut completions);
        }
        drive.submit(Command { tag: Tag(tag), operation: operation.clone() }).unwrap();
    }
    while completions.len() < requests.len() {
        drive.wait(None, &mut completions);
    }
    drive.take_served(&mut served);
    let ends: BTreeMap<u64, Nanos> =
        completions.iter().map(|Completion { tag, at, .. }| (tag.0, *at)).collect();
    let response = |served: Served| (served, ends[&served.tag.0].0 - served.submitted.0);
    let mut served: Vec<_> = served.into_iter().map(response).collect();
    served.sort_by_key(|(served, _)| served.tag.0);
    served
}

/// The rule: without overlaps and suspensions, waits and service time add up to the response time.
#[test]
fn waits_and_service_are_the_response_time() {
    let mut waited = [0; 4];
    for schedule in ["semi-preemptive", "semi-preemptive+merge", "non-preemptive"] {
        for dies in [1, 2] {
            let mut drive = SimDrive::new(config(dies, schedule), 42, false).unwrap();
            let pages = drive.caps().pages;
            let mut prng = Prng::new(7, schedule);
            let mut at = 0;
            let requests: Vec<_> = (0..1_500)
                .map(|_| {
                    at += prng.below(2 * PROGRAM);
                    let lpn = Lpn(prng.below(pages));
                    (at, if prng.below(2) == 0 { Operation::read(lpn, 1) } else { Operation::write(lpn, 1) })
                })
                .collect();
            for (Served { tag, waits, .. }, response) in perform(&mut drive, &requests) {
                let all = [waits.gc, waits.die, waits.channel, waits.buffer];
                let served = response.checked_sub(all.iter().sum()).expect("nothing is waited for twice");
                // A page in a buffer, or an unmapped page, is read without the flash. A merged read ends with
                // collection's read.
                let expected: &[u64] = match &requests[tag.0 as usize].1 {
                    Operation::Read { .. } => &[READ_LATENCY + READ + TRANSFER, READ_LATENCY],
                    _ => &[WRITE_LATENCY + PROGRAM + TRANSFER],
                };
                assert!(expected.contains(&served), "{schedule}, {dies} dies: {waits:?} of {response} ns");
                std::iter::zip(&mut waited, all).for_each(|(sum, wait)| *sum += wait);
            }
        }
    }
    assert!(waited.iter().all(|wait| *wait > 0), "{waited:?}");
}

/// The rule: a collection operation begins on a die only if no host read waits for the die, however many
/// reads there are.
#[test]
fn collection_does_not_start_where_a_read_waits() {
    let mut collected = 0;
    for seed in 0..12 {
        let mut drive =
            SimDrive::new(SsdConfig { pages: 8, ..config(2, "semi-preemptive") }, 42, false).unwrap();
        let pages = drive.caps().pages;
        drive.record_timeline(100_000);
        let mut prng = Prng::new(seed, "requests");
        let mut at = 0;
        // Reads arrive in bursts, so most of them wait.
        let requests: Vec<_> = (0..1_500)
            .map(|_| {
                at += if prng.below(8) == 0 { prng.below(4 * PROGRAM) } else { 0 };
                let lpn = Lpn(prng.below(pages));
                (at, if prng.below(3) == 0 { Operation::write(lpn, 1) } else { Operation::read(lpn, 1) })
            })
            .collect();
        perform(&mut drive, &requests);
        let spans = drive.timeline().unwrap().spans();
        assert_eq!(drive.timeline().unwrap().left_out(), 0);
        // For each read: its die, and the times of its arrival and of its end, which is the end of its flash
        // operation.
        let mut reads: Vec<(Track, Nanos, Nanos)> = Vec::new();
        for (index, host) in spans.iter().enumerate().filter(|(_, span)| span.kind == SpanKind::HostRead) {
            let mut of_flash = spans[..index].iter().rev().take_while(|span| span.end == host.end);
            let own = of_flash.find(|span| span.kind == SpanKind::Read);
            reads.extend(own.map(|own| (own.track, host.start + Nanos(READ_LATENCY), own.start)));
        }
        let collects =
            |span: &&Span| matches!(span.kind, SpanKind::MoveRead | SpanKind::MoveProgram | SpanKind::Erase);
        for span in spans.iter().filter(collects) {
            collected += 1;
            let waits = |read: &&(Track, Nanos, Nanos)| {
                read.0 == span.track && read.1 < span.start && span.start < read.2
            };
            assert_eq!(reads.iter().find(waits), None, "seed {seed}: {span:?}");
        }
    }
    assert!(collected > 1_000, "{collected} operations of collection");
}

/// The rule: a timeline has a span for each operation of a die, each transfer and each request. Beyond its
/// bound, spans are left out and counted.
#[test]
fn a_timeline_has_all_operations_and_requests() {
    let requests = [
        (0, Operation::write(Lpn(3), 1)),
        (300_000, Operation::read(Lpn(3), 1)),
        (400_000, Operation::Trim { lpn: Lpn(3), pages: 1 }),
    ];
    let span = |track, kind, start, end, place, pages| Span {
        track,
        kind,
        start: Nanos(start),
        end: Nanos(end),
        place,
        pages,
    };
    let (die, channel) = (Track::Die(0), Track::Channel(0));
    let programmed = TRANSFER + PROGRAM;
    let read = 300_000 + READ_LATENCY;
    let sent = read + READ + TRANSFER;
    let expected = [
        span(die, SpanKind::Program, 0, programmed, 0, 1),
        span(channel, SpanKind::Transfer, 0, TRANSFER, 0, 1),
        span(Track::Host, SpanKind::HostWrite, 0, programmed + WRITE_LATENCY, 3, 1),
        span(die, SpanKind::Read, read, sent, 0, 1),
        span(channel, SpanKind::Transfer, sent - TRANSFER, sent, 0, 1),
        span(Track::Host, SpanKind::HostRead, 300_000, sent, 3, 1),
        span(Track::Host, SpanKind::HostOther, 400_000, 400_000 + WRITE_LATENCY, 3, 1),
    ];
    for (at_most, left_out) in [(7, 0), (3, 4), (100, 0)] {
        let mut drive = SimDrive::new(config(1, "semi-preemptive"), 42, false).unwrap();
        assert!(drive.timeline().is_none());
        drive.record_timeline(at_most);
        perform(&mut drive, &requests);
        let timeline = drive.timeline().unwrap();
        assert_eq!(timeline.spans(), &expected[..at_most.min(7)]);
        assert_eq!(timeline.left_out(), left_out);
    }
}

/// The rule: a transfer's length follows from its pages. The transfer is on the channel of its die, where it
/// waits for the previous transfer.
#[test]
fn a_timeline_has_the_transfers_of_each_channel() {
    let config = SsdConfig { channels: 2, planes: 2, ..config(2, "semi-preemptive") };
    let mut drive = SimDrive::new(config, 42, false).unwrap();
    drive.record_timeline(100);
    perform(&mut drive, &[(0, Operation::write(Lpn(0), 8))]);
    let transfers = drive.timeline().unwrap().spans().iter().filter(|span| span.kind == SpanKind::Transfer);
    let mut transfers: Vec<_> =
        transfers.map(|span| (span.track, span.start.0, span.end.0, span.pages)).collect();
    transfers.sort_unstable();
    let both = 2 * TRANSFER;
    // Each channel has two of the four dies.
    let expected = [0, 1].map(|channel| {
        let track = Track::Channel(channel);
        [(track, 0, both, 2), (track, both, 2 * both, 2)]
    });
    assert_eq!(transfers, expected.concat());
}

/// The rule: collection operations have their own kinds, and the states of the schedule follow one another
/// without gaps.
#[test]
fn a_timeline_has_collection_and_states() {
    let mut drive = SimDrive::new(config(1, "semi-preemptive"), 42, false).unwrap();
    let pages = drive.caps().pages;
    let begin = drive.now();
    drive.record_timeline(100_000);
    for lpn in (0..pages).chain((0..3 * pages).map(|at| at * 7 % pages)) {
        perform(&mut drive, &[(0, Operation::write(Lpn(lpn), 1))]);
    }
    drive.drain_events();
    let (timeline, counters) = (drive.timeline().unwrap(), drive.counters());
    let of = |kind| timeline.spans().iter().filter(move |span| span.kind == kind);
    let took = |kind| of(kind).map(|span| span.end.0 - span.start.0).collect::<Vec<_>>();
    assert!(counters.erases > 0 && counters.gc_pages_copied > 0);
    assert_eq!(took(SpanKind::MoveRead), vec![READ + TRANSFER; counters.flash_pages_read as usize]);
    assert_eq!(took(SpanKind::MoveProgram), vec![TRANSFER + PROGRAM; counters.gc_pages_copied as usize]);
    assert_eq!(took(SpanKind::Erase), vec![ERASE; counters.erases as usize]);
    assert_eq!(took(SpanKind::Program).len() as u64, counters.host_pages_written);
    let transfers = counters.flash_pages_read + counters.flash_pages_programmed;
    assert_eq!(took(SpanKind::Transfer), vec![TRANSFER; transfers as usize]);
    let states = timeline.spans().iter().filter(|span| span.track == Track::Schedule);
    let mut before = (begin, None);
    for span in states {
        assert_eq!(span.start, before.0);
        assert_ne!(Some(span.kind), before.1, "a state that goes on is one span");
        before = (span.end, Some(span.kind));
    }
    assert!(before.1.is_some());
}

/// The rule: after a power cut no transfer is in progress on the channels.
#[test]
fn a_power_cut_frees_the_channels() {
    let mut drive = SimDrive::new(config(4, "semi-preemptive"), 42, false).unwrap();
    perform(&mut drive, &[(0, Operation::write(Lpn(0), 1))]);
    // The transfers to the other dies would take until 40 µs from now.
    for lpn in 1..5 {
        drive.submit(Command { tag: Tag(lpn), operation: Operation::write(Lpn(lpn), 1) }).unwrap();
    }
    drive.wait(Some(drive.now() + Nanos(1)), &mut Vec::new());
    drive.power_cut();
    let (_, response) = perform(&mut drive, &[(0, Operation::read(Lpn(0), 1))])[0];
    assert_eq!(response, READ_LATENCY + READ + TRANSFER);
}
