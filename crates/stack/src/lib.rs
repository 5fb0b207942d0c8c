//! Describes a storage stack as a value, and executes runs on it.
//!
//! A [`Run`] consists of the stack (device, layer, pool), the load, the measurements, and the seed. Executing
//! a run gives [`Row`]s of [`Column`]s. `settings` declares each setting of a run once, for command lines,
//! study files and run ids. This crate has no tables, reports or study files, so that a server or a binding
//! can use a stack without them.

mod command;
mod error;
mod memo;
pub mod progress;
pub mod device;
mod value;
mod column;
pub mod memory;
mod row;
mod timeline;
pub mod workload;
pub mod trace_profile;
mod pattern;
mod run;
pub mod catalogue;
mod open;
mod probe;
mod steady;
mod profile;
mod build;
mod execute;
pub mod serve;
pub mod outlook;
mod check;
pub mod runner;
pub mod run_list;
pub mod settings;

pub use column::Column;
pub use command::Command;
pub use error::StackError;
pub use open::forget_drives;
pub use outlook::Outlook;
pub use probe::PROBE_WRITES_S;
pub use progress::Progress;
pub use row::Row;
pub use run::{Arrivals, LatencySuite, Load, Run, Stack, Suite};
pub use value::{Unit, Value};
