//! Random choices that several generators use.

use crate::Op;
use fulgurite_base::{Prng, Share};

/// A write with probability `write`, else a read.
#[inline]
pub(super) fn draw_op(prng: &mut Prng, write: Share) -> Op {
    if prng.chance(write) { Op::Write } else { Op::Read }
}

/// A whole number from `least` to `most`.
pub(super) fn between(prng: &mut Prng, least: u64, most: u64) -> u64 {
    least + prng.below(most - least + 1)
}

/// True with a probability of `percent`.
pub(super) fn percent(prng: &mut Prng, percent: u64) -> bool {
    prng.below(100) < percent
}
