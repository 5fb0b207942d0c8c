//! The state of one die: its running and queued flash operations.

use super::op::{FlashOp, FlashOpKind, OpId};
use crate::drive::busy::Busy;
use std::collections::VecDeque;

/// The flash operations of a die, running and queued.
#[derive(Clone, Debug, Default)]
pub(super) struct Die {
    pub(crate) current: Option<OpId>,
    /// The operation that overlaps with `current` and then becomes it.
    pub(crate) follower: Option<OpId>,
    /// The suspended program or erase; `left` is its remaining time.
    pub(crate) suspended: Option<OpId>,
    pub(crate) left: u64,
    /// The host reads that wait for the die, in order.
    pub(crate) reads: VecDeque<OpId>,
    /// The programs of host pages, in the order in which the FTL emitted them. A program of copies is here
    /// from its emission to its start.
    pub(crate) work: VecDeque<OpId>,
    pub(crate) reads_in_a_row: u8,
    /// The time spent on host operations that have ended, in nanoseconds.
    pub(crate) host_busy: u64,
    pub(crate) booked: Booked,
}

/// The time that a die has spent on each kind of operation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Booked {
    pub(crate) busy: Busy,
    /// The virtual time until which `busy` is complete.
    until: u64,
}

impl Booked {
    /// Adds the time of a running operation until `now`, without what is booked already.
    #[inline]
    pub(super) fn add(&mut self, op: &FlashOp, now: u64) {
        let time = match op.kind {
            FlashOpKind::HostRead { .. } => &mut self.busy.read,
            FlashOpKind::MoveRead => &mut self.busy.move_read,
            FlashOpKind::Program(_) if op.collects() => &mut self.busy.move_program,
            FlashOpKind::Program(_) | FlashOpKind::Parity => &mut self.busy.program,
            FlashOpKind::Erase => &mut self.busy.erase,
        };
        *time += now - op.since.max(self.until);
        self.until = now;
    }
}

/// The result of looking for an operation that a die can start.
pub(in crate::drive) enum Next {
    /// A host operation, or a program of copies, has started.
    Started(OpId),
    /// The die was busy, and no operation has started.
    Busy,
    /// No host operation waits for the die.
    Nothing,
}
