//! The lock manager: strict two-phase locking of keys and ranges of keys, for one thread.
//!
//! # Mechanism
//!
//! A transaction locks a key or a range of a table, shared or exclusively, and keeps the lock until it ends. Two
//! requests *conflict* if they are of different transactions, have a key in common and one of them is exclusive. A
//! key need not exist: a range lock keeps others from inserting into the range, so there are no phantoms. A request
//! that conflicts with nothing is granted at once. Another one waits, and [`Locks::release`] and [`Locks::cancel`] say
//! whose requests are granted by what they freed. Nothing here wakes anybody: the caller does.
//!
//! Point locks are in a hash table and, as far as somebody asks for ranges, in an ordered index (`points.rs`); ranges
//! are in an interval tree (`ranges.rs`, `tree.rs`). A waiting request stands there too. When it is made (`decide.rs`),
//! it gets an *edge* to each transaction that it has to wait for (`waits.rs`): *T waits for U*. When its last edge goes,
//! it is granted.
//!
//! # Order
//!
//! 1. A request waits for every transaction that holds a conflicting lock.
//! 2. A request waits for every transaction whose conflicting request was there before and waits still, unless that
//!    transaction waits for the requester, directly or through others. Those it overtakes: they get an edge to it.
//!
//! So nobody starves. Rule 2 keeps newcomers behind, and whoever is overtaken had to wait for the end of the overtaking
//! transaction anyway. Without the exception a scan that waits for a writer would turn the writer's next insert into
//! the scanned range into a deadlock. An upgrade from shared to exclusive is a case of it: others that wait for the
//! key wait for all its owners, so the upgrade goes before them.
//!
//! Two waiting requests that conflict always have an edge between them, and a waiting request always has an edge to
//! whoever holds what it conflicts with. Therefore requests without edges conflict neither with a lock nor with each
//! other, and can be granted together.
//!
//! # Deadlocks
//!
//! Transactions are in a deadlock if and only if the edges form a cycle: then each of them waits for another one of
//! them. There is no cycle before a request. A new request adds edges from the requester, and edges to the requester
//! from those that waited for it anyway, which connect nothing anew. So every new cycle leads through the requester and
//! begins with one of its new edges; it exists exactly if one of those leads to a transaction that waits for the
//! requester. One search backwards from the requester marks them all. Edges of rule 2 never lead to a marked
//! transaction. Grants and releases add no path. So no deadlock exists longer than the call that would make it.
//!
//! The victim of a cycle is its youngest transaction. If that is the requester for any of the cycles, its request is
//! refused, and that ends all of them. Else the youngest of one cycle after another loses its waiting request, until
//! none is left. A victim keeps its locks, and whoever waited for its request still does, until the caller ends it.

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
use waits::{Target, Waits};

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// The transaction holds the lock.
    Granted,
    /// The request waits. [`Locks::release`] or [`Locks::cancel`] of another transaction will grant it.
    Waiting,
    /// The request would have closed one cycle or more. The caller has to end the victims by [`Locks::release`]; a
    /// victim among others that waited has no waiting request any more. If the requester is a victim, it is the only
    /// one and its request is refused; else its request waits.
    Deadlock {
        /// The youngest transaction of each cycle.
        victims: Vec<TxnId>,
    },
}

/// How many of its own range locks a range request is compared with before it becomes one more. A scan that is
/// repeated finds itself among the last ones; to compare with all would make many ranges cost their square.
const OWN_RANGES: usize = 8;

/// All locks of a store.
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
    /// No locks.
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

    /// Asks for a lock on a key, whether the key exists or not. What the transaction holds is granted again.
    ///
    /// # Panics
    /// If a request of the transaction waits already.
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

    /// Asks for a lock on all keys of a range, those that do not exist among them. An empty range is granted.
    ///
    /// A shared request costs O(log n) for each exclusive key and each exclusive range that it overlaps. An exclusive
    /// one looks at all locked keys of the store.
    ///
    /// # Panics
    /// If a request of the transaction waits already.
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

    /// Ends a transaction: its locks and its waiting request go. Appends the transactions whose waiting requests are
    /// granted by that to `granted`, first come first. A transaction without locks is no error.
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

    /// Gives up the waiting request of a transaction that keeps its locks. Appends as [`Locks::release`] does. A
    /// transaction that does not wait is no error.
    pub fn cancel(&mut self, txn: TxnId, granted: &mut Vec<TxnId>) {
        let Some(slot) = self.waits.find(txn) else { return };
        self.withdraw(slot);
        self.waits.unblock(slot, true, &mut self.ready);
        self.grant_ready(granted);
    }

    /// Whether anybody has a lock on a key by itself, or waits for one.
    pub fn is_locked(&self, table: u32, key: &[u8]) -> bool {
        self.points.find(table, key).is_some()
    }

    /// Whether a request of the transaction waits.
    pub fn is_waiting(&self, txn: TxnId) -> bool {
        self.waits.find(txn).is_some_and(|slot| self.waits.waiting(slot).is_some())
    }

    /// How many locks are held. A key counts once for each of its owners.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Bytes of memory that the locks, requests and transactions take. An estimate in O(1). Memory that is free for
    /// the next lock does not count; it is never more than what was in use at once.
    pub fn bytes(&self) -> usize {
        self.points.bytes() + self.ranges.bytes() + self.waits.bytes() + self.held * size_of::<Slot>()
    }
}
