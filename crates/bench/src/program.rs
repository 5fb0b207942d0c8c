//! Defines one type for all built-in benchmarks, so that a caller can run any of them.

use crate::benchmark::{Benchmark, Verified};
use crate::driver::{self, Plan};
use crate::error::Error;
use crate::index_scan::IndexScan;
use crate::linkbench::LinkBench;
use crate::meter::Outcome;
use crate::sysbench::Sysbench;
use crate::tpcc::Tpcc;
use crate::ycsb::Ycsb;
use fulgurite_base::Nanos;
use fulgurite_engine::sharded::Store;
use std::rc::Rc;

macro_rules! programs {
    ($($variant:ident)*) => {
        /// A built-in benchmark over a store that holds its data.
        #[derive(Clone)]
        #[allow(missing_docs)] // each variant's module documents it
        pub enum Program {
            $($variant(Rc<$variant>),)*
        }

        $(impl From<$variant> for Program {
            fn from(program: $variant) -> Program {
                Program::$variant(Rc::new(program))
            }
        })*

        impl Program {
            /// Returns the names of the types of transactions.
            pub fn kinds(&self) -> &[&'static str] {
                match self {
                    $(Program::$variant(program) => program.kinds(),)*
                }
            }

            /// Runs the benchmark; see [`crate::run`].
            pub async fn run(
                &self,
                store: &Store,
                plan: &Plan,
                measured: impl FnOnce(),
                ended: &Rc<dyn Fn(Nanos)>,
            ) -> Result<Outcome, Error> {
                match self {
                    $(Program::$variant(program) => driver::run(store, program, plan, measured, ended).await,)*
                }
            }

            /// Checks the rules of the benchmark about its data in snapshots of the store.
            ///
            /// Fails with an error that names the broken rule and the row or table.
            pub async fn verify(&self, store: &Store) -> Result<Verified, Error> {
                match self {
                    $(Program::$variant(program) => program.verify(store).await,)*
                }
            }
        }
    };
}

programs!(Ycsb Tpcc LinkBench Sysbench IndexScan);
