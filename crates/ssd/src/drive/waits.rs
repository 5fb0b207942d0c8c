//! Attributes the waiting time of a request to its causes, such as collection, a busy die or a busy channel.

use fulgurite_base::Nanos;

/// Parts of a request's response time, in nanoseconds: those in which it waited rather than being
/// served. Of a request with several flash operations, those of the last to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// While its die worked for collection or was kept free for it; of a write without a cache, also while it was
    /// not admitted because collection had to free a segment first. A cached write waits for that in the buffer.
    pub gc: u64,
    /// While its die worked for other requests.
    pub die: u64,
    /// For the channel of its die.
    pub channel: u64,
    /// Of a write, for room in the write buffer.
    pub buffer: u64,
}

/// A request that has ended, for statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Its tag.
    pub tag: fulgurite_device::Tag,
    /// When it was submitted.
    pub submitted: Nanos,
    /// What it waited for.
    pub waits: Waits,
}
