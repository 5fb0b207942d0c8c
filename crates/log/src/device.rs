//! The log-structured layer as a `Device`: the host's commands, the commands to the drive below that serve
//! them, and their order.
//!
//! The translation layer gives each written page a physical address, which is an address on the drive below,
//! and the layer writes the page there. A read goes to the physical addresses of its pages. Three rules keep
//! contents right while commands overlap. A page that is not stored yet is read from its old address, or
//! after it is stored. A segment is not freed while a command is in flight in it. A victim is freed only
//! after its last copy is stored.

use crate::LogConfig;
use crate::collection::Collection;
use crate::command::{Arriving, InFlight, Part};
use crate::tails::Tails;
use fulgurite_base::{Lpn, Nanos, Ppn, SpecError, StreamId};
use fulgurite_device::{
    Arena, Buffer, Caps, Command, Completion, Device, IoError, Meter, Operation, QueueFull, Tag,
};
use fulgurite_ftl::{AfterPick, CountingSink, Ftl, Gate, UnitId};
use rustc_hash::FxHashMap;
use slab::Slab;
use std::collections::VecDeque;
use std::sync::Arc;

/// A log-structured layer above a drive.
pub struct LogDevice<D> {
    pub(crate) below: D,
    pub(crate) caps: Caps,
    pub(crate) config: LogConfig,
    pub(crate) ftl: Ftl,
    pub(crate) collection: Collection,
    pub(crate) gate: Gate,
    pub(crate) commands: Slab<InFlight>,
    parts: Slab<Part>,
    /// Commands that the queue of the drive below had no room for, in order. The order makes the pages of a
    /// segment, and the segments of a stream, reach the drive below one after the other.
    queued: VecDeque<Command>,
    pub(crate) arriving: FxHashMap<u32, Arriving>,
    /// The number of [`Arriving::Lost`] pages.
    pub(crate) lost: u32,
    /// For each segment, the number of commands in flight in it on behalf of the host, of padding writes, and
    /// of reads that wait for pages in it.
    pub(crate) in_use: Vec<u32>,
    /// Physical addresses for the pages of one write; empty between writes, and kept to reuse its memory.
    pub(crate) places: Vec<Ppn>,
    now: Nanos,
    done: Vec<Completion>,
    below_done: Vec<Completion>,
    pub(crate) emitted: CountingSink,
    /// The tag of a completion for a command that was not in flight, if there was one.
    pub(crate) stray: Option<Tag>,
    pub(crate) pages_written: u64,
    pub(crate) padded: u64,
    tails: Tails,
    pub(crate) meter: Meter,
}

impl<D: Device> LogDevice<D> {
    /// Creates an empty layer above `below`.
    pub fn new(below: D, config: LogConfig) -> Result<LogDevice<D>, SpecError> {
        let Caps { pages, page_bytes, .. } = *below.caps();
        let ftl = Ftl::new(config.ftl(pages, page_bytes)?)?;
        Ok(LogDevice::with_ftl(below, config, ftl))
    }

    /// Creates a layer that starts with a translation layer of [`LogConfig::ftl`], whose pages are at their
    /// physical addresses on `below`.
    pub fn with_ftl(below: D, config: LogConfig, ftl: Ftl) -> LogDevice<D> {
        let caps = Caps {
            pages: u64::from(ftl.config().logical_pages),
            // The layer does not offer durable writes: a durable page would still be lost, because the map is
            // not durable.
            durable_writes: false,
            share_pages: LogConfig::SHARE_PAGES,
            streams: config.collect.placement.hints(),
            fdp: None,
            zones: None,
            ..below.caps().clone()
        };
        let mut layer = LogDevice {
            caps,
            collection: Collection::resumed(&ftl),
            gate: Gate::new(UnitId(0), AfterPick::LookAgain, config.collect.urgent),
            commands: Slab::new(),
            parts: Slab::new(),
            queued: VecDeque::new(),
            arriving: FxHashMap::default(),
            lost: 0,
            in_use: vec![0; ftl.segments().len() as usize],
            places: Vec::new(),
            now: below.now(),
            done: Vec::new(),
            below_done: Vec::new(),
            emitted: CountingSink::default(),
            stray: None,
            pages_written: 0,
            padded: 0,
            tails: Tails::new(&ftl, below.caps().streams),
            meter: Meter::default(),
            ftl,
            config,
            below,
        };
        layer.look_at_schedule();
        layer
    }

