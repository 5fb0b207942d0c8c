//! The counters of a pool.

/// Counters of a pool's requests and I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolCounters {
    /// Requests that found their page in the pool, on its way there, or on its way out.
    pub hits: u64,
    /// Requests that read their page from the drive.
    pub misses: u64,
    /// Read requests to the drive.
    pub read_ios: u64,
    /// Pages read.
    pub pages_read: u64,
    /// Write-back batches.
    pub write_ios: u64,
    /// Pages written back, without [`PoolCounters::pages_flushed`].
    pub pages_written: u64,
    /// Pages written by [`crate::BufferPool::flush`].
    pub pages_flushed: u64,
    /// Pages read before any request for them.
    pub prefetched: u64,
    /// Prefetched pages that were requested later.
    pub prefetch_hits: u64,
    /// Prefetched pages that were evicted before any request for them.
    pub prefetch_wasted: u64,
    /// Pages that were requested between their eviction and the end of their write.
    pub rescued: u64,
    /// Misses that waited for a write.
    pub write_waits: u64,
}

impl PoolCounters {
    /// The difference to earlier counters of the same pool.
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
