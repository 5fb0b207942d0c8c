//! The errors of a pool.

use fulgurite_base::PageId;
use fulgurite_device::IoError;
use thiserror::Error;

/// Why the pool could not serve a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PoolError {
    /// The page could not be read.
    #[error("page {} could not be read: {error}", page.0)]
    Read {
        /// The page.
        page: PageId,
        /// What the drive said.
        error: IoError,
    },
    /// Dirty pages could not be written; they are still dirty and still in the pool. Where misses do not
    /// wait for writes, the next miss learns it.
    #[error("write-back failed, the pages stay dirty: {0}")]
    WriteBack(IoError),
    /// The drive could not make what it had acknowledged durable.
    #[error("flush failed: {0}")]
    Flush(IoError),
}

/// Why a pool could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PoolConfigError {
    /// No frames.
    #[error("a pool needs at least one frame")]
    NoFrames,
    /// All frames would be spare.
    #[error("{buffers} write buffers leave no frame of {frames}; a pool needs more frames than buffers")]
    Buffers {
        /// Spare frames asked for.
        buffers: u32,
        /// Frames in all.
        frames: u32,
    },
    /// The page is not made of whole device pages.
    #[error("a pool page of {page_bytes} bytes is not made of device pages of {device_bytes} bytes")]
    PageSize {
        /// Asked for.
        page_bytes: u32,
        /// The drive's.
        device_bytes: u32,
    },
    /// The policy asks for what the drive does not tell.
    #[error("the replacement policy asks how often erase blocks were erased, which this drive does not tell")]
    EraseCounts,
}
