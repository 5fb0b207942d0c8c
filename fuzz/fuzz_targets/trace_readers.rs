//! Every trace reader over arbitrary bytes, plain or packed: no panic, and no memory that grows with what is packed.
//!
//! `cargo +nightly fuzz run trace_readers -- -rss_limit_mb=512`

#![no_main]

use fulgurite_workload::trace::{Format, TraceOptions, TraceReader};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

/// A small packed input may unpack without end; a reader streams, so it is cut here by count alone.
const RECORDS_AT_MOST: usize = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    for format in Format::all().iter().copied().map(Some).chain([None]) {
        if let Ok(reader) = TraceReader::new("fuzz", Cursor::new(bytes.to_vec()), format, TraceOptions::default()) {
            reader.take(RECORDS_AT_MOST).for_each(drop);
        }
    }
});
