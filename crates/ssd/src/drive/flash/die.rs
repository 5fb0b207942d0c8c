//! The state of one die.

use super::op::OpId;
use std::collections::VecDeque;

/// The operations of a die, running and queued.
#[derive(Clone, Debug, Default)]
pub(super) struct Die {
    pub(crate) current: Option<OpId>,
    /// An operation that overlaps with `current` and then becomes it.
    pub(crate) follower: Option<OpId>,
    /// A suspended program or erase; `left` is its remaining time.
    pub(crate) suspended: Option<OpId>,
    pub(crate) left: u64,
    /// Host reads, in order.
    pub(crate) reads: VecDeque<OpId>,
    /// Programs of host pages, in the order in which the FTL emitted them. A program of copies is here from
    /// its emission to its start.
    pub(crate) work: VecDeque<OpId>,
    pub(crate) reads_in_a_row: u8,
    /// Time spent on host operations that have ended.
    pub(crate) host_busy: u64,
}

/// The result of looking for work for a die.
pub(in crate::drive) enum Next {
    /// A host operation, or a program of copies, has started.
    Started(OpId),
    /// The die was busy, and no operation has started.
    Busy,
    /// No host operation waits for the die.
    Nothing,
}
