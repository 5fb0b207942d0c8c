//! Reads the format `ftrace`: the events `block_rq_issue` of Linux's tracing, as the file `trace` of tracefs,
//! `trace-cmd report` and `perf script` print them.
//!
//! A line is `process-pid [cpu] flags seconds: block_rq_issue: major,minor RWBS bytes (command) sector + sectors …`;
//! perf has no flags, and calls the event `block:block_rq_issue`. The source is the event's format in the kernel
//! (`include/trace/events/block.h`). A sector has 512 bytes. RWBS is as in the format `blkparse`. A device is a
//! volume. Other events are left out.

use super::blkparse::operation;
use super::field::{quote, sectors, time};
use super::record::{Line, Record, Unit};
use super::row::{FormatRow, Shape};
use super::state::ReaderState;

pub(super) static FORMAT: FormatRow = FormatRow {
    name: "ftrace",
    about: "the text of ftrace, trace-cmd or perf script: `… s: block_rq_issue: dev RWBS bytes () sector + sectors`",
    unit: Unit::Bytes,
    name_parts: &["ftrace"],
    is_told_by_content: true,
    options: &["volume"],
    shape: Shape::lines(parse),
    writer: None,
};

const EVENT: &[u8] = b"block_rq_issue:";
const FORM: &str = "seconds: block_rq_issue: 8,0 R 4096 () 2048 + 8 [process]";

fn parse(line: &[u8], state: &mut ReaderState) -> Result<Line, String> {
    if line.is_empty() || line.starts_with(b"#") {
        return Ok(Line::Nothing);
    }
    let Some(at) = memchr::memmem::find(line, EVENT) else {
        // An event has its CPU in brackets. Other lines belong to another format.
        return match memchr::memmem::find(line, b"] ") {
            Some(_) if line.contains(&b'[') => Ok(Line::Skip("an event other than block_rq_issue")),
            _ => Err(format!("{} is no event; a line is {FORM}", quote(line))),
        };
    };
    let before = line[..at].strip_suffix(b"block:").unwrap_or(&line[..at]);
    let seconds = before.split(u8::is_ascii_whitespace).rfind(|field| !field.is_empty());
    let Some(seconds) = seconds.and_then(|field| field.strip_suffix(b":")) else {
        return Err(format!("{} has no time before the event; a line is {FORM}", quote(line)));
    };
    let seconds = time(seconds, 1_000_000_000)?;
    let behind = &line[at + EVENT.len()..];
    let mut fields = behind.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let (Some(device), Some(rwbs)) = (fields.next(), fields.next()) else {
        return Err(format!("{} has no device and operation; a line is {FORM}", quote(line)));
    };
    // The command in parentheses may have spaces, so the sectors are found by their sign.
    let fields: Vec<&[u8]> = fields.collect();
    let plus = fields.iter().position(|field| *field == b"+");
    let of = |at: usize| fields.get(at).copied();
    let placed = plus.and_then(|plus| Some((of(plus.checked_sub(1)?)?, of(plus + 1)?)));
    let Some((sector, count)) = placed else {
        return Err(format!("{} has no `sector + sectors`; a line is {FORM}", quote(line)));
    };
    let op = match operation(rwbs) {
        Ok(op) => op,
        Err(reason) => return Ok(Line::Skip(reason)),
    };
    let (start, length) = (sectors("sector", sector)?, sectors("sectors", count)?);
    state.request(device, Record::new(seconds, op, start, length))
}
