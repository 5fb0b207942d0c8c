//! Tests that a host reads the statistics and events of flexible data placement.

use fulgurite_base::{Isolation, Lpn, PlacementId, Prng, Share, Spec, StreamId};
use fulgurite_device::{Command, Device, FdpCaps, FdpEventKind, FdpLog, Operation, Tag};
use fulgurite_ftl::precondition::Precondition;
use fulgurite_ssd::{SimDrive, SsdConfig, preset};

fn small(options: &str) -> SimDrive {
    let small = SsdConfig {
        channels: 2,
        blocks: 24,
        pages: 8,
        op: Share::percent(60),
        precondition: Precondition::None,
        ..preset::reference_e()
    };
    let config = small.changed_by(Spec::parse(&format!("small:{options}")).unwrap()).unwrap();
    SimDrive::new(config, 7, false).unwrap()
}

/// Writes one page after the other to random addresses.
fn write(drive: &mut SimDrive, writes: u64, stream: impl Fn(u64) -> StreamId) {
    let (mut prng, mut completions) = (Prng::new(9, "fdp"), Vec::new());
    for tag in 0..writes {
        let lpn = Lpn(prng.below(drive.caps().pages));
        let operation = Operation::Write { lpn, pages: 1, from: None, stream: stream(tag), durable: false };
        drive.submit(Command { tag: Tag(tag), operation }).unwrap();
        drive.wait(None, &mut completions);
    }
    drive.settle();
    drive.drain_events();
    assert_eq!(drive.verify(true), Ok(()));
}

/// The rule: the drive offers the handles of its options and a reclaim group for each unit of collection. The
/// statistics are the bytes of the host and of the flash since the start.
#[test]
fn the_host_reads_capabilities_and_statistics() {
    let mut drive = small("fdp=handles:3:persistently,gc_unit=channel");
    let unit_pages = drive.config().pages_per_segment();
    let offered = FdpCaps { groups: 2, handles: 3, isolation: Isolation::Persistently, unit_pages };
    assert_eq!((drive.caps().fdp, drive.caps().streams), (Some(offered), 3));
    assert_eq!(drive.fdp_log(), Some(FdpLog::default()));
    let writes = 4 * drive.caps().pages;
    write(&mut drive, writes, |tag| StreamId((tag % 3) as u16));
    let (log, counters) = (drive.fdp_log().unwrap(), drive.counters());
    assert!(counters.gc_pages_copied > writes / 10 && counters.erases > 10);
    let page = u64::from(drive.caps().page_bytes);
    assert_eq!(log.host_bytes_written, writes * page);
    assert_eq!(log.media_bytes_written, (writes + counters.gc_pages_copied) * page);
    assert_eq!(log.media_bytes_erased, counters.erases * u64::from(unit_pages) * page);
}

/// The rule: the drive keeps an event for each identifier that it does not have and for each reclaim unit whose
/// pages it moves, and only the newest events. It counts all of them.
#[test]
fn the_host_reads_events() {
    let mut drive = small("fdp=handles:3");
    let invalid = PlacementId { group: None, handle: 3 };
    write(&mut drive, 2, |tag| if tag == 0 { invalid.stream() } else { StreamId(2) });
    let kinds =
        |drive: &SimDrive| drive.fdp_log().unwrap().events.iter().map(|event| event.kind).collect::<Vec<_>>();
    assert_eq!(kinds(&drive), [FdpEventKind::InvalidIdentifier(invalid)]);
    let no_group = PlacementId { group: Some(1), handle: 0 };
    write(&mut drive, 1, |_| no_group.stream());
    assert_eq!(kinds(&drive)[1..], [FdpEventKind::InvalidIdentifier(no_group)]);
    let writes = 20 * drive.caps().pages;
    write(&mut drive, writes, |_| StreamId(1));
    let (counters, log) = (drive.counters(), drive.fdp_log().unwrap());
    assert_eq!(counters.fdp.unwrap().invalid_identifiers, 2);
    assert!(counters.fdp.unwrap().reallocated_units > FdpLog::EVENTS_AT_MOST as u64);
    assert_eq!(log.events.len(), FdpLog::EVENTS_AT_MOST);
    assert!(log.events.is_sorted_by_key(|event| event.at));
    let moved = |kind: &FdpEventKind| matches!(kind, FdpEventKind::MediaReallocated { group: 0, pages: 1.. });
    assert!(kinds(&drive).iter().all(moved), "the first events are forgotten");
}

