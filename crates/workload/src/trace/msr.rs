//! Reads and writes the format `msr`, the block traces of Microsoft Research Cambridge, with lines of
//! `time,host,disk,type,offset,size,response`.
//!
//! The source is Narayanan, Donnelly and Rowstron, "Write Off-Loading", FAST 2008; SNIA IOTTA distributes the
//! traces. Time and response time are in units of 100 ns, called ticks here, and the time counts from 1601.
//! Offset and size are in bytes. A disk of a host is a volume.

use super::field::{Separator, fields, is_header, number, quote, read_or_write};
use super::record::{Line, Record, Unit};
use super::row::{FormatRow, Loss, Shape, VolumeColumn, Writer};
use super::state::ReaderState;
use crate::Op;
use fulgurite_base::Nanos;
use std::io::Write as _;

pub(super) static FORMAT: FormatRow = FormatRow {
    name: "msr",
    about: "`time,host,disk,Read|Write,offset,size,response` per line; times in 100 ns, the rest in bytes",
    unit: Unit::Bytes,
    name_parts: &["msr"],
    is_told_by_content: true,
    options: &["volume"],
    shape: Shape::lines(parse),
    writer: Some(Writer {
        header: "",
        record: write,
        volumes: Some(DISKS),
        footer: "",
        loses: &[BELOW_TICK],
    }),
};

const DISKS: VolumeColumn = VolumeColumn {
    named: |name| {
        let (host, disk) = name.rsplit_once('.')?;
        let is_field = |text: &str| !text.is_empty() && !text.contains(',') && text.trim() == text;
        (is_field(host) && is_field(disk)).then(|| format!("{host},{disk}"))
    },
    numbered: |number| format!("fulgurite,{number}"),
    ..VolumeColumn::NUMBER
};

const TICK_NS: u64 = 100;
const BELOW_TICK: Loss =
    Loss { what: "times below 100 ns", of: |record| !record.at.0.is_multiple_of(TICK_NS) };

fn parse(line: &[u8], state: &mut ReaderState) -> Result<Line, String> {
    if line.is_empty() || is_header(line, Separator::Comma, 7) {
        return Ok(Line::Nothing);
    }
    let form = "time,host,disk,type,offset,size,response";
    let [time, host, disk, kind, offset, size, _] = fields(line, Separator::Comma, form)?;
    let op = match kind {
        b"Read" | b"read" => Op::Read,
        b"Write" | b"write" => Op::Write,
        _ => return Err(format!("type {} is unknown; Read and Write are known", quote(kind))),
    };
    // Times are made relative to the first line, because ticks since 1601 would overflow in nanoseconds. The
    // reader needs only differences.
    let ticks = number("time", time, u64::MAX)?;
    let origin = *state.origin.get_or_insert(ticks);
    state.base = u128::from(origin) * u128::from(TICK_NS);
    let most = origin.saturating_add((u64::MAX - ORIGIN_NS) / TICK_NS);
    if ticks > most {
        return Err(format!("time {} is out of range; at most {most}", quote(time)));
    }
    // A time of 0 is centuries before that of the first line. It becomes the earliest representable time.
    let at = match ticks.checked_sub(origin) {
        Some(since) => ORIGIN_NS + since * TICK_NS,
        None => ORIGIN_NS.saturating_sub((origin - ticks).saturating_mul(TICK_NS)),
    };
    let at = Nanos(at);
    let start = number("offset", offset, u64::MAX)?;
    let length = number("size", size, u64::MAX)?;
    // Disks of different hosts have the same numbers, so the name of a volume includes the host.
    let volume = [host, b".", disk].concat();
    state.request(&volume, Record::new(at, op, start, length))
}

/// The time of the first line, so that earlier times are not negative.
const ORIGIN_NS: u64 = 1 << 62;

fn write(record: &Record, volume: &str, _: Nanos, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let kind = read_or_write(record.op, "Read", "Write")?;
    let Record { at, start, length, .. } = record;
    let _ = writeln!(out, "{},{volume},{kind},{start},{length},0", at.0 / TICK_NS);
    Ok(())
}
