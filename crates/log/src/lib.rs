//! A log-structured layer above a drive: the flash translation layer of `fulgurite-ftl`, on the host.
//!
//! [`LogDevice`] is a `Device` over any other device, simulated or real, which is called the drive below. The
//! layer writes every page to the next page of an open segment of the drive below. So the drive below sees
//! segments that are written in order and trimmed as a whole, and the layer's own garbage collection moves
//! the valid pages. Placement, victim policies and schedules are the same code as in the simulated drive.

#![cfg_attr(not(test), forbid(clippy::disallowed_methods, clippy::disallowed_types))]

mod collection;
mod command;
mod config;
mod run;
mod tails;
mod device;
mod collect;
mod counters;
mod host;
mod precondition;

pub use config::LogConfig;
pub use counters::{LogCounters, LogError};
pub use device::LogDevice;
pub use precondition::Below;
