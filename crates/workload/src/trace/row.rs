//! The description of a trace format: how its lines or binary records are read and written.

use super::field::SECTOR_BYTES;
use super::record::{Line, Record, Unit};
use super::state::ReaderState;
use fulgurite_base::Nanos;

/// The layout of a format, and its parsers. A parser's error is only the reason, without file and line.
pub enum Shape {
    /// Lines of text.
    Lines {
        /// Parses a line without its surrounding white space.
        parse: fn(&[u8], &mut ReaderState) -> Result<Line, String>,
        /// A faster parser for the most usual lines of the format.
        plain: Option<PlainLines>,
    },
    /// Binary records, whose size follows from the first bytes of the file.
    Records {
        /// Returns the bytes of a record.
        size: fn(&[u8]) -> Result<usize, String>,
        /// Parses a record.
        parse: fn(&[u8], &mut ReaderState) -> Result<Line, String>,
    },
}

/// Parses usual lines at the beginning of a text, at most the given number, and appends their records. It
/// stops before the first unusual line and returns the number of bytes that it has read.
pub type PlainLines = fn(&[u8], usize, &mut Vec<Record>) -> usize;

impl Shape {
    /// Lines that are parsed one by one.
    pub const fn lines(parse: fn(&[u8], &mut ReaderState) -> Result<Line, String>) -> Shape {
        Shape::Lines { parse, plain: None }
    }
}

/// How a format is written.
pub struct Writer {
    /// The text before all records.
    pub header: &'static str,
    /// Appends a record, given the time since the previous one. Returns `None` if the format cannot hold the record.
    pub record: fn(&Record, Nanos, &mut Vec<u8>) -> Option<()>,
    /// The text after all records.
    pub footer: &'static str,
    /// The properties of records that the format cannot hold.
    pub loses: &'static [Loss],
}

/// A property of records that a format cannot hold.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// The property in words.
    pub what: &'static str,
    /// Whether a record has the property.
    pub of: fn(&Record) -> bool,
}

impl Loss {
    /// For formats with times in whole seconds.
    pub const BELOW_1_S: Loss =
        Loss { what: "times below 1 s", of: |record| !record.at.0.is_multiple_of(1_000_000_000) };
    /// For formats with times in whole microseconds.
    pub const BELOW_1_US: Loss =
        Loss { what: "times below 1 µs", of: |record| !record.at.0.is_multiple_of(1_000) };
    /// For formats with starts in sectors and lengths in bytes.
    pub const STARTS_IN_SECTORS: Loss =
        Loss { what: "starts inside a sector", of: |record| !record.start.is_multiple_of(SECTOR_BYTES) };
    /// For formats with starts and lengths in sectors.
    pub const PARTS_OF_SECTORS: Loss = Loss {
        what: "parts of sectors",
        of: |record| !(record.start | record.length).is_multiple_of(SECTOR_BYTES),
    };
}

/// The properties of a format.
pub struct FormatRow {
    /// Its name, as after `--format`.
    pub name: &'static str,
    /// One line about the fields of the file's lines and their units.
    pub about: &'static str,
    /// The unit of its positions and lengths.
    pub unit: Unit,
    /// A file name with one of these parts between its dots selects the format: `x.pages.zst`. The last such
    /// part counts.
    pub name_parts: &'static [&'static str],
    /// Whether the format can be recognised by the content alone.
    pub is_told_by_content: bool,
    /// The keys of the [`TraceOptions`](super::TraceOptions) that it accepts. All formats accept `objects`
    /// too.
    pub options: &'static [&'static str],
    /// Its layout and its parsers.
    pub shape: Shape,
    /// Its writer, if it can be written record by record.
    pub writer: Option<Writer>,
}
