//! Tests of the layer under failures of the drive below: lost pages, pages that cannot be moved, and missing
//! completions.

use super::*;

#[test]
fn a_failed_write_is_reported_and_never_read_as_another_page() {
    let mut device = layer(FaultDevice::new(mem(256), vec![Fault::FailWrite(9)]), small());
    for page in 0..9 {
        write(&mut device, page, 100 + page).unwrap();
    }
    assert_eq!(write(&mut device, 3, 200), Err(IoError::Media));
    assert_eq!(read(&mut device, 3), Err(IoError::Media));
    assert_eq!(read(&mut device, 4), Ok(104));
    write(&mut device, 3, 300).unwrap();
    assert_eq!(read(&mut device, 3), Ok(300));
}

/// The rule: a read that waits for a page fails if the write of that page fails, and is not sent to the drive
/// below.
#[test]
fn a_read_that_waits_for_a_page_fails_with_its_write() {
    let below = FaultDevice::new(Shuffled::new(192, 1), vec![Fault::FailWrite(0)]);
    let (mut device, mut completions) = (layer(below, small()), Vec::new());
    for (tag, operation) in [Operation::write(Lpn(5), 1), Operation::read(Lpn(5), 1)].into_iter().enumerate()
    {
        device.submit(Command { tag: Tag(tag as u64), operation }).unwrap();
    }
    while completions.len() < 2 {
        device.wait(None, &mut completions);
    }
    assert!(completions.iter().all(|completion| completion.status == Err(IoError::Media)), "{completions:?}");
    assert_eq!(device.below().inner().commands, 1);
}

/// The rule: a page whose write failed moves with its segment, and no later write is refused because of it.
#[test]
fn a_lost_page_does_not_end_collection() {
    let mut device = layer(FaultDevice::new(mem(256), vec![Fault::FailWrite(3)]), small());
    let pages = device.caps().pages;
    for page in 0..pages {
        assert_eq!(write(&mut device, page, 100 + page).is_err(), page == 3);
    }
    for round in 0..20 {
        for page in (0..pages).filter(|page| page % 4 != 3) {
            write(&mut device, page, 1_000 * round + page).unwrap();
        }
    }
    assert!(device.counters().copied_pages > 100);
    assert_eq!(read(&mut device, 3), Err(IoError::Media));
    assert_eq!((read(&mut device, 7), read(&mut device, 4)), (Ok(107), Ok(19_004)));
    write(&mut device, 3, 5).unwrap();
    assert_eq!(read(&mut device, 3), Ok(5));
    device.drain_events();
    device.verify(true).unwrap();
}

/// The rule: a lost page that cannot get a new address ends collection, even if its segment is already being
/// freed.
#[test]
fn a_lost_page_that_cannot_be_moved_ends_collection() {
    let mut ended = 0;
    for nth in 4..1_500 {
        let faults = vec![Fault::FailWrite(3), Fault::FailWrite(nth)];
        let config = small();
        let collect = Collect { victim: VictimConfig::FIFO, ..config.collect };
        let mut device = layer(FaultDevice::new(mem(256), faults), LogConfig { collect, ..config });
        let pages = device.caps().pages;
        for page in 0..pages {
            let _ = write(&mut device, page, page);
        }
        // The lost page is not rewritten. So it moves repeatedly, and is often the only valid page of its
        // segment.
        for version in 0..1_000 {
            let page = version % (pages - 1);
            let _ = write(&mut device, if page == 3 { pages - 1 } else { page }, version);
        }
        let refuses = (0..3).all(|version| write(&mut device, 4, version).is_err());
        device.drain_events();
        let expected = if refuses { Err(LogError::Medium(IoError::Media)) } else { Ok(()) };
        assert_eq!(device.verify(true), expected, "write {nth}");
        ended += u32::from(refuses);
    }
    assert!(ended > 0, "no such write was met");
}

