//! What can go wrong.

use crate::Lsn;
use fulgurite_base::PageId;
use fulgurite_base::units::{humane_size, whole_size};
use fulgurite_device::IoError;
use fulgurite_pool::PoolError;
use thiserror::Error;

/// Why the store could not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// This transaction was chosen to end a deadlock. Nothing of it was done; do it again from its beginning.
    #[error("the transaction was given up to end a deadlock; nothing of it was done, try it again")]
    Deadlock,
    /// Who made the call did not want to wait for its end ([`blocking::Db::asking`](crate::blocking::Db::asking)).
    #[error("the call was given up before it ended; its commit may have been made")]
    GivenUp,
    /// The snapshot needs versions that no longer fit into memory. Take another.
    #[error("the snapshot is too old: versions that it needs no longer fit into memory; take another")]
    SnapshotTooOld,
    /// The drive has no room for what would be written. Nothing was lost; deleting makes room.
    #[error(
        "the store is full: {free} of {pages} pages are free, {needed} would be needed; delete something"
    )]
    Full {
        /// Pages that are free, those kept for recovery left out.
        free: u64,
        /// Pages in all.
        pages: u64,
        /// Pages that the change might take.
        needed: u64,
    },
    /// A key that no page takes.
    #[error("a key of {bytes} bytes is too long; accepted: up to {longest}")]
    KeyTooLong {
        /// Its length.
        bytes: usize,
        /// The longest that is accepted.
        longest: usize,
    },
    /// A transaction that the log does not take.
    #[error("a transaction that writes {bytes} bytes is too large for this log; accepted: up to {most}")]
    TransactionTooLarge {
        /// What it writes.
        bytes: u64,
        /// The most that is accepted.
        most: u64,
    },
    /// There is no such table or index.
    #[error("there is no table `{0}`")]
    NoTable(String),
    /// The table or index was given by another store, or by an earlier opening of this one.
    #[error(
        "the table handle belongs to another store, or to an earlier opening of this one; get a new one with table or create_table"
    )]
    OtherStore,
    /// A table has an index whose function was not given since the store was opened.
    #[error(
        "table `{table}` cannot be written before its index `{index}` is opened with its function (create_index)"
    )]
    IndexNotOpen {
        /// The table.
        table: String,
        /// The index.
        index: String,
    },
    /// The records given to a bulk load are not in ascending order, or the table is not empty.
    #[error("bulk load: {0}")]
    BulkLoad(&'static str),
    /// A page is not what it should be.
    #[error("page {} is damaged: {what}", page.0)]
    Corrupt {
        /// The page.
        page: PageId,
        /// What is wrong with it.
        what: String,
    },
    /// The log has lost something that was durable.
    #[error("the log is damaged at {at}: {what}")]
    LogCorrupt {
        /// Where.
        at: Lsn,
        /// What is wrong there.
        what: String,
    },
    /// The store cannot go on: whether something is durable is no longer known. Open it again.
    #[error("the store stopped ({0}); open it again")]
    Fatal(String),
    /// The drive failed. Nothing was changed.
    #[error("the drive failed: {0}")]
    Io(IoError),
    /// The map of pages out of place needs more memory than there is.
    #[error("memory: the map of pages out of place needs {}, and {} were given", humane_size(whole_size(*needed)), humane_size(*given))]
    MapMemory {
        /// The least memory of a store with this map, in bytes.
        needed: u64,
        /// What there was.
        given: u64,
    },
    /// Options that make no sense, together or for this drive.
    #[error("{0}")]
    Options(String),
    /// The drive holds no store.
    #[error("this is not a store of Fulgurite")]
    NotAStore,
    /// The store was made by another version.
    #[error("the store has format {found}, which this version does not read; it writes format {known}")]
    Version {
        /// The store's.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// The store has sorted runs, which only format 5 had.
    #[error(
        "the store has sorted runs, which this version does not read; `compact` it with the version that made it"
    )]
    SortedRuns,
    /// Commits wrote the log faster than a backup could copy what they changed.
    #[error(
        "commits overwrote the log before the backup had copied their pages, {passes} times; make it when less is written, or with a larger log"
    )]
    BackupOvertaken {
        /// Passes that it made.
        passes: u32,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// A transaction across shards.
    #[error(
        "a transaction lies within one shard; key {key} belongs to shard {other}, the transaction to shard {own}"
    )]
    CrossShard {
        /// The key, as text where it is some.
        key: String,
        /// The shard of the key.
        other: usize,
        /// The shard of the transaction.
        own: usize,
    },
}

impl Error {
    /// Whether the same transaction may succeed when it is done again from its beginning.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Deadlock | Error::SnapshotTooOld)
    }

    /// A page that is not what it should be.
    pub(crate) fn corrupt(page: PageId, what: impl Into<String>) -> Error {
        Error::Corrupt { page, what: what.into() }
    }
}

impl From<PoolError> for Error {
    fn from(error: PoolError) -> Error {
        match error {
            PoolError::Read { page, error: IoError::Corrupt } => {
                Error::corrupt(page, "it is not what was written there last, or cannot be")
            }
            PoolError::Read { error, .. } | PoolError::WriteBack(error) => Error::Io(error),
            PoolError::Flush(error) => Error::Fatal(format!("the drive could not flush: {error}")),
        }
    }
}
