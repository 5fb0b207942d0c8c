//! Power cuts for programs that exist: runs a program in a folder that loses at a cut what was not synced, and runs a
//! checker on what is left.

mod power;
mod mount;
mod program;
mod test;
mod case;
mod run;
mod report;

pub use case::{GuiltyCut, Violation};
pub use program::MALLOC;
pub use report::JUNIT_BEGINNING;
pub use run::{Asked, Outcome, Typed, crashtest};
pub use test::{Check, CheckFunction, Plan};
