//! Reads the format `fiu`, the block traces of Florida International University, which SNIA IOTTA distributes
//! (trace set 390) in files called `*.blkparse`. Lines are `time pid process LBA blocks R|W major minor MD5`.
//!
//! The source is Verma et al., "SRCMap: Energy Proportional Storage Using Dynamic Consolidation", FAST 2010.
//! The time is in nanoseconds, and a block has 512 bytes. The last field, the hash of the content, is not
//! used. The name of a process may have spaces. A device is a volume.

use super::field::{Separator, is_header, number, quote, sectors};
use super::record::{Line, Record, Unit};
use super::row::{FormatRow, Shape};
use super::state::ReaderState;
use crate::Op;
use fulgurite_base::Nanos;

pub(super) static FORMAT: FormatRow = FormatRow {
    name: "fiu",
    about: "`time pid process LBA blocks R|W major minor MD5` per line; time in ns, blocks of 512 B",
    unit: Unit::Bytes,
    // The files of this format have the name of another one, so their content decides between the two.
    name_parts: &["fiu", "blkparse"],
    is_told_by_content: true,
    options: &["volume"],
    shape: Shape::lines(parse),
    // The format cannot be written, because the hashes of the contents are not known.
    writer: None,
};

const FORM: &str = "time pid process LBA blocks R|W major minor MD5";

fn parse(line: &[u8], state: &mut ReaderState) -> Result<Line, String> {
    if line.is_empty() || is_header(line, Separator::Space, 9) {
        return Ok(Line::Nothing);
    }
    let parts = || line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let mut back = parts().rev();
    let (Some(_), Some(minor), Some(major), Some(op), Some(count), Some(lba), Some(_), Some(_), Some(_)) = (
        back.next(),
        back.next(),
        back.next(),
        back.next(),
        back.next(),
        back.next(),
        back.next(),
        back.next(),
        back.next(),
    ) else {
        return Err(format!("{} has too few fields; a line is {FORM}", quote(line)));
    };
    let op = match op {
        b"R" => Op::Read,
        b"W" => Op::Write,
        _ => return Err(format!("operation {} is unknown; R and W are known", quote(op))),
    };
    let at = Nanos(number("time", parts().next().unwrap_or_default(), u64::MAX)?);
    number("major", major, u64::from(u32::MAX))?;
    number("minor", minor, u64::from(u32::MAX))?;
    let record = Record::new(at, op, sectors("LBA", lba)?, sectors("blocks", count)?);
    state.request_in(&[major, b",", minor], record)
}
