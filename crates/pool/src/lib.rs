//! A buffer pool over any [`fulgurite_device::Device`].
//!
//! Two policies decide, the pool acts. A *replacement* policy keeps a virtual eviction order that
//! can be read ahead without changing it. A *write-back* policy looks at that order and plans what
//! to write and what to evict: `single` writes the one victim frame, ACE writes a batch of the
//! drive's write concurrency. Any write-back goes over any replacement policy.
//!
//! # Concurrency
//!
//! A pool belongs to one executor: tasks, not threads. A page is used through a guard, shared for
//! reading and exclusive for writing. A hit never waits unless the latch is taken; misses on one
//! page are joined; a page that is being written back can be read but not changed.

mod frames;
mod pool;
pub mod prefetch;
pub mod replacement;
pub mod write_back;

pub use frames::FrameTable;
pub use pool::{BufferPool, PoolConfig, PoolConfigError, PoolCounters, PoolError, ReadGuard, WriteGuard};
pub use prefetch::Prefetch;
pub use replacement::{Cursor, Replacement, ReplacementPolicy};
pub use write_back::{Plan, WriteBack};
