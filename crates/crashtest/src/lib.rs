//! Power cuts for programs that exist: runs a program in a folder that loses at a cut what was not synced, and runs a
//! checker on what is left.

mod power;
mod mount;
mod program;
mod test;
mod run;
mod report;

pub use report::JUNIT_BEGINNING;
pub use run::{Asked, Outcome, Typed, Violation, crashtest};
pub use test::Plan;
