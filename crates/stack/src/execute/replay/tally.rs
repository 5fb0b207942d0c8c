//! Adds up the requests of a replay: all requests, the reads, and the writes.

use crate::execute::latency::{self, set_latency};
use crate::{Column, Row};
use fulgurite_base::{Histogram, Nanos};
use fulgurite_ssd::Waits;
use fulgurite_workload::Op;

/// The sums over the completed requests.
#[derive(Default)]
pub(super) struct Tally {
    all: Class,
    reads: Class,
    writes: Class,
    /// Whether the device has reported the waits of requests.
    pub tells_waits: bool,
}

/// The sums over the completed requests of one kind.
#[derive(Default)]
struct Class {
    latency: Histogram,
    pages: u64,
    queue_ns: u128,
    gc_ns: u128,
    die_ns: u128,
    channel_ns: u128,
    buffer_ns: u128,
    gc_max_ns: u64,
}

impl Class {
    fn record(&mut self, pages: u32, latency: Nanos, queue: Nanos, waits: &Waits) {
        self.latency.record(latency);
        self.pages += u64::from(pages);
        self.queue_ns += u128::from(queue.0);
        self.gc_ns += u128::from(waits.gc);
        self.die_ns += u128::from(waits.die);
        self.channel_ns += u128::from(waits.channel);
        self.buffer_ns += u128::from(waits.buffer);
        self.gc_max_ns = self.gc_max_ns.max(waits.gc);
    }
}

impl Tally {
    /// Returns the number of completed requests.
    pub(super) fn requests(&self) -> u64 {
        self.all.latency.count()
    }

    /// Returns the 99th percentile of the response times in nanoseconds; 0 without requests.
    pub(super) fn p99_ns(&self) -> u64 {
        self.all.latency.percentile_ns(99.0).unwrap_or(0)
    }

    /// Forgets the requests so far.
    pub(super) fn restart(&mut self) {
        *self = Tally { tells_waits: self.tells_waits, ..Tally::default() };
    }

    /// Counts a completed request.
    pub(super) fn record(&mut self, op: Op, pages: u32, latency: Nanos, queue: Nanos, waits: &Waits) {
        self.all.record(pages, latency, queue, waits);
        match op {
            Op::Read => self.reads.record(pages, latency, queue, waits),
            Op::Write => self.writes.record(pages, latency, queue, waits),
            Op::Trim => {}
        }
    }

    /// Sets the columns of the whole run. `page_bytes` is the page size of the device.
    pub(super) fn set(&self, row: &mut Row, elapsed: Nanos, page_bytes: u32) {
        row.set(Column::ElapsedNs, elapsed.0);
        let bytes = |pages: u64| pages as f64 * f64::from(page_bytes);
        if elapsed > Nanos::ZERO {
            let seconds = elapsed.as_secs_f64();
            row.set(Column::ThroughputOpsS, self.all.latency.count() as f64 / seconds);
            row.set(Column::ReadBandwidthBytesS, bytes(self.reads.pages) / seconds);
            row.set(Column::WriteBandwidthBytesS, bytes(self.writes.pages) / seconds);
        }
        row.set(Column::Reads, self.reads.latency.count());
        row.set(Column::Writes, self.writes.latency.count());
        set_latency(row, latency::ALL, self.all.latency.summary());
        row.set_some(
            Column::LatencyVarianceNs2,
            self.all.latency.stddev_ns().map(|deviation| deviation * deviation),
        );
        let classes = [(&self.reads, latency::READ, READ_WAITS), (&self.writes, latency::WRITE, WRITE_WAITS)];
        for (class, columns, [gc, die, channel]) in classes {
            set_latency(row, columns, class.latency.summary());
            let count = class.latency.count();
            if self.tells_waits && count > 0 {
                row.set(gc, class.gc_ns as f64 / count as f64);
                row.set(die, class.die_ns as f64 / count as f64);
                row.set(channel, class.channel_ns as f64 / count as f64);
            }
        }
        if !self.tells_waits {
            return;
        }
        let count = self.all.latency.count().max(1) as f64;
        row.set(Column::WaitQueueMeanNs, self.all.queue_ns as f64 / count);
        row.set(Column::WaitGcMeanNs, self.all.gc_ns as f64 / count);
        row.set(Column::WaitDieMeanNs, self.all.die_ns as f64 / count);
        row.set(Column::WaitChannelMeanNs, self.all.channel_ns as f64 / count);
        row.set(Column::WaitBufferMeanNs, self.all.buffer_ns as f64 / count);
        row.set(Column::WaitGcMaxNs, self.all.gc_max_ns);
    }
}

/// The columns for mean waits of one kind of request: for collection, dies and channels.
const READ_WAITS: [Column; 3] =
    [Column::ReadWaitGcMeanNs, Column::ReadWaitDieMeanNs, Column::ReadWaitChannelMeanNs];
const WRITE_WAITS: [Column; 3] =
    [Column::WriteWaitGcMeanNs, Column::WriteWaitDieMeanNs, Column::WriteWaitChannelMeanNs];
