//! Tests whole runs against an independent oracle, on real and generated traces.

use fulgurite_base::units;
use fulgurite_stack::settings::{self, Workloads};
use fulgurite_stack::{Column, Progress, Row, Run};
use fulgurite_workload::trace::{Format, Record, Trace, TraceOptions, TraceWriter, Unit};
use fulgurite_workload::{GeneratorConfig, Op};
use std::path::Path;

fn pool_run(values: &[(&str, &str)]) -> Run {
    let values = values.iter().copied().collect();
    settings::run(fulgurite_stack::Command::Pool, &values, &mut Workloads::default()).unwrap()
}

/// Returns the hits, misses, pages written and batches of LRU with batches of `n_w` pages. The algorithm is
/// slow and simple: the pool is a list, oldest page first.
fn oracle(requests: &[(u64, bool)], frames: usize, n_w: usize) -> [u64; 4] {
    let mut pool: Vec<(u64, bool)> = Vec::new();
    let [mut hits, mut misses, mut written, mut batches] = [0; 4];
    for (page, write) in requests {
        let held = pool.iter().rposition(|(held, _)| held == page).map(|at| pool.remove(at));
        if held.is_some() {
            hits += 1
        } else {
            misses += 1
        }
        if held.is_none() && pool.len() == frames {
            if pool[0].1 {
                batches += 1;
                let batch = pool.iter_mut().filter(|(_, dirty)| *dirty).take(n_w);
                batch.for_each(|entry| (entry.1, written) = (false, written + 1));
            }
            pool.remove(0);
        }
        pool.push((*page, *write || held.is_some_and(|(_, dirty)| dirty)));
    }
    [hits, misses, written, batches]
}

fn counts(row: &Row) -> [u64; 4] {
    [Column::Hits, Column::Misses, Column::PagesWritten, Column::WriteIos]
        .map(|column| row.number(column).unwrap() as u64)
}

/// Compares the counts of a pool on a simulated drive with the oracle, on the first requests of a trace file.
fn agrees_with_the_oracle(trace: &Path, page: &str, ops: usize, frames: usize, golden: [[u64; 4]; 2]) {
    let bytes = units::parse_size(page).unwrap();
    let pages = Trace::load(trace, None, TraceOptions::default()).unwrap().page_requests(bytes).unwrap();
    let requests: Vec<(u64, bool)> = pages
        .iter()
        .flat_map(|request| {
            (0..request.pages).map(move |at| (request.page + u64::from(at), request.op == Op::Write))
        })
        .take(ops)
        .collect();
    let (path, ops, frames_text) = (trace.to_str().unwrap(), ops.to_string(), frames.to_string());
    for (write_back, n_w, golden) in [("single", 1, golden[0]), ("ace:n_w=8", 8, golden[1])] {
        let run = pool_run(&[
            ("workload", path),
            ("device", "p4510:blocks=160"),
            ("page", page),
            ("ops", &ops),
            ("frames", &frames_text),
            ("write_back", write_back),
        ]);
        let measured = counts(&run.execute(&Progress::default()).unwrap()[0]);
        assert_eq!(measured, oracle(&requests, frames, n_w), "{path}, {write_back}");
        assert_eq!(measured, golden, "{path}, {write_back}");
    }
}

#[test]
fn our_postgresql_trace_gives_the_oracles_counts() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/postgres-pgbench.pages.zst");
    agrees_with_the_oracle(
        &trace,
        "8KiB",
        195_795,
        1_092,
        [[123_886, 71_909, 36_536, 36_536], [123_886, 71_909, 36_544, 4_568]],
    );
}

/// The pool agrees with the oracle on a block trace too, whose requests have several pages and begin anywhere
/// in a page.
#[test]
fn a_block_trace_gives_the_oracles_counts() {
    let generator = "financial-like".parse::<GeneratorConfig>().unwrap().start(20_000, 4096, 42).unwrap();
    let mut writer = TraceWriter::new(Vec::new(), Format::CLOUD_PHYSICS, Unit::Bytes, 4096).unwrap();
    for (at, request) in generator.take(60_000).enumerate() {
        let start = request.page * 4096 + 512 * (at as u64 % 8);
        let record = Record::new(request.at, request.op, start, u64::from(request.pages) * 4096);
        writer.write(&record).unwrap();
    }
    let (bytes, _) = writer.finish().unwrap();
    let trace = std::env::temp_dir().join(format!("fulgurite-stack-{}.cloudphysics", std::process::id()));
    std::fs::write(&trace, bytes).unwrap();
    let golden = [[26_620, 93_380, 75_773, 75_773], [26_620, 93_380, 75_792, 9_474]];
    agrees_with_the_oracle(&trace, "4KiB", 120_000, 4_000, golden);
    std::fs::remove_file(&trace).unwrap();
}