    /// Writes every page once, in order, and resets the counters. Measurements of a layer above a real drive
    /// should start with this, because collecting pages that were never written costs nothing.
    pub fn fill(&mut self) -> Result<(), IoError> {
        const IN_FLIGHT: usize = 32;
        let Caps { pages, page_bytes, pages_per_command, contents, .. } = self.caps;
        let most = pages_per_command.min(256);
        let bytes = most as usize * page_bytes as usize;
        // All writes share one buffer, since every page of the fill has the same zeros.
        let zeros = contents.then(|| Arena::new(bytes).buffer(0, bytes));
        let mut completions = Vec::new();
        let mut first = 0;
        while first < pages || !self.commands.is_empty() {
            while first < pages && self.commands.len() < IN_FLIGHT.min(self.caps.queue_depth as usize) {
                let count = u64::from(most).min(pages - first) as u32;
                let from = zeros.as_ref().map(|zeros| zeros.part(0, (count * page_bytes) as usize));
                let stream = StreamId::default();
                let operation =
                    Operation::Write { lpn: Lpn(first), pages: count, from, stream, durable: false };
                self.submit(Command { tag: Tag(first), operation }).expect("the queue has room");
                first += u64::from(count);
            }
            self.wait(None, &mut completions);
            if completions.is_empty() {
                // The wait ended without a completion: the drive below does not return its completions.
                return Err(IoError::Media);
            }
            completions.drain(..).try_for_each(|completion| completion.status)?;
        }
        self.drain_events();
        self.ftl.start_anew(0);
        (self.emitted, self.pages_written, self.padded) = (CountingSink::default(), 0, 0);
        Ok(())
    }

    /// Returns the drive below.
    pub fn below(&self) -> &D {
        &self.below
    }

    /// Returns the drive below, for calls that are not commands.
    pub fn below_mut(&mut self) -> &mut D {
        &mut self.below
    }

    /// Returns the translation layer.
    pub fn ftl(&self) -> &Ftl {
        &self.ftl
    }

