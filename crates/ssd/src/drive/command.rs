//! The host's commands in the drive, and the queues in which they wait: for a die, for the channel, for room
//! in the write buffer, or for their completion.

use super::flash::Flash;
use super::tournament::NEVER;
use super::waits::Waits;
use fulgurite_base::{Nanos, StreamId};
use fulgurite_device::{Arena, Buffer, IoError, ShareRun, Tag};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandKind {
    Read,
    Write(StreamId),
    Trim,
    Share,
    Flush,
}

/// The data of a command.
pub(super) enum Payload {
    /// The bytes of a read or a write.
    Bytes(Buffer),
    /// The runs of a share command; empty for every other command.
    Runs(Box<[ShareRun]>),
}

impl Payload {
    pub(crate) fn none() -> Payload {
        Payload::Runs(Box::default())
    }
}

/// A command in the drive. The write buffer may hold thousands of commands, so the struct is small.
pub(super) struct InFlight {
    pub(crate) tag: Tag,
    pub(crate) kind: CommandKind,
    pub(crate) lpn: u32,
    pub(crate) pages: u32,
    pub(crate) submitted: Nanos,
    /// The number of flash operations that the command waits for. For a write without a cache, the assignment
    /// of physical pages to it counts as one more.
    pub(crate) parts: u32,
    /// Whether a write has its room in the write buffer.
    pub(crate) is_buffered: bool,
    /// Whether reads can find the pages of this buffered write that have no physical pages yet.
    pub(crate) is_listed: bool,
    /// Whether the host has its answer. The rest of the write is then internal.
    pub(crate) is_answered: bool,
    /// The number of pages of a write that have physical pages.
    pub(crate) placed: u32,
    /// The virtual time at which the current wait of the command began.
    pub(crate) since: u64,
    pub(crate) waits: Waits,
    pub(crate) payload: Payload,
    /// The error that the command will report. It is boxed, since it is rare and larger than most other
    /// fields.
    pub(crate) fault: Option<Box<IoError>>,
}

impl InFlight {
    /// Returns the bytes of a write's page `lpn`; `None` if the write has no bytes.
    pub(crate) fn bytes_of(&self, lpn: u32, page_bytes: usize) -> Option<&[u8]> {
        let Payload::Bytes(buffer) = &self.payload else { return None };
        // SAFETY: the submitter keeps the bytes unchanged until completion; after that the drive owns them.
        let bytes = unsafe { buffer.bytes() };
        Some(&bytes[(lpn - self.lpn) as usize * page_bytes..][..page_bytes])
    }

    /// Copies the bytes of a write once, before the host gets its answer and may change them.
    pub(crate) fn keep_bytes(&mut self) {
        if std::mem::replace(&mut self.is_answered, true) {
            return;
        }
        if let Payload::Bytes(theirs) = &mut self.payload {
            let own = Arena::new(theirs.len()).buffer(0, theirs.len());
            // SAFETY: no other code has the address of the new bytes, and the host does not change the old
            // bytes before the answer.
            unsafe { own.bytes_mut().copy_from_slice(theirs.bytes()) };
            *theirs = own;
        }
    }
}

/// A serial stage, and the commands that have passed it, in order of arrival.
#[derive(Default)]
pub(super) struct Path {
    pub(crate) free: u64,
    pub(crate) arrivals: VecDeque<(u64, u32)>,
}

/// Queues a command in an event slot for the time `at`, which is no earlier than any time before it.
#[inline]
pub(super) fn queue_event(
    queue: &mut VecDeque<(u64, u32)>,
    flash: &mut Flash,
    slot: usize,
    at: u64,
    command: u32,
) {
    // Sets the slot only for the first command, since a slot holds one time; `take_first` sets the next time.
    if queue.is_empty() {
        flash.events.set(slot, at);
    }
    queue.push_back((at, command));
}

/// Takes the first command, whose time has come, from the queue of an event slot.
#[inline]
pub(super) fn take_first(queue: &mut VecDeque<(u64, u32)>, flash: &mut Flash, slot: usize) -> u32 {
    let (_, command) = queue.pop_front().expect("a slot with an event has a queue");
    flash.events.set(slot, queue.front().map_or(NEVER, |(at, _)| *at));
    command
}
