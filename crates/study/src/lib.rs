//! Studies: a run as data, devices by name, characterisation, and tables of results.

pub mod device;
pub mod error;
pub mod profile;
pub mod table;
