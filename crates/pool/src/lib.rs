//! A buffer pool over any [`fulgurite_device::Device`].
//!
//! Three policies decide, the pool acts. A *replacement* policy keeps a virtual eviction order that can be
//! read ahead without changing it. A *write-back* policy looks at that order and plans what to write, how
//! many pages at once, and whether the miss waits for it: `single` writes the one victim frame, ACE writes
//! a batch of the drive's write concurrency, RAW lets the read go first. A *prefetch* policy names pages
//! that will be wanted soon. Every policy of one kind goes with every policy of the others.
//!
//! # Concurrency
//!
//! A pool belongs to one executor: tasks, not threads. A page is used through a guard, shared for reading
//! and exclusive for writing. A hit never waits unless the latch is taken; latches and frames are handed
//! over in the order of asking, so nobody starves. Misses on one page are joined. A page that is being
//! written back can be read but not changed. Dropping a future only ends the waiting: I/O that was begun is
//! carried to its end.
//!
//! # Durability
//!
//! A page is clean only when a write of it has succeeded; [`BufferPool::flush`] ends when every page that
//! was dirty is durable. A [`PageStore`] decides where pages are and lets a log go first.

#![cfg_attr(not(test), forbid(clippy::disallowed_methods, clippy::disallowed_types))]

mod counters;
mod counting;
mod departed;
mod error;
mod fetch;
mod flush;
mod frames;
mod guards;
mod lent;
mod miss;
mod page_table;
mod pool;
pub mod prefetch;
pub mod replacement;
mod spare;
mod state;
mod store;
mod waiting;
mod write;
pub mod write_back;

pub use counters::PoolCounters;
pub use counting::MissCounter;
pub use departed::{Departed, Departures, hash_of_page};
pub use error::{PoolConfigError, PoolError};
pub use frames::FrameTable;
pub use guards::{ReadGuard, WriteGuard};
pub use lent::{Lent, Loan};
pub use pool::{BufferPool, PoolConfig};
pub use prefetch::{Prefetch, PrefetchConfig};
pub use replacement::{Arrival, Cursor, Recall, Replacement, ReplacementConfig, ReplacementPolicy};
pub use store::{PageBytes, PageIo, PageStore, RunIo};
pub use write_back::{Plan, WriteBack, WriteBackConfig};
