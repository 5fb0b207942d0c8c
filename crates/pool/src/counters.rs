//! The counters of a buffer pool.

/// Counts of a pool's requests and I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolCounters {
    /// The number of requests whose page was in the pool, was being read, or was evicted but still being
    /// written.
    pub hits: u64,
    /// The number of requests that read their page from the drive.
    pub misses: u64,
    /// The number of read commands that were sent to the drive.
    pub read_ios: u64,
    /// The number of pages that were read.
    pub pages_read: u64,
    /// The number of batches of dirty pages that were written back.
    pub write_ios: u64,
    /// The number of pages that were written back, without [`PoolCounters::pages_flushed`].
    pub pages_written: u64,
    /// The number of pages that [`crate::BufferPool::flush`] and [`crate::BufferPool::write_pages`] have
    /// written.
    pub pages_flushed: u64,
    /// The number of pages that were read before any request for them.
    pub prefetched: u64,
    /// The number of prefetched pages that were requested later.
    pub prefetch_hits: u64,
    /// The number of prefetched pages that were evicted before any request for them.
    pub prefetch_wasted: u64,
    /// The number of pages that were requested after their eviction, while they were still being written.
    pub rescued: u64,
    /// The number of misses that waited for a write.
    pub write_waits: u64,
}

impl PoolCounters {
    /// Returns what was counted since `before`, which are earlier counters of the same pool.
    pub fn since(&self, before: &PoolCounters) -> PoolCounters {
        PoolCounters {
            hits: self.hits - before.hits,
            misses: self.misses - before.misses,
            read_ios: self.read_ios - before.read_ios,
            pages_read: self.pages_read - before.pages_read,
            write_ios: self.write_ios - before.write_ios,
            pages_written: self.pages_written - before.pages_written,
            pages_flushed: self.pages_flushed - before.pages_flushed,
            prefetched: self.prefetched - before.prefetched,
            prefetch_hits: self.prefetch_hits - before.prefetch_hits,
            prefetch_wasted: self.prefetch_wasted - before.prefetch_wasted,
            rescued: self.rescued - before.rescued,
            write_waits: self.write_waits - before.write_waits,
        }
    }
}
