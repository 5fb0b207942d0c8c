//! Reads and writes the format `mqsim`, the traces of MQSim, with lines of `time device sector sectors type`.
//!
//! The source is `ASCIITraceDefinition` in the source code of Tavakkol et al., "MQSim", FAST 2018. Type 0 is
//! a write and 1 a read. A sector has 512 bytes. The time is in nanoseconds unless MQSim's configuration says
//! otherwise (`mqsim:time_unit=ps`). A device is a volume.

use super::disksim::scaled_time;
use super::field::{Separator, fields, in_sectors, is_header, quote, read_or_write, sectors};
use super::record::{Line, Record, Unit};
use super::row::{FormatRow, Loss, Shape, VolumeColumn, Writer};
use super::state::{ReaderState, TimeUnit};
use crate::Op;
use fulgurite_base::Nanos;
use std::io::Write as _;

pub(super) static FORMAT: FormatRow = FormatRow {
    name: "mqsim",
    about: "`time device sector sectors type` per line; time in ns, sectors of 512 B, type 0 = write",
    unit: Unit::Bytes,
    name_parts: &["mqsim"],
    // The lines of `disksim` look the same, so the content alone does not tell the format.
    is_told_by_content: false,
    options: &["time_unit", "volume"],
    shape: Shape::lines(parse),
    writer: Some(Writer {
        header: "",
        record: write,
        volumes: Some(VolumeColumn::NUMBER),
        footer: "",
        loses: &[Loss::PARTS_OF_SECTORS],
    }),
};

fn parse(line: &[u8], state: &mut ReaderState) -> Result<Line, String> {
    if line.is_empty() || is_header(line, Separator::Space, 5) {
        return Ok(Line::Nothing);
    }
    let [at, device, sector, count, kind] =
        fields(line, Separator::Space, "time device sector sectors type")?;
    let op = match kind {
        b"0" => Op::Write,
        b"1" => Op::Read,
        _ => return Err(format!("type {} is unknown; 0 is a write, 1 a read", quote(kind))),
    };
    let at = scaled_time(at, state.options.time_unit.unwrap_or(TimeUnit::Nanoseconds))?;
    let (start, length) = (sectors("sector", sector)?, sectors("sectors", count)?);
    state.request(device, Record::new(at, op, start, length))
}

fn write(record: &Record, volume: &str, _: Nanos, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let kind = read_or_write(record.op, 1, 0)?;
    let at = record.at;
    let (first, sectors) = in_sectors(record);
    let _ = writeln!(out, "{} {volume} {first} {sectors} {kind}", at.0);
    Ok(())
}
