//! The requests of a trace, and the parsed lines of a trace.

use crate::Op;
use fulgurite_base::Nanos;

/// One request of a trace, in the [`Unit`] of its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The arrival time since the first request; zero in formats without times.
    pub at: Nanos,
    /// The operation.
    pub op: Op,
    /// The first byte or page.
    pub start: u64,
    /// The number of bytes or pages.
    pub length: u64,
}

/// The unit of a format's positions and lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Bytes; a page size turns them into pages.
    Bytes,
    /// Pages; the trace does not have their size.
    Pages,
}

/// A parsed line or binary record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// A request; its time is on the format's own clock.
    Request(Record),
    /// Not a request for pages, for this reason; it is skipped and counted.
    Skip(&'static str),
    /// A comment, a header or an empty line; it is skipped.
    Nothing,
}
