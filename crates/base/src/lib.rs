//! The vocabulary that every other crate shares, and nothing that does I/O.
//!
//! Invariant: no clock, no environment, no file is read here. Time arrives as
//! [`Nanos`] from a device, randomness from a [`Prng`] that is handed in.

mod histogram;
mod ids;
mod prng;
pub mod spec;
pub mod units;

pub use histogram::Histogram;
pub use ids::{FrameId, Lpn, Nanos, PageId, Ppn};
pub use prng::Prng;
pub use spec::{Spec, SpecError};
pub use units::Share;
