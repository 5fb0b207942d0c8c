//! The interface of a benchmark to the driver, and one type for all built-in benchmarks.

use crate::index_scan::IndexScan;
use crate::linkbench::LinkBench;
use crate::sysbench::Sysbench;
use crate::tpcc::Tpcc;
use crate::ycsb::Ycsb;
use crate::{Error, Outcome, Plan, Session};
use fulgurite_base::{Nanos, Prng};
use fulgurite_device::Device;
use fulgurite_engine::Store;
use std::rc::Rc;

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

macro_rules! programs {
    ($($variant:ident)*) => {
        /// A built-in benchmark over a store that holds its data.
        #[derive(Clone)]
        #[allow(missing_docs)] // each variant's module documents it
        pub enum Program {
            $($variant(Rc<$variant>),)*
        }

        impl Program {
            /// The names of the types of transactions.
            pub fn kinds(&self) -> &[&'static str] {
                match self {
                    $(Program::$variant(program) => program.kinds(),)*
                }
            }

            /// Runs it; see [`crate::run`].
            pub async fn run<D: Device + 'static>(
                &self,
                store: &Store<D>,
                plan: &Plan,
                measured: impl FnOnce(),
                ended: &Rc<dyn Fn(Nanos)>,
            ) -> Result<Outcome, Error> {
                match self {
                    $(Program::$variant(program) => crate::run(store, program, plan, measured, ended).await,)*
                }
            }

            /// Checks the rules of the benchmark about its data, in one snapshot of the store.
            ///
            /// Fails with a sentence that says which rule is broken where.
            pub async fn verify<D: Device + 'static>(&self, store: &Store<D>) -> Result<Verified, Error> {
                match self {
                    $(Program::$variant(program) => program.verify(store).await,)*
                }
            }
        }
    };
}

programs!(Ycsb Tpcc LinkBench Sysbench IndexScan);
