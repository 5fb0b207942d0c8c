//! Reads and writes the format `alibaba`, the block traces of Alibaba Cloud, with lines of
//! `device,opcode,offset,length,time`.
//!
//! The source is Li et al., "An In-Depth Analysis of Cloud Block Storage Workloads in Large-Scale
//! Production", IISWC 2020. The opcode is R or W, offset and length are in bytes, and the time is in
//! microseconds since 1970. A device is a volume.

use super::field::{Separator, fields, is_header, number, quote, read_or_write};
use super::record::{Line, Record, Unit};
use super::row::{FormatRow, Loss, Shape, VolumeColumn, Writer};
use super::state::ReaderState;
use crate::Op;
use fulgurite_base::Nanos;
use std::io::Write as _;

pub(super) static FORMAT: FormatRow = FormatRow {
    name: "alibaba",
    about: "`device,R|W,offset,length,time` per line; in bytes and µs",
    unit: Unit::Bytes,
    name_parts: &["alibaba"],
    is_told_by_content: true,
    options: &["volume"],
    shape: Shape::lines(parse),
    writer: Some(Writer {
        header: "",
        record: write,
        volumes: Some(VolumeColumn::NUMBER),
        footer: "",
        loses: &[Loss::BELOW_1_US],
    }),
};

fn parse(line: &[u8], state: &mut ReaderState) -> Result<Line, String> {
    if line.is_empty() || is_header(line, Separator::Comma, 5) {
        return Ok(Line::Nothing);
    }
    let [device, op, offset, length, at] = fields(line, Separator::Comma, "device,R|W,offset,length,time")?;
    let op = match op {
        b"R" => Op::Read,
        b"W" => Op::Write,
        _ => return Err(format!("opcode {} is unknown; R and W are known", quote(op))),
    };
    let at = Nanos(number("time", at, u64::MAX / 1_000)? * 1_000);
    let (start, length) = (number("offset", offset, u64::MAX)?, number("length", length, u64::MAX)?);
    state.request(device, Record::new(at, op, start, length))
}

fn write(record: &Record, volume: &str, _: Nanos, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let op = read_or_write(record.op, 'R', 'W')?;
    let Record { at, start, length, .. } = record;
    let _ = writeln!(out, "{volume},{op},{start},{length},{}", at.0 / 1_000);
    Ok(())
}
