//! The lock manager, which does strict two-phase locking of keys and key ranges for one thread.
//!
//! # Mechanism
//!
//! A transaction locks a key or a range of a table, shared or exclusively, and keeps the lock until it ends.
//! Two requests *conflict* if they are from different transactions, have a key in common, and at least one of
//! them is exclusive. A key need not exist: a range lock prevents others from inserting into the range, so
//! there are no phantoms. A request without conflicts is granted at once. Any other request waits.
//! [`Locks::release`] and [`Locks::cancel`] return the transactions whose requests they granted; the caller
//! wakes them.
//!
//! Point locks are in a hash table, and in an ordered index if there are range requests (`points.rs`). Range
//! locks are in an interval tree (`ranges.rs`, `tree.rs`). Waiting requests are in the same structures. A
//! request that has to wait (`decide.rs`) gets an *edge* to each transaction that it waits for (`waits.rs`).
//! An edge from T to U means that T waits for U. A request is granted when its last edge is removed.
//!
//! # Order
//!
//! 1. A request waits for every transaction that holds a conflicting lock.
//! 2. A request also waits for every transaction with an earlier conflicting request that still waits, unless
//!    that transaction waits for the requester, directly or transitively. The request overtakes such
//!    transactions: they get an edge to the new request.
//!
//! So there is no starvation. Rule 2 keeps later requests behind earlier ones, and an overtaken transaction
//! had to wait for the end of the overtaking one anyway. Without the exception in rule 2, a writer for which
//! a scan waits would cause a deadlock by its next insert into the scanned range. An upgrade from shared to
//! exclusive also needs the exception: requests that wait for the key wait for all its owners, so the upgrade
//! overtakes them.
//!
//! Two conflicting waiting requests always have an edge between them, and a waiting request always has an
//! edge to every holder of a conflicting lock. Therefore requests without edges conflict neither with a lock
//! nor with each other, and can be granted together.
//!
//! # Deadlocks
//!
//! There is a deadlock if and only if the edges form a cycle. Before a request there is no cycle. A request
//! adds edges from the requester. It also adds edges to the requester from transactions that waited for it
//! already, and these create no new paths. So every new cycle contains the requester and one of its new
//! edges. The cycle exists exactly if that edge leads to a transaction that waits for the requester. One
//! search backwards from the requester marks all such transactions. Edges of rule 2 never lead to a marked
//! transaction. Grants and releases add no path. So a deadlock is resolved in the call that would create it.
//!
//! The victim of a cycle is its youngest transaction. A transaction that repeats an aborted one has the age of
//! the first attempt ([`Locks::begin_again`]), so it becomes the oldest after a while and is then never a victim.
//! If the requester is the youngest of any cycle, its request is refused, which resolves all cycles. Otherwise
//! the youngest transaction of one cycle after another loses its waiting request. A victim keeps its locks, and
//! transactions that waited for its request still wait, until the caller ends the victim.
//!
//! A transaction of several shards has locks in each of them, under one number. A cycle over several shards is in the
//! graph of none; `sharded` and `blocking` find it.

mod slab;
mod mode;
mod ranges;
mod tree;
mod waits;
mod decide;
mod points;

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;

pub(crate) use points::hash as hash_of_key;

pub use mode::{Mode, TxnId};

use mode::Conflicts;
use points::Points;
use ranges::Ranges;
use slab::Slot;
use std::ops::Bound;
pub(crate) use waits::WaitsFor;
use waits::{Target, Waits};

/// The outcome of a request for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// The transaction holds the lock.
    Granted,
    /// The request waits until [`Locks::release`] or [`Locks::cancel`] of another transaction grants it.
    Waiting,
    /// The request would have closed at least one cycle. The caller must end the victims with
    /// [`Locks::release`]. A victim that waited has lost its request. If the requester is a victim, it is the
    /// only victim and its request is refused; otherwise its request waits.
    Deadlock {
        /// The youngest transaction of each cycle.
        victims: Vec<TxnId>,
    },
}

/// The number of most recent range locks of the same transaction with which a range request is compared. A
/// repeated scan finds its own lock among these. Comparing with all of them would take quadratic time.
const OWN_RANGES: usize = 8;

/// All locks of a store, and the requests that wait for them.
#[derive(Debug)]
pub struct Locks {
    points: Points,
    ranges: Ranges,
    waits: Waits,
    held: usize,
    conflicts: Conflicts,
    ready: Vec<(u64, Slot)>,
}

impl Default for Locks {
    fn default() -> Locks {
        Locks::new()
    }
}

impl Locks {
    /// Creates a lock manager without locks.
    pub fn new() -> Locks {
        Locks {
            points: Points::new(),
            ranges: Ranges::new(),
            waits: Waits::new(),
            held: 0,
            conflicts: Conflicts::default(),
            ready: Vec::new(),
        }
    }

