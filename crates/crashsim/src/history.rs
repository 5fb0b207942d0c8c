//! What the clients of one generation of a store did and saw.
//!
//! Times are ticks of a counter that grows with every record, so that two events never have the same time. A tick
//! is taken before a call and after its return: the interval between them contains the moment at which the call
//! took effect.

use crate::value::{Key, TxnId, Version};
use rustc_hash::FxHasher;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

/// One step of a transaction, as its client saw it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A read of one key.
    Read {
        /// The key.
        key: Key,
        /// The write that was seen; `None` where there was no record.
        seen: Option<Version>,
    },
    /// A write, which others see when the transaction commits.
    Write {
        /// The key.
        key: Key,
        /// What it is known by.
        version: Version,
        /// Whether it deleted the record.
        deletes: bool,
    },
    /// A scan, whose rows are all the records of the range.
    Scan {
        /// The least key of what was scanned.
        first: Key,
        /// The greatest key of what was scanned.
        last: Key,
        /// What was seen, in ascending order.
        rows: Vec<(Key, Version)>,
    },
}

/// How a transaction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// With locks; it may write.
    Locking,
    /// From a snapshot; it only reads.
    Snapshot,
}

/// What its client knows of a transaction's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The commit was acknowledged.
    Committed,
    /// It took no effect.
    Failed,
    /// The client does not know.
    Unknown,
}

/// One transaction or snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Txn {
    /// Its number.
    pub id: TxnId,
    /// Who ran it.
    pub client: u32,
    /// How it read.
    pub kind: Kind,
    /// Whether it may be lost after it was acknowledged.
    pub relaxed: bool,
    /// When it began.
    pub invoked: u64,
    /// When its commit was called; `None` before that.
    pub committing: Option<u64>,
    /// When its end was known.
    pub ended: Option<u64>,
    /// How it ended.
    pub outcome: Outcome,
    /// What it did, in order.
    pub actions: Vec<Action>,
}

impl Txn {
    /// A transaction that begins at `invoked`; its end is unknown as yet.
    pub fn new(id: TxnId, client: u32, kind: Kind, invoked: u64) -> Txn {
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
    pub fn writes(&self) -> bool {
        self.actions.iter().any(|action| matches!(action, Action::Write { .. }))
    }

    /// Every write that it saw, its own too.
    pub fn seen(&self) -> impl Iterator<Item = (Key, Version)> + '_ {
        self.actions.iter().flat_map(|action| -> Box<dyn Iterator<Item = (Key, Version)> + '_> {
            match action {
                Action::Read { key, seen } => Box::new(seen.map(|version| (*key, version)).into_iter()),
                Action::Scan { rows, .. } => Box::new(rows.iter().copied()),
                Action::Write { .. } => Box::new(std::iter::empty()),
            }
        })
    }
}

/// What happened between two openings of a store.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The records at the beginning, with the writes that they come from.
    pub initial: BTreeMap<Key, Version>,
    /// The transactions, in the order in which they began.
    pub txns: Vec<Txn>,
    clock: u64,
}

impl History {
    /// The history of a store that holds `initial` and of which nobody has asked anything yet.
    pub fn new(initial: BTreeMap<Key, Version>) -> History {
        History { initial, txns: Vec::new(), clock: 0 }
    }

    /// The next tick.
    pub fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Begins a transaction and says where it stands in [`History::txns`].
    pub fn begin(&mut self, id: TxnId, client: u32, kind: Kind) -> usize {
        let invoked = self.tick();
        self.txns.push(Txn::new(id, client, kind, invoked));
        self.txns.len() - 1
    }

    /// Notes how the transaction at `at` ended.
    pub fn end(&mut self, at: usize, outcome: Outcome) {
        let now = self.tick();
        let txn = &mut self.txns[at];
        txn.ended = Some(now);
        txn.outcome = outcome;
    }

    /// A hash of everything that happened: two equal runs have equal ones.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = FxHasher::default();
        self.initial.hash(&mut hasher);
        self.txns.hash(&mut hasher);
        hasher.finish()
    }
}
