//! Adds up requests to a drive: all requests, the reads, and the writes.
//!
//! The latency of a request and the waits in the drive are recorded apart, because a request may be several
//! commands of the drive. A mean wait is over the records of waits, whose number may differ from that of the
//! requests.

use super::latency::{self, set_latency};
use crate::{Column, Row};
use fulgurite_base::{Histogram, Nanos};
use fulgurite_ssd::{ServedKind, Waits};
use fulgurite_workload::Op;

/// The sums over the completed requests.
#[derive(Default)]
pub(crate) struct Tally {
    all: Class,
    pub reads: Class,
    pub writes: Class,
    /// The sum of the waits in front of a full queue; `None` if nobody has recorded such a wait.
    queue_ns: Option<u128>,
    /// Whether the device has reported waits.
    pub tells_waits: bool,
}

/// The sums over the completed requests of one kind.
#[derive(Default)]
pub(crate) struct Class {
    pub latency: Histogram,
    pub pages: u64,
    /// The number of records of waits.
    waits: u64,
    gc_ns: u128,
    die_ns: u128,
    channel_ns: u128,
    buffer_ns: u128,
    gc_max_ns: u64,
}

impl Class {
    fn record(&mut self, pages: u32, latency: Nanos) {
        self.latency.record(latency);
        self.pages += u64::from(pages);
    }

    fn record_waits(&mut self, waits: &Waits) {
        self.waits += 1;
        self.gc_ns += u128::from(waits.gc);
        self.die_ns += u128::from(waits.die);
        self.channel_ns += u128::from(waits.channel);
        self.buffer_ns += u128::from(waits.buffer);
        self.gc_max_ns = self.gc_max_ns.max(waits.gc);
    }

    /// Returns a sum of waits over the number of their records.
    fn mean(&self, sum_ns: u128) -> f64 {
        sum_ns as f64 / self.waits.max(1) as f64
    }
}

impl Tally {
    /// Returns the number of completed requests.
    pub(crate) fn requests(&self) -> u64 {
        self.all.latency.count()
    }

    /// Returns the 99th percentile of the response times in nanoseconds; 0 without requests.
    pub(crate) fn p99_ns(&self) -> u64 {
        self.all.latency.percentile_ns(99.0).unwrap_or(0)
    }

    /// Forgets the requests so far.
    pub(crate) fn restart(&mut self) {
        *self = Tally { tells_waits: self.tells_waits, ..Tally::default() };
    }

    /// Counts a completed request.
    pub(crate) fn record(&mut self, op: Op, pages: u32, latency: Nanos) {
        self.all.record(pages, latency);
        match op {
            Op::Read => self.reads.record(pages, latency),
            Op::Write => self.writes.record(pages, latency),
            Op::Trim => {}
        }
    }

    /// Records the waits of a request, or of one of its commands.
    pub(crate) fn record_waits(&mut self, kind: ServedKind, waits: &Waits) {
        self.all.record_waits(waits);
        match kind {
            ServedKind::Read => self.reads.record_waits(waits),
            ServedKind::Write => self.writes.record_waits(waits),
            ServedKind::Other => {}
        }
    }

    /// Records the wait of a request in front of a full queue.
    pub(crate) fn record_queue(&mut self, queue: Nanos) {
        *self.queue_ns.get_or_insert(0) += u128::from(queue.0);
    }

    /// Sets the columns of the whole run. `page_bytes` is the page size of the device.
    pub(crate) fn set(&self, row: &mut Row, elapsed: Nanos, page_bytes: u32) {
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
            if self.tells_waits && class.waits > 0 {
                row.set(gc, class.mean(class.gc_ns));
                row.set(die, class.mean(class.die_ns));
                row.set(channel, class.mean(class.channel_ns));
            }
        }
        if !self.tells_waits {
            return;
        }
        let all = &self.all;
        let of_requests = |sum_ns: u128| sum_ns as f64 / all.latency.count().max(1) as f64;
        row.set_some(Column::WaitQueueMeanNs, self.queue_ns.map(of_requests));
        row.set(Column::WaitGcMeanNs, all.mean(all.gc_ns));
        row.set(Column::WaitDieMeanNs, all.mean(all.die_ns));
        row.set(Column::WaitChannelMeanNs, all.mean(all.channel_ns));
        row.set(Column::WaitBufferMeanNs, all.mean(all.buffer_ns));
        row.set(Column::WaitGcMaxNs, all.gc_max_ns);
    }
}

/// The columns for mean waits of one kind of request: for collection, dies and channels.
const READ_WAITS: [Column; 3] =
    [Column::ReadWaitGcMeanNs, Column::ReadWaitDieMeanNs, Column::ReadWaitChannelMeanNs];
const WRITE_WAITS: [Column; 3] =
    [Column::WriteWaitGcMeanNs, Column::WriteWaitDieMeanNs, Column::WriteWaitChannelMeanNs];

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: a request of several commands counts once, and a mean wait is over the commands. A wait in front of a
    /// full queue is over the requests, and is not told if nobody has recorded one.
    #[test]
    fn a_request_of_two_commands_counts_once_and_waits_twice() {
        let mut tally = Tally { tells_waits: true, ..Tally::default() };
        tally.record(Op::Read, 4, Nanos(1_000));
        for (kind, gc) in [(ServedKind::Read, 100), (ServedKind::Read, 300), (ServedKind::Other, 800)] {
            tally.record_waits(kind, &Waits { gc, ..Waits::default() });
        }
        let mut row = Row::default();
        tally.set(&mut row, Nanos(2_000), 512);
        let told = |row: &Row| {
            [Column::Reads, Column::ReadWaitGcMeanNs, Column::WaitGcMeanNs, Column::WaitQueueMeanNs]
                .map(|column| row.number(column))
        };
        assert_eq!(told(&row), [Some(1.0), Some(200.0), Some(400.0), None]);
        tally.record_queue(Nanos(70));
        tally.set(&mut row, Nanos(2_000), 512);
        assert_eq!(told(&row)[3], Some(70.0));
    }
}