    /// Begins a transaction that repeats an aborted one, whose age it gets. The repeated transaction must have
    /// ended. So the more often a transaction is aborted, the fewer others are older, and the oldest of all is
    /// never the victim of a deadlock.
    pub fn begin_again(&mut self, txn: TxnId, first: TxnId) {
        let slot = self.waits.enter(txn);
        self.waits.get_mut(slot).age = first;
    }

    /// Requests a lock on a key, whether the key exists or not. A lock that the transaction already holds is
    /// granted again.
    ///
    /// # Panics
    /// If the transaction has a waiting request.
    pub fn lock_key(&mut self, txn: TxnId, table: u32, key: &[u8], mode: Mode) -> Outcome {
        let requester = self.waits.enter(txn);
        if let Some(refusal) = self.refusal(requester) {
            return refusal;
        }
        let point = self.points.enter(table, key);
        if self.points.covers(point, requester, mode) {
            return Outcome::Granted;
        }
        self.conflicts.clear();
        self.points.conflicts(point, requester, mode, &self.waits, &mut self.conflicts);
        self.ranges.conflicts_at(table, key, requester, mode, &mut self.conflicts);
        self.decide(requester, Target::Point(point), mode)
    }

    /// Requests a lock on all keys of a range, existing or not. A request for an empty range is granted.
    ///
    /// A shared request takes O(log n) for each exclusive key and each exclusive range that it overlaps. An
    /// exclusive request scans all locked keys of the store.
    ///
    /// # Panics
    /// If the transaction has a waiting request.
    pub fn lock_range(
        &mut self,
        txn: TxnId,
        table: u32,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        mode: Mode,
    ) -> Outcome {
        let requester = self.waits.enter(txn);
        if let Some(refusal) = self.refusal(requester) {
            return refusal;
        }
        let Some(range) = self.ranges.create(table, range, requester, mode) else {
            return Outcome::Granted;
        };
        let own = self.waits.get(requester).ranges.iter().rev().take(OWN_RANGES);
        if own.copied().any(|own| self.ranges.covers(own, range)) {
            self.ranges.discard(range);
            return Outcome::Granted;
        }
        self.conflicts.clear();
        let (table, span) = (self.ranges.table(range), self.ranges.span(range));
        self.points.conflicts_within(table, span, requester, mode, &self.waits, &mut self.conflicts);
        self.ranges.conflicts_of(range, &mut self.conflicts);
        self.decide(requester, Target::Range(range), mode)
    }

    /// Ends a transaction, which releases its locks and withdraws its waiting request. Appends the
    /// transactions whose waiting requests are granted to `granted`, in the order in which the requests
    /// arrived. A transaction without locks is no error.
    pub fn release(&mut self, txn: TxnId, granted: &mut Vec<TxnId>) {
        let Some(slot) = self.waits.take(txn) else { return };
        self.withdraw(slot);
        let transaction = self.waits.get_mut(slot);
        for point in transaction.points.drain(..) {
            self.points.leave(point, slot);
            self.held -= 1;
        }
        for range in transaction.ranges.drain(..) {
            self.ranges.remove(range);
            self.held -= 1;
        }
        self.waits.unblock(slot, false, &mut self.ready);
        self.waits.free(slot);
        self.grant_ready(granted);
    }

    /// Withdraws the waiting request of a transaction, which keeps its locks. Appends the transactions whose
    /// waiting requests are granted to `granted`, like [`Locks::release`]. A transaction that does not wait
    /// is no error.
    pub fn cancel(&mut self, txn: TxnId, granted: &mut Vec<TxnId>) {
        let Some(slot) = self.waits.find(txn) else { return };
        self.withdraw(slot);
        self.waits.unblock(slot, true, &mut self.ready);
        self.grant_ready(granted);
    }

    /// Whether any transaction holds or waits for a point lock on the key.
    pub(crate) fn is_locked(&self, table: u32, key: &[u8]) -> bool {
        self.points.find(table, key).is_some()
    }

    /// Whether the transaction has a waiting request.
    pub(crate) fn is_waiting(&self, txn: TxnId) -> bool {
        self.waits.find(txn).is_some_and(|slot| self.waits.waiting(slot).is_some())
    }

    /// Returns the edges of the waits-for graph, in the order of the transactions that wait.
    pub(crate) fn edges(&self) -> Vec<WaitsFor> {
        self.waits.edges()
    }

    /// Returns the transactions that wait for this one, directly.
    pub(crate) fn waiters_of(&self, txn: TxnId) -> impl Iterator<Item = TxnId> {
        self.waits.waiters_of(txn)
    }

    /// Returns the number of locks. A key counts once for each of its owners.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Returns an estimate of the memory of locks, requests and transactions in bytes, in O(1). Memory that
    /// is kept for later locks does not count. This memory is at most the highest use so far.
    pub fn bytes(&self) -> usize {
        self.points.bytes() + self.ranges.bytes() + self.waits.bytes() + self.held * size_of::<Slot>()
    }
}
