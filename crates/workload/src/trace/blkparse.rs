//! Reads and writes the format `blkparse`, the default output of blkparse(1), which is the text form of
//! Linux's blktrace. A line is `dev cpu sequence time pid action RWBS sector + sectors [process]`. The time
//! is in seconds, and a sector has 512 bytes.
//!
//! A request causes events for several actions. To count each request once, the reader takes only the events
//! of one action for each device: Q (queued) or D (issued to the driver), the one that occurs first. Devices of
//! the device mapper and of md have Q events only. In the field RWBS, R is a read, W a write and D a discard; a
//! letter Z begins a command to a zone, such as ZR (reset). Other events carry no data. Lines that do not begin with a
//! device belong to blkparse's summary. A device is a volume.

use super::field::{in_sectors, quote, sectors, time};
use super::record::{Line, Record, Unit};
use super::row::{FormatRow, Loss, Shape, VolumeColumn, Writer};
use super::state::ReaderState;
use crate::Op;
use fulgurite_base::Nanos;
use std::io::Write as _;

pub(super) static FORMAT: FormatRow = FormatRow {
    name: "blkparse",
    about: "the text of blkparse, Q or D events: `dev cpu seq s pid Q R sector + sectors`",
    unit: Unit::Bytes,
    name_parts: &["blkparse"],
    is_told_by_content: true,
    options: &["volume"],
    shape: Shape::lines(parse),
    writer: Some(Writer {
        header: "",
        record: write,
        volumes: Some(DEVICES),
        footer: "",
        loses: &[Loss::PARTS_OF_SECTORS],
    }),
};

const DEVICES: VolumeColumn = VolumeColumn {
    named: |name| is_device(name.as_bytes()).then(|| name.to_owned()),
    numbered: |number| format!("8,{number}"),
    ..VolumeColumn::NUMBER
};

/// The length of the longest device, whose two numbers have 32 bits each.
const DEVICE_BYTES_AT_MOST: usize = 21;

fn parse(line: &[u8], state: &mut ReaderState) -> Result<Line, String> {
    let mut parts = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let device = parts.next().unwrap_or_default();
    if !is_device(device) {
        // Before the first event, a line without a device means another format. After it, the line belongs to
        // the summary.
        return if state.has_action() || line.is_empty() {
            Ok(Line::Nothing)
        } else {
            Err(format!("{} does not begin with a device, like 259,0", quote(line)))
        };
    }
    let (Some(_), Some(_), Some(at), Some(_), Some(action), Some(rwbs)) =
        (parts.next(), parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(format!(
            "{} has too few fields; a line is dev cpu seq time pid action RWBS …",
            quote(line)
        ));
    };
    let at = time(at, 1_000_000_000)?;
    let [action @ (b'Q' | b'D')] = *action else { return Ok(Line::Skip("an event other than Q or D")) };
    if state.action_of(device, action)? != action {
        return Ok(Line::Skip("an event of a request that is counted already"));
    }
    let op = match operation(rwbs) {
        Ok(op) => op,
        Err(reason) => return Ok(Line::Skip(reason)),
    };
    let (Some(sector), Some(b"+"), Some(count)) = (parts.next(), parts.next(), parts.next()) else {
        return Ok(Line::Skip("an event without data"));
    };
    let (start, length) = (sectors("sector", sector)?, sectors("sectors", count)?);
    state.request(device, Record::new(at, op, start, length))
}

/// Returns the operation of a field RWBS. The error is the reason why the event is no request.
pub(super) fn operation(rwbs: &[u8]) -> Result<Op, &'static str> {
    // An F before the command asks for a flush.
    if rwbs.strip_prefix(b"F").unwrap_or(rwbs).starts_with(b"Z") {
        return Err("a command to a zone");
    }
    match rwbs.iter().find(|letter| b"RWD".contains(letter)) {
        Some(b'R') => Ok(Op::Read),
        Some(b'W') => Ok(Op::Write),
        Some(_) => Ok(Op::Trim),
        None => Err("an event without data"),
    }
}

fn is_device(field: &[u8]) -> bool {
    field.len() <= DEVICE_BYTES_AT_MOST
        && field.split(|byte| *byte == b',').count() == 2
        && field.iter().all(|byte| byte.is_ascii_digit() || *byte == b',')
}

fn write(record: &Record, volume: &str, _: Nanos, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let rwbs = match record.op {
        Op::Read => 'R',
        Op::Write => 'W',
        Op::Trim => 'D',
    };
    let at = record.at;
    let (seconds, nanos) = (at.0 / 1_000_000_000, at.0 % 1_000_000_000);
    let (first, sectors) = in_sectors(record);
    let _ = writeln!(
        out,
        "  {volume}    0        0 {seconds:>5}.{nanos:09}     0  Q   {rwbs} {first} + {sectors} [fulgurite]"
    );
    Ok(())
}
