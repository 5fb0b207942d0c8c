//! Measures a run: latencies by transaction type, latencies of reads and of commits, and transactions over time.

use crate::error::Error;
use crate::figures::{Figures, KindOutcome, Recorded};
use crate::series::{Recording, Series};
use fulgurite_base::{Histogram, Nanos};
use std::cell::{Cell, RefCell};

/// The measurements of a run's measured part. Times are on the device's clock.
#[derive(Debug)]
pub struct Outcome {
    /// The measurements of each type of transaction, in the order of [`crate::Benchmark::kinds`].
    pub kinds: Vec<KindOutcome>,
    /// The latency of all transactions, from the first try to the end of the last one.
    pub latency: Histogram,
    /// The time of each reading call: a look-up, a batch of look-ups, a whole scan.
    pub read_latency: Histogram,
    /// The time of the reading calls that memory could not answer at once.
    pub read_miss_latency: Histogram,
    /// The time of each commit of a transaction that wrote something.
    pub commit_latency: Histogram,
    /// Bytes of keys and values in committed transactions; a deleted key counts with its bytes.
    pub user_bytes_written: u64,
    /// When the measured part began, on the device's clock.
    pub begin: Nanos,
    /// The duration, to the end of the last transaction.
    pub elapsed: Nanos,
    /// The figures over time, if [`crate::Plan::interval`] is set.
    pub series: Option<Series>,
}

impl Outcome {
    /// The number of transactions that ended: committed, or rolled back as the benchmark specifies.
    pub fn transactions(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.latency.count()).sum()
    }

    /// The figures of the whole run, like those of an interval.
    pub fn figures(&self) -> Figures {
        let reads = [&self.read_latency, &self.read_miss_latency];
        Figures::of(&self.kinds, &self.latency, reads, &self.commit_latency)
    }
}

/// The measurements of a run, shared by its users.
pub(crate) struct Meter {
    begin: Nanos,
    recorded: RefCell<Recorded>,
    series: RefCell<Option<Recording>>,
    last: Cell<Nanos>,
    transactions: Cell<u64>,
    user_bytes_written: Cell<u64>,
}

impl Meter {
    pub(crate) fn new(kinds: &[&'static str], begin: Nanos, interval: Option<Nanos>) -> Meter {
        Meter {
            begin,
            recorded: RefCell::new(Recorded::new(kinds)),
            series: RefCell::new(interval.map(|interval| Recording::new(interval, kinds))),
            last: Cell::new(begin),
            transactions: Cell::new(0),
            user_bytes_written: Cell::new(0),
        }
    }

    /// The number of ended transactions, and the time since the beginning.
    pub(crate) fn progress(&self, now: Nanos) -> (u64, Nanos) {
        (self.transactions.get(), now.saturating_sub(self.begin))
    }

    /// Records an event at `now`, for the run and for its interval.
    fn record(&self, now: Nanos, happened: impl Fn(&mut Recorded)) {
        happened(&mut self.recorded.borrow_mut());
        if let Some(series) = &mut *self.series.borrow_mut() {
            happened(series.at(now.saturating_sub(self.begin)));
        }
    }

    /// Records a reading call that ended at `now`. It `waited` if memory could not answer it at once.
    pub(crate) fn read(&self, now: Nanos, latency: Nanos, waited: bool) {
        self.record(now, |recorded| {
            recorded.read_latency.record(latency);
            if waited {
                recorded.read_miss_latency.record(latency);
            }
        });
    }

    pub(crate) fn commit(&self, now: Nanos, latency: Nanos, bytes: u64) {
        self.record(now, |recorded| recorded.commit_latency.record(latency));
        self.user_bytes_written.set(self.user_bytes_written.get() + bytes);
    }

    pub(crate) fn retry(&self, kind: usize, now: Nanos) {
        self.record(now, |recorded| recorded.kinds[kind].retries += 1);
    }

    /// Records a transaction that ended at `now` with this latency. Fails if the time series has become too
    /// long.
    pub(crate) fn end(
        &self,
        kind: usize,
        now: Nanos,
        latency: Nanos,
        rolled_back: bool,
    ) -> Result<(), Error> {
        self.record(now, |recorded| recorded.end(kind, latency, rolled_back));
        self.last.set(self.last.get().max(now));
        self.transactions.set(self.transactions.get() + 1);
        self.series.borrow().as_ref().map_or(Ok(()), Recording::check)
    }

    /// Takes the measurements out.
    pub(crate) fn outcome(&self) -> Outcome {
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
