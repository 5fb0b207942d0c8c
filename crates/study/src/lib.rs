//! Runs studies of storage stacks: grids of runs, tables of their result rows, and HTML reports.

mod change;
mod seeds;
pub mod grid;
pub mod table;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod people;
pub mod advise;
pub mod which_drive;
pub mod calibrate;
pub mod diff;
pub mod trace_info;
pub mod report;
pub mod study;
pub mod list;
pub mod reference;
pub mod trace_convert;

pub use fulgurite_base::SpecError;
pub use fulgurite_stack::{
    Column, Command, Outlook, Progress, Run, StackError, Unit, outlook, progress, runner, settings,
};
