//! Reads and writes the format `cloudphysics`, the CSV form of the CloudPhysics traces of virtual disks as
//! distributed with libCacheSim, with lines of `version,time,op,size,lbn`.
//!
//! Header lines are optional. The operation is a SCSI operation code in hex (SBC-4), the size is in bytes,
//! and the position (`lbn`) in sectors of 512 bytes. Times are whole seconds. The binary traces have
//! microseconds, but their conversion to CSV divided them by a million: the distributed sample has 113,872
//! requests in 7,200 units, which are two hours and not seven milliseconds. So all requests of a second
//! arrive together.

use super::field::{SECTOR_BYTES, Separator, is_header, number, quote};
use super::record::{Line, Record, Unit};
use super::row::{FormatRow, Loss, Shape, Writer};
use super::state::ReaderState;
use crate::Op;
use fulgurite_base::Nanos;
use std::io::Write as _;

pub(super) static FORMAT: FormatRow = FormatRow {
    name: "cloudphysics",
    about: "`version,time,op,size,lbn` per line; time in s, op a SCSI code in hex, size in bytes, lbn in 512 B",
    unit: Unit::Bytes,
    name_parts: &["cloudphysics"],
    is_told_by_content: true,
    options: &[],
    shape: Shape::lines(parse),
    writer: Some(Writer {
        header: "version,time,op,size,lbn\n",
        record: write,
        volumes: None,
        footer: "",
        loses: &[Loss::BELOW_1_S, Loss::STARTS_IN_SECTORS],
    }),
};

const TICK_NS: u64 = 1_000_000_000;

fn parse(line: &[u8], _: &mut ReaderState) -> Result<Line, String> {
    if line.is_empty() || is_header(line, Separator::Comma, 5) {
        return Ok(Line::Nothing);
    }
    let [version, time, op, size, lbn] = fields(line)?;
    if !matches!(version, b"1" | b"2") {
        return Err(format!("version {} is unknown; 1 and 2 are known", quote(version)));
    }
    let op = match operation(op_code(op)?) {
        Some(Op::Trim) if size.is_empty() || lbn.is_empty() => {
            return Ok(Line::Skip("an unmap that does not say where"));
        }
        Some(op) => op,
        None => return Ok(Line::Skip("a command other than read, write and unmap")),
    };
    let at = Nanos(number("time", time, u64::MAX / TICK_NS)? * TICK_NS);
    let start = number("lbn", lbn, u64::MAX / SECTOR_BYTES)? * SECTOR_BYTES;
    Ok(Line::Request(Record::new(at, op, start, number("size", size, u64::MAX)?)))
}

/// Returns the operation of a SCSI operation code; `None` if the command neither transfers nor unmaps data.
pub(super) fn operation(code: u8) -> Option<Op> {
    match code {
        0x08 | 0x28 | 0x88 | 0xa8 => Some(Op::Read),
        // These are WRITE (6) to (16), and WRITE AND VERIFY (10) to (16).
        0x0a | 0x2a | 0x8a | 0xaa | 0x2e | 0x8e | 0xae => Some(Op::Write),
        0x42 => Some(Op::Trim),
        _ => None,
    }
}

fn write(record: &Record, _: &str, _: Nanos, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let code = match record.op {
        Op::Read => "28",
        Op::Write => "2a",
        Op::Trim => "42",
    };
    let Record { at, start, length, .. } = record;
    let _ = writeln!(out, "1,{},{code},{length},{}", at.0 / TICK_NS, start / SECTOR_BYTES);
    Ok(())
}

fn fields(line: &[u8]) -> Result<[&[u8]; 5], String> {
    let mut parts = line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let mut fields = [[].as_slice(); 5];
    for field in &mut fields {
        *field = parts.next().ok_or_else(|| not_five(line))?;
    }
    if parts.next().is_some() { Err(not_five(line)) } else { Ok(fields) }
}

#[cold]
fn not_five(line: &[u8]) -> String {
    let count = line.split(|byte| *byte == b',').count();
    format!("{} has {count} fields; a line has five: version,time,op,size,lbn", quote(line))
}

fn op_code(field: &[u8]) -> Result<u8, String> {
    std::str::from_utf8(field)
        .ok()
        // A sign is refused here, because the number parser would accept it.
        .filter(|text| text.len() <= 2 && !text.starts_with('+'))
        .and_then(|text| u8::from_str_radix(text, 16).ok())
        .ok_or_else(|| {
            format!(
                "op {} is not a SCSI operation code; it has at most two hexadecimal digits, like 28 for a read",
                quote(field)
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::TraceOptions;

    fn parse(line: &[u8], number: u64) -> Result<Line, String> {
        let mut state = ReaderState::new(TraceOptions::default());
        state.number = number;
        super::parse(line, &mut state)
    }

    fn reason(line: &str) -> String {
        parse(line.as_bytes(), 2).unwrap_err()
    }

    #[test]
    fn every_operation_code_is_classified() {
        for (codes, expected) in [
            (["08", "28", "88", "a8", "A8"].as_slice(), Some(Op::Read)),
            (["0a", "2A", "8a", "aa", "2e", "8e", "ae"].as_slice(), Some(Op::Write)),
            (["42"].as_slice(), Some(Op::Trim)),
            (["00", "0", "12", "25", "35", "41", "ff"].as_slice(), None),
        ] {
            for code in codes {
                let line = parse(format!("1,3,{code}, 4096,8").as_bytes(), 2).unwrap();
                match expected {
                    Some(op) => {
                        assert_eq!(line, Line::Request(Record::new(Nanos(3_000_000_000), op, 4096, 4096)))
                    }
                    None => assert!(matches!(line, Line::Skip(_)), "{code}"),
                }
            }
        }
        assert_eq!(parse(b"2,3,42,,", 2), Ok(Line::Skip("an unmap that does not say where")));
    }

    #[test]
    fn a_header_is_accepted_in_any_line_and_case() {
        assert_eq!(parse(b"version,time,op,size,lbn", 1), Ok(Line::Nothing));
        assert_eq!(parse(b"Version,Time,Op,Size,LBN", 2), Ok(Line::Nothing));
        assert_eq!(reason("version,time,op,size,8"), "version `version` is unknown; 1 and 2 are known");
    }

    #[test]
    fn errors_name_the_wrong_field() {
        assert_eq!(reason("1,2,28"), "`1,2,28` has 3 fields; a line has five: version,time,op,size,lbn");
        assert_eq!(
            reason("1,2,28,512,4,5"),
            "`1,2,28,512,4,5` has 6 fields; a line has five: version,time,op,size,lbn"
        );
        assert_eq!(reason("3,2,28,512,4"), "version `3` is unknown; 1 and 2 are known");
        for op in ["", "zz", "028", "+8"] {
            assert_eq!(
                reason(&format!("1,2,{op},512,4")),
                format!(
                    "op `{op}` is not a SCSI operation code; it has at most two hexadecimal digits, like 28 for a read"
                )
            );
        }
        assert_eq!(
            reason("1,x,28,512,4"),
            "time `x` is not a whole number; it has decimal digits only, like 4096"
        );
        assert_eq!(
            reason("1,18446744074,28,512,4"),
            "time `18446744074` is out of range; at most 18446744073"
        );
        assert_eq!(
            reason("1,2,28,,4"),
            "size `` is not a whole number; it has decimal digits only, like 4096"
        );
        assert_eq!(
            reason("1,2,28,512,36028797018963968"),
            "lbn `36028797018963968` is out of range; at most 36028797018963967"
        );
    }
}
