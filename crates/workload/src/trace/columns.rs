//! Reads the format `columns`: any text with a request per line whose fields are in columns. Its options say which
//! column holds what, as in `columns:time=1,op=3,offset=5,length=6,volume=2,unit=us`.
//!
//! A regular expression stands in for the columns where no separator will do, as in
//! `columns:regex="^(?<time>\S+) .* (?<op>[RW])(?<offset>\d+)"`. Lines that it does not match are left out.
//!
//! A column is named by its number, from one on, or by its name in the header line. Only `offset` is needed.
//! Without `time` there are no times; without `op` the option `write_share` applies; without `length` a request
//! has the length of one unit of offsets. The separator is guessed from the first line: a comma, a tab, a
//! semicolon, a bar, or any white space. Fields may stand in double quotes. An operation is spelled R, RD, read,
//! L, load, 0 or false, W, WR, write, S, store, 1 or true, T, D, trim, discard or unmap, in any case; `write=` names
//! another spelling of a write, and then 0, 1, true and false are reads. A position after `0x` is in hexadecimal
//! digits, and with `hex=yes` every position is. With `names=yes` a position is any text that names an object, as
//! in traces of caches of keys and URLs; then `header=1` tells a header, since it looks like a name. The reader tells
//! how it understood the first three requests. A regular expression reads half a million lines a second, and columns
//! several millions.

use super::disksim::scaled_time;
use super::field::{hex_number, number, number_or_hex, quote};
use super::fio2::word;
use super::record::{Line, Record, Unit};
use super::row::{FormatRow, Shape};
use super::state::{Columns, ReaderState, TimeUnit};
use crate::Op;
use fulgurite_base::{Nanos, PageId};
use regex_lite::Regex;

pub(super) static FORMAT: FormatRow = FormatRow {
    name: "columns",
    about: "any columns, as columns:time=1,op=3,offset=5,length=6,unit=us says; by number or name in the header",
    unit: Unit::Bytes,
    name_parts: &["columns"],
    is_told_by_content: false,
    options: &[
        "time",
        "op",
        "offset",
        "length",
        "volume",
        "unit",
        "offset_unit",
        "length_unit",
        "sep",
        "header",
        "skip",
        "write",
        "hex",
        "names",
        "regex",
        "write_share",
    ],
    shape: Shape::lines(parse),
    // The reader accepts any columns, so there is no form to write.
    writer: None,
};

/// The number of requests that the reader tells.
const TOLD: u64 = 3;

/// The columns of a trace, as far as they are known.
struct Layout {
    asked: Columns,
    /// The columns of the time, operation, offset, length and volume, from zero on.
    at: [Option<usize>; 5],
    /// The header line, in lower case. Files that were put behind each other repeat it.
    header: Option<Vec<u8>>,
    /// Whether `at` is known.
    is_known: bool,
    /// The separator; `None` for white space.
    separator: Option<u8>,
    /// The regular expression that stands in for the columns.
    regex: Option<Regex>,
    /// The number of requests that were read.
    requests: u64,
}

/// The names of the columns, in the order of [`Layout::at`].
const NAMES: [&str; 5] = ["time", "op", "offset", "length", "volume"];

fn parse(line: &[u8], state: &mut ReaderState) -> Result<Line, String> {
    let mut layout = match state.kept.take().and_then(|kept| kept.downcast::<Layout>().ok()) {
        Some(layout) => layout,
        None => {
            // In this format the option names the column of the volumes, and no volume.
            let volume = state.options.volume.take();
            let asked = Columns { volume, ..state.options.columns.clone() };
            Box::new(Layout::new(asked, state.options.objects)?)
        }
    };
    let outcome = layout.parse(line, state);
    state.kept = Some(layout);
    outcome
}

/// Returns the fields of a line, without white space and quotes around them.
fn fields(line: &[u8], separator: Option<u8>) -> Vec<&[u8]> {
    let mut is_quoted = false;
    let is_end = |byte: &u8| {
        is_quoted ^= *byte == b'"';
        !is_quoted && separator.map_or(byte.is_ascii_whitespace(), |separator| *byte == separator)
    };
    let bare = |field: &'_ [u8]| -> bool { !field.is_empty() || separator.is_some() };
    let unquoted = |field: &'_ [u8]| {
        let field = field.trim_ascii();
        let start = usize::from(field.len() > 1 && field[0] == b'"' && field.ends_with(b"\""));
        start..field.len() - start
    };
    let all = line.split(is_end).filter(|field| bare(field));
    all.map(|field| &field.trim_ascii()[unquoted(field)]).collect()
}

