//! The flash translation layer, without any I/O of its own.
//!
//! [`Ftl`] decides the places of pages and the time of garbage collection, and emits flash operations into a
//! [`FlashSink`]. [`CountingSink`] only counts them, for studies of write amplification. A simulated drive
//! plays them on dies in virtual time. A layer on the host turns them into commands for the drive below. Each
//! policy has a file: which segment to collect, which stream to write to, when to collect.

#![cfg_attr(not(test), forbid(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod analytic;
mod candidates;
pub mod check;
mod collect;
mod divisor;
mod ftl;
mod gate;
mod mapping;
pub mod placement;
pub mod precondition;
pub mod schedule;
mod segments;
pub mod victim;
mod wear;

pub use collect::{Collect, SEGMENTS_AT_MOST};
pub use divisor::Divisor;
pub use ftl::{CountingSink, FlashSink, Ftl, FtlConfig, FtlCounters, Stripe, UnitId, WearLeveling};
pub use gate::{AfterPick, Gate, Unplaced};
pub use mapping::Mapping;
pub use segments::{GroupCounters, SegmentId, SegmentState, SegmentTable};
