//! The conformance tests: tests that every device must pass.
//!
//! The test suite of a device calls [`check`] with a constructor. The device needs at least 64 pages and a
//! queue of at least 4. If [`Caps::contents`] is false, only timing and errors are checked.

use crate::{
    Arena, Buffer, Caps, Command, Completion, Device, Executor, IoError, Operation, QueueFull, ShareRun, Tag,
};
use fulgurite_base::{Lpn, Nanos, StreamId};
use std::collections::BTreeSet;
use std::future::Future;
use std::task::{Context, Poll, Waker};

/// Runs every check on a new device from `make`. Panics with the reason on the first failure.
pub fn check<D: Device + 'static>(make: impl Fn() -> D) {
    every_command_completes_once_and_in_order(make());
    a_full_queue_hands_the_command_back(make());
    malformed_commands_complete_with_their_error(make());
    an_idle_wait_reaches_its_deadline(make());
    a_flush_ends_after_the_writes_before_it(make());
    a_dropped_future_leaves_its_command_to_complete(make());
    erases_are_told_where_they_are_counted(make());
    if make().caps().contents {
        what_was_written_is_read_back(make());
        trimmed_pages_read_as_zeros(make());
        durable_writes_are_done_or_refused(make());
    }
    if make().caps().contents && make().caps().share_pages > 0 {
        shared_pages_are_those_of_the_source(make());
        one_share_has_several_runs(make());
        a_share_that_is_refused_changes_nothing(make());
        a_share_has_as_many_pages_as_the_device_says(make());
    }
}

/// Runs every check of [`check`], and those of a simulated device, whose events the caller can foresee.
pub fn check_simulated<D: Device + 'static>(make: impl Fn() -> D) {
    check(&make);
    waiting_for_each_event_reaches_the_same_completions(make(), make());
}

fn submit<D: Device>(device: &mut D, tag: u64, operation: Operation) {
    device.submit(Command { tag: Tag(tag), operation }).expect("the queue has room");
}

fn drain<D: Device>(device: &mut D, expected: usize) -> Vec<Completion> {
    let mut completions = Vec::new();
    while completions.len() < expected {
        let before = completions.len();
        device.wait(None, &mut completions);
        assert!(completions.len() > before, "wait returned nothing with commands in flight");
    }
    completions
}

fn every_command_completes_once_and_in_order<D: Device>(mut device: D) {
    let depth = u64::from(device.caps().queue_depth.min(16));
    let started = device.now();
    for tag in 0..depth {
        let operation =
            if tag % 2 == 0 { Operation::read(Lpn(tag), 1) } else { Operation::write(Lpn(tag), 1) };
        submit(&mut device, tag, operation);
    }
    let completions = drain(&mut device, depth as usize);
    let tags: BTreeSet<Tag> = completions.iter().map(|completion| completion.tag).collect();
    assert_eq!(tags.len(), depth as usize, "a tag completed twice");
    assert!(completions.iter().all(|completion| completion.status.is_ok()));
    assert!(completions.is_sorted_by_key(|completion| completion.at), "completions are out of order");
    assert!(completions[0].at >= started && device.now() >= completions[completions.len() - 1].at);
    let mut more = Vec::new();
    device.wait(Some(device.now()), &mut more);
    assert!(more.is_empty(), "a completion that nobody asked for");
}

fn a_full_queue_hands_the_command_back<D: Device>(mut device: D) {
    let depth = u64::from(device.caps().queue_depth);
    for tag in 0..depth {
        submit(&mut device, tag, Operation::read(Lpn(0), 1));
    }
    let refused = device.submit(Command { tag: Tag(depth), operation: Operation::write(Lpn(3), 1) });
    let Err(QueueFull(command)) = refused else { panic!("a full queue took a command") };
    assert!(
        command.tag == Tag(depth)
            && matches!(command.operation, Operation::Write { lpn: Lpn(3), pages: 1, .. })
    );
    let completed = drain(&mut device, 1).len();
    device.submit(command).expect("a completion makes room");
    drain(&mut device, depth as usize + 1 - completed);
}

/// Waits until the next event of `device`. Checks that nothing happens before that time, that the clock stops
/// at it, and that the event is over then.
fn reach_next_event<D: Device>(device: &mut D, completions: &mut Vec<Completion>) {
    let next = device.next_event().expect("the next event is known while a command is in flight");
    let before = completions.len();
    assert!(next >= device.now(), "an event at {next:?} is past at {:?}", device.now());
    if next > device.now() {
        device.wait(Some(next - Nanos(1)), completions);
        assert_eq!(completions.len(), before, "a completion before the next event, which is at {next:?}");
        assert_eq!(device.next_event(), Some(next), "an event before the next event");
    }
    device.wait(Some(next), completions);
    assert_eq!(device.now(), next, "an event stopped the clock before the next event");
    assert!(completions.len() > before || device.next_event() != Some(next), "nothing happened at {next:?}");
}

