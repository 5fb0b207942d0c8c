//! Reads and writes the format `vscsi`, the binary traces of virtual disks by CloudPhysics, which are little
//! endian.
//!
//! The source is Waldspurger et al., "Efficient MRC Construction with SHARDS", FAST 2015, and the layout is
//! that of libCacheSim's `vscsi.h`. A record of version 1 has 32 bytes: u32 number, u32 length in bytes, u32
//! segments, u16 SCSI operation, u16 version, u64 sector, u64 time in µs. A record of version 2 has 40 bytes:
//! operation, version, number, length, segments, sector and time of the same types, then u64 response time.
//! The version number is the high byte of the version field.

use super::cloudphysics::operation;
use super::field::SECTOR_BYTES;
use super::record::{Line, Record, Unit};
use super::row::{FormatRow, Loss, Shape, Writer};
use super::state::{ReaderState, TraceOptions};
use crate::Op;
use fulgurite_base::Nanos;

pub(super) static FORMAT: FormatRow = FormatRow {
    name: "vscsi",
    about: "binary records of CloudPhysics, 32 or 40 bytes: SCSI operation, length, sector of 512 B, time in µs",
    unit: Unit::Bytes,
    name_parts: &["vscsi", "vscsitrace"],
    is_told_by_content: false,
    options: &[],
    shape: Shape::Records { size, parse },
    writer: Some(Writer {
        header: "",
        record: write,
        volumes: None,
        footer: "",
        loses: &[Loss::BELOW_1_US, Loss::STARTS_IN_SECTORS],
    }),
};

const FIRST_BYTES: usize = 32;
const SECOND_BYTES: usize = 40;

fn short(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn size(first: &[u8], _: &TraceOptions) -> Result<usize, String> {
    let is = |at: usize, version: u16| first.len() >= at + 2 && short(first, at) >> 8 == version;
    if is(2, 2) {
        Ok(SECOND_BYTES)
    } else if is(14, 1) {
        Ok(FIRST_BYTES)
    } else {
        Err("its first record is of neither version 1 nor version 2 of vscsi".to_owned())
    }
}

fn parse(bytes: &[u8], _: &mut ReaderState) -> Result<Line, String> {
    let (code, length, lbn, micros) = if bytes.len() == FIRST_BYTES {
        (short(bytes, 12), word(bytes, 4), long(bytes, 16), long(bytes, 24))
    } else {
        (short(bytes, 0), word(bytes, 8), long(bytes, 16), long(bytes, 24))
    };
    // The full code is checked, because a code of more than 8 bits must not be truncated to a known one.
    let Some(op) = operation(code as u8).filter(|_| code < 256) else {
        return Ok(Line::Skip("a command other than read, write and unmap"));
    };
    let start = lbn.checked_mul(SECTOR_BYTES).ok_or_else(|| format!("sector {lbn} is out of range"))?;
    let at = micros.checked_mul(1_000).ok_or_else(|| format!("time {micros} µs is out of range"))?;
    Ok(Line::Request(Record::new(Nanos(at), op, start, u64::from(length))))
}

/// Writes a record of version 1.
fn write(record: &Record, _: &str, _: Nanos, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let code: u16 = match record.op {
        Op::Read => 0x28,
        Op::Write => 0x2a,
        Op::Trim => 0x42,
    };
    let length = u32::try_from(record.length).map_err(|_| "requests of 4 GiB and more")?;
    out.extend(0u32.to_le_bytes());
    out.extend(length.to_le_bytes());
    out.extend(1u32.to_le_bytes());
    out.extend(code.to_le_bytes());
    // The high byte of the version field has the version number 1.
    out.extend(0x100u16.to_le_bytes());
    out.extend((record.start / SECTOR_BYTES).to_le_bytes());
    out.extend((record.at.0 / 1_000).to_le_bytes());
    Ok(())
}