/// The rule: the pages of all events are the pages that collection has copied, except the page that the host
/// overwrites while its unit is collected: at most one a unit here.
#[test]
fn events_count_the_pages_that_are_moved() {
    let mut drive = small("fdp=handles:2,write_cache=off");
    let (mut prng, mut completions, mut pages, mut seen) = (Prng::new(1, "fdp"), Vec::new(), 0, 0);
    for tag in 0..8 * drive.caps().pages {
        let operation = Operation::write(Lpn(prng.below(drive.caps().pages)), 1);
        drive.submit(Command { tag: Tag(tag), operation }).unwrap();
        drive.wait(None, &mut completions);
        drive.drain_events();
        let events = drive.fdp_log().unwrap().events;
        for event in
            events.iter().rev().take((drive.counters().fdp.unwrap().reallocated_units - seen) as usize)
        {
            let FdpEventKind::MediaReallocated { pages: valid, .. } = event.kind else { panic!("{event:?}") };
            pages += u64::from(valid);
        }
        seen = drive.counters().fdp.unwrap().reallocated_units;
    }
    assert!(seen > 50);
    let copied = drive.counters().gc_pages_copied;
    assert!((copied..=copied + seen).contains(&pages), "{pages} of {seen} units, {copied} copied");
}

/// The rule: the erase of a reclaim unit without valid pages is no event.
#[test]
fn erasing_a_unit_without_pages_is_no_event() {
    let mut drive = small("fdp=handles:2");
    let mut completions = Vec::new();
    for tag in 0..4 * drive.caps().pages {
        let operation = Operation::write(Lpn(tag % drive.caps().pages), 1);
        drive.submit(Command { tag: Tag(tag), operation }).unwrap();
        drive.wait(None, &mut completions);
    }
    assert!(drive.counters().erases > 20);
    assert_eq!(
        (drive.counters().fdp.unwrap().reallocated_units, drive.fdp_log().unwrap().events),
        (0, Vec::new())
    );
}

/// The rule: a drive without flexible data placement has neither capabilities nor a log, and counts no events.
#[test]
fn other_drives_have_no_log() {
    let mut drive = small("streams=3");
    let writes = 4 * drive.caps().pages;
    write(&mut drive, writes, |tag| StreamId((tag % 7) as u16));
    assert_eq!((drive.caps().fdp, drive.fdp_log()), (None, None));
    assert_eq!(drive.counters().fdp, None);
}

/// The rule: `fdp` and `ru` are short for other options, and are refused where they would not work.
#[test]
fn handles_and_the_size_of_units_are_options() {
    let changed =
        |options: &str| preset::reference_e().changed_by(Spec::parse(&format!("small:{options}")).unwrap());
    let same = |one: &str, other: &str| assert_eq!(changed(one).unwrap(), changed(other).unwrap());
    same("fdp=handles:8", "placement=fdp");
    same("fdp=handles:8", "fdp=handles:8:initially");
    same("fdp=handles:3:persistently", "placement=\"fdp:handles=3,isolation=persistently\"");
    let before = preset::reference_e();
    let segment = u64::from(before.pages_per_segment()) * u64::from(before.page_bytes);
    let halved = changed(&format!("ru={}B", segment / 2)).unwrap();
    assert_eq!((halved.pages * 2, halved.blocks), (before.pages, before.blocks * 2));
    for (options, why) in [
        ("fdp=8", "is not a kind of handles; accepted: handles:8"),
        ("fdp=handles:0", "0 is out of range"),
        ("fdp=handles:129", "129 is out of range"),
        ("fdp=handles:2,streams=4", "does not go with placement=hints"),
        ("fdp=handles:2,gc_unit=channel,stripe=address", "stripe=address does not go with fdp"),
        ("ru=1MB", "accepted: a multiple of"),
        ("ru=1TiB", "does not fit this flash"),
    ] {
        let refusal = changed(options).unwrap_err().to_string();
        assert!(refusal.contains(why), "{options}: {refusal}");
    }
}
