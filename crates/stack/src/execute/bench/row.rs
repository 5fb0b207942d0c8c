//! Makes the result rows of a benchmark run.

use super::shared::{BenchRun, Measured};
use crate::execute::columns::{set_cost, set_policies};
use crate::execute::device_counts::set_collecting;
use crate::execute::latency::{self, set_latency};
use crate::run::Rows;
use crate::{Column, Row, StackError};
use fulgurite_base::{Nanos, option};
use fulgurite_bench::index_scan::Degree;
use fulgurite_bench::{BenchmarkConfig, Extent, Figures, KindFigures, Series};
use std::time::{Duration, Instant};

impl BenchRun<'_> {
    pub(super) fn rows(&self, measured: &Measured, start: Instant) -> Result<Vec<Row>, StackError> {
        let common = self.common(measured)?;
        let outcome = &measured.outcome;
        match self.run.measure.rows {
            Rows::Types => {
                let mut common = common;
                common.set(Column::ElapsedNs, outcome.elapsed.0);
                Ok(types(&common, &outcome.figures(), outcome.elapsed))
            }
            rows @ (Rows::TimeIntervals(_) | Rows::TypeIntervals(_)) => {
                let series = outcome.series.as_ref();
                let series = series.ok_or_else(|| StackError::run("the run kept no time series"))?;
                let by_type = matches!(rows, Rows::TypeIntervals(_));
                Ok(intervals(&common, series, outcome.elapsed, by_type))
            }
            _ => {
                let mut row = common;
                self.set_results(&mut row, measured);
                set_cost(&mut row, start, Duration::ZERO, outcome.transactions());
                Ok(vec![row])
            }
        }
    }

    /// Returns the columns that describe the run.
    fn common(&self, measured: &Measured) -> Result<Row, StackError> {
        let (run, asked, stage) = (self.run, self.asked, self.stage);
        let mut row = run.identity()?;
        row.set(Column::Benchmark, asked.label.as_str());
        row.set_some(Column::Scale, asked.scale);
        row.set_some(Column::Channels, run.stack.device.simulated().map(|config| config.channels));
        set_collecting(&mut row, &run.stack);
        row.set_some(Column::Schedule, run.stack.collect().map(|collect| collect.schedule.to_string()));
        set_policies(&mut row, &stage.policies, stage.write_back.as_ref());
        row.set(Column::Place, stage.place.to_string());
        row.set(Column::TornPages, option::name_of(measured.torn_pages));
        if let BenchmarkConfig::IndexScan(scan) = &asked.benchmark
            && let Degree::Rows(rows) = scan.degree
        {
            row.set(Column::Degree, rows);
        }
        row.set(Column::Durability, option::name_of(stage.durability));
        row.set(Column::MemoryBytes, stage.memory_bytes);
        row.set(Column::LogBytes, stage.log_bytes);
        row.set(Column::RecordShare, u32::from(stage.records));
        row.set(Column::Frames, measured.after.statistics.frames);
        row.set(Column::PageBytes, stage.page_bytes);
        row.set(Column::Users, asked.users);
        row.set_some(Column::Cores, Some(stage.cores).filter(|cores| *cores > 1));
        row.set_some(Column::Shards, Some(stage.shards).filter(|shards| *shards > 1));
        row.set(Column::CpuPerOpNs, stage.cpu_per_op.0);
        row.set(Column::Seed, run.seed);
        if let Extent::Time(limit) = asked.stop {
            row.set(Column::TimeLimitNs, limit.0);
        }
        Ok(row)
    }

    fn set_results(&self, row: &mut Row, measured: &Measured) {
        let Measured { outcome, before, after, verified, .. } = measured;
        row.set(Column::ElapsedNs, outcome.elapsed.0);
        set_figures(row, &outcome.figures(), outcome.elapsed);
        set_pool(row, measured);
        let (now, then) = (&after.statistics, &before.statistics);
        let across = after.commits_across - before.commits_across;
        row.set_some(Column::CommitsAcross, (self.stage.shards > 1).then_some(across));
        row.set(Column::Deadlocks, now.deadlocks - then.deadlocks);
        row.set(Column::UserBytesWritten, outcome.user_bytes_written);
        row.set(Column::SpaceBytes, now.space_bytes);
        row.set(Column::PagesMoved, now.pages_moved - then.pages_moved);
        row.set(Column::DeltasWritten, now.deltas_written - then.deltas_written);
        row.set(Column::DeltasRead, now.deltas_read - then.deltas_read);
        row.set(Column::PagesConsolidated, now.pages_consolidated - then.pages_consolidated);
        row.set(Column::LogBytesWritten, now.log_bytes_written - then.log_bytes_written);
        row.set(Column::RecordHits, now.records.hits - then.records.hits);
        row.set(Column::RecordsMerged, now.records.merged - then.records.merged);
        row.set(Column::RecordMerges, now.records.merges - then.records.merges);
        row.set(Column::RecordsCarried, now.records.carried - then.records.carried);
        row.set(Column::LogFlushes, now.log_flushes - then.log_flushes);
        row.set(Column::Flushes, now.flushes - then.flushes);
        row.set(Column::Checkpoints, now.checkpoints - then.checkpoints);
        row.set(Column::RowsVerified, verified.rows);
        // The store counts the pages that it writes, so this count is known for every drive.
        row.set(Column::HostPagesWritten, after.seen.pages_written - before.seen.pages_written);
        after.seen.done.since(&before.seen.done).set(row);
        if let Some((now, then)) = after.cpu.zip(before.cpu) {
            row.set(Column::CpuNsPerOp, (now.0 - then.0) as f64 / outcome.transactions() as f64);
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

/// Sets the columns about all transactions of the run or of an interval.
fn set_figures(row: &mut Row, figures: &Figures, elapsed: Nanos) {
    let transactions = figures.transactions();
    row.set(Column::Ops, transactions);
    set_throughput(row, transactions, elapsed);
    row.set(Column::Retries, figures.retries());
    row.set(Column::Rollbacks, figures.rollbacks());
    set_latency(row, latency::ALL, figures.latency);
    set_latency(row, latency::READ, figures.read_latency);
    set_latency(row, latency::READ_MISS, figures.read_miss_latency);
    set_latency(row, latency::COMMIT, figures.commit_latency);
}

/// Returns a result row per type of transaction. Counts of the whole drive are left out, since they do not
/// divide into types.
fn types(common: &Row, figures: &Figures, elapsed: Nanos) -> Vec<Row> {
    let row = |kind: &KindFigures| {
        let mut row = common.clone();
        row.set(Column::Transaction, kind.kind);
        row.set(Column::Ops, kind.ended);
        set_throughput(&mut row, kind.ended, elapsed);
        row.set(Column::Retries, kind.retries);
        row.set(Column::Rollbacks, kind.rollbacks);
        set_latency(&mut row, latency::ALL, kind.latency);
        row
    };
    figures.kinds.iter().map(row).collect()
}

/// Returns a result row per interval, or per type of transaction in each interval. The last interval ends
/// with the last transaction, and its rate is over this shorter time.
fn intervals(common: &Row, series: &Series, end: Nanos, by_type: bool) -> Vec<Row> {
    let rows = |(index, figures): (usize, &Figures)| {
        let begin = Nanos(index as u64 * series.interval.0);
        let elapsed = series.interval.min(end.saturating_sub(begin));
        let mut row = common.clone();
        row.set(Column::TimeNs, begin.0);
        row.set(Column::IntervalNs, elapsed.0);
        if by_type {
            return types(&row, figures, elapsed);
        }
        set_figures(&mut row, figures, elapsed);
        vec![row]
    };
    series.intervals.iter().enumerate().flat_map(rows).collect()
}
