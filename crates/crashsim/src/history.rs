//! The operations and results of all clients in one generation of a store.
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
        /// The key.
        key: Key,
        /// The write that the read returned; `None` if there was no record.
        seen: Option<Version>,
    },
    /// A write. Other transactions see it after the commit.
    Write {
        /// The key.
        key: Key,
        /// The identity of the write.
        version: Version,
        /// Whether it deletes the record.
        deletes: bool,
    },
    /// A scan. Its rows are all records of the range.
    Scan {
        /// The smallest key of the scanned range.
        first: Key,
        /// The largest key of the scanned range.
        last: Key,
        /// The records that were returned, in ascending order.
        rows: Vec<(Key, Version)>,
    },
}

/// How a transaction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// With locks. It may write.
    Locking,
    /// From a snapshot. It does not write.
    Snapshot,
}

/// The end of a transaction as far as its client knows.
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
    /// Its number.
    pub id: TxnId,
    /// The client that ran it.
    pub client: u32,
    /// How it reads.
    pub kind: Kind,
    /// Whether a crash may lose it after it was acknowledged.
    pub relaxed: bool,
    /// When it began.
    pub invoked: u64,
    /// When commit was called; `None` if it was not.
    pub committing: Option<u64>,
    /// When its end became known to the client.
    pub ended: Option<u64>,
    /// How it ended.
    pub outcome: Outcome,
    /// Its operations in order.
    pub actions: Vec<Action>,
}

impl Txn {
    /// A transaction that begins at `invoked` and has not ended.
    pub(crate) fn new(id: TxnId, client: u32, kind: Kind, invoked: u64) -> Txn {
        Txn {
            id,
            client,
            kind,
            relaxed: false,
            invoked,
            committing: None,
            ended: None,
            outcome: Outcome::Unknown,
            actions: Vec::new(),
        }
    }

    /// Whether it wrote anything.
    pub(crate) fn writes(&self) -> bool {
        self.actions.iter().any(|action| matches!(action, Action::Write { .. }))
    }

    /// All writes that it read, including its own.
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

/// The operations between two openings of a store.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// The records at the beginning, with the writes that created them.
    pub initial: BTreeMap<Key, Version>,
    /// The transactions in the order in which they began.
    pub txns: Vec<Txn>,
    clock: u64,
}

impl History {
    /// An empty history of a store that contains `initial`.
    pub(crate) fn new(initial: BTreeMap<Key, Version>) -> History {
        History { initial, txns: Vec::new(), clock: 0 }
    }

    /// The next tick.
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

    /// A hash of the whole history. Two equal runs have equal hashes.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = FxHasher::default();
        self.initial.hash(&mut hasher);
        self.txns.hash(&mut hasher);
        hasher.finish()
    }
}
