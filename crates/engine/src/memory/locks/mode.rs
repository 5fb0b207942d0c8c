//! The modes of locks, the numbers of transactions, and the conflicts of a request.

use super::slab::Slot;

/// The number of a transaction. A larger number means a younger transaction, unless the transaction has the age of
/// another one ([`Locks::begin_again`](super::Locks::begin_again)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxnId(pub u64);

/// The mode of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A shared lock is compatible with other shared locks.
    Shared,
    /// An exclusive lock is compatible with no other lock.
    Exclusive,
}

impl Mode {
    pub(super) fn conflicts(self, other: Mode) -> bool {
        self == Mode::Exclusive || other == Mode::Exclusive
    }
}

/// The conflicts of the request that is being decided.
#[derive(Debug, Default)]
pub(super) struct Conflicts {
    /// The transactions that hold a conflicting lock.
    pub held: Vec<Slot>,
    /// The transactions with a conflicting waiting request.
    pub waiting: Vec<Slot>,
}

impl Conflicts {
    pub(super) fn clear(&mut self) {
        self.held.clear();
        self.waiting.clear();
    }

    /// Adds a transaction that holds a conflicting lock. It may be reported once for each of its locks in a
    /// range, usually consecutively, so the last one is not added again.
    pub(super) fn held(&mut self, slot: Slot) {
        if self.held.last() != Some(&slot) {
            self.held.push(slot);
        }
    }

    pub(super) fn waiting(&mut self, slot: Slot) {
        self.waiting.push(slot);
    }
}
