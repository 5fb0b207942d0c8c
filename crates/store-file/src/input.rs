//! Reads records from CSV.

use crate::text;
use csv::{ByteRecord, ReaderBuilder};
use fulgurite_files::obstacle;
use fulgurite_stack::StackError;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;

/// Bytes that the parser may read beyond the end of a CSV row.
const AHEAD: u64 = 1 << 20;

/// A record of the input, and the number of its first line.
pub(crate) struct Line {
    pub number: u64,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

/// An input of CSV rows `key,value`.
pub(crate) struct Input {
    /// The name of the input in error messages.
    name: String,
    /// The length of the input in bytes; `None` for standard input and for a file that is not a regular one.
    pub bytes: Option<u64>,
    reader: csv::Reader<Limited>,
    row: ByteRecord,
    state: Rc<State>,
}

/// The state that [`Input`] shares with the reader below the CSV parser.
#[derive(Default)]
struct State {
    /// Bytes that the parser may still read before the next CSV row must be complete.
    left: Cell<u64>,
    /// Whether an odd number of quotes was read so far, so that a quote is open.
    is_quoted: Cell<bool>,
    /// Whether the end of the input was reached.
    is_ended: Cell<bool>,
}

/// A reader that fails if a CSV row does not end. Without this limit, an open quote would read the rest of
/// the file into memory.
struct Limited {
    input: Box<dyn Read>,
    state: Rc<State>,
}

impl Read for Limited {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = self.input.read(into)?;
        self.state.is_ended.set(len == 0);
        let left = self.state.left.get().checked_sub(len as u64).ok_or_else(|| {
            // The parser returns no other error of this kind, because it accepts bytes that are not UTF-8.
            io::Error::new(
                io::ErrorKind::InvalidData,
                "a row is longer than the log takes; is a quote opened and not closed? accepted: a shorter row, or \
                    a new store with a larger --log",
            )
        })?;
        self.state.left.set(left);
        let quotes = into[..len].iter().filter(|byte| **byte == b'"').count();
        self.state.is_quoted.set(self.state.is_quoted.get() != (quotes % 2 == 1));
        Ok(len)
    }
}

impl Input {
    /// Opens a file, or standard input for `-` and `None`. If `has_header`, the first CSV row is skipped.
    pub(crate) fn open(from: Option<&Path>, has_header: bool) -> Result<Input, StackError> {
        let from = from.filter(|path| *path != Path::new("-"));
        let state = Rc::new(State::default());
        let (name, bytes, input): (String, Option<u64>, Box<dyn Read>) = match from {
            None => ("standard input".to_owned(), None, Box::new(io::stdin())),
            Some(path) => {
                let (file, bytes) = open_file(path)?;
                (path.display().to_string(), bytes, Box::new(file))
            }
        };
        let limited = Limited { input, state: Rc::clone(&state) };
        // Accept CSV rows with any number of fields here, since `next` refuses them with a better error
        // message.
        let reader = ReaderBuilder::new().has_headers(has_header).flexible(true).from_reader(limited);
        Ok(Input { name: format!("--from {name}"), bytes, reader, row: ByteRecord::new(), state })
    }

    /// Reads the next record; `None` at the end. A CSV row has at most `most` bytes.
    pub(crate) fn next(&mut self, most: u64) -> Result<Option<Line>, StackError> {
        self.state.left.set(most.saturating_add(AHEAD));
        let line = self.reader.position().line();
        let is_row =
            self.reader.read_byte_record(&mut self.row).map_err(|error| match error.into_kind() {
                csv::ErrorKind::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
                    StackError::request(format!("{}, line {line}: {error}", self.name))
                }
                csv::ErrorKind::Io(error) => StackError::run(format!("{}, line {line}: {error}", self.name)),
                other => StackError::run(format!("{}, line {line}: {other:?}", self.name)),
            })?;
        if !is_row {
            return Ok(None);
        }
        let number = self.row.position().map_or(line, csv::Position::line);
        let (Some(key), Some(value), 2) = (self.row.get(0), self.row.get(1), self.row.len()) else {
            let fields = self.row.len();
            return Err(
                self.refused(number, &format!("fields in the row: {fields}; accepted: two, key,value"))
            );
        };
        // The parser takes the end of the input as the end of a quote, so a value with an open quote may
        // contain several CSV rows.
        if self.state.is_ended.get() && self.state.is_quoted.get() && value.contains(&b'\n') {
            return Err(self.refused(number, "a quote is opened and not closed; accepted: \"...\""));
        }
        let read = |field| text::unescape(field).map_err(|what| self.refused(number, &what));
        Ok(Some(Line { number, key: read(key)?, value: read(value)? }))
    }

    /// Returns the error for a line of the input.
    pub(crate) fn refused(&self, line: u64, what: &str) -> StackError {
        StackError::request(format!("{}, line {line}: {what}", self.name))
    }
}

fn open_file(path: &Path) -> Result<(File, Option<u64>), StackError> {
    let refused = |what: String| {
        let path = path.display();
        StackError::request(format!("--from {path}: {what}; accepted: a file of key,value rows, or -"))
    };
    let file = File::open(path).map_err(|error| refused(obstacle(path, &error)))?;
    let metadata = file.metadata().map_err(|error| refused(obstacle(path, &error)))?;
    if metadata.is_dir() {
        return Err(refused("it is a folder".to_owned()));
    }
    Ok((file, metadata.is_file().then_some(metadata.len())))
}
