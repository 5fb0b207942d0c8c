//! Reads the format `blktrace`, the binary files of blktrace(8), one for each CPU (`sda.blktrace.0`).
//!
//! The source is the kernel's `include/uapi/linux/blktrace_api.h`: `struct blk_io_trace` of 48 bytes (version 7),
//! and `struct blk_io_trace2` of 64 bytes (version 8). Each is followed by data whose length it tells. The time is
//! in nanoseconds, a sector has 512 bytes, and the byte order is that of the machine that recorded, which the magic
//! number tells.
//!
//! As in the format `blkparse`, a request counts once: only the events of one action are taken for each device, Q
//! (queued) or D (issued to the driver), the one that occurs first. A device is a volume.

use super::field::SECTOR_BYTES;
use super::record::{Line, Record, Unit};
use super::row::{FormatRow, Frame, Shape};
use super::state::ReaderState;
use crate::Op;
use fulgurite_base::Nanos;

pub(super) static FORMAT: FormatRow = FormatRow {
    name: "blktrace",
    about: "binary records of blktrace, Q or D events; a file for each CPU, so give the folder or a pattern",
    unit: Unit::Bytes,
    name_parts: &["blktrace"],
    is_told_by_content: true,
    options: &["volume"],
    shape: Shape::Framed { frame, rest, parse },
    writer: None,
};

/// The magic number without the version, which is in the lowest byte.
const MAGIC: u32 = 0x6561_7400;
/// The sizes of a record of version 7 and of version 8.
const BYTES: [usize; 2] = [48, 64];

/// Categories of events, from bit 16 of the action on.
const WRITE: u64 = 1 << 1;
const PASSED_ON: u64 = 1 << 9;
const NOTIFY: u64 = 1 << 10;
const DISCARD: u64 = 1 << 13;
/// Resets, openings, closings and the like of zones.
const OF_ZONES: u64 = 0b1_1111 << 17;
/// The actions: queued, and issued to the driver. The eighth bit is for a request of a control group.
const QUEUE: u64 = 1;
const ISSUE: u64 = 7;
const ACTION: u64 = 0xff;

/// A record, whose numbers are little endian or big endian.
#[derive(Clone, Copy)]
struct Raw<'a> {
    bytes: &'a [u8],
    is_little: bool,
}

impl Raw<'_> {
    /// Finds the byte order of a record; `None` if its magic number is wrong.
    fn new(bytes: &[u8]) -> Option<Raw<'_>> {
        let little = Raw { bytes, is_little: true };
        let has_magic = |raw: &Raw<'_>| raw.bytes.len() >= 4 && raw.number(0, 4) as u32 & !0xff == MAGIC;
        [little, Raw { is_little: false, ..little }].into_iter().find(has_magic)
    }

    /// Returns the number of `count` bytes at `at`.
    fn number(&self, at: usize, count: usize) -> u64 {
        let bytes = &self.bytes[at..at + count];
        let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        if self.is_little { bytes.iter().rev().fold(0, add) } else { bytes.iter().fold(0, add) }
    }

    /// Returns the size of the record's struct; the error is about the version.
    fn size(&self) -> Result<usize, String> {
        match self.number(0, 4) & 0xff {
            7 => Ok(BYTES[0]),
            8 => Ok(BYTES[1]),
            version => Err(format!("version {version} of blktrace is unknown; 7 and 8 are known")),
        }
    }
}

fn frame(first: &[u8]) -> Result<Frame, String> {
    let raw = Raw::new(first).ok_or("its first bytes are not the magic number of blktrace")?;
    Ok(Frame { header: 0, record: raw.size()? })
}

/// Returns the length of the data behind a record.
fn rest(bytes: &[u8]) -> usize {
    let at = bytes.len() - if bytes.len() == BYTES[0] { 2 } else { 14 };
    Raw::new(bytes).map_or(0, |raw| raw.number(at, 2) as usize)
}

fn parse(bytes: &[u8], state: &mut ReaderState) -> Result<Line, String> {
    let raw = Raw::new(bytes).ok_or("its first bytes are not the magic number of blktrace")?;
    if raw.size()? != bytes.len() {
        return Err("it is of another version than the first record".to_owned());
    }
    let (action, device) = match bytes.len() == BYTES[0] {
        true => (raw.number(28, 4), raw.number(36, 4)),
        false => (raw.number(32, 8), raw.number(40, 4)),
    };
    let (at, sector, length) = (raw.number(8, 8), raw.number(16, 8), raw.number(24, 4));
    let category = action >> 16;
    if category & NOTIFY != 0 {
        return Ok(Line::Nothing);
    }
    let letter = match action & ACTION {
        QUEUE => b'Q',
        ISSUE => b'D',
        _ => return Ok(Line::Skip("an event other than Q or D")),
    };
    // A number of a device has twelve bits for its driver, and twenty for the device.
    let device = format!("{},{}", device >> 20, device & 0xf_ffff);
    if state.action_of(device.as_bytes(), letter)? != letter {
        return Ok(Line::Skip("an event of a request that is counted already"));
    }
    if category & OF_ZONES != 0 {
        return Ok(Line::Skip("a command to a zone"));
    }
    if category & PASSED_ON != 0 || length == 0 {
        return Ok(Line::Skip("an event without data"));
    }
    let op = match (category & DISCARD != 0, category & WRITE != 0) {
        (true, _) => Op::Trim,
        (_, true) => Op::Write,
        _ => Op::Read,
    };
    let start = sector.checked_mul(SECTOR_BYTES).ok_or_else(|| format!("sector {sector} is out of range"))?;
    state.request(device.as_bytes(), Record::new(Nanos(at), op, start, length))
}
