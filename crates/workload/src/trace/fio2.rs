//! Reads and writes the format `fio2`, the I/O log of fio, version 2.
//!
//! The source is fio's HOWTO, "Trace file format v2". The first line is `fio version 2 iolog`. The lines
//! after it are `file add|open|close`, `file read|write|trim|sync|datasync offset length` in bytes, and `file
//! wait time` in microseconds. A file is a volume.

use super::field::{number, quote};
use super::record::{Line, Record, Unit};
use super::row::{FormatRow, Loss, Shape, VolumeColumn, Writer};
use super::state::ReaderState;
use crate::Op;
use fulgurite_base::Nanos;
use std::io::Write as _;

pub(super) static FORMAT: FormatRow = FormatRow {
    name: "fio2",
    about: "fio's I/O log, version 2: `file read|write|trim offset length`, `file wait time`; in bytes and µs",
    unit: Unit::Bytes,
    name_parts: &["fio2"],
    is_told_by_content: true,
    options: &["volume"],
    shape: Shape::lines(parse),
    writer: Some(Writer {
        header: "fio version 2 iolog\n",
        record: write,
        volumes: Some(FILES),
        footer: "",
        loses: &[Loss::BELOW_1_US],
    }),
};

const FILES: VolumeColumn = VolumeColumn {
    named: file_name,
    numbered: |number| if number == 0 { "trace".to_owned() } else { format!("trace.{number}") },
    open: |file, _, out| out.extend(format!("{file} add\n{file} open\n").bytes()),
    close: |file, out| out.extend(format!("{file} close\n").bytes()),
};

/// Returns the name of a file in a log, which has no white space.
pub(super) fn file_name(name: &str) -> Option<String> {
    (!name.is_empty() && !name.contains(char::is_whitespace)).then(|| name.to_owned())
}

fn parse(line: &[u8], state: &mut ReaderState) -> Result<Line, String> {
    match line {
        [] => return Ok(Line::Nothing),
        _ if line.eq_ignore_ascii_case(b"fio version 2 iolog") => return Ok(Line::Nothing),
        // Only the first line distinguishes the versions of the log, so it must be present.
        _ if state.number == 1 => {
            return Err(format!("{} is not the first line of the log, `fio version 2 iolog`", quote(line)));
        }
        _ => {}
    }
    let mut parts = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let (file, action) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if action == b"wait" {
        let wait = number("wait", parts.next().unwrap_or_default(), u64::MAX / 1_000)? * 1_000;
        state.clock =
            Nanos(state.clock.0.checked_add(wait).ok_or("the waits exceed 64 bits of nanoseconds")?);
        return Ok(Line::Nothing);
    }
    let at = state.clock;
    request(file, action, parts, at, state)
}

/// Parses the fields of a line after the file name, which are the same in versions 2 and 3.
pub(super) fn request<'a>(
    file: &[u8],
    action: &[u8],
    mut parts: impl Iterator<Item = &'a [u8]>,
    at: Nanos,
    state: &mut ReaderState,
) -> Result<Line, String> {
    let op = match action {
        b"add" | b"open" | b"close" => return Ok(Line::Nothing),
        b"sync" | b"datasync" => return Ok(Line::Skip("a sync")),
        b"read" => Op::Read,
        b"write" => Op::Write,
        b"trim" => Op::Trim,
        _ => {
            let known = "add open close read write trim sync datasync";
            return Err(format!("action {} is unknown; known: {known}", quote(action)));
        }
    };
    let start = number("offset", parts.next().unwrap_or_default(), u64::MAX)?;
    let length = number("length", parts.next().unwrap_or_default(), u64::MAX)?;
    state.request(file, Record::new(at, op, start, length))
}

pub(super) fn word(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Trim => "trim",
    }
}

fn write(record: &Record, volume: &str, since: Nanos, out: &mut Vec<u8>) -> Result<(), &'static str> {
    // The wait is a difference of two times that are rounded to whole microseconds, that of this record and
    // that of the previous one. So rounding errors do not accumulate.
    let wait = record.at.0 / 1_000 - (record.at.0 - since.0) / 1_000;
    if wait > 0 {
        let _ = writeln!(out, "{volume} wait {wait}");
    }
    let _ = writeln!(out, "{volume} {} {} {}", word(record.op), record.start, record.length);
    Ok(())
}
