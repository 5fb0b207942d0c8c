//! Megabytes of plain text per second of each trace reader, from memory; tiny sizes unless run by
//! `cargo bench`.

use fulgurite_workload::trace::{Format, TraceReader};
use std::fmt::Write;
use std::hint::black_box;
use std::io::Cursor;
use std::time::Instant;

fn main() {
    let is_full =
        std::env::args().any(|arg| arg == "--bench") && !std::env::args().any(|arg| arg == "--test");
    let lines = if is_full { 10_000_000 } else { 1_000 };
    for format in Format::all() {
        let text = text(*format, lines);
        let bytes = text.len() as f64;
        let reader =
            TraceReader::new("memory", Cursor::new(text), Some(*format)).expect("memory can be read");
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

/// So many requests to addresses that jump.
fn text(format: Format, lines: u32) -> String {
    let mut text = String::new();
    for line in 0..lines {
        let jump = line.wrapping_mul(0x9e37_79b1);
        match format {
            Format::PageOps => writeln!(text, "{} {}", if jump & 1 == 0 { 'R' } else { 'W' }, jump >> 12),
            Format::CloudPhysics => {
                let (time, op) = (5_633_898 + line / 16, if jump & 1 == 0 { "28" } else { "2a" });
                writeln!(text, "1,{time},{op},{},{}", 512 * (1 + (jump >> 25)), jump >> 4)
            }
        }
        .expect("a string can be written to");
    }
    text
}
