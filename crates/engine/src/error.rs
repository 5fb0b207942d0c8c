//! The error type of the store.

use crate::Lsn;
use fulgurite_base::PageId;
use fulgurite_base::units::{humane_size, whole_size};
use fulgurite_device::IoError;
use fulgurite_pool::PoolError;
use thiserror::Error;

/// A failure of a call to the store.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// The transaction was aborted to resolve a deadlock. It had no effect; retry the transaction from its
    /// beginning.
    #[error("the transaction was aborted to resolve a deadlock; it had no effect, retry it")]
    Deadlock,
    /// The caller cancelled the call ([`blocking::Db::asking`](crate::blocking::Db::asking)).
    #[error("the call was cancelled before it ended; its commit may have taken effect")]
    GivenUp,
    /// The snapshot needs record versions that no longer fit into memory, or is older than the index that it reads.
    /// Take another snapshot.
    #[error(
        "the snapshot is too old: versions that it needs no longer fit into memory, or the index is newer; take another"
    )]
    SnapshotTooOld,
    /// The drive has no space for the write. Nothing was lost; deleting records frees space.
    #[error("the store is full: {free} of {pages} pages are free, {needed} are needed; delete records")]
    Full {
        /// The number of free pages, without those reserved for recovery.
        free: u64,
        /// The number of pages of the store.
        pages: u64,
        /// The number of pages that the change may need.
        needed: u64,
    },
    /// The key does not fit into a page.
    #[error("a key of {bytes} bytes is too long; accepted: up to {longest}")]
    KeyTooLong {
        /// The length of the key in bytes.
        bytes: usize,
        /// The longest accepted key in bytes.
        longest: usize,
    },
    /// The transaction does not fit into the log.
    #[error("a transaction that writes {bytes} bytes is too large for this log; accepted: up to {most}")]
    TransactionTooLarge {
        /// The number of bytes that the transaction writes.
        bytes: u64,
        /// The largest accepted number of bytes.
        most: u64,
    },
    /// The store was opened for reading only.
    #[error("the store was opened for reading only; open it for writing to change it")]
    ReadOnly,
    /// The store has no table or index of this name, or no longer: it was dropped.
    #[error("there is no table `{0}`")]
    NoTable(String),
    /// The handle of the table or index was issued by another store, or by an earlier opening of this one.
    #[error(
        "the table handle belongs to another store, or to an earlier opening of this one; \
         get a new one with table or create_table"
    )]
    OtherStore,
    /// The table has an index whose extract function was not given since the store was opened.
    #[error(
        "table `{table}` cannot be written before its index `{index}` is opened with its function (create_index)"
    )]
    IndexNotOpen {
        /// The name of the table.
        table: String,
        /// The name of the index.
        index: String,
    },
    /// The extract function of an index panicked. The record was not written; the store goes on.
    #[error("the function of index `{index}` panicked; the record was not written")]
    IndexPanicked {
        /// The name of the index.
        index: String,
    },
    /// The records given to a bulk load are not in ascending order, or the table is not empty.
    #[error("bulk load: {0}")]
    BulkLoad(&'static str),
    /// A page is damaged.
    #[error("page {} is damaged: {what}", page.0)]
    Corrupt {
        /// The number of the damaged page.
        page: PageId,
        /// A description of the damage.
        what: String,
    },
    /// A part of the log that was durable is lost.
    #[error("the log is damaged at {at}: {what}")]
    LogCorrupt {
        /// The position of the damage in the log.
        at: Lsn,
        /// A description of the damage.
        what: String,
    },
    /// The store stopped, because it cannot tell whether some of its writes are durable. Open the store
    /// again.
    #[error("the store stopped ({0}); open it again")]
    Fatal(String),
    /// The drive failed. Nothing was changed.
    #[error("the drive failed: {0}")]
    Io(IoError),
    /// The map of pages out of place needs more memory than the store was given.
    #[error(
        "memory: the map of pages out of place needs {}, and {} were given",
        humane_size(whole_size(*needed)),
        humane_size(*given)
    )]
    MapMemory {
        /// The least memory of a store with this map, in bytes.
        needed: u64,
        /// The memory given, in bytes.
        given: u64,
    },
    /// The options are invalid, contradict each other, or do not suit this drive.
    #[error("{0}")]
    Options(String),
    /// The drive holds no store.
    #[error("this is not a store of Fulgurite")]
    NotAStore,
    /// The store has a format that this version does not read.
    #[error("the store has format {found}, which this version does not read; it writes format {known}")]
    Version {
        /// The format number of the store.
        found: u32,
        /// The format number that this version writes.
        known: u32,
    },
    /// The store has sorted runs, which only format 5 supported.
    #[error(
        "the store has sorted runs, which this version does not read; `compact` it with the version that made it"
    )]
    SortedRuns,
    /// Commits filled the log faster than a backup could copy the pages that they changed.
    #[error(
        "{passes} times commits overwrote the log before the backup had copied their pages; \
         make the backup when less is written, or use a larger log"
    )]
    BackupOvertaken {
        /// The number of passes over the pages that the backup made.
        passes: u32,
    },
    /// The store is a shard of a store of several, and a crash has left transactions whose outcome only another shard
    /// knows.
    #[error(
        "{transactions} transactions of this shard are in doubt, because another shard knows their outcome; \
         open the store with all its drives"
    )]
    InDoubt {
        /// The number of transactions in doubt.
        transactions: usize,
    },
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
}

impl Error {
    /// Whether a retry of the same transaction from its beginning may succeed.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Deadlock | Error::SnapshotTooOld)
    }

    /// Creates the error for a damaged page.
    pub(crate) fn corrupt(page: PageId, what: impl Into<String>) -> Error {
        Error::Corrupt { page, what: what.into() }
    }
}

impl From<PoolError> for Error {
    fn from(error: PoolError) -> Error {
        match error {
            PoolError::Read { page, error: IoError::Corrupt } => {
                Error::corrupt(page, "its contents are invalid or older than its last write")
            }
            PoolError::Read { error, .. } | PoolError::WriteBack(error) => Error::Io(error),
            PoolError::Flush(error) => Error::Fatal(format!("the drive could not flush: {error}")),
        }
    }
}