impl Layout {
    fn new(asked: Columns, objects: bool) -> Result<Layout, String> {
        if asked.names && !objects {
            return Err("names=yes makes requests for objects; give objects=yes as well".to_owned());
        }
        let regex = asked.regex.as_deref().map(regex).transpose()?;
        let separator = asked.sep.as_deref().map(separator).transpose()?.flatten();
        let is_known = regex.is_some();
        let layout = Layout { asked, at: [None; 5], header: None, is_known, separator, regex, requests: 0 };
        let column = layout.named().iter().find_map(|(what, column)| column.map(|_| *what));
        match (&layout.regex, column) {
            (Some(_), Some(what)) => {
                Err(format!("{what}= does not go with regex=, whose group (?<{what}>…) is that column"))
            }
            (Some(_), None) if layout.asked.sep.is_some() || layout.asked.header > 0 => Err(
                "sep= and header= do not go with regex=, which leaves out the lines that it does not match"
                    .to_owned(),
            ),
            (None, _) if layout.asked.offset.is_none() => {
                Err("columns needs offset=, the number or the name of the column of positions, or regex="
                    .to_owned())
            }
            _ => Ok(layout),
        }
    }

    /// The columns as they were asked for, in the order of `at`.
    fn named(&self) -> [(&'static str, Option<&str>); 5] {
        let Columns { time, op, offset, length, volume, .. } = &self.asked;
        let mut columns = [time, op, offset, length, volume].into_iter();
        NAMES.map(|what| (what, columns.next().and_then(Option::as_deref)))
    }

    fn parse(&mut self, line: &[u8], state: &mut ReaderState) -> Result<Line, String> {
        let is_comment = self.asked.skip.as_ref().is_some_and(|skip| line.starts_with(skip.as_bytes()));
        if line.is_empty() || is_comment {
            return Ok(Line::Nothing);
        }
        if !self.is_known && self.begin(line, state)? {
            return Ok(Line::Nothing);
        }
        if self.header.as_ref().is_some_and(|header| line.eq_ignore_ascii_case(header)) {
            return Ok(Line::Nothing);
        }
        if let Some(regex) = &self.regex {
            let text = String::from_utf8_lossy(line);
            let Some(groups) = regex.captures(&text) else {
                return Ok(Line::Skip("a line that the regular expression does not match"));
            };
            let found = NAMES.map(|name| groups.name(name).map(|group| group.as_str().trim().as_bytes()));
            return self.request(found, state);
        }
        let all = fields(line, self.separator);
        let mut found = [None; 5];
        for ((found, at), (what, _)) in found.iter_mut().zip(self.at).zip(self.named()) {
            let Some(at) = at else { continue };
            *found = Some(*all.get(at).ok_or_else(|| {
                format!("{} has {} fields, and {what} is in column {}", quote(line), all.len(), at + 1)
            })?);
        }
        self.request(found, state)
    }

    /// Returns the request with these fields, which are in the order of [`NAMES`].
    fn request(&mut self, found: [Option<&[u8]>; 5], state: &mut ReaderState) -> Result<Line, String> {
        let [at, op, offset, length, volume] = found;
        let unit = self.asked.unit.unwrap_or(TimeUnit::Seconds);
        let at = at.map_or(Ok(Nanos::ZERO), |field| scaled_time(field, unit))?;
        let op = match op {
            Some(field) => operation(field, self.asked.write.as_deref())?,
            None if state.draw_write() => Op::Write,
            None => Op::Read,
        };
        let offset_unit = self.asked.offset_unit;
        let length_unit = self.asked.length_unit.unwrap_or(offset_unit);
        let offset = offset.unwrap_or_default();
        let start = match (self.asked.names, self.asked.hex) {
            (true, _) => named_object(offset),
            (_, true) if !offset.starts_with(b"0x") => {
                hex_number("offset", offset, u64::MAX / offset_unit)? * offset_unit
            }
            _ => number_or_hex("offset", offset, u64::MAX / offset_unit)? * offset_unit,
        };
        let length = match length {
            Some(field) => number("length", field, u64::MAX / length_unit)? * length_unit,
            None => length_unit,
        };
        self.requests += 1;
        if self.requests <= TOLD {
            state.decide(format!(
                "line {}: {} of {length} bytes at {start}, time {} ns",
                state.number,
                word(op),
                at.0
            ));
        }
        let record = Record::new(at, op, start, length);
        volume.map_or(Ok(Line::Request(record)), |volume| state.request(volume, record))
    }

    /// Finds the separator and the columns in the first line. Returns whether it is a header.
    fn begin(&mut self, line: &[u8], state: &ReaderState) -> Result<bool, String> {
        if self.asked.sep.is_none() {
            self.separator = [b',', b'\t', b';', b'|'].into_iter().find(|byte| line.contains(byte));
        }
        let names = fields(line, self.separator);
        let mut has_names = false;
        let named = self.named();
        let mut at = [None; 5];
        for (at, (what, column)) in at.iter_mut().zip(named) {
            let Some(column) = column else { continue };
            *at = Some(match column.parse::<usize>() {
                Ok(0) => return Err(format!("{what}=0: columns are counted from 1")),
                Ok(number) => number - 1,
                Err(_) => {
                    has_names = true;
                    let is_it = |name: &&[u8]| name.eq_ignore_ascii_case(column.as_bytes());
                    names.iter().position(is_it).ok_or_else(|| {
                        let known: Vec<String> = names.iter().map(|name| quote(name)).collect();
                        format!("{what}={column}: the header has no such column; it has {}", known.join(" "))
                    })?
                }
            });
        }
        self.at = at;
        // Without names of columns, the first line is a header if its offset cannot be one. A name of an object can.
        let offset = at[2].and_then(|at| names.get(at)).copied().unwrap_or_default();
        let is_position = self.asked.names || self.asked.hex && offset.iter().all(u8::is_ascii_hexdigit);
        let is_title = offset.first().is_some_and(u8::is_ascii_alphabetic) && !is_position;
        let is_header = has_names || state.number <= self.asked.header || is_title;
        self.is_known = has_names || state.number >= self.asked.header;
        if is_header {
            self.header = Some(line.to_ascii_lowercase());
        }
        Ok(is_header)
    }
}

/// Returns the number of the object with a name: a hash of 64 bits (FNV-1a, mixed).
fn named_object(name: &[u8]) -> u64 {
    let hash = name.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    PageId(hash).mixed()
}

/// Compiles a regular expression, which must have a group `offset`, and no groups of other names than [`NAMES`].
fn regex(pattern: &str) -> Result<Regex, String> {
    let regex = Regex::new(pattern).map_err(|error| format!("regex={pattern} is wrong: {error}"))?;
    let groups = || regex.capture_names().flatten();
    if let Some(other) = groups().find(|group| !NAMES.contains(group)) {
        return Err(format!("regex: the group {other} is unknown; known: {}", NAMES.join(" ")));
    }
    if !groups().any(|group| group == "offset") {
        return Err(format!("regex={pattern} has no group (?<offset>…), which holds the position"));
    }
    Ok(regex)
}

/// Returns the separator that an option names; `None` for white space.
fn separator(text: &str) -> Result<Option<u8>, String> {
    match (text, text.as_bytes()) {
        ("comma", _) => Ok(Some(b',')),
        ("tab", _) => Ok(Some(b'\t')),
        ("space", _) => Ok(None),
        (_, [byte]) => Ok(Some(*byte)),
        _ => Err(format!("sep={text} is no separator; accepted: comma, tab, space, or one character")),
    }
}

/// Returns the operation that a field spells. `write` is the only spelling of a write, if it is given.
fn operation(field: &[u8], write: Option<&str>) -> Result<Op, String> {
    if let Some(write) = write {
        if field.eq_ignore_ascii_case(write.as_bytes()) {
            return Ok(Op::Write);
        }
        if matches!(field, b"0" | b"1")
            || [&b"true"[..], b"false"].iter().any(|word| field.eq_ignore_ascii_case(word))
        {
            return Ok(Op::Read);
        }
    }
    let is = |words: &[&str]| words.iter().any(|word| field.eq_ignore_ascii_case(word.as_bytes()));
    if is(&["r", "rd", "read", "l", "load", "0", "false"]) {
        Ok(Op::Read)
    } else if is(&["w", "wr", "write", "s", "store", "1", "true"]) {
        Ok(Op::Write)
    } else if is(&["t", "d", "trim", "discard", "unmap"]) {
        Ok(Op::Trim)
    } else {
        Err(format!(
            "operation {} is unknown; R, W, read, write, 0, 1 and others are, or give write=",
            quote(field)
        ))
    }
}
