//! The description of a trace format: how its lines or records are read and written.

use super::field::SECTOR_BYTES;
use super::record::{Line, Record, Unit};
use super::state::ReaderState;
use fulgurite_base::Nanos;

/// How a format is laid out, and how its pieces are understood. The error is the reason alone.
pub enum Shape {
    /// Lines, given without surrounding white space. Where most lines of a format are `plain`, those at the
    /// beginning of a text are read together, as many as are plain and asked for; it returns their bytes.
    Lines {
        /// Understands a line.
        parse: fn(&[u8], &mut ReaderState) -> Result<Line, String>,
        /// Reads plain lines.
        plain: Option<PlainLines>,
    },
    /// Records of a size that the first bytes of the file tell.
    Records {
        /// The bytes of a record.
        size: fn(&[u8]) -> Result<usize, String>,
        /// Understands a record.
        parse: fn(&[u8], &mut ReaderState) -> Result<Line, String>,
    },
}

/// Reads plain lines; see [`Shape::Lines`].
pub type PlainLines = fn(&[u8], usize, &mut Vec<Record>) -> usize;

impl Shape {
    /// Lines that are read one by one.
    pub const fn lines(parse: fn(&[u8], &mut ReaderState) -> Result<Line, String>) -> Shape {
        Shape::Lines { parse, plain: None }
    }
}

/// How a format is written.
pub struct Writer {
    /// What comes before all records.
    pub header: &'static str,
    /// Appends a record, given the time since the one before.
    pub record: fn(&Record, Nanos, &mut Vec<u8>) -> Result<(), &'static str>,
    /// What comes after them.
    pub footer: &'static str,
    /// What of some records the format cannot hold.
    pub loses: &'static [Loss],
}

/// Something that a format cannot hold of a record.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// In words.
    pub what: &'static str,
    /// Whether a record has that.
    pub of: fn(&Record) -> bool,
}

impl Loss {
    /// Of formats whose times count whole seconds.
    pub const BELOW_1_S: Loss =
        Loss { what: "times below 1 s", of: |record| !record.at.0.is_multiple_of(1_000_000_000) };
    /// Of formats whose times count whole microseconds.
    pub const BELOW_1_US: Loss =
        Loss { what: "times below 1 µs", of: |record| !record.at.0.is_multiple_of(1_000) };
    /// Of formats that begin a request with a sector and count bytes from there.
    pub const STARTS_IN_SECTORS: Loss =
        Loss { what: "starts inside a sector", of: |record| !record.start.is_multiple_of(SECTOR_BYTES) };
    /// Of formats that count sectors.
    pub const PARTS_OF_SECTORS: Loss = Loss {
        what: "parts of sectors",
        of: |record| !(record.start | record.length).is_multiple_of(SECTOR_BYTES),
    };
}

/// All that the reader knows of a format.
pub struct FormatRow {
    /// Its name, as after `--format`.
    pub name: &'static str,
    /// One line: what a line of the file holds, and in which units.
    pub about: &'static str,
    /// What its positions and lengths count.
    pub unit: Unit,
    /// The format is told from a file name with one of these between its dots: `x.pages.zst`. The last one counts.
    pub name_parts: &'static [&'static str],
    /// Whether the content alone tells it from the others.
    pub is_told_by_content: bool,
    /// Those of [`TraceOptions`] that it accepts, by key, besides `objects`, which all accept.
    pub options: &'static [&'static str],
    /// How it is laid out.
    pub shape: Shape,
    /// How it is written, if record by record.
    pub writer: Option<Writer>,
}
