//! The flash translation layer, without any I/O of its own.
//!
//! [`Ftl`] decides where pages go and when garbage is collected, and emits flash operations into a [`FlashSink`].
//! [`CountingSink`] only counts them, for studies of write amplification; a simulated drive plays them on dies in
//! virtual time; a layer on the host turns them into commands for the drive below. The policies (which segment to
//! collect, which stream to write to, when to collect) are one file each.

#![cfg_attr(not(test), forbid(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod analytic;
mod candidates;
pub mod check;
mod collect;
mod custom;
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
pub use custom::Custom;
pub use divisor::Divisor;
pub use ftl::{CountingSink, FlashSink, Ftl, FtlConfig, FtlCounters, Stripe, UnitId};
pub use gate::{AfterPick, Gate, Unplaced};
pub use mapping::Mapping;
pub use segments::{GroupCounters, SegmentId, SegmentState, SegmentTable};
pub use wear::WearLeveling;
