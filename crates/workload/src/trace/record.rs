//! The requests of a trace, and the result of parsing a line.

use crate::Op;
use fulgurite_base::Nanos;

/// One request of a trace, in the [`Unit`] of its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The arrival time since the first request; zero in formats without times.
    pub at: Nanos,
    /// The operation of the request.
    pub op: Op,
    /// The number of the volume (disk, device, file) that the request is to: from one on, in the order of
    /// first appearance. Zero in formats without volumes. Equal positions of two volumes are two places.
    pub volume: u32,
    /// The position of the first byte or page in its volume.
    pub start: u64,
    /// The number of bytes or pages that the request covers.
    pub length: u64,
}

impl Record {
    /// Creates a request without a volume.
    #[inline]
    pub const fn new(at: Nanos, op: Op, start: u64, length: u64) -> Record {
        Record { at, op, volume: 0, start, length }
    }
}

/// The unit of the positions and lengths in a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// The unit is bytes; a page size turns them into pages.
    Bytes,
    /// The unit is pages; the trace does not state their size.
    Pages,
}

/// The result of parsing a line or binary record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// A request, whose time is on the format's own clock.
    Request(Record),
    /// The line is not a request for pages, for this reason. It is skipped and counted.
    Skip(&'static str),
    /// The line is a comment, a header or empty. It is skipped without being counted.
    Nothing,
}
