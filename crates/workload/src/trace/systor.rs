//! Reads and writes the format `systor`, the traces of an enterprise virtual desktop system, with lines of
//! `time,response,type,LUN,offset,size`.
//!
//! The source is Lee et al., "Understanding Storage Traffic Characteristics on Enterprise Virtual Desktop
//! Infrastructure", SYSTOR 2017; SNIA IOTTA distributes the traces. Times are in seconds, and the response
//! time may be empty. The type is R or W; other types transfer no data. Offset and size are in bytes. A LUN
//! is a volume.

use super::field::{Separator, fields, is_header, number, read_or_write, time};
use super::record::{Line, Record, Unit};
use super::row::{FormatRow, Shape, VolumeColumn, Writer};
use super::state::ReaderState;
use crate::Op;
use fulgurite_base::Nanos;
use std::io::Write as _;

pub(super) static FORMAT: FormatRow = FormatRow {
    name: "systor",
    about: "`time,response,R|W,LUN,offset,size` per line; in s and bytes",
    unit: Unit::Bytes,
    name_parts: &["systor"],
    is_told_by_content: true,
    options: &["volume"],
    shape: Shape::lines(parse),
    writer: Some(Writer {
        header: HEADER,
        record: write,
        volumes: Some(VolumeColumn::NUMBER),
        footer: "",
        loses: &[],
    }),
};

const HEADER: &str = "Timestamp,Response,IOType,LUN,Offset,Size\n";

fn parse(line: &[u8], state: &mut ReaderState) -> Result<Line, String> {
    if line.is_empty() || is_header(line, Separator::Comma, 6) {
        return Ok(Line::Nothing);
    }
    let [at, _, kind, lun, offset, size] =
        fields(line, Separator::Comma, "time,response,type,LUN,offset,size")?;
    let at = time(at, 1_000_000_000)?;
    // The number of the LUN is checked to refuse lines of other formats with six fields; its value is not
    // needed.
    number("LUN", lun, u64::MAX)?;
    let op = match kind {
        b"R" => Op::Read,
        b"W" => Op::Write,
        _ => return Ok(Line::Skip("a command other than read and write")),
    };
    let (start, length) = (number("offset", offset, u64::MAX)?, number("size", size, u64::MAX)?);
    state.request(lun, Record::new(at, op, start, length))
}

fn write(record: &Record, volume: &str, _: Nanos, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let op = read_or_write(record.op, 'R', 'W')?;
    let Record { at, start, length, .. } = record;
    let (seconds, nanos) = (at.0 / 1_000_000_000, at.0 % 1_000_000_000);
    let _ = writeln!(out, "{seconds}.{nanos:09},,{op},{volume},{start},{length}");
    Ok(())
}
