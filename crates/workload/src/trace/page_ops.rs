//! Reads and writes the format `page-ops`, a text format with a request for one page per line. A line has an
//! operation, `R` or `W`, and a page number. The operation is in upper or lower case, with any white space
//! after it. Blank lines and lines that start with `#` are skipped. There are no times. The traces that this
//! project records have this format.

use super::field::{number, quote, read_or_write};
use super::record::{Line, Record, Unit};
use super::row::{FormatRow, Loss, Shape, Writer};
use super::state::ReaderState;
use crate::Op;
use fulgurite_base::Nanos;
use std::io::Write as _;

pub(super) static FORMAT: FormatRow = FormatRow {
    name: "page-ops",
    about: "`R page` or `W page` per line, # for comments; in pages, without times",
    unit: Unit::Pages,
    name_parts: &["page-ops", "pages"],
    is_told_by_content: true,
    options: &[],
    shape: Shape::lines(parse),
    writer: Some(Writer { header: "", record: write, volumes: None, footer: "", loses: &[TIMES, LENGTHS] }),
};

const TIMES: Loss = Loss { what: "times", of: |record| record.at.0 > 0 };
const LENGTHS: Loss =
    Loss { what: "which pages belong to one request, since each has a line", of: |record| record.length > 1 };

fn parse(line: &[u8], _: &mut ReaderState) -> Result<Line, String> {
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let op = match fields.next() {
        None | Some([b'#', ..]) => return Ok(Line::Nothing),
        Some(b"R" | b"r") => Op::Read,
        Some(b"W" | b"w") => Op::Write,
        Some(other) => return Err(format!("operation {} is unknown; R and W are known", quote(other))),
    };
    let (Some(page), None) = (fields.next(), fields.next()) else {
        return Err(format!(
            "{} is not an operation and a page; a line is `R page` or `W page`, like `R 17`",
            quote(line)
        ));
    };
    let start = number("page", page, u64::MAX)?;
    Ok(Line::Request(Record::new(Nanos::ZERO, op, start, 1)))
}

fn write(record: &Record, _: &str, _: Nanos, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let op = read_or_write(record.op, 'R', 'W')?;
    for page in record.start..record.start + record.length {
        let _ = writeln!(out, "{op} {page}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::TraceOptions;

    fn parse(line: &[u8], _: u64) -> Result<Line, String> {
        super::parse(line, &mut ReaderState::new(TraceOptions::default()))
    }

    #[test]
    fn lines_of_every_kind() {
        let request = |op, start| Ok(Line::Request(Record::new(Nanos::ZERO, op, start, 1)));
        assert_eq!(parse(b"R 17", 1), request(Op::Read, 17));
        assert_eq!(parse(b"w \t 0", 1), request(Op::Write, 0));
        assert_eq!(parse(b"", 1), Ok(Line::Nothing));
        assert_eq!(parse(b"# R x", 1), Ok(Line::Nothing));
        for (line, reason) in [
            ("X 17", "operation `X` is unknown; R and W are known"),
            ("17 R", "operation `17` is unknown; R and W are known"),
            ("R", "`R` is not an operation and a page; a line is `R page` or `W page`, like `R 17`"),
            ("R 1 2", "`R 1 2` is not an operation and a page; a line is `R page` or `W page`, like `R 17`"),
            ("R -1", "page `-1` is not a whole number; it has decimal digits only, like 4096"),
            (
                "W 18446744073709551616",
                "page `18446744073709551616` is out of range; at most 18446744073709551615",
            ),
        ] {
            assert_eq!(parse(line.as_bytes(), 1), Err(reason.to_owned()));
        }
    }
}
