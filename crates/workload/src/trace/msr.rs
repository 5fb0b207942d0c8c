//! Reads and writes the format `msr`, the block traces of Microsoft Research Cambridge, with lines of
//! `time,host,disk,type,offset,size,response`.
//!
//! The source is Narayanan, Donnelly and Rowstron, "Write Off-Loading", FAST 2008; SNIA IOTTA distributes the
//! traces. Time and response time are in units of 100 ns, called ticks here, and the time counts from 1601.
//! Offset and size are in bytes. A disk of a host is a volume.

use super::field::{Plain, Separator, fields, is_header, number, quote, read_or_write};
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

/// The fields of a line, without the response time.
struct Fields<'a> {
    ticks: u64,
    host: &'a [u8],
    disk: &'a [u8],
    op: Op,
    start: u64,
    length: u64,
}

fn parse(line: &[u8], state: &mut ReaderState) -> Result<Line, String> {
    let fields = match usual_fields(line) {
        Some(fields) => fields,
        None if line.is_empty() || is_header(line, Separator::Comma, 7) => return Ok(Line::Nothing),
        None => all_fields(line)?,
    };
    let Fields { ticks, host, disk, op, start, length } = fields;
    // Times are made relative to the first line, because ticks since 1601 would overflow in nanoseconds. The
    // reader needs only differences.
    let origin = *state.origin.get_or_insert(ticks);
    state.base = u128::from(origin) * u128::from(TICK_NS);
    let most = origin.saturating_add((u64::MAX - ORIGIN_NS) / TICK_NS);
    if ticks > most {
        return Err(format!("time `{ticks}` is out of range; at most {most}"));
    }
    // A time of 0 is centuries before that of the first line. It becomes the earliest representable time.
    let at = match ticks.checked_sub(origin) {
        Some(since) => ORIGIN_NS + since * TICK_NS,
        None => ORIGIN_NS.saturating_sub((origin - ticks).saturating_mul(TICK_NS)),
    };
    // Disks of different hosts have the same numbers, so the name of a volume includes the host.
    state.request_in(&[host, b".", disk], Record::new(Nanos(at), op, start, length))
}

/// Returns the fields of a usual line in one pass: one without white space and quotes.
#[inline]
fn usual_fields(line: &[u8]) -> Option<Fields<'_>> {
    let mut rest = Plain(line);
    let ticks = rest.number()?;
    rest.byte(b',')?;
    let (host, disk) = (rest.field()?, rest.field()?);
    let op = operation(rest.field()?)?;
    let start = rest.number()?;
    rest.byte(b',')?;
    let length = rest.number()?;
    rest.byte(b',')?;
    (!rest.0.contains(&b',')).then_some(Fields { ticks, host, disk, op, start, length })
}

fn all_fields(line: &[u8]) -> Result<Fields<'_>, String> {
    let form = "time,host,disk,type,offset,size,response";
    let [time, host, disk, kind, offset, size, _] = fields(line, Separator::Comma, form)?;
    let op = operation(kind)
        .ok_or_else(|| format!("type {} is unknown; Read and Write are known", quote(kind)))?;
    let ticks = number("time", time, u64::MAX)?;
    let (start, length) = (number("offset", offset, u64::MAX)?, number("size", size, u64::MAX)?);
    Ok(Fields { ticks, host, disk, op, start, length })
}

fn operation(kind: &[u8]) -> Option<Op> {
    match kind {
        b"Read" | b"read" => Some(Op::Read),
        b"Write" | b"write" => Some(Op::Write),
        _ => None,
    }
}

/// The time of the first line, so that earlier times are not negative.
const ORIGIN_NS: u64 = 1 << 62;

fn write(record: &Record, volume: &str, _: Nanos, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let kind = read_or_write(record.op, "Read", "Write")?;
    let Record { at, start, length, .. } = record;
    let _ = writeln!(out, "{},{volume},{kind},{start},{length},0", at.0 / TICK_NS);
    Ok(())
}
