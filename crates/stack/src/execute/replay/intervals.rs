//! Adds up the requests of a replay for each interval of time.

use crate::{Column, Row, StackError};
use fulgurite_base::{Histogram, Nanos};
use fulgurite_ssd::Waits;
use fulgurite_workload::Op;

/// The sums over the requests that completed in each interval.
pub(super) struct Intervals {
    length: Option<Nanos>,
    intervals: Vec<Interval>,
    /// The response times in the last interval. Requests are recorded in the order of their completion, so
    /// one histogram serves all intervals.
    latency: Histogram,
}

#[derive(Clone, Copy, Default)]
struct Interval {
    requests: u64,
    read_pages: u64,
    write_pages: u64,
    latency_ns: u128,
    latency_max_ns: u64,
    latency_p99_ns: Option<u64>,
    latency_p999_ns: Option<u64>,
    gc_ns: u128,
}

/// The largest number of intervals. The result rows of more intervals would fill the memory.
const INTERVALS_AT_MOST: usize = 1 << 20;

impl Intervals {
    pub(super) fn new(length: Option<Nanos>) -> Intervals {
        Intervals { length, intervals: Vec::new(), latency: Histogram::default() }
    }

    pub(super) fn record(
        &mut self,
        at: Nanos,
        op: Op,
        pages: u32,
        latency: Nanos,
        waits: &Waits,
    ) -> Result<(), StackError> {
        let Some(length) = self.length else { return Ok(()) };
        let index = (at.0 / length.0) as usize;
        if index >= INTERVALS_AT_MOST {
            return Err(StackError::request(format!(
                "--interval is too short: the run has more than {INTERVALS_AT_MOST} intervals; accepted: a longer one"
            )));
        }
        if index >= self.intervals.len() {
            self.end_interval();
            self.intervals.resize(index + 1, Interval::default());
        }
        self.latency.record(latency);
        let interval = &mut self.intervals[index];
        interval.requests += 1;
        match op {
            Op::Read => interval.read_pages += u64::from(pages),
            Op::Write => interval.write_pages += u64::from(pages),
            Op::Trim => {}
        }
        interval.latency_ns += u128::from(latency.0);
        interval.latency_max_ns = interval.latency_max_ns.max(latency.0);
        interval.gc_ns += u128::from(waits.gc);
        Ok(())
    }

    /// Computes the percentiles of the last interval.
    fn end_interval(&mut self) {
        if let Some(last) = self.intervals.last_mut() {
            last.latency_p99_ns = self.latency.percentile_ns(99.0);
            last.latency_p999_ns = self.latency.percentile_ns(99.9);
            self.latency.clear();
        }
    }

    pub(super) fn rows(&mut self, identity: &Row, elapsed: Nanos, tells_waits: bool) -> Vec<Row> {
        let Some(length) = self.length else { return Vec::new() };
        self.end_interval();
        // The columns that describe a replay always include a page size.
        let page_bytes = identity.number(Column::PageBytes).unwrap_or(0.0);
        let rows = self.intervals.iter().enumerate().map(|(index, interval)| {
            let start = index as u64 * length.0;
            // The last interval may be shorter than the others, because it ends with the run.
            let seconds = Nanos(length.0.min(elapsed.0 - start).max(1)).as_secs_f64();
            let mut row = identity.clone();
            row.set(Column::TimeNs, start);
            row.set(Column::IntervalNs, length.0);
            row.set(Column::Requests, interval.requests);
            row.set(Column::ThroughputOpsS, interval.requests as f64 / seconds);
            let bandwidth = |pages: u64| pages as f64 * page_bytes / seconds;
            row.set(Column::BandwidthBytesS, bandwidth(interval.read_pages + interval.write_pages));
            row.set(Column::ReadBandwidthBytesS, bandwidth(interval.read_pages));
            row.set(Column::WriteBandwidthBytesS, bandwidth(interval.write_pages));
            if interval.requests > 0 {
                row.set(Column::LatencyMeanNs, interval.latency_ns as f64 / interval.requests as f64);
                row.set_some(Column::LatencyP99Ns, interval.latency_p99_ns);
                row.set_some(Column::LatencyP999Ns, interval.latency_p999_ns);
                row.set(Column::LatencyMaxNs, interval.latency_max_ns);
                if tells_waits {
                    row.set(Column::WaitGcMeanNs, interval.gc_ns as f64 / interval.requests as f64);
                }
            }
            row
        });
        rows.collect()
    }
}
