//! Attributes the waiting time of a request to its causes, such as collection, a busy die or a busy channel.

use fulgurite_base::Nanos;

/// The waiting times within a request's response time, in nanoseconds. For a request with several flash
/// operations, those of the last one to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// While its die worked for collection or was reserved for it. For a write without a cache, also while it
    /// waited for collection to free a segment; a cached write waits for that in the buffer.
    pub gc: u64,
    /// While its die worked for other requests.
    pub die: u64,
    /// For the channel of its die.
    pub channel: u64,
    /// For room in the write buffer; writes only.
    pub buffer: u64,
}

/// A completed request, for statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Its tag.
    pub tag: fulgurite_device::Tag,
    /// When it was submitted.
    pub submitted: Nanos,
    /// Its waiting times.
    pub waits: Waits,
}
