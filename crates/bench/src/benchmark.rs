//! Defines the interface between a benchmark and the driver, which runs its transactions.

use crate::error::Error;
use crate::session::Session;
use fulgurite_base::Prng;

/// The way in which a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The transaction was committed, or it only read.
    Committed,
    /// The transaction was rolled back, as the benchmark specifies for some transactions.
    RolledBack,
}

/// A benchmark over loaded data. It draws requests (transactions with their parameters) and executes them.
/// [`crate::run`] takes a user's own benchmark as well as a built-in one.
pub trait Benchmark: 'static {
    /// The type of a transaction with all its parameters, so that the transaction can be repeated unchanged.
    type Request;

    /// Returns the names of the types of transactions.
    fn kinds(&self) -> &[&'static str];

    /// Returns the type of a request, as an index into [`Benchmark::kinds`].
    fn kind(&self, request: &Self::Request) -> usize;

    /// Draws the next request of a user, from the user's own random stream.
    fn draw(&self, prng: &mut Prng) -> Self::Request;

    /// Executes a request as one transaction. After a retryable error, the driver may call it again with the
    /// same request.
    fn execute(
        &self,
        request: &Self::Request,
        session: &Session,
    ) -> impl Future<Output = Result<Ending, Error>>;
}

/// The counts of a verification of a benchmark's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// The number of rows that were read and checked.
    pub rows: u64,
    /// The number of changes that the rows record: updates of fields in YCSB, orders in TPC-C, visible links
    /// in LinkBench, and the sum of the column `k` in sysbench.
    pub changes: u64,
}
