//! Reads and writes the format `disksim`, the ASCII traces of DiskSim, with lines of `time device block
//! blocks flags`.
//!
//! The source is "The DiskSim Simulation Environment Version 4.0 Reference Manual", 2008. The time is in
//! milliseconds, a block has 512 bytes, and the flags are in hexadecimal, with bit 0 set for a read. SSDsim
//! writes the same columns with times in nanoseconds. The option `time_unit=` selects the unit. Without it,
//! the first time above zero decides: a whole number of at least a million (a quarter of an hour in
//! milliseconds) means nanoseconds, and any other number means milliseconds. The reader tells which unit it
//! took, and why. A device is a volume.

use super::field::{Separator, fields, in_sectors, is_header, quote, read_or_write, sectors, time};
use super::record::{Line, Record, Unit};
use super::row::{FormatRow, Loss, Shape, VolumeColumn, Writer};
use super::state::{ReaderState, TimeUnit};
use crate::Op;
use fulgurite_base::Nanos;
use fulgurite_base::option::name_of;
use std::io::Write as _;

pub(super) static FORMAT: FormatRow = FormatRow {
    name: "disksim",
    about: "`time device block blocks flags` per line; time in ms or, whole and large, ns; blocks of 512 B, \
            flag 1 = read",
    unit: Unit::Bytes,
    name_parts: &["disksim"],
    // The lines of `mqsim` look the same, so the content alone does not tell the format.
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
    let [at, device, block, blocks, flags] =
        fields(line, Separator::Space, "time device block blocks flags")?;
    let text = std::str::from_utf8(flags).unwrap_or_default();
    let flags = u32::from_str_radix(text, 16)
        .map_err(|_| format!("flags {} are not a hexadecimal number, like 1", quote(flags)))?;
    let op = if flags & 1 == 1 { Op::Read } else { Op::Write };
    if state.options.time_unit.is_none()
        && let Some((unit, why)) = unit_of(at)
    {
        state.options.time_unit = Some(unit);
        state.decide(format!(
            "times in {}, since the first one above zero, {}, {why} (time_unit= sets the unit)",
            name_of(unit),
            String::from_utf8_lossy(at)
        ));
    }
    let at = scaled_time(at, state.options.time_unit.unwrap_or(TimeUnit::Milliseconds))?;
    let (start, length) = (sectors("block", block)?, sectors("blocks", blocks)?);
    state.request(device, Record::new(at, op, start, length))
}

/// Returns the unit that the first time above zero implies, and the reason; see the module. Returns `None` for
/// a time of zero.
fn unit_of(field: &[u8]) -> Option<(TimeUnit, &'static str)> {
    const LEAST_NANOSECONDS: u64 = 1_000_000;
    let whole = std::str::from_utf8(field).ok()?.parse::<u64>();
    match whole {
        // Zero is the same in every unit, so a later line decides.
        Ok(0) => None,
        Ok(time) if time >= LEAST_NANOSECONDS => {
            Some((TimeUnit::Nanoseconds, "is a whole number of at least 1,000,000"))
        }
        Ok(_) => Some((TimeUnit::Milliseconds, "is below 1,000,000")),
        Err(_) => Some((TimeUnit::Milliseconds, "has a fraction")),
    }
}

/// Parses a time in this unit.
pub(super) fn scaled_time(field: &[u8], unit: TimeUnit) -> Result<Nanos, String> {
    let (multiplier, divisor) = unit.scale();
    Ok(Nanos(time(field, multiplier)?.0 / divisor))
}

fn write(record: &Record, volume: &str, _: Nanos, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let flags = read_or_write(record.op, 1, 0)?;
    let at = record.at;
    let (millis, nanos) = (at.0 / 1_000_000, at.0 % 1_000_000);
    let (first, blocks) = in_sectors(record);
    let _ = writeln!(out, "{millis}.{nanos:06} {volume} {first} {blocks} {flags}");
    Ok(())
}
