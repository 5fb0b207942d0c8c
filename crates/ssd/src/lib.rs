//! A simulated SSD: the flash translation layer of `fulgurite-ftl` on dies and channels in virtual time.
//!
//! [`SimDrive`] is a `Device`. [`SsdConfig`] is the configuration of a drive, with every parameter declared
//! once. The [presets](preset) are drives from the literature.

#![cfg_attr(not(test), forbid(clippy::disallowed_methods, clippy::disallowed_types))]

mod zones;
mod config;
mod layout;
mod nand;
mod drive;
pub mod preset;

pub use config::{GcUnit, SsdConfig, WriteCache};
pub use drive::{
    Busy, DieState, DriveCounters, DriveError, DriveState, FdpCounts, Image, Segments, Served, ServedKind,
    SimDrive, Span, SpanKind, Timeline, Track, Waits,
};
pub use nand::NandError;
pub use zones::Zones;
