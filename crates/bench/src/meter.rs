//! What a run measures: latencies by transaction type, of reads and of commits, and transactions over time.

use fulgurite_base::{Histogram, Nanos};
use std::cell::{Cell, RefCell};

/// What happened in the measured part of a run. Times are the device's.
#[derive(Debug)]
pub struct Outcome {
    /// Figures for each type of transaction, in the order of [`crate::Benchmark::kinds`].
    pub kinds: Vec<KindOutcome>,
    /// All transactions together, from the first try to the end of the last one.
    pub latency: Histogram,
    /// The time of each reading call: a look-up, a batch of them, a scan to its end.
    pub read_latency: Histogram,
    /// The time of each commit of a transaction that wrote something.
    pub commit_latency: Histogram,
    /// Bytes of keys and values in committed transactions; a deleted key counts with its bytes.
    pub user_bytes_written: u64,
    /// When the measured part began, on the device's clock.
    pub begin: Nanos,
    /// How long it took, to the end of its last transaction.
    pub elapsed: Nanos,
    /// Transactions over time.
    pub series: Series,
}

impl Outcome {
    /// Transactions that ended: committed or rolled back as the benchmark wants it.
    pub fn transactions(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.latency.count()).sum()
    }

    /// How often a transaction had to be tried again.
    pub fn retries(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.retries).sum()
    }

    /// Transactions that were rolled back because the benchmark wants it.
    pub fn rollbacks(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.rollbacks).sum()
    }
}

/// What happened to the transactions of one type.
#[derive(Debug)]
pub struct KindOutcome {
    /// The type's name.
    pub kind: &'static str,
    /// Their latencies, with retries.
    pub latency: Histogram,
    /// How often one had to be tried again.
    pub retries: u64,
    /// How many were rolled back because the benchmark wants it.
    pub rollbacks: u64,
}

/// Transactions over time: how many ended in each interval from the beginning on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The length of an interval.
    pub interval: Nanos,
    /// Transactions that ended in each.
    pub transactions: Vec<u64>,
}

/// More intervals than this are joined in pairs, so that a long run stays within bounds.
const INTERVALS_MOST: usize = 4096;

impl Series {
    fn new(interval: Nanos) -> Series {
        Series { interval: interval.max(Nanos(1)), transactions: Vec::new() }
    }

    fn record(&mut self, at: Nanos) {
        while at.0 / self.interval.0 >= INTERVALS_MOST as u64 {
            self.transactions = self.transactions.chunks(2).map(|pair| pair.iter().sum()).collect();
            self.interval = self.interval + self.interval;
        }
        let index = (at.0 / self.interval.0) as usize;
        if index >= self.transactions.len() {
            self.transactions.resize(index + 1, 0);
        }
        self.transactions[index] += 1;
    }
}

/// What the users of a run share to measure with.
pub(crate) struct Meter {
    begin: Nanos,
    recorded: RefCell<Recorded>,
    transactions: Cell<u64>,
    user_bytes_written: Cell<u64>,
}

struct Recorded {
    kinds: Vec<KindOutcome>,
    latency: Histogram,
    read_latency: Histogram,
    commit_latency: Histogram,
    last: Nanos,
    series: Series,
}

impl Meter {
    pub fn new(kinds: &[&'static str], begin: Nanos, interval: Nanos) -> Meter {
        let kind = |kind: &&'static str| KindOutcome {
            kind,
            latency: Histogram::default(),
            retries: 0,
            rollbacks: 0,
        };
        let recorded = Recorded {
            kinds: kinds.iter().map(kind).collect(),
            latency: Histogram::default(),
            read_latency: Histogram::default(),
            commit_latency: Histogram::default(),
            last: begin,
            series: Series::new(interval),
        };
        let (transactions, user_bytes_written) = (Cell::new(0), Cell::new(0));
        Meter { begin, recorded: RefCell::new(recorded), transactions, user_bytes_written }
    }

    /// Transactions that have ended, and the time since the beginning.
    pub fn progress(&self, now: Nanos) -> (u64, Nanos) {
        (self.transactions.get(), now.saturating_sub(self.begin))
    }

    pub fn read(&self, latency: Nanos) {
        self.recorded.borrow_mut().read_latency.record(latency);
    }

    pub fn commit(&self, latency: Nanos, bytes: u64) {
        self.recorded.borrow_mut().commit_latency.record(latency);
        self.user_bytes_written.set(self.user_bytes_written.get() + bytes);
    }

    pub fn retry(&self, kind: usize) {
        self.recorded.borrow_mut().kinds[kind].retries += 1;
    }

    /// A transaction ended at `now`, `latency` after it began.
    pub fn end(&self, kind: usize, now: Nanos, latency: Nanos, rolled_back: bool) {
        let mut recorded = self.recorded.borrow_mut();
        recorded.kinds[kind].latency.record(latency);
        recorded.kinds[kind].rollbacks += u64::from(rolled_back);
        recorded.latency.record(latency);
        recorded.last = recorded.last.max(now);
        recorded.series.record(now.saturating_sub(self.begin));
        self.transactions.set(self.transactions.get() + 1);
    }

    /// What was measured, taken out.
    pub fn outcome(&self) -> Outcome {
        let fresh = Meter::new(&[], self.begin, Nanos(1)).recorded;
        let recorded = self.recorded.replace(fresh.into_inner());
        Outcome {
            kinds: recorded.kinds,
            latency: recorded.latency,
            read_latency: recorded.read_latency,
            commit_latency: recorded.commit_latency,
            user_bytes_written: self.user_bytes_written.get(),
            begin: self.begin,
            elapsed: recorded.last.saturating_sub(self.begin),
            series: recorded.series,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_series_keeps_its_sum_in_wider_intervals() {
        let mut series = Series::new(Nanos(10));
        for at in 0..100_000u64 {
            series.record(Nanos(at));
        }
        assert_eq!((series.interval, series.transactions.len()), (Nanos(40), 2_500));
        assert!(series.transactions.iter().all(|count| *count == 40), "{series:?}");
    }
}
