//! What is recorded of the transactions of a run or of an interval, and the figures that follow from it.

use fulgurite_base::{Histogram, Nanos, Summary};

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

/// What is recorded of a whole run, and of an interval.
pub(crate) struct Recorded {
    pub kinds: Vec<KindOutcome>,
    pub latency: Histogram,
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
