//! Formats the table: one row per engine, workload and durability, with medians over the repetitions.

use crate::parent::{Memory, Run};
use crate::rows::ROW_BYTES;
use crate::setting::{Args, Durability};
use crate::worker::Outcome;
use std::fmt::Write;

const COLUMNS: usize = 22;

const HEAD: [&str; COLUMNS] = [
    "engine",
    "work",
    "durability",
    "io",
    "ops/s",
    "min-max",
    "rd p50",
    "p99",
    "p99.9",
    "cmt p50",
    "p99",
    "p99.9",
    "WA proc",
    "WA dev",
    "flush/cmt",
    "reads/op",
    "cpu us/op",
    "MiB disk",
    "MiB data",
    "SA",
    "MiB rss",
    "MiB mem",
];

/// The table as text, with the settings above it. Times are in µs.
pub fn render(args: &Args, memory: &Memory, runs: &[Run]) -> String {
    let mut lines = vec![HEAD.map(str::to_owned)];
    for (workload, durability) in args.cells() {
        for name in &args.engines {
            let same: Vec<&Run> = runs
                .iter()
                .filter(|run| run.engine == name && run.workload == workload)
                .filter(|run| run.durability.is_none_or(|own| own == durability))
                .collect();
            if let Some(first) = same.first() {
                let outcomes: Vec<&Outcome> = same.iter().map(|run| &run.outcome).collect();
                lines.push(line(first, &outcomes));
            }
        }
    }
    let mut text = setting(args, memory);
    text.push_str(&aligned(&lines));
    text
}

fn setting(args: &Args, memory: &Memory) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{} rows of 16 + 100 bytes, zipf {}, {} threads, {} writes a commit, cache {} MiB, {} s after {} s, {} repeats",
        args.rows,
        args.theta,
        args.threads,
        args.batch,
        args.cache >> 20,
        args.seconds,
        args.warmup,
        args.repeat
    );
    let _ = writeln!(text, "memory: {}", memory.note);
    let _ = writeln!(
        text,
        "{}\n",
        if args.keep {
            "stores are used again (--keep)"
        } else {
            "each run has a fresh copy of the loaded store"
        }
    );
    text
}

fn line(run: &Run, outcomes: &[&Outcome]) -> [String; COLUMNS] {
    let over = |field: &dyn Fn(&Outcome) -> Option<f64>| -> Option<f64> {
        median(outcomes.iter().filter_map(|outcome| field(outcome)).collect())
    };
    let show = |digits: usize, field: &dyn Fn(&Outcome) -> Option<f64>| -> String {
        over(field).map_or("-".to_owned(), |value| format!("{value:.digits$}"))
    };
    let time = |at: usize, commits: bool| {
        show(0, &|o: &Outcome| if commits { o.commit_us } else { o.read_us }.map(|times| times[at]))
    };
    let per_user_byte =
        |bytes: u64, o: &Outcome| (o.user_bytes > 0).then(|| bytes as f64 / o.user_bytes as f64);
    let per_op = |count: f64, o: &Outcome| (o.ops > 0).then(|| count / o.ops as f64);
    let speeds = outcomes.iter().map(|o| o.ops_per_s);
    let (low, high) = (speeds.clone().fold(f64::INFINITY, f64::min), speeds.fold(0.0, f64::max));
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    [
        run.engine.to_owned(),
        run.workload.name().to_owned(),
        match run.durability {
            None => "-".to_owned(),
            Some(Durability::Relaxed) => "relaxed".to_owned(),
            Some(Durability::Durable) => "durable".to_owned(),
        },
        run.io.to_owned(),
        show(0, &|o| Some(o.ops_per_s)),
        format!("{low:.0}-{high:.0}"),
        time(0, false),
        time(1, false),
        time(2, false),
        time(0, true),
        time(1, true),
        time(2, true),
        show(2, &|o| per_user_byte(o.process_write_bytes, o)),
        show(2, &|o| per_user_byte(o.device_write_bytes?, o)),
        show(2, &|o| (o.commits > 0).then_some(o.device_flushes? as f64 / o.commits as f64)),
        show(3, &|o| per_op(o.device_reads? as f64, o)),
        show(1, &|o| per_op(o.cpu_us as f64, o)),
        show(0, &|o| Some(mib(o.space_bytes))),
        show(0, &|o| Some(mib(o.data_bytes))),
        show(2, &|o| (o.rows > 0).then(|| o.data_bytes as f64 / (o.rows * ROW_BYTES) as f64)),
        show(0, &|o| Some(mib(o.peak_rss_bytes))),
        show(0, &|o| o.peak_group_bytes.map(mib)),
    ]
}

/// The median: the middle value, or the mean of the two middle values.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.get(values.len().checked_sub(1)? / 2)?, values.get(values.len() / 2)?);
    Some((low + high) / 2.0)
}

/// Aligns columns: the first four to the left, numbers to the right.
fn aligned(lines: &[[String; COLUMNS]]) -> String {
    let mut widths = [0; COLUMNS];
    for line in lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.len());
        }
    }
    let mut text = String::new();
    for line in lines {
        for (at, (cell, &width)) in line.iter().zip(&widths).enumerate() {
            let _ = if at < 4 { write!(text, "{cell:width$}  ") } else { write!(text, "{cell:>width$}  ") };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 100.0]), Some(3.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn columns_stand_below_each_other() {
        let mut short = HEAD.map(str::to_owned);
        short[0] = "wiredtiger".to_owned();
        let text = aligned(&[HEAD.map(str::to_owned), short]);
        let column = |line: &str| line.find("ops/s");
        let mut lines = text.lines();
        assert_eq!(lines.next().map(column), lines.next().map(column));
    }
}
