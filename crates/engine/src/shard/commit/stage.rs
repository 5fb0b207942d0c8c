//! The stages of a commit. Each takes the one before by value: [`Prepared`], [`Admitted`], [`Appended`].

use crate::Lsn;
use crate::format::log_record::Op;
use crate::memory::record_cache::Record;

/// A write of a transaction.
pub(crate) struct Write {
    pub tree: u32,
    pub key: Box<[u8]>,
    /// `None` deletes the key.
    pub value: Option<Box<[u8]>>,
}

/// The destination of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The leaf of the key.
    Leaf,
    /// The record cache. A merge brings the record to its leaf later.
    Cache,
}

/// The operations of a commit in the order of the log, each with its target.
#[derive(Default)]
pub(super) struct Operations {
    pub ops: Vec<Op>,
    pub targets: Vec<Target>,
}

impl Operations {
    /// Adds an operation behind the last.
    pub(super) fn push(&mut self, op: Op, target: Target) {
        self.ops.push(op);
        self.targets.push(target);
    }

    /// Each operation with its target.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Op, Target)> {
        std::iter::zip(&self.ops, self.targets.iter().copied())
    }

    /// The records that the cache is to take.
    pub(super) fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.iter().filter(|(_, target)| *target == Target::Cache).map(|(op, _)| record(op))
    }
}

/// An operation as a record of the cache.
pub(super) fn record(op: &Op) -> Record<'_> {
    Record { tree: op.tree, key: &op.key, value: op.value.as_deref() }
}

/// A large value that a write replaces. Readers of older states may need it.
pub(super) struct Replaced {
    pub tree: u32,
    pub key: Box<[u8]>,
    pub value: Vec<u8>,
}

/// The operations are known, and the target that each of them should have.
#[derive(Default)]
pub(super) struct Prepared {
    pub operations: Operations,
    /// Leaves that change.
    pub leaves: u64,
    pub replaced: Vec<Replaced>,
    /// Bytes of keys and values.
    pub user_bytes: u64,
}

/// Room is promised. The targets are final.
pub(super) struct Admitted {
    pub operations: Operations,
    pub replaced: Vec<Replaced>,
    pub user_bytes: u64,
    pub room: Room,
}

/// The record is in the log from `since` to `lsn`. The commit can no longer fail, other than with the whole store.
pub(super) struct Appended {
    pub operations: Operations,
    pub since: Lsn,
    pub lsn: Lsn,
    pub room: Room,
}

/// Promised room, for the worst case of a commit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub pages: u64,
    /// Bytes of the log.
    pub log: u64,
    /// Bytes of the record cache.
    pub records: u64,
}
