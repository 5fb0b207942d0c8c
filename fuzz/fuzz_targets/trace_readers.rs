//! Feeds arbitrary bytes, plain or compressed, to every trace reader, alone, with other options, and as two files of
//! one trace. A reader must not panic, and its memory must not grow with the size of the uncompressed data.
//!
//! Run it with `scripts/fuzz`, which begins with the valid samples in `fuzz/seeds`.

#![no_main]

use fulgurite_workload::trace::{Format, Join, Long, TraceOptions, TraceReader};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

/// The maximum number of records that are read. A small compressed input may expand without limit, and the
/// memory of a reader does not depend on the number of records.
const RECORDS_AT_MOST: usize = 1 << 20;

/// Formats with options that select code of their own.
const SPECS: [&str; 5] = [
    "columns:time=1,op=2,offset=3,length=4,volume=5,write=w",
    r#"columns:regex="(?<time>\d+\.?\d*)\D+(?<op>[a-zA-Z]+)\W*(?<offset>\w+)(?: (?<length>\d+))?",hex=yes"#,
    "columns:offset=1,names=yes,objects=yes",
    "binary-ids:id=u32be,write_share=50%",
    "msr:sort=yes",
];

fn open(bytes: &[u8], format: Option<Format>, options: TraceOptions) -> Option<TraceReader> {
    TraceReader::new("fuzz", Cursor::new(bytes.to_vec()), format, options).ok()
}

fuzz_target!(|bytes: &[u8]| {
    for spec in SPECS {
        let (format, options) = Format::parse(spec).expect("the specs are valid");
        if let Some(reader) = open(bytes, Some(format), options) {
            reader.take(RECORDS_AT_MOST).for_each(drop);
        }
    }
    for format in Format::all().iter().copied().map(Some).chain([None]) {
        if let Some(reader) = open(bytes, format, TraceOptions::default()) {
            reader.take(RECORDS_AT_MOST).for_each(drop);
        }
        let options = TraceOptions { long: Long::Read, objects: true, ..TraceOptions::default() };
        if let Some(stream) = open(bytes, format, options).and_then(|reader| reader.page_requests(4096).ok()) {
            stream.take(RECORDS_AT_MOST).for_each(drop);
        }
        let halves = [bytes, &bytes[bytes.len() / 2..]].map(|bytes| open(bytes, format, TraceOptions::default()));
        let parts = halves.into_iter().flatten().enumerate().map(|(at, reader)| (at.to_string(), reader)).collect();
        if let Ok(reader) = TraceReader::join("fuzz", parts, Join::Volumes) {
            reader.take(RECORDS_AT_MOST).for_each(drop);
        }
    }
});
