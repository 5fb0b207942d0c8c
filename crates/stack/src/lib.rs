//! Describes a storage stack as a value, and runs it.
//!
//! [`Run`] says what is built (device, layer, pool), what is asked of it, what is measured, and the seed. Executing it
//! gives [`Row`]s of [`Column`]s. `settings` declares every setting of a run once, for command lines, study files and
//! run ids alike. This crate has no tables, reports or study files, so that a server or a binding can use a stack
//! without them.

mod build;
pub mod catalogue;
mod check;
mod column;
mod command;
pub mod device;
mod error;
mod execute;
mod memo;
pub mod memory;
mod open;
pub mod outlook;
mod profile;
pub mod progress;
mod row;
mod run;
pub mod run_list;
pub mod runner;
pub mod settings;
pub mod timeline;
mod value;
pub mod workload;

pub use column::Column;
pub use command::Command;
pub use error::StackError;
pub use outlook::Outlook;
pub use progress::Progress;
pub use row::Row;
pub use run::{
    Arrivals, Benchmarked, ChosenWriteBack, EngineStage, Load, Measure, Policies, PoolStage, Requested, Rows,
    Run, Stack,
};
pub use value::{Unit, Value};
