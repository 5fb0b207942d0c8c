//! A transactional, ordered store on one drive.
//!
//! A [`Store`] has tables of keys and values, and secondary indexes over them. [`Transaction`]s are
//! serialisable. A [`Snapshot`] reads one past state and never waits for a lock. The [`Durability`] of a
//! commit says what the commit guarantees when it returns.
//!
//! # How it works
//!
//! A transaction buffers its writes and locks the keys and ranges that it reads and writes. A commit appends
//! one record of logical operations to the log and applies these operations to B+trees in the buffer pool.
//! The commit is acknowledged when its record is durable. Pages contain only committed data, so recovery
//! redoes operations and undoes none. Structure changes of the trees are physical records of the same log.
//! Checkpoints write old dirty pages without blocking transactions. See ARCHITECTURE.md, and the head of each
//! module.
//!
//! # Guarantees
//!
//! After a crash, every acknowledged commit is present, and only committed data are present. Each transaction
//! is present as a whole or not at all, and the transactions in the log form a prefix of the commit order.
//! Readers see only data that survives a crash, except for `relaxed` commits. Checksums detect damage on the
//! drive; damaged data is never returned.

#![cfg_attr(not(test), forbid(clippy::disallowed_methods, clippy::disallowed_types))]
#![deny(unsafe_code)]

/// True if one of the named faults is injected; always false without the feature `planted`.
macro_rules! planted {
    ($options:expr, $($bug:ident)|+) => {{
        #[cfg(feature = "planted")]
        let planted = matches!($options.planted, Some($(crate::planted::Planted::$bug)|+));
        #[cfg(not(feature = "planted"))]
        let planted = {
            let _ = &$options;
            false
        };
        planted
    }};
}

mod lsn;
mod error;
mod wait;
mod bytes;
#[cfg(feature = "planted")]
mod planted;
mod options;
mod format;
mod media;
mod memory;
mod shard;
mod store;
mod tools;
pub mod sharded;
pub mod blocking;
#[cfg(test)]
mod hostile;

pub use error::Error;
pub use format::layout::{PLACES as SUPERBLOCKS, StoreShape, is_store};
pub use lsn::Lsn;
pub use media::image::{MemImage, Sink, Source};
pub use memory::catalogue::{Extract, Index, SHARDS, Table};
pub use memory::locks;
pub use memory::record_cache::RecordCounters;
pub use options::{Compress, Durability, Options, OutOfPlaceConfig, PlaceConfig, TornPages};
#[cfg(feature = "planted")]
pub use planted::Planted;
pub use store::load::BulkLoad;
pub use store::ranges::{Prefix, prefix};
pub use store::row_batch::{Row, Rows};
pub use store::scan::{Direction, IndexRow, IndexScan, Record, Scan};
pub use store::transaction::{Range, Snapshot, Transaction};
pub use store::{Statistics, Store};
pub use tools::backup::{BackupReport, restore};
pub use tools::check::{CheckReport, Problem};
pub use tools::compact::CompactReport;
pub use tools::repair::{KeyRange, LostPart, RepairReport, TableRepair, repair};
pub use tools::tree_shape::TreeShape;
pub use wait::StoreFuture;