/// Checks that a caller that waits until each next event gets the completions that a caller without a deadline
/// gets, at the same times. Both callers have a device of the same description.
fn waiting_for_each_event_reaches_the_same_completions<D: Device>(mut one: D, mut other: D) {
    // More events than this for a few commands mean that the device tells of events that do not exist.
    const EVENTS_AT_MOST: usize = 10_000;
    for round in 0..60 {
        for device in [&mut one, &mut other] {
            let last = if round % 5 == 0 { Operation::Flush } else { Operation::write(Lpn(round), 2) };
            submit(device, 0, Operation::write(Lpn(round * 7 % 61), 3));
            submit(device, 1, Operation::read(Lpn(round * 11 % 64), 1));
            submit(device, 2, Operation::Trim { lpn: Lpn(round * 13 % 64), pages: 1 });
            submit(device, 3, last);
        }
        let (expected, mut reached) = (drain(&mut one, 4), Vec::new());
        let mut events = 0;
        while reached.len() < 4 {
            reach_next_event(&mut other, &mut reached);
            events += 1;
            assert!(events < EVENTS_AT_MOST, "more than {EVENTS_AT_MOST} events");
        }
        assert_eq!(reached, expected, "round {round}");
        assert_eq!(other.now(), one.now(), "round {round}");
        // The device may also have work of its own, which an idle wait passes.
        let deadline = one.now() + Nanos::from_micros(50);
        let mut more = Vec::new();
        one.wait(Some(deadline), &mut more);
        while other.next_event().is_some_and(|at| at <= deadline) {
            reach_next_event(&mut other, &mut more);
        }
        other.wait(Some(deadline), &mut more);
        assert_eq!((more, other.next_event()), (Vec::new(), one.next_event()), "round {round}, idle");
    }
}

fn malformed_commands_complete_with_their_error<D: Device>(mut device: D) {
    let Caps { pages, pages_per_command, page_bytes, share_pages, .. } = device.caps().clone();
    let short = Arena::new(page_bytes as usize).buffer(0, page_bytes as usize / 2);
    let mut cases = vec![
        (Operation::read(Lpn(pages), 1), IoError::OutOfRange),
        (Operation::write(Lpn(pages - 1), 2), IoError::OutOfRange),
        (Operation::write(Lpn(u64::MAX), 1), IoError::OutOfRange),
        (Operation::Trim { lpn: Lpn(pages), pages: 1 }, IoError::OutOfRange),
        (Operation::read(Lpn(0), 0), IoError::Invalid),
        (Operation::Read { lpn: Lpn(0), pages: 1, into: Some(short) }, IoError::Invalid),
    ];
    if u64::from(pages_per_command) < pages {
        cases.push((Operation::read(Lpn(0), pages_per_command + 1), IoError::Invalid));
    }
    if share_pages == 0 {
        cases.push((Operation::share(Lpn(0), Lpn(1), 1), IoError::Unsupported));
    }
    for (operation, error) in cases {
        let described = format!("{operation:?}");
        submit(&mut device, 1, operation);
        assert_eq!(drain(&mut device, 1)[0].status, Err(error), "{described}");
    }
}

fn an_idle_wait_reaches_its_deadline<D: Device>(mut device: D) {
    let deadline = device.now() + Nanos::from_micros(50);
    let mut completions = Vec::new();
    device.wait(Some(deadline), &mut completions);
    assert!(completions.is_empty() && device.now() >= deadline);
}

fn a_flush_ends_after_the_writes_before_it<D: Device>(mut device: D) {
    for tag in 0..3 {
        submit(&mut device, tag, Operation::write(Lpn(tag), 1));
    }
    let written = drain(&mut device, 3).iter().map(|completion| completion.at).max();
    submit(&mut device, 9, Operation::Flush);
    let flushed = drain(&mut device, 1)[0];
    assert_eq!((flushed.tag, flushed.status), (Tag(9), Ok(())));
    assert!(Some(flushed.at) >= written);
}

