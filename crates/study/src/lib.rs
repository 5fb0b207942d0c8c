//! Studies of storage stacks: grids of runs, tables of their rows, HTML reports.

pub mod advise;
mod change;
pub mod diff;
pub mod grid;
pub mod list;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod people;
pub mod reference;
pub mod report;
pub mod study;
pub mod table;
pub mod trace_convert;
pub mod trace_info;

pub use fulgurite_base::SpecError;
pub use fulgurite_stack::{
    Column, Command, Outlook, Progress, Run, StackError, Unit, outlook, progress, runner, settings,
};
