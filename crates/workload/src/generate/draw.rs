//! Random choices that several generators make.

use crate::Op;
use fulgurite_base::{Prng, Share};

/// Returns a write with the probability `write`, and otherwise a read.
#[inline]
pub(super) fn draw_op(prng: &mut Prng, write: Share) -> Op {
    if prng.chance(write) { Op::Write } else { Op::Read }
}

/// Returns a uniformly drawn whole number from `least` to `most`, both included.
pub(super) fn between(prng: &mut Prng, least: u64, most: u64) -> u64 {
    least + prng.below(most - least + 1)
}

/// Returns true with a probability of `percent` in a hundred.
pub(super) fn percent(prng: &mut Prng, percent: u64) -> bool {
    prng.below(100) < percent
}
