//! The errors of making a buffer pool and of its requests.

use fulgurite_base::PageId;
use fulgurite_device::IoError;
use thiserror::Error;

/// The reason why the pool could not serve a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PoolError {
    /// The page could not be read.
    #[error("page {} could not be read: {error}", page.0)]
    Read {
        /// The page that was requested.
        page: PageId,
        /// The error that the drive reported for the read.
        error: IoError,
    },
    /// Dirty pages could not be written. These pages are still dirty and still in the pool. If misses do not
    /// wait for writes, the next miss gets this error.
    #[error("write-back failed, the pages stay dirty: {0}")]
    WriteBack(IoError),
    /// The drive could not make its acknowledged writes durable.
    #[error("flush failed: {0}")]
    Flush(IoError),
}

/// The reason why a pool could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PoolConfigError {
    /// The configuration has no frames.
    #[error("a pool needs at least one frame")]
    NoFrames,
    /// All frames would be spare frames, so no frame could hold a page.
    #[error("{buffers} write buffers leave no frame of {frames}; a pool needs more frames than buffers")]
    Buffers {
        /// The greatest number of spare frames that the write-back policy may use.
        buffers: u32,
        /// The number of frames of the pool, including the spare ones.
        frames: u32,
    },
    /// A pool page does not consist of whole device pages.
    #[error(
        "a pool page of {page_bytes} bytes does not consist of whole device pages of {device_bytes} bytes"
    )]
    PageSize {
        /// The page size of the pool, in bytes.
        page_bytes: u32,
        /// The page size of the device, in bytes.
        device_bytes: u32,
    },
    /// The replacement policy needs erase counts, and the drive does not report them.
    #[error(
        "the replacement policy needs the erase counts of erase blocks, which this drive does not report"
    )]
    EraseCounts,
    /// The replacement policy needs to know all requests beforehand, and a pool learns of a request when it
    /// comes.
    #[error("the replacement policy needs to know all requests beforehand, which a pool does not")]
    Future,
}
