//! Reads the format `ycsb`, the output of YCSB's binding `basic` (`ycsb run basic -P …`), which prints each
//! operation: `READ usertable user8517097267634966620 [ <all fields>]`.
//!
//! The source is YCSB's class `BasicDB`. A record is a page, whose number is that of its key, behind the letters at
//! its beginning. READ and SCAN read, INSERT and UPDATE write, and DELETE trims. A scan reads its first record here,
//! because the order of the others in the table is not known. Lines of other kinds are left out: YCSB's settings
//! and figures.

use super::field::{number, quote};
use super::record::{Line, Record, Unit};
use super::row::{FormatRow, Shape};
use super::state::ReaderState;
use crate::Op;
use fulgurite_base::Nanos;

pub(super) static FORMAT: FormatRow = FormatRow {
    name: "ycsb",
    about: "the output of YCSB's binding basic: `READ usertable user17 [ … ]`; a record is a page, without times",
    unit: Unit::Pages,
    name_parts: &["ycsb"],
    is_told_by_content: true,
    options: &["volume"],
    shape: Shape::lines(parse),
    writer: None,
};

fn parse(line: &[u8], state: &mut ReaderState) -> Result<Line, String> {
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let op = match fields.next() {
        None => return Ok(Line::Nothing),
        Some(b"READ" | b"SCAN") => Op::Read,
        Some(b"INSERT" | b"UPDATE") => Op::Write,
        Some(b"DELETE") => Op::Trim,
        // The first operation shows that this is the output of YCSB.
        Some(_) if state.kept.is_some() => return Ok(Line::Nothing),
        Some([b'*' | b'[' | b'#' | b'"' | b'-', ..]) => return Ok(Line::Nothing),
        Some(other) => {
            return Err(format!(
                "{} is no operation; READ, SCAN, INSERT, UPDATE and DELETE are known",
                quote(other)
            ));
        }
    };
    let (Some(table), Some(key)) = (fields.next(), fields.next()) else {
        return Err(format!("{} has no table and key; a line is `READ usertable user17 [ … ]`", quote(line)));
    };
    let digits = key.iter().position(u8::is_ascii_digit).unwrap_or(key.len());
    if digits == 0 || !key[..digits].iter().all(u8::is_ascii_alphabetic) {
        return Err(format!("key {} is not letters and a number, like user17", quote(key)));
    }
    let key = number("key", &key[digits..], u64::MAX)?;
    state.kept.get_or_insert_with(|| Box::new(()));
    state.request(table, Record::new(Nanos::ZERO, op, key, 1))
}