    /// Returns whether no command is in flight on the drive below.
    pub fn is_idle(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns the number of pages written to the drive below.
    pub fn pages_written(&self) -> u64 {
        self.pages_written
    }

    /// Runs everything in progress to its end, including collection.
    pub fn drain_events(&mut self) {
        while !self.parts.is_empty() {
            self.hand_down();
            self.below.wait(None, &mut self.below_done);
            // Gives up if no completion came: the drive below does not return its completions, so waiting
            // would never end.
            if self.below_done.is_empty() {
                return;
            }
            self.take_completions();
        }
    }

    /// Queues a command for the drive below.
    pub(crate) fn send(&mut self, part: Part, operation: Operation) {
        if let Operation::Write { pages, .. } = operation {
            self.pages_written += u64::from(pages);
        }
        let tag = Tag(self.parts.insert(part) as u64);
        self.queued.push_back(Command { tag, operation });
    }

    /// Returns `pages` pages of a buffer, from the page with index `at` on.
    pub(crate) fn slice(&self, buffer: &Option<Buffer>, at: u32, pages: u32) -> Option<Buffer> {
        let page_bytes = self.caps.page_bytes as usize;
        buffer.as_ref().map(|buffer| buffer.part(at as usize * page_bytes, pages as usize * page_bytes))
    }

    /// Returns the stream on the drive below for pages from `first`, and records that these pages are about
    /// to be sent.
    pub(crate) fn stream_below(&mut self, first: Ppn, pages: u32) -> StreamId {
        self.tails.wrote(&self.ftl, first, pages)
    }

    /// Writes padding to the rest of each segment that was sealed before it was full.
    pub(crate) fn pad(&mut self) {
        while let Some((stream, first, pages)) = self.tails.next_cut_short(&self.ftl) {
            self.padded += u64::from(pages);
            self.write_nothing(first, pages, stream);
        }
    }

    /// Writes padding pages.
    pub(crate) fn write_nothing(&mut self, first: Ppn, pages: u32, stream: StreamId) {
        let most = self.caps.pages_per_command;
        for done in (0..pages).step_by(most as usize) {
            let (lpn, pages) = (Lpn(u64::from(first.0 + done)), most.min(pages - done));
            let bytes = pages as usize * self.caps.page_bytes as usize;
            let from = self.caps.contents.then(|| Arena::new(bytes).buffer(0, bytes));
            // Counts the padding as in flight in its segment, so that the segment is not freed before the
            // write ends.
            self.in_use[self.ftl.segment(first).0 as usize] += 1;
            self.send(Part::Pad { first }, Operation::Write { lpn, pages, from, stream, durable: false });
        }
    }

    /// Submits queued commands while the queue of the drive below has room.
    fn hand_down(&mut self) {
        while let Some(command) = self.queued.pop_front() {
            if let Err(QueueFull(command)) = self.below.submit(command) {
                // Puts the refused command back to the front, since writes must reach the drive below in
                // order.
                return self.queued.push_front(command);
            }
        }
    }

    fn take_completions(&mut self) {
        let mut completions = std::mem::take(&mut self.below_done);
        for Completion { tag, at, status } in completions.drain(..) {
            self.now = at.max(self.now);
            // Tags are keys of `parts`, so an unknown tag was never sent or has completed before.
            let Some(part) = self.parts.try_remove(tag.0 as usize) else {
                self.stray = Some(tag);
                continue;
            };
            match part {
                Part::Read { command, first } => self.read_done(command, first, status),
                Part::Write { command, first, pages } => self.write_done(command, first, pages, status),
                Part::Flush { command } => self.part_done(command, status),
                Part::Fetch { first, pages, buffer, again } => match status {
                    Ok(()) => self.fetched(first, pages, buffer),
                    Err(error) => self.not_fetched(first, pages, again, error),
                },
                Part::Store { first, pages } => self.stored(first, pages, status),
                Part::Discard => self.discarded(),
                Part::Pad { first } => {
                    self.in_use[self.ftl.segment(first).0 as usize] -= 1;
                    if let Err(error) = status {
                        self.fail(error);
                    }
                }
            }
        }
        self.below_done = completions;
        self.look_at_schedule();
        self.admit();
    }

    /// Ends one of the events that a command waited for, and completes the command after the last of them.
    pub(crate) fn part_done(&mut self, command: u32, status: Result<(), IoError>) {
        let waiting = &mut self.commands[command as usize];
        waiting.status = waiting.status.and(status);
        waiting.parts -= 1;
        if waiting.parts > 0 {
            return;
        }
        let InFlight { tag, submitted, status, .. } = self.commands.remove(command as usize);
        self.meter.complete(self.now, self.now - submitted);
        self.done.push(Completion { tag, at: self.now, status });
    }
}

impl<D: Device> Device for LogDevice<D> {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn now(&self) -> Nanos {
        self.below.now()
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        // Counts untaken completions too, since they still occupy the queue.
        if self.commands.len() + self.done.len() >= self.caps.queue_depth as usize {
            return Err(QueueFull(command));
        }
        self.now = self.below.now().max(self.now);
        self.meter.submit(self.now);
        let Command { tag, operation } = command;
        let fault = operation.fault(&self.caps);
        let is_read = matches!(operation, Operation::Read { .. });
        let status = fault.map_or(Ok(()), Err);
        let command = InFlight { tag, operation, submitted: self.now, parts: 1, placed: 0, status };
        let id = self.commands.insert(command) as u32;
        if fault.is_some() {
            self.part_done(id, Ok(()));
        } else if !is_read {
            self.gate.stall(id);
            self.admit();
        } else if self.gate.passes(id) {
            self.read(id);
        }
        self.hand_down();
        Ok(())
    }

    fn erases(&self, lpn: Lpn) -> Option<u64> {
        let lpn = u32::try_from(lpn.0).ok().filter(|lpn| u64::from(*lpn) < self.caps.pages)?;
        self.below.erases(Lpn(u64::from(self.ftl.lookup(lpn)?.0)))
    }

    fn register(&mut self, arena: &Arc<Arena>) {
        self.below.register(arena);
    }

