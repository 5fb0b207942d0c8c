//! The vocabulary that every other crate shares, and nothing that does I/O.
//!
//! Invariant: no clock, no environment, no file is read here. Time arrives as
//! [`Nanos`] from a device, randomness from a [`Prng`] that is handed in.

#![cfg_attr(not(test), forbid(clippy::disallowed_methods, clippy::disallowed_types))]

mod config_enum;
mod histogram;
mod huge_pages;
mod ids;
pub mod option;
mod prefetch;
mod prng;
pub mod spec;
pub mod units;

pub use histogram::{Histogram, Summary};
pub use huge_pages::advise_huge_pages;
pub use ids::{FrameId, Lpn, Nanos, PageId, Ppn, StreamId};
pub use option::{Choice, Declared, Entry, Form, NoOptions, Opt, OptionHelp, Registry};
pub use prefetch::prefetch;
pub use prng::Prng;
pub use spec::{Spec, SpecError};
pub use units::{Portion, Share};

/// The FNV-1a hash of `bytes`: the same on every machine and for ever, for names and identifiers.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    // The numbers are the offset basis and the prime of the 64-bit hash.
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
