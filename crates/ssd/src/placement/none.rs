//! No placement: one stream for host writes and copies alike.
//!
//! The baseline of every study of placement. Hot and cold pages share segments, so that skewed
//! traffic costs more copies than it need.

use super::WriteContext;
use fulgurite_device::StreamId;

/// How many streams there are.
pub(super) const STREAMS: u16 = 1;

/// Always the one stream.
#[inline]
pub(super) fn stream(_: &WriteContext) -> StreamId {
    StreamId(0)
}
