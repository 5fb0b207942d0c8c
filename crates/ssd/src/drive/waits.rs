//! Attributes the waiting time of a request to its causes, such as collection, a busy die or a busy channel.

use fulgurite_base::Nanos;

/// The waiting times within a request's response time, in nanoseconds. For a request with several flash
/// operations, they are those of the operation that ends last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// The wait while its die worked for collection or was reserved for it. For a write without a cache, also
    /// the wait for collection to free a segment; a cached write waits for that in the buffer, after its
    /// answer.
    pub gc: u64,
    /// The wait while its die worked for other requests.
    pub die: u64,
    /// The wait for the channel of its die.
    pub channel: u64,
    /// The wait of a write for room in the write buffer, and of any request for a slot of the firmware behind
    /// such writes.
    pub buffer: u64,
}

/// The kind of a request, for statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedKind {
    /// A read.
    Read,
    /// A write, or a share of pages.
    Write,
    /// A trim or a flush.
    Other,
}

/// The record of a completed request, for statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// The tag of the request.
    pub tag: fulgurite_device::Tag,
    /// The kind of the request.
    pub kind: ServedKind,
    /// The virtual time at which the request was submitted.
    pub submitted: Nanos,
    /// The waiting times of the request.
    pub waits: Waits,
}
