//! Reads and writes the format `spc`, the traces of the Storage Performance Council as UMass distributes them
//! (Financial, WebSearch), with lines of `ASU,LBA,size,opcode,time`. Further fields are ignored.
//!
//! The source is "SPC Trace File Format Specification", 2002. The LBA is in blocks of 512 bytes, the size in
//! bytes, the opcode R or W in either case, and the time in seconds. An ASU (application storage unit) is a
//! volume.

use super::field::{SECTOR_BYTES, Separator, is_header, number, quote, read_or_write, sectors, time};
use super::record::{Line, Record, Unit};
use super::row::{FormatRow, Loss, Shape, VolumeColumn, Writer};
use super::state::ReaderState;
use crate::Op;
use fulgurite_base::Nanos;
use std::io::Write as _;

pub(super) static FORMAT: FormatRow = FormatRow {
    name: "spc",
    about: "`ASU,LBA,size,R|W,time` per line; LBA in 512 B, size in bytes, time in s",
    unit: Unit::Bytes,
    name_parts: &["spc"],
    is_told_by_content: true,
    options: &["volume"],
    shape: Shape::lines(parse),
    writer: Some(Writer {
        header: "",
        record: write,
        volumes: Some(VolumeColumn::NUMBER),
        footer: "",
        loses: &[Loss::STARTS_IN_SECTORS],
    }),
};

fn parse(line: &[u8], state: &mut ReaderState) -> Result<Line, String> {
    if line.is_empty() || is_header(line, Separator::Comma, 5) {
        return Ok(Line::Nothing);
    }
    let mut parts = line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let (Some(asu), Some(lba), Some(size), Some(op), Some(at)) =
        (parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(format!("{} has too few fields; a line is ASU,LBA,size,R|W,time", quote(line)));
    };
    let op = match op {
        b"R" | b"r" => Op::Read,
        b"W" | b"w" => Op::Write,
        _ => return Err(format!("opcode {} is unknown; R and W are known", quote(op))),
    };
    // The number of the ASU is checked to refuse lines of other formats; its value is not needed.
    number("ASU", asu, u64::MAX)?;
    let at = time(at, 1_000_000_000)?;
    let (start, length) = (sectors("LBA", lba)?, number("size", size, u64::MAX)?);
    state.request(asu, Record::new(at, op, start, length))
}

fn write(record: &Record, volume: &str, _: Nanos, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let op = read_or_write(record.op, 'R', 'W')?;
    let Record { at, start, length, .. } = record;
    let (seconds, nanos) = (at.0 / 1_000_000_000, at.0 % 1_000_000_000);
    let _ = writeln!(out, "{volume},{},{length},{op},{seconds}.{nanos:09}", start / SECTOR_BYTES);
    Ok(())
}
