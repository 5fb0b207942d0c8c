//! Defines the errors of loading, running and verifying benchmarks.

use fulgurite_base::SpecError;
use thiserror::Error;

/// The reason why a benchmark could not be loaded, run or verified.
#[derive(Debug, Error)]
pub enum Error {
    /// The store returned an error.
    #[error(transparent)]
    Engine(#[from] fulgurite_engine::Error),
    /// The options of the benchmark contradict each other or are out of range.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The store holds no complete data of a benchmark, because no load was completed.
    #[error("the store holds no complete data of a benchmark; load `{wanted}` first")]
    NotLoaded {
        /// The text of the requested data.
        wanted: String,
    },
    /// The store holds the data of another benchmark, or the same at another scale.
    #[error(
        "the store holds the data of `{found}`, and `{wanted}` was asked for; load it into another store"
    )]
    OtherData {
        /// The text of the data in the store.
        found: String,
        /// The text of the requested data.
        wanted: String,
    },
    /// The store for a load already holds data.
    #[error("the store already holds the data of `{found}`; load into an empty store")]
    AlreadyLoaded {
        /// The text of the data in the store.
        found: String,
    },
    /// A row cannot be read, or a rule of the benchmark about its data is broken. The text names the row or
    /// the rule.
    #[error("{0}")]
    Broken(String),
    /// A transaction was refused with a retryable error too often.
    #[error("a `{kind}` transaction had to be retried {retries} times and was given up")]
    Starved {
        /// The name of the transaction's type.
        kind: &'static str,
        /// The number of retries of the transaction.
        retries: u32,
    },
    /// A run by time would not end, because the device's clock hardly advances.
    #[error(
        "{transactions} transactions took {elapsed_ns} ns of the device's time, so a run by time would not end; \
         run a number of transactions, or charge CPU for each operation"
    )]
    NoTime {
        /// The number of transactions that have ended.
        transactions: u64,
        /// The duration of these transactions on the device's clock, in nanoseconds.
        elapsed_ns: u64,
    },
    /// The run has too many intervals for a time series.
    #[error("the run has more than {most} intervals; accepted: longer ones, or a shorter run")]
    TooManyIntervals {
        /// The most intervals of a time series.
        most: usize,
    },
}

impl Error {
    /// Whether the transaction may succeed if it is executed again.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Engine(error) if error.is_retryable())
    }

    /// Returns the error about a row of `table` that is missing or cannot be read.
    pub(crate) fn row(table: &str, what: impl std::fmt::Display) -> Error {
        Error::Broken(format!("a row of `{table}` {what}"))
    }
}
