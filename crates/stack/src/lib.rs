//! Describes a storage stack as a value, and runs it.
//!
//! A [`Run`] is the stack (device, layer, pool), the load, what to measure, and the seed. Executing it gives
//! [`Row`]s of [`Column`]s. `settings` declares each setting of a run once, for command lines, study files
//! and run ids. This crate has no tables, reports or study files, so that a server or a binding can use a
//! stack without them.

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
mod timeline;
mod value;
pub mod workload;

pub use column::Column;
pub use command::Command;
pub use error::StackError;
pub use outlook::Outlook;
pub use progress::Progress;
pub use row::Row;
pub use run::{Load, Run, Stack};
pub use value::{Unit, Value};
