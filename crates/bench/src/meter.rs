//! Measures the latencies of a run by type of transaction, those of reads and of commits, and the figures
//! over time.

use crate::error::Error;
use crate::figures::{Figures, KindOutcome, Recorded};
use crate::series::{Recording, Series};
use fulgurite_base::{Histogram, Nanos};
use std::cell::{Cell, RefCell};

/// The measurements of the measured part of a run. Times are on the device's clock.
#[derive(Debug)]
pub struct Outcome {
    /// The measurements of each type of transaction, in the order of [`crate::Benchmark::kinds`].
    pub kinds: Vec<KindOutcome>,
    /// The latency of each transaction, from its first try to the end of its last try.
    pub latency: Histogram,
    /// The latency of each reading call of the store: a look-up, a batch of look-ups, a whole scan.
    pub read_latency: Histogram,
    /// The latency of each reading call that memory could not answer at once.
    pub read_miss_latency: Histogram,
    /// The latency of each commit of a transaction that wrote something.
    pub commit_latency: Histogram,
    /// The number of bytes of keys and values that committed transactions wrote. A deleted key counts with
    /// its own bytes.
    pub user_bytes_written: u64,
    /// The time when the measured part began.
    pub begin: Nanos,
    /// The duration of the measured part, to the end of its last transaction.
    pub elapsed: Nanos,
    /// The figures over time; `None` if [`crate::Plan::interval`] is not set.
    pub series: Option<Series>,
}

impl Outcome {
    /// Returns the number of transactions that were committed, or rolled back as the benchmark specifies.
    pub fn transactions(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.latency.count()).sum()
    }

    /// Returns the figures of the whole measured part, in the same form as those of an interval.
    pub fn figures(&self) -> Figures {
        let reads = [&self.read_latency, &self.read_miss_latency];
        Figures::of(&self.kinds, &self.latency, reads, &self.commit_latency)
    }
}

/// The measurements of a part of a run while it runs. All users share them.
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

    /// Returns the number of transactions that have ended, and the time since the beginning of the part.
    pub(crate) fn progress(&self, now: Nanos) -> (u64, Nanos) {
        (self.transactions.get(), now.saturating_sub(self.begin))
    }

    /// Records an event that happened at `now`, in the measurements of the whole part and of its interval.
    fn record(&self, now: Nanos, happened: impl Fn(&mut Recorded)) {
        happened(&mut self.recorded.borrow_mut());
        if let Some(series) = &mut *self.series.borrow_mut() {
            happened(series.at(now.saturating_sub(self.begin)));
        }
    }

    /// Records a reading call that ended at `now`. `waited` says whether memory could not answer it at once.
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

    /// Records a transaction that ended at `now` with this latency. Fails if the time series has too many
    /// intervals.
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

    /// Takes the measurements out, and leaves empty ones.
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
