//! A log-structured layer above a drive: the flash translation layer of `fulgurite-ftl`, on the host.
//!
//! [`LogDevice`] is a `Device` over any other, simulated or real. Every written page goes to the next page
//! of an open segment of the drive below, so that the drive sees segments written in order and trimmed whole;
//! the layer's own collection moves what is still valid. Placement, victims and schedules are those of the
//! simulated drive, and the same code.

#![cfg_attr(not(test), forbid(clippy::disallowed_methods, clippy::disallowed_types))]

mod collect;
mod command;
mod config;
mod counters;
mod device;
mod host;
mod precondition;
mod run;
mod tails;

pub use config::LogConfig;
pub use counters::{LogCounters, LogError};
pub use device::LogDevice;
pub use precondition::Below;
