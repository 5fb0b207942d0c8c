//! Records the measurements of a run or of an interval of a time series, and computes figures from them.

use fulgurite_base::{Histogram, Nanos, Summary};

/// The measurements of the transactions of one type.
#[derive(Debug)]
pub struct KindOutcome {
    /// The name of the type of transaction.
    pub kind: &'static str,
    /// The distribution of the transactions' latencies, each from its first try to its end.
    pub latency: Histogram,
    /// The number of retries of the transactions after retryable errors.
    pub retries: u64,
    /// The number of rollbacks that the benchmark specifies; failed tries do not count.
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

/// The figures of a run or of an interval. A latency is `None` if no event of its kind ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// The figures of each type of transaction, in the order of [`crate::Benchmark::kinds`].
    pub kinds: Vec<KindFigures>,
    /// The latencies of the transactions of all types.
    pub latency: Option<Summary>,
    /// The latencies of reading calls of the store.
    pub read_latency: Option<Summary>,
    /// The latencies of reading calls that memory could not answer at once.
    pub read_miss_latency: Option<Summary>,
    /// The latencies of commits of transactions that wrote something.
    pub commit_latency: Option<Summary>,
}

/// The figures of the transactions of one type.
#[derive(Clone, Debug, PartialEq)]
pub struct KindFigures {
    /// The name of the type of transaction.
    pub kind: &'static str,
    /// The number of transactions that ended.
    pub ended: u64,
    /// The latencies of the transactions, each from its first try to its end; `None` if none ended.
    pub latency: Option<Summary>,
    /// The number of retries of the transactions after retryable errors.
    pub retries: u64,
    /// The number of rollbacks that the benchmark specifies; failed tries do not count.
    pub rollbacks: u64,
}

impl Figures {
    /// Computes the figures from the measurements of each type, of all transactions, of reads and read
    /// misses, and of commits.
    pub(crate) fn of(
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

    /// Returns the number of transactions of all types that ended.
    pub fn transactions(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.ended).sum()
    }

    /// Returns the number of retries of transactions of all types.
    pub fn retries(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.retries).sum()
    }

    /// Returns the number of rollbacks of transactions of all types that the benchmark specifies.
    pub fn rollbacks(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.rollbacks).sum()
    }
}

/// The measurements of a whole run or of an interval, as they are recorded.
pub(crate) struct Recorded {
    pub kinds: Vec<KindOutcome>,
    pub latency: Histogram,
    pub read_latency: Histogram,
    pub read_miss_latency: Histogram,
    pub commit_latency: Histogram,
}

impl Recorded {
    pub(crate) fn new(kinds: &[&'static str]) -> Recorded {
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

    /// Records the end of a transaction of this type with this latency.
    pub(crate) fn end(&mut self, kind: usize, latency: Nanos, rolled_back: bool) {
        self.latency.record(latency);
        self.kinds[kind].latency.record(latency);
        self.kinds[kind].rollbacks += u64::from(rolled_back);
    }

    pub(crate) fn transactions(&self) -> u64 {
        self.latency.count()
    }

    pub(crate) fn figures(&self) -> Figures {
        let reads = [&self.read_latency, &self.read_miss_latency];
        Figures::of(&self.kinds, &self.latency, reads, &self.commit_latency)
    }

    /// Resets all measurements to empty, keeping their memory for the next interval.
    pub(crate) fn clear(&mut self) {
        let Recorded { kinds, latency, read_latency, read_miss_latency, commit_latency } = self;
        [latency, read_latency, read_miss_latency, commit_latency].into_iter().for_each(Histogram::clear);
        for kind in kinds {
            kind.latency.clear();
            (kind.retries, kind.rollbacks) = (0, 0);
        }
    }
}
