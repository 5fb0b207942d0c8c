//! Describes a storage stack as a value, and runs it.
//!
//! [`Run`] says what is built (device, layer, pool), what is asked of it, what is measured, and the seed. Executing it
//! gives [`Row`]s of [`Column`]s. `settings` declares every setting of a run once, for command lines, study files and
//! run ids alike. This crate has no tables, reports or study files, so that a server or a binding can use a stack
//! without them.

mod build;
pub mod catalogue;
mod check;
pub mod column;
mod command;
pub mod device;
mod error;
mod execute;
mod meaning;
mod memo;
mod memory;
mod obstacle;
pub mod outlook;
pub mod output;
pub mod progress;
mod row;
mod run;
pub mod run_list;
pub mod runner;
pub mod settings;
pub mod store;
pub mod timeline;
mod unfinished;
pub mod workload;

pub use column::{Column, Unit};
pub use command::Command;
pub use error::StackError;
pub use obstacle::obstacle;
pub use outlook::Outlook;
pub use progress::Progress;
pub use row::{Row, Value};
pub use run::{
    Arrivals, Benchmarked, ChosenWriteBack, EngineStage, Load, Measure, Policies, PoolStage, Requested, Rows,
    Run, Stack,
};
