//! Measures the wall-clock speed of each trace reader on a trace in memory, in megabytes of plain text per
//! second. The traces are tiny unless `cargo bench` runs this program.

use fulgurite_base::Nanos;
use fulgurite_workload::Op;
use fulgurite_workload::trace::{Format, Record, TraceOptions, TraceReader, TraceWriter, Unit};
use std::hint::black_box;
use std::io::Cursor;
use std::time::Instant;

fn main() {
    let is_full =
        std::env::args().any(|arg| arg == "--bench") && !std::env::args().any(|arg| arg == "--test");
    let lines = if is_full { 10_000_000 } else { 1_000 };
    for format in Format::all() {
        let Some(trace) = trace(*format, lines) else { continue };
        let bytes = trace.len() as f64;
        let reader = TraceReader::new("memory", Cursor::new(trace), Some(*format), TraceOptions::default())
            .expect("memory can be read");
        let start = Instant::now();
        for record in reader {
            black_box(record.expect("the lines are well-formed"));
        }
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{:<14} {:6.0} MB/s, {:5.1} ns/record of {:.1} bytes",
            format.name(),
            bytes / 1e6 / seconds,
            seconds * 1e9 / f64::from(lines),
            bytes / f64::from(lines)
        );
    }
}

/// Returns a trace of `count` requests to scattered addresses. Returns `None` for a format that cannot be
/// written.
fn trace(format: Format, count: u32) -> Option<Vec<u8>> {
    let mut writer = TraceWriter::new(Vec::new(), format, format.unit(), 4096).ok()?;
    for number in 0..count {
        let jump = u64::from(number.wrapping_mul(0x9e37_79b1));
        let (op, at) =
            (if jump & 1 == 0 { Op::Read } else { Op::Write }, Nanos(u64::from(number) * 62_500_000));
        let record = match format.unit() {
            Unit::Pages => Record::new(at, op, jump >> 12, 1),
            Unit::Bytes => Record::new(at, op, (jump >> 4) << 12, 4096 * (1 + (jump >> 28))),
        };
        writer.write(&record).expect("memory can be written to");
    }
    Some(writer.finish().expect("memory can be written to").0)
}
