//! The stages of a commit, as types. A stage consumes the value of the stage before: [`Prepared`],
//! [`Admitted`], [`Appended`].

use crate::Lsn;
use crate::format::large_value::LargeValue;
use crate::format::log_record::Op;
use crate::memory::record_cache::{Record, RecordCache};

/// The number of pieces of replaced values that a commit deletes itself.
pub(super) const MOST_REMOVALS: usize = 64;

/// A write of a transaction to one key.
pub(crate) struct Write {
    pub tree: u32,
    pub key: Box<[u8]>,
    /// The new value; `None` deletes the key.
    pub value: Option<Box<[u8]>>,
    /// The place of the value if it was staged.
    pub staged: Option<LargeValue>,
}

/// The place where an operation is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The leaf that covers the key.
    Leaf,
    /// The leaf too, but the record cache would do as well.
    LeafForNow,
    /// The record cache. A later merge puts the record into its leaf.
    Cache,
}

/// The operations of a commit in log order, each with its target.
#[derive(Default)]
pub(super) struct Operations {
    pub ops: Vec<Op>,
    pub targets: Vec<Target>,
}

impl Operations {
    /// Appends an operation.
    pub(super) fn push(&mut self, op: Op, target: Target) {
        self.ops.push(op);
        self.targets.push(target);
    }

    /// Returns each operation with its target.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Op, Target)> {
        std::iter::zip(&self.ops, self.targets.iter().copied())
    }

    /// Moves operations from leaves to the record cache, as far as it can take them. Returns whether there were any.
    pub(super) fn prefer_cache(&mut self) -> bool {
        let mut any = false;
        for target in self.targets.iter_mut().filter(|target| **target == Target::LeafForNow) {
            *target = Target::Cache;
            any = true;
        }
        any
    }

    /// Returns the bytes to reserve in the record cache.
    pub(super) fn record_bytes(&self) -> u64 {
        self.records().map(RecordCache::reserved_bytes).sum()
    }

    /// Returns the records whose target is the record cache.
    pub(super) fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.iter().filter(|(_, target)| *target == Target::Cache).map(|(op, _)| record(op))
    }
}

/// Converts an operation to a record of the record cache.
pub(super) fn record(op: &Op) -> Record<'_> {
    Record { tree: op.tree, key: &op.key, value: op.value.as_deref() }
}

/// A large value that a write replaces. Readers of older states may need it.
pub(super) struct Replaced {
    pub tree: u32,
    pub key: Box<[u8]>,
    pub value: Vec<u8>,
}

/// A commit whose operations are known, each with its preferred target.
#[derive(Default)]
pub(super) struct Prepared {
    pub operations: Operations,
    /// The number of leaves that operations with the target [`Target::Leaf`] change, and of other leaves that those
    /// with the target [`Target::LeafForNow`] change.
    pub leaves: (u64, u64),
    pub replaced: Vec<Replaced>,
    /// The number of bytes of the keys and values that the user wrote.
    pub user_bytes: u64,
    pub marks: Marks,
}

/// The changes of a commit to the marks of large values.
#[derive(Default)]
pub(crate) struct Marks {
    /// The numbers of the staged values that get a record.
    pub taken: Vec<u64>,
    /// Whether a value gets a mark.
    pub is_put: bool,
}

/// A commit whose space is reserved. The targets are final.
pub(super) struct Admitted {
    pub operations: Operations,
    pub replaced: Vec<Replaced>,
    pub user_bytes: u64,
    pub room: Room,
    pub marks: Marks,
}

/// A commit whose record is in the log, from the LSN `since` to the LSN `lsn`. It can no longer fail, unless
/// the whole store stops.
pub(super) struct Appended {
    pub operations: Operations,
    pub since: Lsn,
    pub lsn: Lsn,
    pub room: Room,
    pub marks: Marks,
}

/// The space that is reserved for the worst case of a commit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub pages: u64,
    /// The number of log bytes.
    pub log: u64,
    /// The number of bytes of the record cache.
    pub records: u64,
}
