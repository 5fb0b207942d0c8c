//! Studies: a run as data, devices by name, characterisation, and tables of results.

pub mod device;
pub mod error;
pub mod grid;
pub mod profile;
pub mod run;
pub mod runner;
pub mod table;
pub mod workload;
