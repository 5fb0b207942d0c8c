//! Crash simulation.

pub mod history;
pub mod serial;
pub mod value;
