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
    /// It was rolled back, as the benchmark wants it.
    RolledBack,
}

/// A benchmark over data that are loaded: it draws requests and carries them out. A user's own can be given to
/// [`crate::run`] as the built-in ones are.
pub trait Benchmark: 'static {
    /// One transaction with all its parameters, so that it can be tried again as it was.
    type Request;

    /// The names of the types of transactions.
    fn kinds(&self) -> &[&'static str];

    /// The type of a request: an index into [`Benchmark::kinds`].
    fn kind(&self, request: &Self::Request) -> usize;

    /// The next request of a user, from that user's randomness.
    fn draw(&self, prng: &mut Prng) -> Self::Request;

    /// Carries a request out as one transaction. It may be called again with the same request after an error that is
    /// retryable.
    fn execute<D: Device + 'static>(
        &self,
        request: &Self::Request,
        session: &Session<D>,
    ) -> impl Future<Output = Result<Ending, Error>>;
}

/// What was looked at to verify a benchmark's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Rows that were read.
    pub rows: u64,
    /// Changes that rows count: YCSB's updates of fields, TPC-C's orders, LinkBench's links, sysbench's updates of `k`.
    pub changes: u64,
}
