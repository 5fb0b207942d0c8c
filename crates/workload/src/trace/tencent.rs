//! Reads and writes the format `tencent`, the traces of Tencent Cloud Block Storage, with lines of
//! `time,offset,size,type,volume`.
//!
//! The source is Zhang et al., "OSCA", USENIX ATC 2020; SNIA IOTTA distributes the traces. The time is in
//! whole seconds since 1970. Offset and size are in sectors of 512 bytes. Type 0 is a read and 1 a write. All
//! requests of a second arrive together, unless `tencent:spread=yes` puts a microsecond between them.

use super::field::{Separator, fields, in_sectors, is_header, number, quote, read_or_write, sectors};
use super::record::{Line, Record, Unit};
use super::row::{FormatRow, Loss, Shape, VolumeColumn, Writer};
use super::state::ReaderState;
use crate::Op;
use fulgurite_base::Nanos;
use std::io::Write as _;

pub(super) static FORMAT: FormatRow = FormatRow {
    name: "tencent",
    about: "`time,offset,size,type,volume` per line; time in s, sectors of 512 B, type 1 = write",
    unit: Unit::Bytes,
    name_parts: &["tencent"],
    // Any line of five numbers fits the format, so the content alone does not tell it.
    is_told_by_content: false,
    options: &["spread", "volume"],
    shape: Shape::lines(parse),
    writer: Some(Writer {
        header: "",
        record: write,
        volumes: Some(VolumeColumn::NUMBER),
        footer: "",
        loses: &[Loss::BELOW_1_S, Loss::PARTS_OF_SECTORS],
    }),
};

const SECOND_NS: u64 = 1_000_000_000;
const SPREAD_NS: u64 = 1_000;

fn parse(line: &[u8], state: &mut ReaderState) -> Result<Line, String> {
    if line.is_empty() || is_header(line, Separator::Comma, 5) {
        return Ok(Line::Nothing);
    }
    let [at, offset, size, kind, volume] = fields(line, Separator::Comma, "time,offset,size,type,volume")?;
    let op = match kind {
        b"0" => Op::Read,
        b"1" => Op::Write,
        _ => return Err(format!("type {} is unknown; 0 is a read, 1 a write", quote(kind))),
    };
    let second = Nanos(number("time", at, u64::MAX / SECOND_NS)? * SECOND_NS);
    let next = state.clock.0.checked_add(SPREAD_NS).filter(|next| {
        // Near the end of 64 bits, the end of the second does not fit, so the sum saturates.
        state.options.spread && state.clock >= second && *next < second.0.saturating_add(SECOND_NS)
    });
    let at = next.map_or(second, Nanos);
    state.clock = at;
    number("volume", volume, u64::MAX)?;
    let (start, length) = (sectors("offset", offset)?, sectors("size", size)?);
    state.request(volume, Record::new(at, op, start, length))
}

fn write(record: &Record, volume: &str, _: Nanos, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let kind = read_or_write(record.op, 0, 1)?;
    let at = record.at;
    let (first, sectors) = in_sectors(record);
    let _ = writeln!(out, "{},{first},{sectors},{kind},{volume}", at.0 / SECOND_NS);
    Ok(())
}
