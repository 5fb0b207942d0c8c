//! Measures a run: latencies by transaction type, latencies of reads and of commits, and transactions over time.

use crate::Error;
use crate::series::{Recording, Series};
use fulgurite_base::{Histogram, Nanos, Summary};
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

impl KindOutcome {
    fn figures(&self) -> KindFigures {
        KindFigures {
            kind: self.kind,
            ended: self.latency.count(),
            latency: self.latency.summary(),
            retries: self.retries,
            rollbacks: self.rollbacks,
        }
    }
}

/// What happened in a stretch of time, in figures. A latency is `None` where nothing of its kind ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// For each type of transaction, in the order of [`crate::Benchmark::kinds`].
    pub kinds: Vec<KindFigures>,
    /// All transactions together.
    pub latency: Option<Summary>,
    /// Reading calls.
    pub read_latency: Option<Summary>,
    /// Those that memory could not answer at once.
    pub read_miss_latency: Option<Summary>,
    /// Commits of transactions that wrote something.
    pub commit_latency: Option<Summary>,
}

/// What happened to the transactions of one type, in figures.
#[derive(Clone, Debug, PartialEq)]
pub struct KindFigures {
    /// The type's name.
    pub kind: &'static str,
    /// How many ended.
    pub ended: u64,
    /// Their latencies, with retries.
    pub latency: Option<Summary>,
    /// How often one had to be tried again.
    pub retries: u64,
    /// How many were rolled back because the benchmark wants it.
    pub rollbacks: u64,
}

impl Figures {
    /// Those of types of transactions, and of all latencies, of reads and of commits.
    fn of(
        kinds: &[KindOutcome],
        all: &Histogram,
        [reads, read_misses]: [&Histogram; 2],
        commits: &Histogram,
    ) -> Figures {
        Figures {
            kinds: kinds.iter().map(KindOutcome::figures).collect(),
            latency: all.summary(),
            read_latency: reads.summary(),
            read_miss_latency: read_misses.summary(),
            commit_latency: commits.summary(),
        }
    }

    /// Transactions that ended.
    pub fn transactions(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.ended).sum()
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

/// What the users of a run share to measure with.
pub(crate) struct Meter {
    begin: Nanos,
    recorded: RefCell<Recorded>,
    series: RefCell<Option<Recording>>,
    last: Cell<Nanos>,
    transactions: Cell<u64>,
    user_bytes_written: Cell<u64>,
}

/// What is recorded of a whole run, and of an interval.
pub(crate) struct Recorded {
    kinds: Vec<KindOutcome>,
    latency: Histogram,
    pub read_latency: Histogram,
    pub read_miss_latency: Histogram,
    pub commit_latency: Histogram,
}

impl Recorded {
    pub fn new(kinds: &[&'static str]) -> Recorded {
        let kind = |kind: &&'static str| KindOutcome {
            kind,
            latency: Histogram::default(),
            retries: 0,
            rollbacks: 0,
        };
        Recorded {
            kinds: kinds.iter().map(kind).collect(),
            latency: Histogram::default(),
            read_latency: Histogram::default(),
            read_miss_latency: Histogram::default(),
            commit_latency: Histogram::default(),
        }
    }

    /// A transaction ended.
    pub fn end(&mut self, kind: usize, latency: Nanos, rolled_back: bool) {
        self.latency.record(latency);
        self.kinds[kind].latency.record(latency);
        self.kinds[kind].rollbacks += u64::from(rolled_back);
    }

    pub fn transactions(&self) -> u64 {
        self.latency.count()
    }

    pub fn figures(&self) -> Figures {
        let reads = [&self.read_latency, &self.read_miss_latency];
        Figures::of(&self.kinds, &self.latency, reads, &self.commit_latency)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        let Recorded { kinds, latency, read_latency, read_miss_latency, commit_latency } = self;
        [latency, read_latency, read_miss_latency, commit_latency].into_iter().for_each(Histogram::clear);
        for kind in kinds {
            kind.latency.clear();
            (kind.retries, kind.rollbacks) = (0, 0);
        }
    }
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
