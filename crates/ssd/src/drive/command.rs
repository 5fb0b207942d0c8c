//! The host's commands, and the drive as a `Device`: what is submitted passes a serial stage and arrives later.

use super::flash::Flash;
use super::tournament::NEVER;
use super::waits::Waits;
use super::{HostSlot, SimDrive, Translation};
use fulgurite_base::{Lpn, Nanos, StreamId};
use fulgurite_device::{
    Arena, Buffer, Caps, Command, Completion, Device, IoError, Operation, QueueFull, ShareRun, Tag,
};
use std::collections::VecDeque;

/// Bytes of the list of a share for each of its pages: the published command has 250 pairs in a block of 4 KiB.
const PAIR_BYTES: u64 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandKind {
    Read,
    Write(StreamId),
    Trim,
    Share,
    Flush,
}

/// What comes with a command.
pub(super) enum Payload {
    /// The bytes of a read or a write.
    Bytes(Buffer),
    /// What a share makes, all of it at one time; of every other command, none.
    Runs(Box<[ShareRun]>),
}

impl Payload {
    pub fn none() -> Payload {
        Payload::Runs(Box::default())
    }
}

/// A command in the drive. The buffer may hold a thousand of them, so they are kept small.
pub(super) struct InFlight {
    pub tag: Tag,
    pub kind: CommandKind,
    pub lpn: u32,
    pub pages: u32,
    pub submitted: Nanos,
    /// Flash operations that it waits for.
    pub parts: u32,
    /// A write has its room in the write buffer.
    pub is_buffered: bool,
    /// Reads find the pages of a buffered write that have no places yet.
    pub is_listed: bool,
    /// The host has its answer; what is left of the write is the drive's own.
    pub is_answered: bool,
    /// Pages of a write that have their places.
    pub placed: u32,
    /// Since when it has waited where it is.
    pub since: u64,
    pub waits: Waits,
    pub payload: Payload,
    /// Boxed, since it is rare and larger than most of what stands here.
    pub fault: Option<Box<IoError>>,
}

impl InFlight {
    /// The bytes of a write's page `lpn`, if it has any.
    pub fn bytes_of(&self, lpn: u32, page_bytes: usize) -> Option<&[u8]> {
        let Payload::Bytes(buffer) = &self.payload else { return None };
        // SAFETY: the submitter keeps the bytes unchanged until completion; after that they are our own.
        let bytes = unsafe { buffer.bytes() };
        Some(&bytes[(lpn - self.lpn) as usize * page_bytes..][..page_bytes])
    }

    /// Copies the bytes of a write, before the host has its answer and may change them; once.
    pub fn keep_bytes(&mut self) {
        if std::mem::replace(&mut self.is_answered, true) {
            return;
        }
        if let Payload::Bytes(theirs) = &mut self.payload {
            let own = Arena::new(theirs.len()).buffer(0, theirs.len());
            // SAFETY: nobody else knows the new bytes, and nobody changes the old ones yet.
            unsafe { own.bytes_mut().copy_from_slice(theirs.bytes()) };
            *theirs = own;
        }
    }
}

/// A serial stage and what is on its way behind it, in order of arrival.
#[derive(Default)]
pub(super) struct Path {
    pub free: u64,
    pub arrivals: VecDeque<(u64, u32)>,
}

/// Queues a command for `at`, which is no earlier than any before it, in an event slot's queue.
pub(super) fn queue_event(
    queue: &mut VecDeque<(u64, u32)>,
    flash: &mut Flash,
    slot: usize,
    at: u64,
    command: u32,
) {
    // A slot holds one time, that of its first command; `take_first` sets the next.
    if queue.is_empty() {
        flash.events.set(slot, at);
    }
    queue.push_back((at, command));
}

/// Takes the first of an event slot's queue, whose time has come.
pub(super) fn take_first(queue: &mut VecDeque<(u64, u32)>, flash: &mut Flash, slot: usize) -> u32 {
    let (_, command) = queue.pop_front().expect("a slot with an event has a queue");
    flash.events.set(slot, queue.front().map_or(NEVER, |(at, _)| *at));
    command
}

