//! Records the history of one generation of a store (the time between two openings), which is the operations
//! and results of all clients.
//!
//! Times are ticks of a counter that grows with every event, so no two events have the same time. A tick is
//! taken before each call and after its return. The call takes effect at a moment in this interval.

use crate::value::{Key, TxnId, Version};
use rustc_hash::FxHasher;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

/// One operation of a transaction, with the result that its client saw.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// A read of one key.
    Read {
        /// The key that was read.
        key: Key,
        /// The write that the read returned; `None` if there was no record.
        seen: Option<Version>,
    },
    /// A write. Other transactions see it after the commit.
    Write {
        /// The key that was written.
        key: Key,
        /// The identity of the write.
        version: Version,
        /// Whether the write deletes the record.
        deletes: bool,
    },
    /// A scan. Its rows are all records of the scanned range.
    Scan {
        /// The smallest key of the scanned range.
        first: Key,
        /// The largest key of the scanned range.
        last: Key,
        /// The records that were returned, in ascending order.
        rows: Vec<(Key, Version)>,
    },
}

/// The way in which a transaction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Reads under locks. The transaction may write.
    Locking,
    /// Reads from a snapshot. The transaction does not write.
    Snapshot,
}

/// The end of a transaction, as far as its client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Outcome {
    /// The commit was acknowledged.
    Committed,
    /// The transaction had no effect.
    Failed,
    /// The client does not know whether the commit took effect.
    Unknown,
}

/// One transaction or snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Txn {
    /// The number of the transaction.
    pub id: TxnId,
    /// The number of the client that ran the transaction.
    pub client: u32,
    /// The way in which the transaction reads.
    pub kind: Kind,
    /// Whether a crash may lose the transaction after it was acknowledged, because its commit was `relaxed`, and it
    /// wrote in one shard.
    pub relaxed: bool,
    /// The shards in which it wrote, a bit for each.
    pub shards: u64,
    /// The tick at which the transaction began.
    pub invoked: u64,
    /// The tick at which the commit was called; `None` if it was not.
    pub committing: Option<u64>,
    /// The tick at which the client learned the end of the transaction; `None` if it did not.
    pub ended: Option<u64>,
    /// The end of the transaction.
    pub outcome: Outcome,
    /// The operations of the transaction in order.
    pub actions: Vec<Action>,
}

impl Txn {
    /// Creates a transaction that begins at `invoked` and has not ended.
    pub(crate) fn new(id: TxnId, client: u32, kind: Kind, invoked: u64) -> Txn {
        Txn {
            id,
            client,
            kind,
            relaxed: false,
            shards: 1,
            invoked,
            committing: None,
            ended: None,
            outcome: Outcome::Unknown,
            actions: Vec::new(),
        }
    }

    /// Whether the transaction wrote anything.
    pub(crate) fn writes(&self) -> bool {
        self.actions.iter().any(|action| matches!(action, Action::Write { .. }))
    }

    /// Returns all writes that the transaction read, including its own.
    pub(crate) fn seen(&self) -> impl Iterator<Item = (Key, Version)> + '_ {
        self.actions.iter().flat_map(|action| -> Box<dyn Iterator<Item = (Key, Version)> + '_> {
            match action {
                Action::Read { key, seen } => Box::new(seen.map(|version| (*key, version)).into_iter()),
                Action::Scan { rows, .. } => Box::new(rows.iter().copied()),
                Action::Write { .. } => Box::new(std::iter::empty()),
            }
        })
    }
}

/// The transactions between two openings of a store.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// The records at the opening, each with the write that created it.
    pub initial: BTreeMap<Key, Version>,
    /// The transactions in the order in which they began.
    pub txns: Vec<Txn>,
    clock: u64,
}

impl History {
    /// Creates an empty history of a store that contains `initial`.
    pub(crate) fn new(initial: BTreeMap<Key, Version>) -> History {
        History { initial, txns: Vec::new(), clock: 0 }
    }

    /// Advances the counter and returns the next tick.
    pub(crate) fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Begins a transaction and returns its index in [`History::txns`].
    pub(crate) fn begin(&mut self, id: TxnId, client: u32, kind: Kind) -> usize {
        let invoked = self.tick();
        self.txns.push(Txn::new(id, client, kind, invoked));
        self.txns.len() - 1
    }

    /// Records the end of the transaction with index `at`.
    pub(crate) fn end(&mut self, at: usize, outcome: Outcome) {
        let now = self.tick();
        let txn = &mut self.txns[at];
        txn.ended = Some(now);
        txn.outcome = outcome;
    }

    /// Returns a hash of the whole history. Two equal runs have equal hashes.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = FxHasher::default();
        self.initial.hash(&mut hasher);
        self.txns.hash(&mut hasher);
        hasher.finish()
    }
}
