//! The rows of a benchmark.

use super::{BenchRun, Measured};
use crate::execute::done::set_collecting;
use crate::execute::{set_cost, set_latency, set_policies};
use crate::run::Rows;
use crate::{Column, Row, StackError};
use fulgurite_base::{Histogram, Nanos, option};
use fulgurite_bench::{BenchmarkConfig, KindOutcome, Outcome};
use std::time::{Duration, Instant};

impl BenchRun<'_> {
    pub(super) fn rows(&self, measured: &Measured, start: Instant) -> Result<Vec<Row>, StackError> {
        let common = self.common(measured)?;
        let outcome = &measured.outcome;
        match self.run.measure.rows {
            Rows::Types => Ok(outcome.kinds.iter().map(|kind| of_type(&common, kind, outcome)).collect()),
            Rows::TimeIntervals(_) => Ok(intervals(&common, outcome)),
            _ => {
                let mut row = common;
                self.set_results(&mut row, measured);
                set_cost(&mut row, start, Duration::ZERO, outcome.transactions());
                Ok(vec![row])
            }
        }
    }

    /// The columns that say what was run.
    fn common(&self, measured: &Measured) -> Result<Row, StackError> {
        let (run, asked, stage) = (self.run, self.asked, self.stage);
        let mut row = run.identity()?;
        row.set(Column::Benchmark, asked.label.as_str());
        row.set_some(Column::Scale, asked.scale);
        row.set_some(Column::Channels, run.stack.device.simulated().map(|config| config.channels));
        set_collecting(&mut row, &run.stack);
        set_policies(&mut row, &stage.policies);
        row.set(Column::TornPages, option::name_of(measured.torn_pages));
        if let BenchmarkConfig::IndexScan(scan) = &asked.benchmark {
            row.set(Column::Degree, scan.degree);
        }
        row.set(Column::Durability, option::name_of(stage.durability));
        row.set(Column::MemoryBytes, stage.memory_bytes);
        row.set(Column::LogBytes, stage.log_bytes);
        row.set(Column::Frames, stage.options().frames(stage.page_bytes).map_err(StackError::run)?);
        row.set(Column::PageBytes, stage.page_bytes);
        row.set(Column::Users, asked.users);
        row.set(Column::CpuPerOpNs, stage.cpu_per_op.0);
        row.set(Column::Seed, run.seed);
        Ok(row)
    }

    fn set_results(&self, row: &mut Row, measured: &Measured) {
        let Measured { outcome, before, after, verified, .. } = measured;
        let transactions = outcome.transactions();
        row.set(Column::Ops, transactions);
        row.set(Column::ElapsedNs, outcome.elapsed.0);
        set_throughput(row, transactions, outcome.elapsed);
        row.set(Column::Retries, outcome.retries());
        row.set(Column::Rollbacks, outcome.rollbacks());
        set_pool(row, measured);
        set_latency(row, &outcome.latency);
        set_latencies(row, READ, &outcome.read_latency);
        set_latencies(row, COMMIT, &outcome.commit_latency);
        let (now, then) = (&after.statistics, &before.statistics);
        row.set(Column::Deadlocks, now.deadlocks - then.deadlocks);
        row.set(Column::UserBytesWritten, outcome.user_bytes_written);
        row.set(Column::SpaceBytes, now.space_bytes);
        row.set(Column::LogBytesWritten, now.log_bytes_written - then.log_bytes_written);
        row.set(Column::LogFlushes, now.log_flushes - then.log_flushes);
        row.set(Column::Flushes, now.flushes - then.flushes);
        row.set(Column::Checkpoints, now.checkpoints - then.checkpoints);
        row.set(Column::RowsVerified, verified.rows);
        // A drive that counts nothing itself was still told what to write.
        row.set(Column::HostPagesWritten, after.seen.pages_written - before.seen.pages_written);
        after.seen.done.since(&before.seen.done).set(row);
        if let Some((now, then)) = after.cpu.zip(before.cpu) {
            row.set(Column::CpuNsPerOp, (now.0 - then.0) as f64 / transactions as f64);
        }
    }
}