fn a_dropped_future_leaves_its_command_to_complete<D: Device + 'static>(device: D) {
    let page_bytes = device.caps().page_bytes as usize;
    let executor = Executor::new(device);
    let handle = executor.handle();
    let outcome = executor.block_on({
        let handle = handle.clone();
        async move {
            let buffer = Arena::new(page_bytes).buffer(0, page_bytes);
            let mut read =
                Box::pin(handle.submit(Operation::Read { lpn: Lpn(0), pages: 1, into: Some(buffer) }));
            let poll = read.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert_eq!(poll, Poll::Pending);
            // Dropping the future also drops the last reference to the arena outside the device, so only the
            // device keeps the buffer alive.
            drop(read);
            handle.submit(Operation::read(Lpn(1), 1)).await
        }
    });
    assert_eq!(outcome, Ok(Ok(())));
    assert_eq!(handle.conservation(), (2, 2), "the dropped future's command was not reaped");
}

/// Returns a buffer of one page filled with `byte`.
fn page_of(caps: &Caps, byte: u8) -> Buffer {
    let bytes = caps.page_bytes as usize;
    let buffer = Arena::new(bytes).buffer(0, bytes);
    // SAFETY: the buffer is new, so no other code has its address.
    unsafe { buffer.bytes_mut() }.fill(byte);
    buffer
}

/// Writes a page filled with `byte` and waits for the completion.
fn write_page<D: Device>(device: &mut D, lpn: Lpn, byte: u8) {
    let from = Some(page_of(device.caps(), byte));
    submit(device, 0, Operation::Write { lpn, pages: 1, from, stream: StreamId::default(), durable: false });
    assert_eq!(drain(device, 1)[0].status, Ok(()));
}

/// Reads a page and returns its byte. Panics unless all bytes of the page are equal.
fn read_page<D: Device>(device: &mut D, lpn: Lpn) -> u8 {
    let buffer = page_of(device.caps(), 0xee);
    submit(device, 0, Operation::Read { lpn, pages: 1, into: Some(buffer.clone()) });
    assert_eq!(drain(device, 1)[0].status, Ok(()));
    // SAFETY: the read has completed, so the device no longer changes the buffer.
    let bytes = unsafe { buffer.bytes() };
    assert!(bytes.iter().all(|byte| *byte == bytes[0]), "a page of mixed bytes");
    bytes[0]
}

fn what_was_written_is_read_back<D: Device>(mut device: D) {
    // Three rounds over all pages make garbage collection on a simulated SSD move some of the pages.
    for round in 1..=3u8 {
        for lpn in 0..64 {
            write_page(&mut device, Lpn(lpn), lpn as u8 ^ round);
        }
        for lpn in 0..64 {
            assert_eq!(read_page(&mut device, Lpn(lpn)), lpn as u8 ^ round, "page {lpn} in round {round}");
        }
    }
}

/// Checks that a device executes a durable write if it has this capability, and refuses the write otherwise.
fn durable_writes_are_done_or_refused<D: Device>(mut device: D) {
    write_page(&mut device, Lpn(9), 1);
    let (from, stream) = (Some(page_of(device.caps(), 2)), StreamId::default());
    submit(&mut device, 0, Operation::Write { lpn: Lpn(9), pages: 1, from, stream, durable: true });
    let expected = if device.caps().durable_writes { Ok(()) } else { Err(IoError::Unsupported) };
    assert_eq!(drain(&mut device, 1)[0].status, expected);
    assert_eq!(read_page(&mut device, Lpn(9)), 1 + u8::from(expected.is_ok()));
}

fn trimmed_pages_read_as_zeros<D: Device>(mut device: D) {
    for lpn in 4..8 {
        write_page(&mut device, Lpn(lpn), 7);
    }
    submit(&mut device, 0, Operation::Trim { lpn: Lpn(5), pages: 2 });
    assert_eq!(drain(&mut device, 1)[0].status, Ok(()));
    assert_eq!([4, 5, 6, 7].map(|lpn| read_page(&mut device, Lpn(lpn))), [7, 0, 0, 7]);
    write_page(&mut device, Lpn(5), 9);
    assert_eq!(read_page(&mut device, Lpn(5)), 9);
}

fn erases_are_told_where_they_are_counted<D: Device>(mut device: D) {
    submit(&mut device, 0, Operation::write(Lpn(0), 1));
    drain(&mut device, 1);
    assert!(device.caps().erase_counts || device.erases(Lpn(0)).is_none());
}

