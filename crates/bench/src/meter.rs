//! Measures a run: latencies by transaction type, latencies of reads and of commits, and transactions over time.

use crate::error::Error;
use crate::figures::{Figures, KindOutcome, Recorded};
use crate::series::{Recording, Series};
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
    /// The time of those among them that memory could not answer at once.
    pub read_miss_latency: Histogram,
    /// The time of each commit of a transaction that wrote something.
    pub commit_latency: Histogram,
    /// Bytes of keys and values in committed transactions; a deleted key counts with its bytes.
    pub user_bytes_written: u64,
    /// When the measured part began, on the device's clock.
    pub begin: Nanos,
    /// How long it took, to the end of its last transaction.
    pub elapsed: Nanos,
    /// The same over time, where [`crate::Plan::interval`] asks for it.
    pub series: Option<Series>,
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

    /// All of it in figures, as an interval of the series has them.
    pub fn figures(&self) -> Figures {
        let reads = [&self.read_latency, &self.read_miss_latency];
        Figures::of(&self.kinds, &self.latency, reads, &self.commit_latency)
    }
}

/// What the users of a run share to measure with.
pub(crate) struct Meter {
    begin: Nanos,
    recorded: RefCell<Recorded>,
    series: RefCell<Option<Recording>>,
    last: Cell<Nanos>,
    transactions: Cell<u64>,
    user_bytes_written: Cell<u64>,
}

impl Meter {
    pub fn new(kinds: &[&'static str], begin: Nanos, interval: Option<Nanos>) -> Meter {
        Meter {
            begin,
            recorded: RefCell::new(Recorded::new(kinds)),
            series: RefCell::new(interval.map(|interval| Recording::new(interval, kinds))),
            last: Cell::new(begin),
            transactions: Cell::new(0),
            user_bytes_written: Cell::new(0),
        }
    }

    /// Transactions that have ended, and the time since the beginning.
    pub fn progress(&self, now: Nanos) -> (u64, Nanos) {
        (self.transactions.get(), now.saturating_sub(self.begin))
    }

    /// Records something that happened at `now`, for the run and for its interval.
    fn record(&self, now: Nanos, happened: impl Fn(&mut Recorded)) {
        happened(&mut self.recorded.borrow_mut());
        if let Some(series) = &mut *self.series.borrow_mut() {
            happened(series.at(now.saturating_sub(self.begin)));
        }
    }

    /// A reading call ended at `now`. It `waited` where memory could not answer it at once.
    pub fn read(&self, now: Nanos, latency: Nanos, waited: bool) {
        self.record(now, |recorded| {
            recorded.read_latency.record(latency);
            if waited {
                recorded.read_miss_latency.record(latency);
            }
        });
    }

    pub fn commit(&self, now: Nanos, latency: Nanos, bytes: u64) {
        self.record(now, |recorded| recorded.commit_latency.record(latency));
        self.user_bytes_written.set(self.user_bytes_written.get() + bytes);
    }

    pub fn retry(&self, kind: usize, now: Nanos) {
        self.record(now, |recorded| recorded.kinds[kind].retries += 1);
    }

    /// A transaction ended at `now`, `latency` after it began. Fails where the time series has become too long.
    pub fn end(&self, kind: usize, now: Nanos, latency: Nanos, rolled_back: bool) -> Result<(), Error> {
        self.record(now, |recorded| recorded.end(kind, latency, rolled_back));
        self.last.set(self.last.get().max(now));
        self.transactions.set(self.transactions.get() + 1);
        self.series.borrow().as_ref().map_or(Ok(()), Recording::check)
    }

    /// What was measured, taken out.
    pub fn outcome(&self) -> Outcome {
        let recorded = self.recorded.replace(Recorded::new(&[]));
        Outcome {
            kinds: recorded.kinds,
            latency: recorded.latency,
            read_latency: recorded.read_latency,
            read_miss_latency: recorded.read_miss_latency,
            commit_latency: recorded.commit_latency,
            user_bytes_written: self.user_bytes_written.get(),
            begin: self.begin,
            elapsed: self.last.get().saturating_sub(self.begin),
            series: self.series.take().map(Recording::finish),
        }
    }
}
