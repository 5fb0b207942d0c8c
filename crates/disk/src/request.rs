//! Requests to a disk and their outcomes. Addresses and lengths are in bytes, and need no alignment.

use fulgurite_base::Nanos;
use fulgurite_device::IoError;
use thiserror::Error;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Reads `length` bytes from `offset` on. The bytes are copied by [`Disk::copy`](crate::Disk::copy) when the
    /// request has completed.
    Read {
        /// The address of the first byte.
        offset: u64,
        /// The number of bytes.
        length: u64,
    },
    /// Writes `data` from `offset` on.
    Write {
        /// The address of the first byte.
        offset: u64,
        /// The bytes.
        data: &'a [u8],
        /// Whether the bytes are durable when the request has completed.
        durable: bool,
    },
    /// Makes a range read as zeros.
    Zero {
        /// The address of the first byte.
        offset: u64,
        /// The number of bytes.
        length: u64,
        /// Whether the zeros are durable when the request has completed.
        durable: bool,
        /// Whether whole pages may be trimmed. Otherwise they are written.
        trim: bool,
    },
    /// Discards the pages that lie in this range as a whole, which then read as zeros.
    Trim {
        /// The address of the first byte.
        offset: u64,
        /// The number of bytes.
        length: u64,
        /// Whether the trim is durable when the request has completed.
        durable: bool,
    },
    /// Makes the writes durable that have completed before.
    Flush,
}

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`Request::Read`].
    Read,
    /// [`Request::Write`] and [`Request::Zero`].
    Write,
    /// [`Request::Trim`].
    Trim,
    /// [`Request::Flush`].
    Flush,
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed<T> {
    /// The token that the caller gave with the request.
    pub token: T,
    /// The kind of the request.
    pub kind: Kind,
    /// The number of pages that the request touched.
    pub pages: u32,
    /// The time of the submission, on the disk's clock.
    pub submitted: Nanos,
    /// The time of the completion, on the disk's clock.
    pub at: Nanos,
    /// The outcome.
    pub status: Result<(), DiskError>,
}

impl<T> Completed<T> {
    /// Returns the time from the submission to the completion.
    pub fn latency(&self) -> Nanos {
        self.at.saturating_sub(self.submitted)
    }
}

/// The reason why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DiskError {
    /// The range exceeds the disk.
    #[error("the range is beyond the end of the disk")]
    OutOfRange,
    /// The disk has no space left.
    #[error("the disk has no space left")]
    NoSpace,
    /// The device reported an error.
    #[error(transparent)]
    Device(#[from] IoError),
}
