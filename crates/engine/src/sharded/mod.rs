//! A store of several shards on one executor.
//!
//! A [`Store`] has a shard on each of its drives, or on each part of one drive ([`divide`]), and the hash of a key
//! selects the shard. Transactions, scans and snapshots cover all shards. The tasks of one executor use it, so it works
//! in virtual time too. [`crate::blocking::Db`] is the same for threads, with the same contents on the drives.
//!
//! # Transactions
//!
//! A transaction has a *side* in each shard that it uses, all under one number. With one side it is a transaction of
//! that shard and pays for no other. Several sides commit in two phases (`shard::commit::across`).
//!
//! # Deadlocks
//!
//! The lock manager of a shard resolves the deadlocks within it. When a transaction begins to wait while there is one
//! with several sides, the graphs of all shards are searched for a cycle over several of them.

pub(crate) mod keys;
pub(crate) mod membership;
pub(crate) mod merge;
pub(crate) mod cycles;
mod one_state;
mod retries;
mod shards;
mod across;
mod scan;
mod transaction;
mod snapshot;
mod store;

pub use retries::Attempts;
pub use scan::{IndexScan, Scan};
pub use shards::{Index, Table};
pub use snapshot::Snapshot;
pub use store::{Store, divide, pages_of_shard};
pub use transaction::Transaction;
