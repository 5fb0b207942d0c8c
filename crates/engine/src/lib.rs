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

mod backup;
mod barrier;
pub mod blocking;
mod catalogue;
mod check;
mod checkpoint;
mod commit;
mod commits;
mod compact;
mod error;
#[cfg(test)]
mod hostile;
mod image;
mod index;
mod layout;
mod load;
mod locking;
pub mod locks;
mod log;
mod lsn;
mod memory;
mod options;
mod page;
#[cfg(feature = "planted")]
mod planted;
mod records;
mod recovery;
mod repair;
mod rows;
mod scan;
mod shape;
mod shard;
mod space;
mod store;
mod stored;
mod superblock;
mod transaction;
mod tree;
mod versions;
mod view;
mod wait;
mod write;

pub use backup::{BackupReport, restore};
pub use catalogue::{Index, SHARDS, Table};
pub use check::{CheckReport, Problem};
pub use compact::CompactReport;
pub use error::Error;
pub use image::{MemImage, Sink, Source};
pub use layout::{PLACES as SUPERBLOCKS, is_store, map_memory};
pub use load::BulkLoad;
pub use lsn::Lsn;
pub use options::{Compress, Durability, Options, OutOfPlaceConfig, PlaceConfig, TornPages};
#[cfg(feature = "planted")]
pub use planted::Planted;
pub use records::RecordCounters;
pub use repair::{KeyRange, LostPart, RepairReport, TableRepair, repair};
pub use rows::{Row, Rows};
pub use scan::{Direction, IndexRow, IndexScan, Record, Scan};
pub use shape::TreeShape;
pub use store::{Extract, Statistics, Store};
pub use transaction::{Range, Snapshot, Transaction};
