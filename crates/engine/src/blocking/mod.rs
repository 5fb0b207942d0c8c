//! A handle to the store that any thread may use.
//!
//! A [`Db`] is one store in one or several *shards*. Each shard has its own drive, pool, log and executor,
//! and is used by one thread at a time. The hash of a key selects its shard. Transactions, scans and snapshots cover
//! all shards. There are no internal threads:
//! the calling thread does the work. It reads data in memory under the shard's lock in less than a
//! microsecond. A call that has to wait for the drive waits without the lock.
//!
//! ```
//! use fulgurite_base::Nanos;
//! use fulgurite_device::MemDevice;
//! use fulgurite_engine::{Options, blocking::Db};
//!
//! # fn main() -> Result<(), fulgurite_engine::Error> {
//! let drive = MemDevice::new(4096, 4096, 64, Nanos::from_micros(10));
//! let db = Db::create(vec![drive], Options { log_bytes: 2 << 20, ..Options::default() })?;
//! let users = db.create_table("users")?;
//! std::thread::scope(|scope| {
//!     let (db, users) = (&db, &users);
//!     scope.spawn(move || db.put(users, b"ada", b"1815")).join().expect("it does not panic")
//! })?;
//! assert_eq!(db.get(&users, b"ada")?, Some(b"1815".to_vec()));
//! db.close()
//! # }
//! ```
//!
//! # Background work
//!
//! A commit with [`Durability::Relaxed`](crate::Durability::Relaxed) returns before it is written. The next
//! call that waits also writes such commits and performs other background work. [`Db::close`] and dropping
//! the last handle do so too. To perform background work while no call waits, run [`Db::keepers`] in threads.

mod primitives;
mod one_state;
mod asking;
mod confined;
mod jobs;
mod state;
mod faults;
mod driving;
mod scan;
mod index_rows;
mod retries;
mod inside;
mod shard;
mod db;
mod doubt;
mod cycles;
mod side;
mod across;
mod names;
mod snapshot;
mod transaction;
mod ranges;
mod update;
mod load;
mod upkeep;
mod backup;
#[cfg(test)]
mod tests;

pub use db::{Db, Extract, Index, Keeper, Table};
pub use index_rows::IndexRows;
pub use scan::{PAGE_RECORDS, Records};
pub use snapshot::Snapshot;
pub use transaction::Transaction;