impl Device for SimDrive {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn erases(&self, lpn: Lpn) -> Option<u64> {
        let Translation::PageMapped(ftl) = &self.translation else { return None };
        let lpn = u32::try_from(lpn.0).ok().filter(|lpn| u64::from(*lpn) < self.caps.pages)?;
        ftl.erases(lpn).map(u64::from)
    }

    fn now(&self) -> Nanos {
        Nanos(self.flash.now)
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        if self.unanswered >= self.config.queue_depth {
            return Err(QueueFull(command));
        }
        let fault = command.operation.fault(&self.caps);
        let none = Lpn(0);
        let bytes = |buffer: Option<Buffer>| buffer.map_or_else(Payload::none, Payload::Bytes);
        let (mut kind, lpn, pages, payload) = match command.operation {
            Operation::Read { lpn, pages, into } => (CommandKind::Read, lpn, pages, bytes(into)),
            Operation::Write { lpn, pages, from, stream, .. } => {
                (CommandKind::Write(stream), lpn, pages, bytes(from))
            }
            Operation::Trim { lpn, pages } => (CommandKind::Trim, lpn, pages, Payload::none()),
            Operation::Share { runs } => {
                let first = runs.first().map_or(none, |run| run.destination);
                (CommandKind::Share, first, ShareRun::total(&runs) as u32, Payload::Runs(runs))
            }
            Operation::Flush => (CommandKind::Flush, none, 0, Payload::none()),
        };
        if fault.is_some() {
            // A malformed command is answered from the read path, which touches no state.
            kind = CommandKind::Read;
        }
        let now = self.flash.now;
        // What is wrong takes no time: it is answered, not performed.
        let serial = if fault.is_some() { 0 } else { u64::from(pages) };
        let slot = self.slot(if kind == CommandKind::Read { HostSlot::Reads } else { HostSlot::Writes });
        let (path, stage, delay) = match kind {
            CommandKind::Read => {
                let stage = self.config.read_command.0 + self.config.read_page.0 * serial;
                (&mut self.reads, stage, self.config.read_latency.0)
            }
            CommandKind::Write(_) => {
                (&mut self.writes, self.config.write_command.0 + self.config.write_page.0 * serial, 0)
            }
            // The list of its pages comes with the command, as the bytes of a write do.
            CommandKind::Share => {
                let list = self.config.write_page.0 * serial * PAIR_BYTES / u64::from(self.config.page_bytes);
                (&mut self.writes, self.config.write_command.0 + list, 0)
            }
            CommandKind::Trim | CommandKind::Flush => (&mut self.writes, self.config.write_command.0, 0),
        };
        if let (Translation::PageMapped(ftl), None) = (&self.translation, &fault) {
            ftl.mapping().prefetch(lpn.0 as u32);
        }
        path.free = path.free.max(now) + stage;
        let id = self.commands.insert(InFlight {
            tag: command.tag,
            kind,
            lpn: lpn.0 as u32,
            pages,
            submitted: Nanos(now),
            parts: 0,
            is_buffered: false,
            is_listed: false,
            is_answered: false,
            placed: 0,
            since: now,
            waits: Waits::default(),
            payload,
            fault: fault.map(Box::new),
        });
        let at = path.free + delay;
        queue_event(&mut path.arrivals, &mut self.flash, slot, at, id as u32);
        self.meter.submit(Nanos(now));
        self.unanswered += 1;
        if self.unanswered == 1 {
            self.end_idleness();
        }
        Ok(())
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        let deadline = deadline.map(|deadline| deadline.0.max(self.flash.now));
        loop {
            let (slot, at) = self.flash.events.first();
            // All completions of one instant are delivered together.
            // `NEVER` is no event, so a wait without a deadline ends before it.
            let until = if self.done.is_empty() { deadline.unwrap_or(NEVER - 1) } else { self.flash.now };
            if at > until {
                break;
            }
            self.flash.now = at;
            self.event(slot);
        }
        if let (true, Some(deadline)) = (self.done.is_empty(), deadline) {
            self.flash.now = deadline;
        }
        completions.append(&mut self.done);
    }
}
