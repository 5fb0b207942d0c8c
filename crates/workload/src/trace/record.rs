//! The request of a trace, and what one line of a trace holds.

use crate::Op;
use fulgurite_base::Nanos;

/// One request of a trace, in the [`Unit`] of its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it arrived, counted from the first request; zero in formats without times.
    pub at: Nanos,
    /// What it does.
    pub op: Op,
    /// Its first byte or page.
    pub start: u64,
    /// How many bytes or pages from there on.
    pub length: u64,
}

/// What a format counts positions and lengths in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Bytes: a page size divides them into pages.
    Bytes,
    /// Pages of a size that the trace does not tell.
    Pages,
}

/// What one line or binary record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// A request, its time on the format's own clock.
    Request(Record),
    /// Something that is not a request to a page, for the reason given: left out and counted.
    Skip(&'static str),
    /// A comment, a header or nothing: left out.
    Nothing,
}
