//! What can go wrong in a benchmark.

use fulgurite_base::SpecError;
use thiserror::Error;

/// Why a benchmark could not be loaded, run or verified.
#[derive(Debug, Error)]
pub enum Error {
    /// The store failed, with an error that a retry does not help against.
    #[error(transparent)]
    Engine(#[from] fulgurite_engine::Error),
    /// The benchmark's description cannot be met.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The store holds no benchmark's data, or not all of it: a load was cut off.
    #[error("the store holds no complete data of a benchmark; load `{wanted}` first")]
    NotLoaded {
        /// What was asked for.
        wanted: String,
    },
    /// The store holds another benchmark's data, or the same at another scale.
    #[error(
        "the store holds the data of `{found}`, and `{wanted}` was asked for; load it into another store"
    )]
    OtherData {
        /// What the store holds.
        found: String,
        /// What was asked for.
        wanted: String,
    },
    /// A store to load into has something in it.
    #[error("the store already holds the data of `{found}`; load into an empty store")]
    AlreadyLoaded {
        /// What the store holds.
        found: String,
    },
    /// A row cannot be read, or a rule of the benchmark about its data is broken. The sentence says which.
    #[error("{0}")]
    Broken(String),
    /// One transaction was refused again and again.
    #[error("a `{kind}` transaction had to be retried {retries} times and was given up")]
    Starved {
        /// The transaction's type.
        kind: &'static str,
        /// How often it was retried.
        retries: u32,
    },
    /// A run for some time on a device whose clock hardly moves would not end.
    #[error(
        "{transactions} transactions took {elapsed_ns} ns of the device's time, so a run by time would not end; \
         run a number of transactions, or charge CPU for each operation"
    )]
    NoTime {
        /// Transactions that have ended.
        transactions: u64,
        /// The device's time they took, in nanoseconds.
        elapsed_ns: u64,
    },
    /// The intervals of the time series are too short for the run.
    #[error("the run has more than {most} intervals; accepted: longer ones, or a shorter run")]
    TooManyIntervals {
        /// How many a run may have.
        most: usize,
    },
}

impl Error {
    /// Whether the transaction may succeed when it is tried again.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Engine(error) if error.is_retryable())
    }

    /// A row of `table` that is missing or cannot be read.
    pub(crate) fn row(table: &str, what: impl std::fmt::Display) -> Error {
        Error::Broken(format!("a row of `{table}` {what}"))
    }
}
