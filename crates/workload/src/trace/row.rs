//! Defines [`FormatRow`], the description of a trace format: how its lines or binary records are read and
//! written. Each format has one such row in its file.

use super::field::SECTOR_BYTES;
use super::record::{Line, Record, Unit};
use super::state::{ReaderState, TraceOptions};
use fulgurite_base::Nanos;

/// The layout of a format, and its parsers. The error of a parser is only the reason, without the file and
/// the line.
pub enum Shape {
    /// The file consists of lines of text.
    Lines {
        /// Parses a line without its surrounding white space.
        parse: fn(&[u8], &mut ReaderState) -> Result<Line, String>,
        /// A faster parser for the most usual lines of the format; `None` if there is none.
        plain: Option<PlainLines>,
    },
    /// The file consists of binary records, whose size follows from the first bytes of the file and the options.
    Records {
        /// Returns the size of a record in bytes, given the first bytes of the file.
        size: fn(&[u8], &TraceOptions) -> Result<usize, String>,
        /// Parses a binary record.
        parse: fn(&[u8], &mut ReaderState) -> Result<Line, String>,
    },
    /// The file consists of binary records of one size, each with further data behind it whose length it tells.
    /// There may be a header.
    Framed {
        /// Returns the sizes of the header and of a record, given the first bytes of the file. The error says that
        /// the file has another format.
        frame: fn(&[u8]) -> Result<Frame, String>,
        /// Returns the length of the further data behind a record, at most 2^16 bytes.
        rest: fn(&[u8]) -> usize,
        /// Parses a record without its further data.
        parse: fn(&[u8], &mut ReaderState) -> Result<Line, String>,
    },
}

/// The sizes of the parts of a binary file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The bytes before the first record.
    pub header: usize,
    /// The bytes of a record without its further data.
    pub record: usize,
}

/// Parses usual lines at the beginning of a text, at most the given number, and appends their records. Stops
/// before the first unusual line. Returns the number of bytes that were parsed.
pub type PlainLines = fn(&[u8], usize, &mut Vec<Record>) -> usize;

impl Shape {
    /// Returns the shape of a text format whose lines are parsed one by one.
    pub const fn lines(parse: fn(&[u8], &mut ReaderState) -> Result<Line, String>) -> Shape {
        Shape::Lines { parse, plain: None }
    }
}

/// The description of how a format is written.
pub struct Writer {
    /// The text before the first record.
    pub header: &'static str,
    /// Appends a record to a buffer, given the text of its volume and the time since the previous record. The
    /// error names the kind of records that the format cannot hold, if this record is one.
    pub record: fn(&Record, &str, Nanos, &mut Vec<u8>) -> Result<(), &'static str>,
    /// How volumes are written; `None` if the format has none. Then they are placed side by side.
    pub volumes: Option<VolumeColumn>,
    /// The text after the last record.
    pub footer: &'static str,
    /// The properties of records that the format cannot hold, although it can hold the records.
    pub loses: &'static [Loss],
}

/// The description of how a format writes volumes.
#[derive(Clone, Copy)]
pub struct VolumeColumn {
    /// Returns the text of a volume with this name; `None` if the format cannot hold the name.
    pub named: fn(&str) -> Option<String>,
    /// Returns the text of a volume with this number, counted from zero.
    pub numbered: fn(u64) -> String,
    /// Appends what precedes the first request to a volume, given its text and the time of the request.
    pub open: fn(&str, Nanos, &mut Vec<u8>),
    /// Appends what follows the last request to a volume, given its text.
    pub close: fn(&str, &mut Vec<u8>),
}

impl VolumeColumn {
    /// A column of numbers.
    pub const NUMBER: VolumeColumn = VolumeColumn {
        named: |name| {
            let is_number = name.bytes().all(|byte| byte.is_ascii_digit()) && name.parse::<u64>().is_ok();
            is_number.then(|| name.to_owned())
        },
        numbered: |number| number.to_string(),
        open: |_, _, _| {},
        close: |_, _| {},
    };
}

/// A property of records that a format cannot hold.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// The property in words, for users.
    pub what: &'static str,
    /// Whether a record has the property.
    pub of: fn(&Record) -> bool,
}

impl Loss {
    /// The parts of times below a second, which formats with times in whole seconds lose.
    pub const BELOW_1_S: Loss =
        Loss { what: "times below 1 s", of: |record| !record.at.0.is_multiple_of(1_000_000_000) };
    /// The parts of times below a microsecond, which formats with times in whole microseconds lose.
    pub const BELOW_1_US: Loss =
        Loss { what: "times below 1 µs", of: |record| !record.at.0.is_multiple_of(1_000) };
    /// The offset of a start in its sector, which formats with starts in sectors and lengths in bytes lose.
    pub const STARTS_IN_SECTORS: Loss =
        Loss { what: "starts inside a sector", of: |record| !record.start.is_multiple_of(SECTOR_BYTES) };
    /// Volumes, which formats without them lose. Their positions are moved, so that no two become one.
    pub const VOLUMES: Loss = Loss { what: "volumes", of: |record| record.volume > 1 };
    /// Lengths of 4 GiB and more, which formats with lengths of 32 bits lose.
    pub const LENGTHS_OF_4_GIB: Loss =
        Loss { what: "lengths of 4 GiB and more", of: |record| record.length > u32::MAX as u64 };
    /// Starts and ends inside a sector, which formats with starts and lengths in sectors lose.
    pub const PARTS_OF_SECTORS: Loss = Loss {
        what: "parts of sectors",
        of: |record| !(record.start | record.length).is_multiple_of(SECTOR_BYTES),
    };
}

/// The row of a format, with its name, its options, its parsers and its writer.
pub struct FormatRow {
    /// The name of the format, as after `--format`.
    pub name: &'static str,
    /// One line of text about the fields of a line of the trace and their units.
    pub about: &'static str,
    /// The unit of the format's positions and lengths.
    pub unit: Unit,
    /// The parts of file names that select the format. A part is the text between two dots, as `pages` in
    /// `x.pages.zst`. If several parts of a name select a format, the last one decides.
    pub name_parts: &'static [&'static str],
    /// Whether the content of a file alone can tell the format.
    pub is_told_by_content: bool,
    /// The keys of the [`TraceOptions`] that the format accepts. All formats accept
    /// [`TraceOptions::OF_ALL`] too.
    pub options: &'static [&'static str],
    /// The layout of the format and its parsers.
    pub shape: Shape,
    /// The writer of the format; `None` if it cannot be written record by record.
    pub writer: Option<Writer>,
}
