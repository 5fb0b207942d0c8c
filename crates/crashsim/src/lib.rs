//! Crash simulation.

pub mod device;
pub mod history;
pub mod serial;
pub mod value;
