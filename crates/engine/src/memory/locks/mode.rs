//! How a key or range is locked, by whom, and what conflicts.

use super::slab::Slot;

/// The number of a transaction. The larger one is the younger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxnId(pub u64);

/// How a key or range is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Together with others that read.
    Shared,
    /// Alone.
    Exclusive,
}

impl Mode {
    pub(super) fn conflicts(self, other: Mode) -> bool {
        self == Mode::Exclusive || other == Mode::Exclusive
    }
}

/// What conflicts with a request, while it is decided.
#[derive(Debug, Default)]
pub(super) struct Conflicts {
    /// Transactions that hold a conflicting lock.
    pub held: Vec<Slot>,
    /// Transactions whose conflicting request waits.
    pub waiting: Vec<Slot>,
}

impl Conflicts {
    pub fn clear(&mut self) {
        self.held.clear();
        self.waiting.clear();
    }

    /// A transaction comes once for each of its locks in a range, mostly one after the other.
    pub fn held(&mut self, slot: Slot) {
        if self.held.last() != Some(&slot) {
            self.held.push(slot);
        }
    }

    pub fn waiting(&mut self, slot: Slot) {
        self.waiting.push(slot);
    }
}