fn set_pool(row: &mut Row, measured: &Measured) {
    let pool = measured.after.statistics.pool.since(&measured.before.statistics.pool);
    row.set(Column::Hits, pool.hits);
    row.set(Column::Misses, pool.misses);
    if pool.hits + pool.misses > 0 {
        row.set(Column::HitRatio, pool.hits as f64 / (pool.hits + pool.misses) as f64);
    }
    row.set(Column::ReadIos, pool.read_ios);
    row.set(Column::WriteIos, pool.write_ios);
    row.set(Column::PagesRead, pool.pages_read);
    row.set(Column::PagesWritten, pool.pages_written);
    row.set(Column::PagesFlushed, pool.pages_flushed);
    row.set(Column::Prefetched, pool.prefetched);
    row.set(Column::PrefetchHits, pool.prefetch_hits);
    row.set(Column::PrefetchWasted, pool.prefetch_wasted);
    row.set(Column::WriteWaits, pool.write_waits);
    row.set(Column::Rescued, pool.rescued);
}

fn set_throughput(row: &mut Row, transactions: u64, elapsed: Nanos) {
    if elapsed > Nanos::ZERO {
        row.set(Column::ThroughputOpsS, transactions as f64 / elapsed.as_secs_f64());
    }
}

/// Mean, standard deviation and percentiles of a kind of latency.
type Latencies = [Column; 7];

const READ: Latencies = [
    Column::ReadLatencyMeanNs,
    Column::ReadLatencyStddevNs,
    Column::ReadLatencyP50Ns,
    Column::ReadLatencyP95Ns,
    Column::ReadLatencyP99Ns,
    Column::ReadLatencyP999Ns,
    Column::ReadLatencyMaxNs,
];
const COMMIT: Latencies = [
    Column::CommitLatencyMeanNs,
    Column::CommitLatencyStddevNs,
    Column::CommitLatencyP50Ns,
    Column::CommitLatencyP95Ns,
    Column::CommitLatencyP99Ns,
    Column::CommitLatencyP999Ns,
    Column::CommitLatencyMaxNs,
];

fn set_latencies(row: &mut Row, columns: Latencies, latency: &Histogram) {
    let [mean, stddev, p50, p95, p99, p999, max] = columns;
    row.set_some(mean, latency.mean_ns());
    row.set_some(stddev, latency.stddev_ns());
    for (column, percent) in [(p50, 50.0), (p95, 95.0), (p99, 99.0), (p999, 99.9)] {
        row.set_some(column, latency.percentile_ns(percent));
    }
    row.set_some(max, latency.max_ns());
}

/// The row of a type of transaction. What they have in common, such as the drive's counts, belongs to none of them.
fn of_type(common: &Row, kind: &KindOutcome, outcome: &Outcome) -> Row {
    let mut row = common.clone();
    row.set(Column::Transaction, kind.kind);
    row.set(Column::Ops, kind.latency.count());
    row.set(Column::ElapsedNs, outcome.elapsed.0);
    set_throughput(&mut row, kind.latency.count(), outcome.elapsed);
    row.set(Column::Retries, kind.retries);
    row.set(Column::Rollbacks, kind.rollbacks);
    set_latency(&mut row, &kind.latency);
    row
}

/// A row for each interval. The last one ends with the last transaction, so its rate is over what there is of it.
fn intervals(common: &Row, outcome: &Outcome) -> Vec<Row> {
    let length = outcome.series.interval;
    let row = |(index, transactions): (usize, &u64)| {
        let begin = Nanos(index as u64 * length.0);
        let elapsed = length.min(outcome.elapsed.saturating_sub(begin));
        let mut row = common.clone();
        row.set(Column::TimeNs, begin.0);
        row.set(Column::IntervalNs, elapsed.0);
        row.set(Column::Ops, *transactions);
        set_throughput(&mut row, *transactions, elapsed);
        row
    };
    outcome.series.transactions.iter().enumerate().map(row).collect()
}
