//! Real traces: the one that the project ships, and a shared one where it is present.

use fulgurite_base::Nanos;
use fulgurite_workload::Op;
use fulgurite_workload::trace::{Format, TimeUnit, Trace, TraceOptions, Unit};
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

#[test]
fn cloudphysics() {
    let path = at_root("../shared/traces/cloudphysics.csv.gz");
    if !path.exists() {
        println!("skipped: shared traces absent");
        return;
    }
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
fn disksim_and_mqsim() {
    let (disksim, mqsim) =
        (at_root("../shared/traces/dtrs.disksim.gz"), at_root("../shared/traces/tpcc-small.mqsim.gz"));
    if !disksim.exists() || !mqsim.exists() {
        println!("skipped: shared traces absent");
        return;
    }
    // SSDsim's: the columns of DiskSim with times in nanoseconds, which its first time above zero tells.
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
