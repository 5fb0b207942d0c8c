//! A buffer pool over any [`fulgurite_device::Device`].
//!
//! Three policies decide, and the pool acts. A *replacement* policy keeps a virtual eviction order, which can
//! be read ahead without changing it. A *write-back* policy reads that order and plans which dirty pages to
//! write, how many at once, and whether the miss waits for the write: `single` writes only the victim frame,
//! ACE writes a batch as large as the drive's write concurrency, and RAW (reads are not blocked by writes)
//! issues the read before the write. A *prefetch* policy names pages that will soon be requested. Policies of
//! different kinds can be combined freely.
//!
//! # Concurrency
//!
//! A pool belongs to one executor and is shared by its tasks, not by threads. A page is used through a guard,
//! which pins the page and holds its latch, shared for reading or exclusive for writing. A hit waits only if
//! another task holds a conflicting latch. Latches and frames are granted in the order of the requests, so no
//! task starves. Several misses on one page share one read. A page that is being written back can be read but
//! not changed. Dropping a future ends only the waiting: I/O that has begun is completed.
//!
//! # Durability
//!
//! A page becomes clean only when a write of it has succeeded. [`BufferPool::flush`] ends when every page
//! that was dirty is durable. A [`PageStore`] decides where pages are stored. It can make the log durable
//! before it writes pages (write-ahead logging).

#![cfg_attr(not(test), forbid(clippy::disallowed_methods, clippy::disallowed_types))]
mod counters;
mod departed;
mod error;
mod frames;
mod page_table;
mod page_numbers;
mod distances;
mod reuse;
mod next_uses;
pub mod prefetch;
pub mod replacement;
mod spare;
mod store;
mod waiting;
pub mod write_back;
mod counting;
mod sample;
mod state;
mod guards;
mod miss;
mod pool;
mod fetch;
mod flush;
mod lent;
mod write;
mod discard;
mod pooled;

pub use counters::PoolCounters;
pub use counting::MissCounter;
pub use departed::{Departed, Departures, hash_of_page};
pub use distances::StackDistances;
pub use error::{PoolConfigError, PoolError};
pub use frames::FrameTable;
pub use guards::{ReadGuard, WriteGuard};
pub use lent::{Lent, Loan};
pub use next_uses::NextUses;
pub use pool::{BufferPool, PoolConfig};
pub use pooled::PooledDevice;
pub use prefetch::{Prefetch, PrefetchConfig};
pub use replacement::{Arrival, Cursor, Recall, Replacement, ReplacementConfig, ReplacementPolicy};
pub use reuse::{Before, Followed, Reuse};
pub use sample::{Sample, SampleRequests};
pub use store::{PageBytes, PageIo, PageStore, RunIo};
pub use write_back::{WriteBack, WriteBackConfig};
