//! Modes of locks, transaction numbers, and conflicts.

use super::slab::Slot;

/// The number of a transaction. A larger number is younger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxnId(pub u64);

/// The mode of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Compatible with other shared locks.
    Shared,
    /// Compatible with no other lock.
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
    /// Transactions that hold a conflicting lock.
    pub held: Vec<Slot>,
    /// Transactions with a conflicting waiting request.
    pub waiting: Vec<Slot>,
}

impl Conflicts {
    pub(super) fn clear(&mut self) {
        self.held.clear();
        self.waiting.clear();
    }

    /// A transaction is reported once for each of its locks in a range, usually consecutively.
    pub(super) fn held(&mut self, slot: Slot) {
        if self.held.last() != Some(&slot) {
            self.held.push(slot);
        }
    }

    pub(super) fn waiting(&mut self, slot: Slot) {
        self.waiting.push(slot);
    }
}
