//! Curves of misses over sizes of a pool (`pool --curve`), against runs for each size.

use fulgurite_stack::settings::{self, Workloads};
use fulgurite_stack::{Column, Command, Progress, Row, StackError};
use std::collections::BTreeMap;

fn rows(values: &[(&'static str, &str)]) -> Result<Vec<Row>, StackError> {
    let values: BTreeMap<&str, &str> =
        [("device", "none")].into_iter().chain(values.iter().copied()).collect();
    settings::run(Command::Pool, &values, &mut Workloads::default())?.execute(&Progress::default())
}

fn number(row: &Row, column: Column) -> f64 {
    row.number(column).unwrap_or_else(|| panic!("{column}: {row:?}"))
}

/// Returns the miss ratio of a run with this number of frames.
fn direct(values: &[(&'static str, &str)], frames: f64) -> f64 {
    let frames = frames.to_string();
    let values: Vec<_> = values.iter().copied().chain([("frames", &*frames)]).collect();
    let [row] = &rows(&values).unwrap()[..] else { panic!("one run has one row") };
    number(row, Column::Misses) / number(row, Column::Ops)
}

/// The rule: each row of an exact curve is what a run with so many frames counts, for LRU, for policies that are
/// simulated side by side, and for one that needs the future; and `--skip` and `--ops` choose the same requests.
#[test]
fn an_exact_curve_has_the_misses_of_single_runs() {
    let part = [("workload", "postgres-pgbench"), ("skip", "1000"), ("ops", "30000")];
    let generated = [("workload", "zipf"), ("pages", "3000"), ("ops", "40000")];
    for workload in [part, generated] {
        for replacement in ["lru", "arc", "belady", "2q:in=5"] {
            let base: Vec<_> = workload.into_iter().chain([("replacement", replacement)]).collect();
            let curve: Vec<_> = base.iter().copied().chain([("curve", "yes"), ("sample", "1")]).collect();
            let curve = rows(&curve).unwrap();
            assert_eq!(curve.len(), 64, "{replacement}");
            assert!(curve.iter().all(|row| row.get(Column::MissRatioError).is_none()));
            for row in curve.iter().step_by(9).chain(curve.last()) {
                let frames = number(row, Column::Frames);
                assert_eq!(number(row, Column::MissRatio), direct(&base, frames), "{replacement} {frames}");
                assert_eq!(number(row, Column::Hits) + number(row, Column::Misses), number(row, Column::Ops));
            }
        }
    }
}

/// The rule: without `--sample`, LRU is exact, and a short workload over few pages is exact for every policy. All
/// pages fit into the largest pool, so its misses are the distinct pages.
#[test]
fn a_curve_ends_with_the_distinct_pages() {
    for replacement in ["lru", "s3-fifo"] {
        let curve = rows(&[
            ("workload", "zipf"),
            ("pages", "500"),
            ("ops", "20000"),
            ("replacement", replacement),
            ("curve", "yes"),
        ]);
        let curve = curve.unwrap();
        let last = curve.last().unwrap();
        let pages = number(last, Column::Frames);
        assert!(pages <= 500.0 && last.get(Column::Sample).is_none());
        assert_eq!(number(last, Column::Misses), pages, "{replacement}");
        let half = [("workload", "zipf"), ("pages", "500"), ("ops", "20000"), ("replacement", replacement)];
        let half: Vec<_> = half.into_iter().chain([("curve", "yes"), ("frames", "100")]).collect();
        assert_eq!(number(rows(&half).unwrap().last().unwrap(), Column::Frames), 100.0);
    }
}

/// The rule: the exact miss ratio is within the error that a sampled curve tells, in 95 of 100 cases; and the error
/// shrinks with a larger sample.
#[test]
fn a_sampled_curve_is_within_its_error() {
    let (mut within, mut all) = (0, 0);
    let mut errors = BTreeMap::new();
    for replacement in ["lru", "fifo", "s3-fifo", "arc", "2q", "clock", "belady"] {
        for sample in ["1/4", "1/16"] {
            for seed in ["1", "2"] {
                let base = [("workload", "postgres-pgbench"), ("replacement", replacement), ("seed", seed)];
                let curve: Vec<_> = base.into_iter().chain([("curve", "yes"), ("sample", sample)]).collect();
                for row in rows(&curve).unwrap().iter().step_by(9) {
                    // The sample tells the number of distinct pages only about, and a run has no more frames.
                    let exact = direct(&base, number(row, Column::Frames).min(18_205.0));
                    let (ratio, error) =
                        (number(row, Column::MissRatio), number(row, Column::MissRatioError));
                    within += u32::from((ratio - exact).abs() <= error);
                    all += 1;
                    // An error that covers everything would tell nothing.
                    assert!(error < 0.2, "{replacement} {sample}: {error}");
                    let (sum, count) = errors.entry(sample).or_insert((0.0, 0.0));
                    (*sum, *count) = (*sum + error, *count + 1.0);
                }
            }
        }
    }
    assert!(within * 100 >= all * 95, "{within} of {all}");
    let mean = |sample| errors[sample].0 / errors[sample].1;
    assert!(mean("1/4") < 0.8 * mean("1/16") && mean("1/16") < 0.05, "{errors:?}");
}

/// The rule: a curve of a trace that is read during the run equals that of the same requests known before.
#[test]
fn a_curve_needs_no_knowledge_of_the_trace() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("curve.pages");
    let text: String = (0..30_000u64).map(|at| format!("R {}\n", at * at % 7_001 * 1_000)).collect();
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    for (replacement, sample) in [("lru", "1"), ("sieve", "1/4"), ("belady", "1/4")] {
        let curve = |frames| {
            let values = [("workload", path), ("replacement", replacement), ("sample", sample)];
            let values: Vec<_> = values.into_iter().chain([("curve", "yes"), ("frames", frames)]).collect();
            rows(&values).unwrap()
        };
        let (all, counted) = (curve("100%"), curve("1000000"));
        let figures = |rows: &[Row]| -> Vec<(f64, f64)> {
            rows.iter().map(|row| (number(row, Column::Frames), number(row, Column::MissRatio))).collect()
        };
        assert_eq!(figures(&all), figures(&counted));
        assert_eq!(number(&all[0], Column::Ops), 30_000.0);
    }
}

/// The rule: what a curve cannot do is refused in a sentence that names the argument.
#[test]
fn a_curve_refuses_what_it_cannot_do() {
    for (values, words) in [
        (&[("device", "p4510"), ("curve", "yes")][..], "--curve counts misses without time"),
        (&[("curve", "yes"), ("write_back", "ace:n_w=4")], "--write-back ace:n_w=4 matters for writes"),
        (&[("curve", "yes"), ("replacement", "2q:in=500")], "in=500 is a number"),
        (&[("curve", "yes"), ("replacement", "cflru-e")], "asks how often erase blocks were erased"),
        (&[("curve", "yes"), ("users", "2")], "--users more than 1 matters only in time"),
        (&[("sample", "1/4")], "--sample is the share of pages for --curve"),
        (&[("curve", "yes"), ("sample", "0")], "`0` is not a share of the pages"),
        (&[("curve", "yes"), ("sample", "1/65536")], "which are too small"),
        (&[("device", "p4510"), ("replacement", "belady")], "must know all requests beforehand"),
    ] {
        let values: Vec<_> = [("workload", "zipf"), ("ops", "1K")].iter().chain(values).copied().collect();
        let error = rows(&values).map(|rows| rows.len()).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}
