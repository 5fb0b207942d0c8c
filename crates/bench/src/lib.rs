//! Implements benchmark programs that run directly on the storage engine: YCSB, TPC-C, LinkBench, sysbench's
//! OLTP programs and a scan through a secondary index.
//!
//! A [`BenchmarkConfig`] is a benchmark by name, with its options. It loads a store, and opens a loaded store
//! as a [`Program`]. [`run`] runs a benchmark in a closed loop: N users, each a task of the store's executor,
//! take transactions from a common supply. The [`Outcome`] has percentiles for each type of transaction, for
//! reads and for commits, and figures over time. After a run, [`Program::verify`] checks rules about the
//! data: TPC-C's consistency conditions, LinkBench's counts, the content of every row of YCSB.
//!
//! Invariants: time is the device's, and randomness comes from the seed of the [`Plan`], so on a
//! deterministic device an outcome is a function of the configuration and the plan. No code here names a
//! device, so the same programs run on simulated and on real drives.

#![cfg_attr(not(test), forbid(clippy::disallowed_methods, clippy::disallowed_types))]
mod draw;
mod error;
pub mod codec;
mod data;
mod figures;
mod series;
mod meter;
mod session;
mod benchmark;
mod driver;
mod recipe;
pub mod index_scan;
pub mod linkbench;
pub mod sysbench;
pub mod tpcc;
pub mod ycsb;
mod program;
mod config;

pub use benchmark::{Benchmark, Ending, Verified};
pub use config::BenchmarkConfig;
pub use data::Data;
pub use driver::{Extent, Plan, run};
pub use error::Error;
pub use figures::{Figures, KindFigures, KindOutcome};
pub use meter::Outcome;
pub use program::Program;
pub use series::{INTERVALS_AT_MOST, Series};
pub use session::{Record, Session, View, Work};