    fn next_event(&self) -> Option<Nanos> {
        let now = self.now();
        let in_flight = self.parts.len() - self.queued.len();
        let has_room = in_flight < self.below.caps().queue_depth as usize;
        if !self.done.is_empty() || !self.queued.is_empty() && has_room {
            return Some(now);
        }
        let below = self.below.next_event();
        // If the drive below cannot tell when its commands end, they may end before a write becomes urgent.
        if below.is_none() && in_flight > 0 {
            return None;
        }
        below.into_iter().chain(self.gate.urgent_at()).min().map(|at| at.max(now))
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        while self.done.is_empty() {
            self.hand_down();
            if self.commands.is_empty() && deadline.is_none() {
                break;
            }
            let until = [deadline, self.gate.urgent_at()].into_iter().flatten().min();
            self.below.wait(until, &mut self.below_done);
            let nothing_came = self.below_done.is_empty();
            self.take_completions();
            if self.gate.urgent_at().is_some_and(|at| self.below.now() >= at) {
                self.become_urgent();
            } else if nothing_came && self.done.is_empty() {
                break;
            }
        }
        self.hand_down();
        completions.append(&mut self.done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_base::{Prng, Share};
    use fulgurite_device::MemDevice;
    use fulgurite_ftl::Collect;
    use fulgurite_ftl::schedule::{Schedule, ScheduleState};

    /// The rule: a fill writes every page once, in order, with as many commands at once as the queue takes,
    /// and does not count these writes.
    #[test]
    fn a_fill_writes_every_page_once() {
        for queue_depth in [1, 32] {
            let below = MemDevice::new(1_024, 512, queue_depth, Nanos(10));
            let config =
                LogConfig { segment_bytes: 16 * 512, op: Share::percent(50), ..LogConfig::default() };
            let mut layer = LogDevice::new(below, config).unwrap();
            layer.fill().unwrap();
            let lies: Vec<u32> =
                (0..layer.caps.pages as u32).map(|lpn| layer.ftl.lookup(lpn).unwrap().0).collect();
            assert!(lies.is_sorted_by(|one, next| *next == one + 1), "in order");
            layer.verify(true).unwrap();
            // A second fill is not counted either, nor are the collections that it causes.
            for _ in 0..2 {
                assert_eq!((layer.counters(), layer.pages_written()), (crate::LogCounters::default(), 0));
                assert!(layer.is_idle(), "no part of it is counted later");
                layer.fill().unwrap();
            }
            // A wrong number of lost pages is found, and so are emitted pages that were not written.
            layer.lost += 1;
            assert_eq!(layer.verify(false), Ok(()), "it checks every page only if asked to");
            assert_eq!(layer.verify(true), Err(crate::LogError::Lost { counted: 1, found: 0 }));
            layer.pages_written += 1;
            assert_eq!(layer.verify(false), Err(crate::LogError::Writes { emitted: 0, written: 1 }));
        }
    }

    /// The rule: padding writes exactly the rest of a segment, in order, with the necessary number of
    /// commands. If the drive's queue has room for one command only, the drive still gets all of them when
    /// the layer is drained.
    #[test]
    fn padding_writes_exactly_the_rest_of_a_segment() {
        let below = MemDevice::new(256, 512, 1, Nanos::ZERO);
        let config = LogConfig { segment_bytes: 16 * 512, ..LogConfig::default() };
        let mut layer = LogDevice::new(below, LogConfig { op: Share::percent(50), ..config }).unwrap();
        layer.caps.pages_per_command = 3;
        layer.write_nothing(Ppn(24), 8, StreamId(5));
        let written: Vec<(u64, u32, u16)> = layer
            .queued
            .iter()
            .map(|command| match &command.operation {
                Operation::Write { lpn, pages, stream, .. } => (lpn.0, *pages, stream.0),
                other => panic!("{other:?} is no padding"),
            })
            .collect();
        assert_eq!(written, [(24, 3, 5), (27, 3, 5), (30, 2, 5)]);
        layer.drain_events();
        assert_eq!(layer.collection.failure, None, "the drive has taken them");
        assert!(layer.is_idle() && layer.in_use.iter().all(|commands| *commands == 0));
    }

    /// Returns a layer of few pages above a drive on which every command takes 10 µs. The layer collects by
    /// `schedule`, one page at a time.
    fn pressed(schedule: Schedule, urgent: Nanos) -> LogDevice<MemDevice> {
        pressed_above(MemDevice::new(256, 512, 32, Nanos::from_micros(10)), schedule, urgent)
    }

    fn pressed_above<D: Device>(below: D, schedule: Schedule, urgent: Nanos) -> LogDevice<D> {
        let usual = LogConfig::default();
        let collect = Collect { schedule, urgent, ..usual.collect };
        let config = LogConfig { collect, segment_bytes: 8 * 512, op: Share::percent(50), depth: 1, ..usual };
        LogDevice::new(below, config).unwrap()
    }

    /// The rule: a write that waits for collection bars reads exactly when it has waited as long as it may
    /// (its patience).
    #[test]
    fn a_write_that_has_waited_too_long_bars_reads() {
        let mut layer = pressed(Schedule::SEMI_PREEMPTIVE, Nanos(5_001));
        let (mut prng, mut completions, mut urgent) = (Prng::new(1, "writes"), Vec::new(), 0);
        for tag in 0..2_000 {
            let operation = Operation::write(Lpn(prng.below(layer.caps.pages)), 1);
            if layer.submit(Command { tag: Tag(tag), operation }).is_err() {
                layer.wait(None, &mut completions);
                continue;
            }
            let Some(at) = layer.gate.urgent_at() else {
                layer.wait(None, &mut completions);
                continue;
            };
            while layer.gate.urgent_at() == Some(at) && layer.now().0 < at.0 - 1 {
                layer.wait(Some(Nanos(at.0 - 1)), &mut completions);
            }
            // Skips a write that became urgent before: its wait has started again, and reads are barred
            // already.
            if layer.gate.urgent_at() == Some(at) && layer.gate.state() != ScheduleState::Exclusive {
                assert_eq!(layer.next_event(), Some(at), "no other event is as early");
                layer.wait(Some(at), &mut completions);
                assert_eq!((layer.now(), layer.gate.state()), (at, ScheduleState::Exclusive));
                assert_ne!(layer.gate.urgent_at(), Some(at), "it turns urgent once");
                urgent += 1;
            }
            // Empties the queue, so that the next write that must wait is the first in the queue.
            while !layer.commands.is_empty() {
                layer.wait(None, &mut completions);
            }
        }
        assert!(urgent > 10, "{urgent}");
        layer.drain_events();
        layer.verify(true).unwrap();
    }

    /// A drive that does not know when its commands end, as a real drive.
    struct Real(MemDevice);

    impl Device for Real {
        fn caps(&self) -> &Caps {
            self.0.caps()
        }

        fn now(&self) -> Nanos {
            self.0.now()
        }

        fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
            self.0.submit(command)
        }

        fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
            self.0.wait(deadline, completions);
        }
    }

