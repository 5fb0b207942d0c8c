//! A simulated SSD.
//!
//! Three parts that can be used alone: the flash translation layer ([`ftl`]) decides where pages
//! go and emits flash operations into a [`FlashSink`]; [`CountingSink`] only counts them, for
//! studies of write amplification; [`SimDrive`] plays them on dies and channels in virtual time
//! and is a `Device`. The policies (which segment to collect, which stream to write to, when to
//! collect) are one file each.

pub mod analytic;
pub mod check;
mod config;
mod drive;
pub mod ftl;
mod layout;
mod nand;
pub mod placement;
pub mod precondition;
pub mod preset;
pub mod schedule;
pub mod victim;

pub use config::{PARAMS, Param, Precondition, SsdConfig, WriteCache};
pub use drive::{DriveCounters, DriveError, Served, SimDrive, Span, SpanKind, Timeline, Track, Waits};
pub use ftl::{CountingSink, FlashSink, Ftl, FtlConfig, GroupCounters, SegmentId, WearLeveling};
pub use nand::NandError;
