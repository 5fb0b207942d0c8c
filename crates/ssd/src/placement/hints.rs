//! Placement by the host's hints: multi-stream writes (NVMe directives), or flexible data placement
//! with persistently isolated handles.
//!
//! Hints that exceed the streams wrap round. Copies stay in the stream of the segment they come from,
//! so that what the host kept apart is never mixed by collection. O(1).

use super::WriteContext;
use fulgurite_device::StreamId;

/// The hint's stream, or the victim's.
#[inline]
pub(super) fn stream(context: &WriteContext, streams: u16) -> StreamId {
    StreamId(context.hint.0 % streams)
}
