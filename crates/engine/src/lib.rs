//! A transactional, ordered store on one drive.
//!
//! A [`Store`] has tables of keys and values, and indexes over them. [`Transaction`]s are serialisable; [`Snapshot`]s read
//! a state of the past and wait for nobody. What a commit promises is its [`Durability`].
//!
//! # How it works
//!
//! Transactions keep their writes to themselves and lock what they touch. A commit appends one record of logical
//! operations to the log, changes B+trees in the buffer pool, and is acknowledged when the log is durable. Pages never
//! hold what is not committed, so recovery only goes forward. Changes of the trees' structure are physical records of the
//! same log. Checkpoints write what is old and stop nobody. See ARCHITECTURE.md, and the head of each module.
//!
//! # What it promises
//!
//! After any crash, what was acknowledged is there, and what is there was committed: whole transactions, and of those in
//! the log a beginning without gaps. Readers see only what no crash takes back, except for `relaxed` commits. Damage on
//! the drive is noticed by checksums and never read as data.

#![cfg_attr(not(test), forbid(clippy::disallowed_methods, clippy::disallowed_types))]
#![deny(unsafe_code)]

/// Whether a bug, or one of several, was planted; always false without the feature `planted`.
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
pub mod blocking;
#[cfg(test)]
mod hostile;

pub use error::Error;
pub use format::layout::{PLACES as SUPERBLOCKS, is_store, map_memory};
pub use lsn::Lsn;
pub use media::image::{MemImage, Sink, Source};
pub use memory::catalogue::{Extract, Index, SHARDS, Table};
pub use memory::locks;
pub use memory::record_cache::RecordCounters;
pub use options::{Compress, Durability, Options, OutOfPlaceConfig, PlaceConfig, TornPages};
#[cfg(feature = "planted")]
pub use planted::Planted;
pub use store::load::BulkLoad;
pub use store::row_batch::{Row, Rows};
pub use store::scan::{Direction, IndexRow, IndexScan, Record, Scan};
pub use store::transaction::{Range, Snapshot, Transaction};
pub use store::{Statistics, Store};
pub use tools::backup::{BackupReport, restore};
pub use tools::check::{CheckReport, Problem};
pub use tools::compact::CompactReport;
pub use tools::repair::{KeyRange, LostPart, RepairReport, TableRepair, repair};
pub use tools::tree_shape::TreeShape;
