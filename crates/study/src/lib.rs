//! Studies: a run as data, devices by name, characterisation, and tables of results.

pub mod device;
pub mod error;
pub mod grid;
pub mod list;
mod memo;
pub mod output;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod profile;
pub mod report;
pub mod run;
pub mod runner;
pub mod study;
pub mod table;
pub mod timeline;
pub mod trace_convert;
pub mod trace_info;
pub mod workload;