    /// The rule: above a drive that does not know its next event, a layer does not know its own while a command
    /// is in flight below, even if it knows when a write becomes urgent.
    #[test]
    fn only_waiting_tells_the_next_event_above_a_real_drive() {
        let below = Real(MemDevice::new(256, 512, 32, Nanos::from_micros(10)));
        let mut layer = pressed_above(below, Schedule::SEMI_PREEMPTIVE, Nanos::from_micros(1_000));
        let (mut prng, mut completions, mut waited) = (Prng::new(1, "writes"), Vec::new(), 0);
        for tag in 0..4_000 {
            let operation = Operation::write(Lpn(prng.below(layer.caps.pages)), 1);
            layer.submit(Command { tag: Tag(tag), operation }).unwrap();
            while layer.commands.len() > (tag % 3) as usize {
                waited += u64::from(layer.gate.urgent_at().is_some());
                assert_eq!(layer.next_event(), None);
                layer.wait(None, &mut completions);
            }
        }
        assert!(waited > 100, "{waited}");
    }

    /// The rule: after every call, all work that the schedule wants has started and is submitted to the drive
    /// below, and the urgency clock runs only while a write waits. Collection ends without further calls of
    /// the host.
    #[test]
    fn all_work_that_the_schedule_wants_has_started() {
        for schedule in [Schedule::SEMI_PREEMPTIVE, Schedule::PACED, Schedule::NON_PREEMPTIVE] {
            let mut layer = pressed(schedule, Nanos::from_micros(1_000));
            let is_settled = |layer: &LogDevice<MemDevice>| {
                assert!(layer.queued.is_empty(), "{schedule}: the queue below has room");
                let Some(waiting) = layer.gate.first() else {
                    assert_eq!(layer.gate.urgent_at(), None, "{schedule}: no write waits");
                    let state = layer.ftl.state(UnitId(0), StreamId::default());
                    assert_eq!(layer.gate.state(), state, "{schedule}: it was looked at");
                    assert!(!state.collects() || layer.ftl.victim(UnitId(0)).is_some(), "{schedule}");
                    return 0;
                };
                assert!(layer.commands[waiting as usize].placed == 0 && layer.gate.urgent_at().is_some());
                1
            };
            let (mut prng, mut completions, mut waited) = (Prng::new(1, "writes"), Vec::new(), 0);
            for tag in 0..4_000 {
                let operation = Operation::write(Lpn(prng.below(layer.caps.pages)), 1);
                layer.submit(Command { tag: Tag(tag), operation }).unwrap();
                waited += is_settled(&layer);
                while layer.commands.len() > (tag % 3) as usize {
                    layer.wait(None, &mut completions);
                    waited += is_settled(&layer);
                }
            }
            assert!(waited > 100, "{schedule}: {waited}");
            layer.drain_events();
            is_settled(&layer);
            assert!(!layer.gate.state().collects(), "{schedule}: collection has ended");
        }
    }

