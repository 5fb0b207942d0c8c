//! Reads the format `columns`: any text with a request per line whose fields are in columns. Its options say which
//! column holds what, as in `columns:time=1,op=3,offset=5,length=6,volume=2,unit=us`.
//!
//! A column is named by its number, from one on, or by its name in the header line. Only `offset` is needed.
//! Without `time` there are no times; without `op` the option `write_share` applies; without `length` a request
//! has the length of one unit of offsets. The separator is guessed from the first line: a comma, a tab, a
//! semicolon, a bar, or any white space. Fields may stand in double quotes. An operation is spelled R, RD, read,
//! 0 or false, W, WR, write, 1 or true, T, D, trim, discard or unmap, in any case; `write=` names another
//! spelling of a write, and then 0, 1, true and false are reads. The reader tells how it understood the first
//! three requests.

use super::disksim::scaled_time;
use super::field::{number, quote};
use super::fio2::word;
use super::record::{Line, Record, Unit};
use super::row::{FormatRow, Shape};
use super::state::{Columns, ReaderState, TimeUnit};
use crate::Op;
use fulgurite_base::Nanos;

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
    /// The number of requests that were read.
    requests: u64,
}

fn parse(line: &[u8], state: &mut ReaderState) -> Result<Line, String> {
    let mut layout = match state.kept.take().and_then(|kept| kept.downcast::<Layout>().ok()) {
        Some(layout) => layout,
        None => {
            // In this format the option names the column of the volumes, and no volume.
            let volume = state.options.volume.take();
            Box::new(Layout::new(Columns { volume, ..state.options.columns.clone() })?)
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
    fn new(asked: Columns) -> Result<Layout, String> {
        if asked.offset.is_none() {
            return Err("columns needs offset=, the number or the name of the column of positions".to_owned());
        }
        let separator = asked.sep.as_deref().map(separator).transpose()?.flatten();
        Ok(Layout { asked, at: [None; 5], header: None, is_known: false, separator, requests: 0 })
    }

    /// The columns as they were asked for, in the order of `at`.
    fn named(&self) -> [(&'static str, Option<&str>); 5] {
        let Columns { time, op, offset, length, volume, .. } = &self.asked;
        [("time", time), ("op", op), ("offset", offset), ("length", length), ("volume", volume)]
            .map(|(what, column)| (what, column.as_deref()))
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
        let all = fields(line, self.separator);
        let mut found = [None; 5];
        for ((found, at), (what, _)) in found.iter_mut().zip(self.at).zip(self.named()) {
            let Some(at) = at else { continue };
            *found = Some(*all.get(at).ok_or_else(|| {
                format!("{} has {} fields, and {what} is in column {}", quote(line), all.len(), at + 1)
            })?);
        }
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
        let start = number("offset", offset.unwrap_or_default(), u64::MAX / offset_unit)? * offset_unit;
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
        // Without names, the first line is a header if the column of offsets begins with a letter.
        let offset = at[2].and_then(|at| names.get(at)).and_then(|field| field.first());
        let is_header =
            has_names || state.number <= self.asked.header || offset.is_some_and(u8::is_ascii_alphabetic);
        self.is_known = has_names || state.number >= self.asked.header;
        if is_header {
            self.header = Some(line.to_ascii_lowercase());
        }
        Ok(is_header)
    }
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
    if is(&["r", "rd", "read", "0", "false"]) {
        Ok(Op::Read)
    } else if is(&["w", "wr", "write", "1", "true"]) {
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
