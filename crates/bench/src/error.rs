//! The errors of benchmarks.

use fulgurite_base::SpecError;
use thiserror::Error;

/// Why a benchmark could not be loaded, run or verified.
#[derive(Debug, Error)]
pub enum Error {
    /// The store failed.
    #[error(transparent)]
    Engine(#[from] fulgurite_engine::Error),
    /// The benchmark's options are wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The store holds no complete data of a benchmark.
    #[error("the store holds no complete data of a benchmark; load `{wanted}` first")]
    NotLoaded {
        /// The text of the requested data.
        wanted: String,
    },
    /// The store holds another benchmark's data, or the same at another scale.
    #[error(
        "the store holds the data of `{found}`, and `{wanted}` was asked for; load it into another store"
    )]
    OtherData {
        /// The text of the data in the store.
        found: String,
        /// The text of the requested data.
        wanted: String,
    },
    /// The store for a load is not empty.
    #[error("the store already holds the data of `{found}`; load into an empty store")]
    AlreadyLoaded {
        /// The text of the data in the store.
        found: String,
    },
    /// A row cannot be read, or a rule of the benchmark about its data is broken. The text says which one.
    #[error("{0}")]
    Broken(String),
    /// One transaction was refused too often.
    #[error("a `{kind}` transaction had to be retried {retries} times and was given up")]
    Starved {
        /// The transaction's type.
        kind: &'static str,
        /// How often it was retried.
        retries: u32,
    },
    /// A run by time would not end, because the device's clock hardly advances.
    #[error(
        "{transactions} transactions took {elapsed_ns} ns of the device's time, so a run by time would not end; \
         run a number of transactions, or charge CPU for each operation"
    )]
    NoTime {
        /// Transactions that have ended.
        transactions: u64,
        /// Their time on the device's clock, in nanoseconds.
        elapsed_ns: u64,
    },
    /// The intervals of the time series are too short for the run.
    #[error("the run has more than {most} intervals; accepted: longer ones, or a shorter run")]
    TooManyIntervals {
        /// The most intervals of a run.
        most: usize,
    },
}

impl Error {
    /// Whether the transaction may succeed if it is repeated.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Engine(error) if error.is_retryable())
    }

    /// A row of `table` that is missing or cannot be read.
    pub(crate) fn row(table: &str, what: impl std::fmt::Display) -> Error {
        Error::Broken(format!("a row of `{table}` {what}"))
    }
}
