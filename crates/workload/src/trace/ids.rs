//! Reads the format `ids`: plain lists of pages or objects, as cache simulators take them.
//!
//! A line has the number of a page, in decimal digits or in hexadecimal ones after `0x`. Lists of LIRS (`*.trc`,
//! Jiang and Zhang, SIGMETRICS 2002), libCacheSim's plain text (`txt`) and the addresses of PARDA (Niu et al.,
//! IPDPS 2012) are such lists. In those of LIRS a `*` is no request: its simulator prints its state there.
//! A line of ARC's traces (`*.lis`, Megiddo and Modha, FAST 2003) has four numbers: the first page, the
//! number of pages, a number that nobody uses, and the number of the request.
//!
//! The format has no times and no operations. A request is a write with probability `write_share`, drawn in order
//! from a fixed seed, and otherwise a read.

use super::field::{number, number_or_hex, quote};
use super::record::{Line, Record, Unit};
use super::row::{FormatRow, Shape};
use super::state::ReaderState;
use crate::Op;
use fulgurite_base::Nanos;

pub(super) static FORMAT: FormatRow = FormatRow {
    name: "ids",
    about: "`page` per line (LIRS, libCacheSim, PARDA) or `page pages x x` (ARC), without times and operations",
    unit: Unit::Pages,
    name_parts: &["ids", "trc", "lis"],
    // A number alone is too little to tell a format.
    is_told_by_content: false,
    options: &["write_share"],
    shape: Shape::lines(parse),
    // The format is not written, because it would lose the operations.
    writer: None,
};

fn parse(line: &[u8], state: &mut ReaderState) -> Result<Line, String> {
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let first = match fields.next() {
        None | Some([b'*' | b'#', ..]) => return Ok(Line::Nothing),
        Some(first) => number_or_hex("page", first, u64::MAX)?,
    };
    let length = match (fields.next(), fields.next(), fields.next(), fields.next()) {
        (None, ..) => 1,
        (Some(pages), Some(_), Some(_), None) => number("number of pages", pages, u64::MAX)?,
        _ => {
            return Err(format!(
                "{} is neither a page nor a line of ARC; a line is `17`, or `17 8 0 1` for 8 pages from 17 on",
                quote(line)
            ));
        }
    };
    let op = if state.draw_write() { Op::Write } else { Op::Read };
    Ok(Line::Request(Record::new(Nanos::ZERO, op, first, length)))
}
