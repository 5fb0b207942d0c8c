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
        /// The drive's error.
        error: IoError,
    },
    /// Dirty pages could not be written; they are still dirty and still in the pool. If misses do not wait
    /// for writes, the next miss gets this error.
    #[error("write-back failed, the pages stay dirty: {0}")]
    WriteBack(IoError),
    /// The drive could not make its acknowledged writes durable.
    #[error("flush failed: {0}")]
    Flush(IoError),
}

/// Why a pool could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PoolConfigError {
    /// No frames.
    #[error("a pool needs at least one frame")]
    NoFrames,
    /// All frames would be spare frames.
    #[error("{buffers} write buffers leave no frame of {frames}; a pool needs more frames than buffers")]
    Buffers {
        /// Spare frames asked for.
        buffers: u32,
        /// Frames in all.
        frames: u32,
    },
    /// A pool page does not consist of whole device pages.
    #[error(
        "a pool page of {page_bytes} bytes does not consist of whole device pages of {device_bytes} bytes"
    )]
    PageSize {
        /// The page size in the configuration.
        page_bytes: u32,
        /// The drive's page size.
        device_bytes: u32,
    },
    /// The replacement policy needs erase counts, and the drive does not report them.
    #[error(
        "the replacement policy needs the erase counts of erase blocks, which this drive does not report"
    )]
    EraseCounts,
}
