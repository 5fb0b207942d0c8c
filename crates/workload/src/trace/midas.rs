//! Reads and writes the format `midas`, the text traces of MiDAS, with lines of `time type LBA size`.
//!
//! The source is the function `parse` in the simulator of Oh et al., "MiDAS", FAST 2024. The time is in
//! seconds. Type 0 is a read, 1 a write, 2 a flush and 3 a trim. The LBA is in blocks of 4 KiB, and the size
//! in bytes.

use super::field::{Plain, Separator, fields, is_header, number, plain_lines, quote, time};
use super::record::{Line, Record, Unit};
use super::row::{FormatRow, Loss, Shape, Writer};
use super::state::ReaderState;
use crate::Op;
use fulgurite_base::Nanos;
use std::io::Write as _;

pub(super) static FORMAT: FormatRow = FormatRow {
    name: "midas",
    about: "`time type LBA size` per line; time in s, type 0 = read 1 = write 3 = trim, LBA in 4 KiB, size in bytes",
    unit: Unit::Bytes,
    name_parts: &["midas"],
    is_told_by_content: true,
    options: &[],
    shape: Shape::Lines { parse, plain: Some(|text, most, out| plain_lines(text, most, out, plain)) },
    writer: Some(Writer { header: "", record: write, volumes: None, footer: "", loses: &[STARTS_IN_BLOCKS] }),
};

const BLOCK_BYTES: u64 = 4096;
const STARTS_IN_BLOCKS: Loss =
    Loss { what: "starts inside a block of 4 KiB", of: |record| !record.start.is_multiple_of(BLOCK_BYTES) };

/// Parses a line in exactly the form that simulators write; `None` for any other line.
#[inline]
fn plain(line: &mut Plain) -> Option<Record> {
    let at = line.nanos()?;
    line.byte(b' ')?;
    let op = match line.first()? {
        b'0' => Op::Read,
        b'1' => Op::Write,
        b'3' => Op::Trim,
        _ => return None,
    };
    line.byte(b' ')?;
    let start = line.number()?.checked_mul(BLOCK_BYTES)?;
    line.byte(b' ')?;
    Some(Record::new(at, op, start, line.number()?))
}

fn parse(line: &[u8], _: &mut ReaderState) -> Result<Line, String> {
    if line.is_empty() || is_header(line, Separator::Space, 4) {
        return Ok(Line::Nothing);
    }
    let [at, kind, lba, size] = fields(line, Separator::Space, "time type LBA size")?;
    let op = match kind {
        b"0" => Op::Read,
        b"1" => Op::Write,
        b"2" => return Ok(Line::Skip("a flush")),
        b"3" => Op::Trim,
        _ => return Err(format!("type {} is unknown; 0 is a read, 1 a write, 3 a trim", quote(kind))),
    };
    let at = time(at, 1_000_000_000)?;
    let start = number("LBA", lba, u64::MAX / BLOCK_BYTES)? * BLOCK_BYTES;
    Ok(Line::Request(Record::new(at, op, start, number("size", size, u64::MAX)?)))
}

fn write(record: &Record, _: &str, _: Nanos, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let kind = match record.op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Trim => 3,
    };
    let Record { at, start, length, .. } = record;
    let (seconds, nanos) = (at.0 / 1_000_000_000, at.0 % 1_000_000_000);
    let block = start / BLOCK_BYTES;
    let _ = writeln!(out, "{seconds}.{nanos:09} {kind} {block} {}", start + length - block * BLOCK_BYTES);
    Ok(())
}