    /// The rule: a write that needs more than one segment begins a new wait with each of them.
    #[test]
    fn patience_begins_anew_with_each_segment() {
        let patience = Nanos::from_micros(1_000);
        let mut layer = pressed(Schedule::SEMI_PREEMPTIVE, patience);
        let (mut prng, mut completions, mut waited) = (Prng::new(1, "writes"), Vec::new(), 0);
        for tag in 0..400 {
            let operation = Operation::write(Lpn(prng.below(layer.caps.pages - 32)), 32);
            layer.submit(Command { tag: Tag(tag), operation }).unwrap();
            while !layer.commands.is_empty() {
                let freed = layer.counters().segments_freed;
                let next = layer.now() + Nanos(1_000);
                layer.wait(Some(next), &mut completions);
                if layer.counters().segments_freed > freed
                    && let Some(at) = layer.gate.urgent_at()
                {
                    assert_eq!(at, layer.now() + patience);
                    waited += 1;
                }
            }
        }
        assert!(waited > 100, "{waited}");
    }

    /// The rule: reads that arrive when a write becomes urgent are barred, even if another command completes
    /// at the same time.
    #[test]
    fn a_read_that_arrives_when_a_write_becomes_urgent_is_barred() {
        let mut layer = pressed(Schedule::SEMI_PREEMPTIVE, Nanos::from_micros(45));
        let (mut prng, mut completions, mut barred) = (Prng::new(1, "writes"), Vec::new(), 0);
        for tag in 0..2_000 {
            let operation = Operation::write(Lpn(prng.below(layer.caps.pages)), 1);
            layer.submit(Command { tag: Tag(tag), operation }).unwrap();
            if let Some(at) = layer.gate.urgent_at() {
                // A read takes 10 µs, so this read completes when the write becomes urgent.
                let begins = at - Nanos::from_micros(10);
                while layer.now() < begins && layer.gate.urgent_at() == Some(at) {
                    layer.wait(Some(begins), &mut completions);
                }
                if layer.gate.urgent_at() == Some(at) {
                    let read = |tag| Command { tag: Tag(tag), operation: Operation::read(Lpn(0), 1) };
                    layer.submit(read(10_000)).unwrap();
                    completions.clear();
                    while completions.is_empty() && layer.gate.urgent_at() == Some(at) {
                        layer.wait(None, &mut completions);
                    }
                    if layer.now() == at
                        && completions.iter().any(|completion| completion.tag == Tag(10_000))
                        && layer.gate.first().is_some()
                    {
                        assert_eq!(layer.gate.state(), ScheduleState::Exclusive);
                        barred += 1;
                    }
                }
            }
            while !layer.commands.is_empty() {
                layer.wait(None, &mut completions);
            }
        }
        assert!(barred > 10, "{barred}");
    }

    /// The rule: a command that needs no I/O completes at the drive's current time, even if that time has
    /// advanced while the layer was idle.
    #[test]
    fn a_command_without_io_completes_now() {
        let config = LogConfig { segment_bytes: 16 * 512, op: Share::percent(50), ..LogConfig::default() };
        let mut layer = LogDevice::new(MemDevice::new(256, 512, 32, Nanos(10)), config).unwrap();
        let mut completions = Vec::new();
        layer.wait(Some(Nanos(700)), &mut completions);
        let operation = Operation::Trim { lpn: Lpn(0), pages: 1 };
        layer.submit(Command { tag: Tag(1), operation }).unwrap();
        layer.wait(None, &mut completions);
        assert_eq!(completions, [Completion { tag: Tag(1), at: Nanos(700), status: Ok(()) }]);
    }
}
