//! Reads and writes the format `fio3`, the I/O log of fio, version 3.
//!
//! The source is fio's HOWTO, "Trace file format v3". The first line is `fio version 3 iolog`. The lines
//! after it are as in version 2, with a time in microseconds in front of the file, and without waits. A file
//! is a volume.

use super::field::{number, quote};
use super::fio2::{file_name, request, word};
use super::record::{Line, Record, Unit};
use super::row::{FormatRow, Loss, Shape, VolumeColumn, Writer};
use super::state::ReaderState;
use fulgurite_base::Nanos;
use std::io::Write as _;

pub(super) static FORMAT: FormatRow = FormatRow {
    name: "fio3",
    about: "fio's I/O log, version 3: `time file read|write|trim offset length`; in µs and bytes",
    unit: Unit::Bytes,
    name_parts: &["fio3"],
    is_told_by_content: true,
    options: &["volume"],
    shape: Shape::lines(parse),
    writer: Some(Writer {
        header: "fio version 3 iolog\n",
        record: write,
        volumes: Some(FILES),
        footer: "",
        loses: &[Loss::BELOW_1_US],
    }),
};

const FILES: VolumeColumn = VolumeColumn {
    named: file_name,
    numbered: |number| if number == 0 { "trace".to_owned() } else { format!("trace.{number}") },
    open: |file, at, out| {
        let micros = at.0 / 1_000;
        out.extend(format!("{micros} {file} add\n{micros} {file} open\n").bytes());
    },
    close: |_, _| {},
};

fn parse(line: &[u8], state: &mut ReaderState) -> Result<Line, String> {
    match line {
        [] => return Ok(Line::Nothing),
        _ if line.eq_ignore_ascii_case(b"fio version 3 iolog") => return Ok(Line::Nothing),
        // Only the first line distinguishes the versions of the log, so it must be present.
        _ if state.number == 1 => {
            return Err(format!("{} is not the first line of the log, `fio version 3 iolog`", quote(line)));
        }
        _ => {}
    }
    let mut parts = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let at = Nanos(number("time", parts.next().unwrap_or_default(), u64::MAX / 1_000)? * 1_000);
    let (file, action) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    request(file, action, parts, at, state)
}

fn write(record: &Record, volume: &str, _: Nanos, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let Record { at, op, start, length, .. } = record;
    let _ = writeln!(out, "{} {volume} {} {start} {length}", at.0 / 1_000, word(*op));
    Ok(())
}
