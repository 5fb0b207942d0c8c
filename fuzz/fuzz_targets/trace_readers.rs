//! Feeds arbitrary bytes, plain or compressed, to every trace reader. A reader must not panic, and its memory
//! must not grow with the size of the uncompressed data.
//!
//! Run it with `cargo +nightly fuzz run trace_readers -- -rss_limit_mb=512`.

#![no_main]

use fulgurite_workload::trace::{Format, TraceOptions, TraceReader};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

/// The maximum number of records that are read. A small compressed input may expand without limit, and the
/// memory of a reader does not depend on the number of records.
const RECORDS_AT_MOST: usize = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    for format in Format::all().iter().copied().map(Some).chain([None]) {
        if let Ok(reader) = TraceReader::new("fuzz", Cursor::new(bytes.to_vec()), format, TraceOptions::default()) {
            reader.take(RECORDS_AT_MOST).for_each(drop);
        }
    }
});
