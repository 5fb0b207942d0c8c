//! Reads the format `binary-ids`: numbers of pages or objects in binary, one after the other, as cache simulators take
//! them.
//!
//! The option `id` tells their size and the order of their bytes: `u64le` for the addresses of PARDA (Niu et al.,
//! IPDPS 2012), which is the default; `u64be` for the traces that Caffeine's simulator calls corda and scarab, and
//! `u32be` for those that it calls cache2k and cloud-physics.
//!
//! The format has no times and no operations. A request is a write with probability `write_share`, drawn in order
//! from a fixed seed, and otherwise a read.

use super::record::{Line, Record, Unit};
use super::row::{FormatRow, Shape};
use super::state::{IdForm, ReaderState};
use crate::Op;
use fulgurite_base::Nanos;

pub(super) static FORMAT: FormatRow = FormatRow {
    name: "binary-ids",
    about: "binary numbers of pages (PARDA, Caffeine), whose size and order id= tells; without times and operations",
    unit: Unit::Pages,
    name_parts: &["binary-ids"],
    // Any bytes fit.
    is_told_by_content: false,
    options: &["id", "write_share"],
    shape: Shape::Records { size: |_, options| Ok(options.id.bytes()), parse },
    writer: None,
};

fn parse(bytes: &[u8], state: &mut ReaderState) -> Result<Line, String> {
    let shift = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    let page = match state.options.id {
        IdForm::U32Le | IdForm::U64Le => bytes.iter().rev().fold(0, shift),
        IdForm::U32Be | IdForm::U64Be => bytes.iter().fold(0, shift),
    };
    let op = if state.draw_write() { Op::Write } else { Op::Read };
    Ok(Line::Request(Record::new(Nanos::ZERO, op, page, 1)))
}