fn shared_pages_are_those_of_the_source<D: Device>(mut device: D) {
    for lpn in 4..7 {
        write_page(&mut device, Lpn(lpn), lpn as u8);
    }
    write_page(&mut device, Lpn(23), 9);
    // Page 7 is trimmed, so its destination, page 23, reads as zeros after the share.
    submit(&mut device, 0, Operation::Trim { lpn: Lpn(7), pages: 1 });
    submit(&mut device, 1, Operation::share(Lpn(20), Lpn(4), 4));
    assert!(drain(&mut device, 2).iter().all(|completion| completion.status.is_ok()));
    assert_eq!([20, 21, 22, 23].map(|lpn| read_page(&mut device, Lpn(lpn))), [4, 5, 6, 0]);
    // The pages are separate after the share: a later write to one of them does not change the other.
    write_page(&mut device, Lpn(4), 40);
    write_page(&mut device, Lpn(21), 50);
    assert_eq!([4, 5, 20, 21].map(|lpn| read_page(&mut device, Lpn(lpn))), [40, 5, 4, 50]);
}

/// The runs of a share: destination, source and number of pages of each.
type Runs<'a> = &'a [(u64, u64, u32)];

/// Shares `runs` with one command and returns its status.
fn share<D: Device>(device: &mut D, runs: Runs<'_>) -> Result<(), IoError> {
    let run = |&(destination, source, pages): &(u64, u64, u32)| ShareRun {
        destination: Lpn(destination),
        source: Lpn(source),
        pages,
    };
    submit(device, 3, Operation::Share { runs: runs.iter().map(run).collect() });
    drain(device, 1)[0].status
}

fn one_share_has_several_runs<D: Device>(mut device: D) {
    for lpn in 0..64 {
        write_page(&mut device, Lpn(lpn), lpn as u8);
    }
    // The runs are in no order, one source occurs twice, and one run ends where the next begins.
    assert_eq!(share(&mut device, &[(40, 5, 2), (20, 5, 1), (42, 10, 3), (1, 60, 1)]), Ok(()));
    let changed = [(40, 5), (41, 6), (20, 5), (42, 10), (43, 11), (44, 12), (1, 60)];
    for lpn in 0..64 {
        let expected = changed.iter().find(|(at, _)| *at == lpn).map_or(lpn as u8, |(_, source)| *source);
        assert_eq!(read_page(&mut device, Lpn(lpn)), expected, "page {lpn}");
    }
    // The pages are separate after the share: a later write to one of them does not change the other.
    write_page(&mut device, Lpn(5), 100);
    write_page(&mut device, Lpn(20), 101);
    assert_eq!([5, 20, 40].map(|lpn| read_page(&mut device, Lpn(lpn))), [100, 101, 5]);
}

fn a_share_that_is_refused_changes_nothing<D: Device>(mut device: D) {
    for lpn in 0..16 {
        write_page(&mut device, Lpn(lpn), lpn as u8);
    }
    let pages = device.caps().pages;
    let refused: [(Runs<'_>, IoError); 7] = [
        (&[(0, 8, 2), (pages, 4, 1)], IoError::OutOfRange),
        (&[(0, 8, 2), (4, pages - 1, 2)], IoError::OutOfRange),
        (&[], IoError::Invalid),
        (&[(0, 8, 2), (4, 10, 0)], IoError::Invalid),
        // These shares have a page that is a destination twice, a page that is also a source, and a run that
        // overlaps itself.
        (&[(0, 8, 2), (1, 12, 1)], IoError::Invalid),
        (&[(0, 8, 2), (4, 1, 1)], IoError::Invalid),
        (&[(0, 8, 2), (4, 5, 2)], IoError::Invalid),
    ];
    for (runs, error) in refused {
        assert_eq!(share(&mut device, runs), Err(error), "{runs:?}");
    }
    for lpn in 0..16 {
        assert_eq!(read_page(&mut device, Lpn(lpn)), lpn as u8, "page {lpn}");
    }
}

fn a_share_has_as_many_pages_as_the_device_says<D: Device>(mut device: D) {
    let Caps { pages, share_pages, .. } = *device.caps();
    let most = u64::from(share_pages);
    // All runs have the same source page. On a device with fewer pages than the limit, no share is too long.
    let runs = |count: u64| -> Vec<(u64, u64, u32)> { (1..=count).map(|page| (page, 0, 1)).collect() };
    write_page(&mut device, Lpn(0), 77);
    if most + 1 < pages {
        assert_eq!(share(&mut device, &runs(most + 1)), Err(IoError::Invalid));
    }
    let taken = most.min(pages - 1);
    assert_eq!(share(&mut device, &runs(taken)), Ok(()));
    for lpn in [1, taken] {
        assert_eq!(read_page(&mut device, Lpn(lpn)), 77, "page {lpn} of {taken}");
    }
}
