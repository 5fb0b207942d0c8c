//! The types that all other crates share: times, page numbers, random numbers, histograms, and texts with
//! units and options.
//!
//! Invariant: this crate does no I/O and reads no clock, no environment variable and no file. Time comes from
//! a device as [`Nanos`], and randomness from a [`Prng`] that the caller passes in.

#![cfg_attr(not(test), forbid(clippy::disallowed_methods, clippy::disallowed_types))]

mod error;
mod huge_pages;
mod ids;
mod histogram;
mod prefetch;
pub mod units;
mod prng;
mod spec;
pub mod option;
mod placement_id;
mod config_enum;

pub use error::SpecError;
pub use histogram::{Histogram, Summary};
pub use huge_pages::advise_huge_pages;
pub use ids::{FrameId, Lpn, Nanos, PageId, Ppn, StreamId};
pub use option::{Choice, Declared, Entry, Form, NoOptions, Opt, OptionHelp, Registry};
pub use placement_id::{Isolation, PlacementId};
pub use prefetch::prefetch;
pub use prng::Prng;
pub use spec::{FromOption, Spec};
pub use units::{Portion, Share};

/// Returns the FNV-1a hash (Fowler, Noll and Vo) of `bytes`, for names and identifiers. The hash is the same
/// on every machine and in every version.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    // The numbers are the offset basis and the prime of the 64-bit FNV-1a hash.
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
