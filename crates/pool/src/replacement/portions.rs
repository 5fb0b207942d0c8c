//! Turns the portions in a policy's options into numbers of frames and pages.

use fulgurite_base::{Portion, SpecError};

/// Returns the number of frames that an option asks for, in a pool of `frames`. `option` is its name in the
/// error.
pub(super) fn frames_of(portion: Portion, frames: u32, option: &str) -> Result<u32, SpecError> {
    at_most(portion, frames, frames, option)
}

/// Returns the number of evicted pages that an option asks to remember, for a pool of `frames`.
pub(super) fn ghosts_of(portion: Portion, frames: u32, option: &str) -> Result<u32, SpecError> {
    // A page table has room for at most 2^30 pages.
    at_most(portion, frames, frames.saturating_mul(10).min(1 << 30), option)
}

fn at_most(portion: Portion, frames: u32, most: u32, option: &str) -> Result<u32, SpecError> {
    u32::try_from(portion.of(u64::from(frames))).ok().filter(|count| *count <= most).ok_or_else(|| {
        SpecError::new(format!(
            "{option}={portion} is too much for {frames} frames; accepted: a count up to {most}, or a share like 6%"
        ))
    })
}