/// The rule: if the host rewrites a page while collection cannot read it, the page is not lost.
#[test]
fn a_page_rewritten_while_it_cannot_be_read_is_not_lost() {
    let mut copied = 0;
    for nth in 0..300 {
        let mut device = layer(FaultDevice::new(mem(256), vec![Fault::FailRead(nth)]), small());
        let (pages, mut prng) = (device.caps().pages, Prng::new(nth, "bursts"));
        let (mut tag, mut completions) = (0, Vec::new());
        for _ in 0..60 {
            for _ in 0..16 {
                let operation = Operation::write(Lpn(prng.below(pages)), 1);
                device.submit(Command { tag: Tag(tag), operation }).unwrap();
                tag += 1;
            }
            while (completions.len() as u64) < tag {
                let before = completions.len();
                device.wait(None, &mut completions);
                assert!(completions.len() > before, "the layer stalled, read {nth}");
            }
        }
        assert!(completions.iter().all(|completion| completion.status.is_ok()), "read {nth}");
        device.drain_events();
        device.verify(true).unwrap();
        copied += device.counters().copied_pages;
    }
    assert!(copied > 10_000, "{copied}");
}

/// A drive that always fails to read one page.
struct BadPage {
    below: MemDevice,
    bad: Option<u64>,
    /// The first page of each read command in flight, by tag. `last_read` is the first page of the latest of
    /// them.
    reads: BTreeMap<Tag, u64>,
    last_read: Option<u64>,
    failures: u32,
}

impl Device for BadPage {
    fn caps(&self) -> &Caps {
        self.below.caps()
    }

    fn now(&self) -> Nanos {
        self.below.now()
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        if let Operation::Read { lpn, .. } = command.operation {
            self.last_read = Some(lpn.0);
            self.reads.insert(command.tag, lpn.0);
        }
        self.below.submit(command)
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        self.below.wait(deadline, completions);
        for completion in completions {
            if self.reads.remove(&completion.tag).is_some_and(|page| self.bad == Some(page)) {
                completion.status = Err(IoError::Media);
                self.failures += 1;
            }
        }
    }
}

/// Returns a layer whose collection is reading its first page, which cannot be read, and the logical number
/// of that page. Writes are in flight.
fn with_a_bad_victim(schedule: Schedule) -> (LogDevice<BadPage>, u64) {
    let below = BadPage { below: mem(256), bad: None, reads: BTreeMap::new(), last_read: None, failures: 0 };
    let mut device = layer(below, LogConfig { depth: 1, ..with_schedule(schedule, small()) });
    let (pages, mut prng, mut version) = (device.caps().pages, Prng::new(1, "writes"), 0);
    (0..pages).for_each(|page| write(&mut device, page, page).unwrap());
    while device.below().last_read.is_none() {
        version += 1;
        let (lpn, from) = (Lpn(prng.below(pages)), Some(stamped(1_000 + version, 1)));
        let operation = Operation::Write { lpn, pages: 1, from, stream: StreamId::default(), durable: false };
        device.submit(Command { tag: Tag(version), operation }).unwrap();
        if device.below().last_read.is_none() {
            device.wait(None, &mut Vec::new());
        }
    }
    let bad = device.below().last_read;
    device.below_mut().bad = bad;
    let lies_there = |lpn: &u64| device.ftl().lookup(*lpn as u32).map(|ppn| u64::from(ppn.0)) == bad;
    let page = (0..pages).find(lies_there).expect("collection reads what is valid");
    (device, page)
}

/// The rule: a page that cannot be moved at the second attempt ends collection. Writes are refused after
/// that, and every other page can be read, even by reads that waited for collection.
#[test]
fn a_page_that_cannot_be_moved_bars_no_read() {
    for schedule in [Schedule::NON_PREEMPTIVE, Schedule::SEMI_PREEMPTIVE, Schedule::PACED] {
        let (mut device, page) = with_a_bad_victim(schedule);
        device.drain_events();
        assert_eq!(device.below().failures, 2, "{schedule}");
        assert_eq!(device.verify(true), Err(LogError::Medium(IoError::Media)), "{schedule}");
        device.wait(Some(Nanos(1 << 40)), &mut Vec::new());
        assert_eq!(write(&mut device, 0, 7), Err(IoError::Media), "{schedule}");
        for other in 0..device.caps().pages {
            assert_eq!(read(&mut device, other).is_err(), other == page, "{schedule}: page {other}");
        }
    }
}

/// The rule: if the host has rewritten a page that could not be moved, collection does not read the page
/// again, and continues.
#[test]
fn a_garbage_page_is_not_read_again() {
    for schedule in [Schedule::SEMI_PREEMPTIVE, Schedule::PACED] {
        let (mut device, page) = with_a_bad_victim(schedule);
        let operation = Operation::write(Lpn(page), 1);
        device.submit(Command { tag: Tag(u64::MAX), operation }).unwrap();
        device.drain_events();
        device.wait(Some(Nanos(1 << 40)), &mut Vec::new());
        assert_eq!(device.below().failures, 1, "{schedule}");
        device.below_mut().bad = None;
        for version in 0..200 {
            write(&mut device, version % 60, version).unwrap();
        }
        device.drain_events();
        assert_eq!(device.verify(true), Ok(()), "{schedule}");
    }
}

