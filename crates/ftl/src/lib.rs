//! The flash translation layer, without any I/O of its own.
//!
//! [`Ftl`] decides the physical pages of written pages and the time of garbage collection, and emits flash
//! operations into a [`FlashSink`]. [`CountingSink`] only counts them, for studies of write amplification. A
//! simulated drive executes them on dies in virtual time. A layer on the host turns them into commands for
//! the drive below. Each policy has a file; there are three kinds of policies: placement (the stream to write
//! to), victim selection (the segment to collect) and schedules (the time to collect).

#![cfg_attr(not(test), forbid(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod analytic;
mod divisor;
mod mapping;
pub mod schedule;
mod segments;
pub mod victim;
pub mod placement;
mod candidates;
mod collect;
mod config;
mod wear;
mod ftl;
pub mod check;
mod gate;
pub mod sprandom;
pub mod precondition;

pub use collect::{Collect, SEGMENTS_AT_MOST};
pub use config::{FtlConfig, Stripe, WearLeveling};
pub use divisor::Divisor;
pub use ftl::{CountingSink, FlashSink, Ftl, FtlCounters, UnitId};
pub use gate::{AfterPick, Gate, Unplaced};
pub use mapping::Mapping;
pub use segments::{GroupCounters, SegmentId, SegmentState, SegmentTable};
