//! The interface of a benchmark to the driver.

use crate::error::Error;
use crate::session::Session;
use fulgurite_base::Prng;
use fulgurite_device::Device;

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was committed, or it only read.
    Committed,
    /// It was rolled back, as the benchmark specifies.
    RolledBack,
}

/// A benchmark over loaded data: it draws requests and executes them. [`crate::run`] takes a user's own
/// benchmark as well as a built-in one.
pub trait Benchmark: 'static {
    /// One transaction with all its parameters, so that it can be repeated unchanged.
    type Request;

    /// The names of the types of transactions.
    fn kinds(&self) -> &[&'static str];

    /// The type of a request: an index into [`Benchmark::kinds`].
    fn kind(&self, request: &Self::Request) -> usize;

    /// The next request of a user, from that user's randomness.
    fn draw(&self, prng: &mut Prng) -> Self::Request;

    /// Executes a request as one transaction. After a retryable error it may be called again with the same
    /// request.
    fn execute<D: Device + 'static>(
        &self,
        request: &Self::Request,
        session: &Session<D>,
    ) -> impl Future<Output = Result<Ending, Error>>;
}

/// The counts of a verification of a benchmark's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Rows that were read.
    pub rows: u64,
    /// Changes that the rows record: YCSB's updates of fields, TPC-C's orders, LinkBench's links, sysbench's
    /// updates of `k`.
    pub changes: u64,
}
