//! Reads the format `lcs`, the binary traces of libCacheSim with a header.
//!
//! The source is `libCacheSim/traceReader/customizedReader/lcs.h`. The header has 8,192 bytes: a magic number, the
//! version, statistics, and the magic number again. A record has, little endian and packed: u32 time in seconds,
//! u64 object, and the size, u32 in versions 1 and 2 and i64 from 3 on. From version 2 on an operation of 8 bits
//! and a tenant of 24 bits follow. The rest is not needed here: the time to live, the next access and features.
//!
//! An object is taken as a block of 512 bytes, as in the traces made from block traces, unless `objects=yes` says
//! that it is only a name. A tenant is a volume. Without an operation, a request is a write with probability
//! `write_share`, drawn in order from a fixed seed, and otherwise a read.

use super::field::SECTOR_BYTES;
use super::record::{Line, Record, Unit};
use super::row::{FormatRow, Frame, Shape};
use super::state::ReaderState;
use crate::Op;
use fulgurite_base::Nanos;

pub(super) static FORMAT: FormatRow = FormatRow {
    name: "lcs",
    about: "binary records of libCacheSim with a header: time in s, object (taken as 512 B), size, operation, tenant",
    unit: Unit::Bytes,
    name_parts: &["lcs"],
    is_told_by_content: true,
    options: &["write_share", "volume"],
    shape: Shape::Framed { frame, rest: |_| 0, parse },
    writer: None,
};

const HEADER_BYTES: usize = 8192;
const MAGIC: u64 = 0x1234_5678_9abc_def0;
/// The size of a record of each version, from 1 on.
const BYTES: [usize; 8] = [24, 28, 36, 40, 44, 52, 68, 100];

fn long(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn frame(first: &[u8]) -> Result<Frame, String> {
    if first.len() < HEADER_BYTES || long(first, 0) != MAGIC || long(first, HEADER_BYTES - 8) != MAGIC {
        return Err(format!("its first {HEADER_BYTES} bytes are not the header of lcs"));
    }
    let version = long(first, 8);
    let bytes = usize::try_from(version).ok().and_then(|version| BYTES.get(version.checked_sub(1)?));
    let bytes = bytes.ok_or_else(|| format!("version {version} of lcs is unknown; 1 to 8 are known"))?;
    Ok(Frame { header: HEADER_BYTES, record: *bytes })
}

fn parse(bytes: &[u8], state: &mut ReaderState) -> Result<Line, String> {
    let (seconds, object) = (u64::from(word(bytes, 0)), long(bytes, 4));
    // From the third version on a size has 64 bits, so that the operation comes later.
    let (length, behind) = match bytes.len() {
        24 | 28 => (u64::from(word(bytes, 12)), 16),
        _ => (long(bytes, 12), 20),
    };
    if length > i64::MAX as u64 {
        return Err(format!("size {} is negative", length as i64));
    }
    let told = if bytes.len() == BYTES[0] { 0 } else { word(bytes, behind) };
    let op = match told & 0xff {
        // The operation is not known.
        0 => match state.draw_write() {
            true => Op::Write,
            false => Op::Read,
        },
        // get, gets; read.
        1 | 2 | 12 => Op::Read,
        // set, add, cas, replace, append, prepend; incr, decr; write, update.
        3..=8 | 10 | 11 | 13 | 14 => Op::Write,
        // delete.
        9 => Op::Trim,
        _ => return Ok(Line::Skip("an unknown operation")),
    };
    let start = match state.options.objects {
        true => object,
        false => object.checked_mul(SECTOR_BYTES).ok_or_else(|| {
            format!(
                "object {object} is out of range as a block of 512 bytes; at most {}. If objects are no blocks, give \
                    lcs:objects=yes",
                u64::MAX / SECTOR_BYTES
            )
        })?,
    };
    let record = Record::new(Nanos(seconds * 1_000_000_000), op, start, length);
    match bytes.len() == BYTES[0] {
        true => Ok(Line::Request(record)),
        false => state.request((told >> 8).to_string().as_bytes(), record),
    }
}
