//! Workloads: what a study asks of a buffer pool or a drive, as a stream of [`Request`]s.
//!
//! [`generate`] makes them up, one generator per file, each a pure function of its spec, the number
//! of pages and a seed. [`trace`] reads recorded ones, one format per file. Invariant: nothing here
//! looks at a clock or at a random source of its own. The only files read are the given traces.

pub mod generate;
pub mod trace;

pub use generate::{Generator, GeneratorConfig};

use fulgurite_base::Nanos;

/// What a request does to its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Reads them.
    Read,
    /// Writes them.
    Write,
    /// Declares their content no longer needed.
    Trim,
}

/// One request of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it arrives, counted from the workload's start; zero where the workload has no times.
    pub at: Nanos,
    /// What it does.
    pub op: Op,
    /// The first page, counted from zero in the workload's pages.
    pub page: u64,
    /// How many pages from there on; at least one.
    pub pages: u32,
    /// A placement hint: writes of one stream are expected to die together. Zero where nothing is known.
    pub stream: u16,
}

impl Request {
    /// A request without a time for one page.
    #[inline]
    pub fn of_page(op: Op, page: u64) -> Request {
        Request { at: Nanos::ZERO, op, page, pages: 1, stream: 0 }
    }
}
