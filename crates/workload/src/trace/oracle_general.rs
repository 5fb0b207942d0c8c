//! Reads and writes the format `oracle-general`, the binary traces of libCacheSim, called `oracleGeneral` in
//! its documentation.
//!
//! The records are packed and have 24 bytes, little endian: u32 time in seconds, u64 object, u32 size in
//! bytes, i64 next access (the index of a request; −1: never). An object is taken as a block of 512 bytes, as
//! in the traces made from block traces, unless `objects=yes` says that it is only a name. A next access is
//! known only at the end of the trace, so [`write_oracle_general`] writes a trace as a whole.
//!
//! The format has no operations. A request is a write with probability `write_share`, drawn in order from a
//! fixed seed, and otherwise a read.

use super::field::SECTOR_BYTES;
use super::record::{Line, Record, Unit};
use super::row::{FormatRow, Shape};
use super::space::{AddressSpace, REGION_BYTES};
use super::state::ReaderState;
use crate::Op;
use fulgurite_base::Nanos;
use rustc_hash::FxHashMap;
use std::io::{self, Write};

pub(super) static FORMAT: FormatRow = FormatRow {
    name: "oracle-general",
    about: "binary records of libCacheSim, 24 bytes: time in s, object (taken as 512 B), size; no operations",
    unit: Unit::Bytes,
    name_parts: &["oracle-general", "oraclegeneral"],
    is_told_by_content: false,
    options: &["write_share"],
    shape: Shape::Records { size: |_, _| Ok(BYTES), parse },
    // The format is not written record by record; see `write_oracle_general`.
    writer: None,
};

/// The size of a record.
const BYTES: usize = 24;
/// The size of the pieces in which a trace is written.
const BUFFER_BYTES: usize = 1 << 16;

fn parse(bytes: &[u8], state: &mut ReaderState) -> Result<Line, String> {
    let Some((&record, _)) = bytes.split_first_chunk::<BYTES>() else { return Ok(Line::Nothing) };
    let word = |at: usize| u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]]);
    let (seconds, length) = (u64::from(word(0)), u64::from(word(12)));
    let object = u64::from(word(4)) | u64::from(word(8)) << 32;
    let op = if state.draw_write() { Op::Write } else { Op::Read };
    let start = match state.options.objects {
        true => object,
        false => object.checked_mul(SECTOR_BYTES).ok_or_else(|| no_address(object))?,
    };
    Ok(Line::Request(Record::new(Nanos(seconds * 1_000_000_000), op, start, length)))
}

#[cold]
fn no_address(object: u64) -> String {
    format!(
        "object {object} is out of range as a block of 512 bytes; at most {}. If objects are no blocks, give \
            oracle-general:objects=yes",
        u64::MAX / SECTOR_BYTES
    )
}

/// Writes all `records`, whose unit is bytes, to `out`. Operations, volumes, times below a second, starts inside
/// a sector and lengths of 4 GiB and more are lost.
pub fn write_oracle_general(records: &[Record], out: &mut dyn Write) -> io::Result<()> {
    let mut space = AddressSpace::new(REGION_BYTES);
    let mut objects = Vec::with_capacity(records.len());
    for record in records {
        let first = record.start..record.start + 1;
        space
            .place(record.volume, first, |units| objects.push(units.start / SECTOR_BYTES))
            .map_err(io::Error::other)?;
    }
    // The loop runs backwards, so that the access to an object that was seen last is the next one in the
    // trace.
    let mut seen: FxHashMap<u64, i64> = FxHashMap::default();
    let nexts = objects
        .iter()
        .enumerate()
        .rev()
        .map(|(index, object)| seen.insert(*object, index as i64).unwrap_or(-1));
    let mut nexts: Vec<i64> = nexts.collect();
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    for (record, object) in records.iter().zip(objects) {
        let next = nexts.pop().expect("one for every record");
        let seconds = u32::try_from(record.at.0 / 1_000_000_000).unwrap_or(u32::MAX);
        buffer.extend(seconds.to_le_bytes());
        buffer.extend(object.to_le_bytes());
        buffer.extend(u32::try_from(record.length).unwrap_or(u32::MAX).to_le_bytes());
        buffer.extend(next.to_le_bytes());
        // Writes large pieces, because each piece may be compressed separately.
        if buffer.len() + BYTES > BUFFER_BYTES {
            out.write_all(&buffer)?;
            buffer.clear();
        }
    }
    out.write_all(&buffer)
}
