//! Tests the engine under power cuts and drive faults that follow from a seed.
//!
//! A seed determines a [`Plan`]: a drive, a store, clients with their transactions, faults and power cuts.
//! The module `run` executes the plan on a `CrashDevice`; the documentation of the module `device` describes
//! the fault model. After each restart `recovery` compares the contents of the store with the history of its
//! transactions, and `serial` checks whether all transactions have a serial order. [`search`] runs each seed
//! twice and reduces the plan of a failing seed.

mod device;
mod shrink;
mod value;
mod history;
mod plan;
mod serial;
mod violation;
mod recovery;
mod run;
pub mod search;

pub use device::FaultKind;
pub use plan::Plan;
pub use violation::Violation;