/// Returns whether writes are refused after these injected faults. The self-check reports an error if, and
/// only if, they are.
fn refuses_after(faults: Vec<Fault>) -> bool {
    let mut device = layer(FaultDevice::new(mem(256), faults), LogConfig { depth: 1, ..small() });
    let mut prng = Prng::new(9, "refuses");
    let refused = (1..1_000).any(|version| {
        let page = prng.below(device.caps().pages);
        write(&mut device, page, version).is_err()
    });
    let told = matches!(device.verify(false), Err(LogError::Medium(IoError::Media)));
    assert_eq!(refused, told);
    refused
}

/// Writes pages with one injected fault in each of 400 runs, and checks that every page can be read
/// afterwards that could be read before. Returns the number of runs that ended in refused writes.
fn wear_down(fault: impl Fn(u64) -> Fault) -> u64 {
    let mut failed = 0;
    for nth in 0..400 {
        let mut device = layer(FaultDevice::new(mem(256), vec![fault(nth)]), small());
        let pages = device.caps().pages;
        let mut prng = Prng::new(nth, "wear down");
        let mut held = vec![0; pages as usize];
        for version in 1..1_000 {
            let page = prng.below(pages);
            match write(&mut device, page, version) {
                Ok(()) => held[page as usize] = version,
                // A failed write leaves the page undefined until the caller writes it again.
                Err(_) => held[page as usize] = u64::MAX,
            }
        }
        let refuses = write(&mut device, 0, 2_000) == Err(IoError::Media);
        failed += u64::from(refuses);
        let mut unreadable = 0;
        for page in 1..pages {
            // The injected fault may hit this read, once, so the read is repeated.
            match read(&mut device, page).or_else(|_| read(&mut device, page)) {
                Ok(version) if held[page as usize] == u64::MAX => assert!(version < 1_000),
                Ok(version) => assert_eq!(version, held[page as usize], "page {page}, fault {nth}"),
                Err(_) => unreadable += u64::from(held[page as usize] != u64::MAX),
            }
        }
        assert_eq!(unreadable, 0, "fault {nth} has cost a page");
    }
    failed
}

#[test]
fn a_medium_that_fails_under_collection_costs_no_page() {
    let met = wear_down(Fault::FailWrite);
    assert!(met > 10, "{met} of 400 faults have met a copy");
    assert_eq!(wear_down(Fault::FailRead), 0, "a read is tried again");
    let twice = |nth| vec![Fault::FailRead(nth), Fault::FailRead(nth + 1)];
    assert!((0..400).any(|nth| refuses_after(twice(nth))), "no second read has failed");
}

/// The rule: draining a layer returns even if the drive does not return all completions. The layer is then
/// not idle.
#[test]
fn a_drive_that_owes_completions_can_be_drained() {
    let mut device = layer(FaultDevice::new(mem(256), vec![Fault::LoseCompletion(0)]), small());
    device.submit(Command { tag: Tag(1), operation: Operation::write(Lpn(1), 1) }).unwrap();
    device.drain_events();
    assert!(!device.is_idle());
}

#[test]
fn a_drive_that_repeats_a_completion_is_found() {
    let run_into = |fault: Fault| {
        let mut device = layer(FaultDevice::new(mem(256), vec![fault]), small());
        let mut completions = Vec::new();
        for page in 0..40 {
            device.submit(Command { tag: Tag(page), operation: Operation::write(Lpn(page), 1) }).unwrap();
            device.wait(None, &mut completions);
        }
        (completions.len(), device.verify(false))
    };
    let (completed, verdict) = run_into(Fault::LoseCompletion(20));
    assert!(completed == 39 && matches!(verdict, Err(LogError::Meter(_))), "{completed} {verdict:?}");
    let (completed, verdict) = run_into(Fault::RepeatCompletion(20));
    assert!(completed == 40 && matches!(verdict, Err(LogError::Stray(_))), "{completed} {verdict:?}");
    let mut device = layer(FaultDevice::new(mem(256), vec![Fault::LoseCompletion(3)]), small());
    assert_eq!(device.fill(), Err(IoError::Media));
}
