//! Tests with real traces: the project's own trace, written in every format, and others that the project may
//! not distribute.

use fulgurite_base::Nanos;
use fulgurite_workload::Op;
use fulgurite_workload::trace::{
    Format, Record, TimeUnit, Trace, TraceOptions, TraceReader, TraceWriter, Unit,
};
use std::collections::BTreeSet;
use std::io::Cursor;
use std::path::{Path, PathBuf};

fn at_root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

#[test]
fn postgres_pgbench() {
    let trace =
        Trace::load(at_root("traces/postgres-pgbench.pages.zst"), None, TraceOptions::default()).unwrap();
    assert_eq!((trace.format(), trace.format().unit()), (Format::PAGE_OPS, Unit::Pages));
    assert!(trace.records().len() >= 100_000);
    assert!(trace.skipped().is_empty() && trace.clamped() == 0);
    let pages = trace.page_requests(8192).unwrap();
    assert_eq!(pages.requests().len(), trace.records().len());
    assert!(pages.iter().all(|request| request.page < pages.distinct_pages()));
}

/// The test gives each request of the project's trace a time, writes the trace in every format, and reads it
/// back.
#[test]
fn the_projects_trace_is_the_same_in_every_format() {
    let own =
        Trace::load(at_root("traces/postgres-pgbench.pages.zst"), None, TraceOptions::default()).unwrap();
    let timed = |(at, record): (usize, &Record)| Record { at: Nanos(at as u64 * 40_000_000), ..*record };
    let records: Vec<Record> = own.records().iter().take(50_000).enumerate().map(timed).collect();
    let of_op = |op| records.iter().filter(|record| record.op == op).count() as u64;
    let footprint = records.iter().map(|record| record.start).collect::<BTreeSet<u64>>().len() as u64;
    let writers = Format::all()
        .iter()
        .filter_map(|format| Some((*format, TraceWriter::new(Vec::new(), *format, Unit::Pages, 8192).ok()?)));
    let writers: Vec<_> = writers.collect();
    assert_eq!(writers.len(), 14, "the formats that are written");
    for (format, mut writer) in writers {
        records.iter().for_each(|record| writer.write(record).unwrap());
        let (bytes, left_out) = writer.finish().unwrap();
        let reader =
            TraceReader::new("trace", Cursor::new(bytes), Some(format), TraceOptions::default()).unwrap();
        let trace = Trace::read(reader).unwrap();
        let summary = trace.summary(8192).unwrap();
        let counted = (summary.requests, summary.reads.requests, summary.writes.requests, left_out);
        assert_eq!(counted, (50_000, of_op(Op::Read), of_op(Op::Write), 0), "{format:?}");
        assert_eq!((summary.footprint_pages, summary.clamped), (footprint, 0), "{format:?}");
        // Durations are compared in whole seconds, which every format with times keeps.
        let seconds = if format == Format::PAGE_OPS { 0 } else { 49_999 * 40_000_000 / 1_000_000_000 };
        assert_eq!(summary.duration.0 / 1_000_000_000, seconds, "{format:?}");
    }
}

/// The rule: without `time_unit=`, the first time above zero decides whether times are in milliseconds
/// (DiskSim) or in nanoseconds (SSDsim, which writes the same columns). The reader says which unit it took, and
/// why.
#[test]
fn the_first_time_decides_the_unit_of_disksim() {
    let read = |spec: &str, text: &str| {
        let (format, options) = Format::parse(spec).unwrap();
        let source = Cursor::new(text.as_bytes().to_vec());
        let trace = Trace::read(TraceReader::new("file", source, Some(format), options).unwrap()).unwrap();
        (trace.records().last().unwrap().at, trace.decided().to_owned())
    };
    let said = |unit: &str, time: &str, why: &str| {
        format!("times in {unit}, since the first one above zero, {time}, {why} (time_unit= sets the unit)")
    };
    let (nanos, millis) = ("0 0 8 1 1\n97900000 0 9 1 0\n", "0 0 8 1 1\n97.9 0 9 1 0\n");
    let whole = said("ns", "97900000", "is a whole number of at least 1,000,000");
    for (text, told, why) in [
        (nanos, "disksim:time_unit=ns", whole),
        (millis, "disksim:time_unit=ms", said("ms", "97.9", "has a fraction")),
    ] {
        assert_eq!(read("disksim", text), (Nanos(97_900_000), why));
        assert_eq!(read(told, text), (Nanos(97_900_000), String::new()));
    }
    let (last, why) = read("disksim", "0 0 0 8 1\n999999 0 8 8 0\n");
    assert_eq!((last, why), (Nanos(999_999_000_000), said("ms", "999999", "is below 1,000,000")));
}

#[test]
#[ignore = "needs the CloudPhysics trace of libCacheSim in ../shared/traces; run it with --ignored"]
fn cloudphysics() {
    let path = at_root("../shared/traces/cloudphysics.csv.gz");
    let trace = Trace::load(path, None, TraceOptions::default()).unwrap();
    let summary = trace.summary(4096).unwrap();
    assert_eq!(trace.format(), Format::CLOUD_PHYSICS);
    assert_eq!(
        (summary.requests, summary.writes.requests, summary.reads.requests),
        (113_872, 66_898, 46_974)
    );
    assert_eq!((summary.trims.requests, summary.clamped, summary.skipped.len()), (0, 0, 0));
    assert_eq!(summary.duration, Nanos(7_200_000_000_000));
    assert_eq!(summary.writes.sizes.map(|sizes| (sizes.min, sizes.max)), Some((512, 69_632)));
    let pages = trace.page_requests(4096).unwrap();
    assert_eq!(pages.distinct_pages(), summary.footprint_pages);
    assert_eq!(pages.iter().filter(|request| request.op == Op::Trim).count(), 0);
}

#[test]
#[ignore = "needs traces of SSDsim and MQSim in ../shared/traces; run it with --ignored"]
fn disksim_and_mqsim() {
    let (disksim, mqsim) =
        (at_root("../shared/traces/dtrs.disksim.gz"), at_root("../shared/traces/tpcc-small.mqsim.gz"));
    // SSDsim's trace has the columns of DiskSim with times in nanoseconds. Its first time above zero shows
    // this unit.
    let told = TraceOptions { time_unit: Some(TimeUnit::Nanoseconds), ..TraceOptions::default() };
    let told = Trace::load(&disksim, None, told).unwrap().summary(4096).unwrap();
    let summary = Trace::load(disksim, None, TraceOptions::default()).unwrap().summary(4096).unwrap();
    assert_eq!((summary.duration, summary.requests), (told.duration, told.requests));
    assert_eq!(summary.duration.0 / 1_000_000_000_000, 29);
    assert_eq!((summary.requests, summary.reads.requests, summary.volumes), (127_043, 113_123, 1));
    let trace = Trace::load(mqsim, None, TraceOptions::default()).unwrap();
    let summary = trace.summary(4096).unwrap();
    assert_eq!(trace.format(), Format::MQSIM);
    assert_eq!((summary.requests, summary.writes.requests), (6_999, 2_618));
}
