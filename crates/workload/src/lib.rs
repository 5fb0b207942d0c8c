//! Workloads: streams of [`Request`]s to a buffer pool or a drive.
//!
//! [`generate`] has synthetic workloads, one generator per file. Each is a pure function of its description,
//! the number of pages and a seed. [`trace`] reads recorded workloads, one trace format per file. Invariant:
//! no code here reads a clock or has a random source of its own, and the only files that it opens are the
//! given traces.

mod request;
pub mod generate;
pub mod trace;

pub use generate::{Generator, GeneratorConfig};
pub use request::{CopyOf, Op, Request};
