//! Workloads: the requests of a study to a buffer pool or a drive, as a stream of [`Request`]s.
//!
//! [`generate`] makes them up, one generator per file, each a pure function of its spec, the number
//! of pages and a seed. [`trace`] reads recorded ones, one format per file. Invariant: nothing here
//! looks at a clock or at a random source of its own. The only files read are the given traces.

pub mod generate;
mod request;
pub mod trace;

pub use generate::{Generator, GeneratorConfig};
pub use request::{CopyOf, Op, Request};
