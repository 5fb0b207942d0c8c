//! A deterministic pseudo-random number generator: xoshiro256++ in named substreams.
//!
//! A run has one seed. Each consumer of random numbers takes a substream by name, so adding a consumer does
//! not change the numbers that the others draw. Draws are integers, so they are the same on every machine.

use crate::units::Share;
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A pseudo-random number generator. The seed and the name of its substream determine all numbers that it
/// draws.
#[derive(Clone, Debug)]
pub struct Prng(Xoshiro256PlusPlus);

impl Prng {
    /// Creates the substream `name` of the run with the seed `seed`.
    pub fn new(seed: u64, name: &str) -> Prng {
        let hash = crate::fnv1a(name.as_bytes());
        // Seed and hash are combined simply here, because `seed_from_u64` then mixes the bits with
        // SplitMix64.
        let mixed = hash ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17);
        Prng(Xoshiro256PlusPlus::seed_from_u64(mixed))
    }

    /// Draws 64 uniform bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Draws a uniform integer in `0..n`, without bias (Lemire, 2019). `n` must not be zero.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        debug_assert!(n > 0);
        let mut wide = u128::from(self.next_u64()) * u128::from(n);
        if (wide as u64) < n {
            // The threshold is 2^64 modulo `n`. Few draws reach this line, so most need no division.
            let threshold = n.wrapping_neg() % n;
            while (wide as u64) < threshold {
                wide = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (wide >> 64) as u64
    }

    /// Returns true with probability `share`.
    #[inline]
    pub fn chance(&mut self, share: Share) -> bool {
        self.below(u64::from(Share::ONE.ppm())) < u64::from(share.ppm())
    }

    /// Draws a uniform number in `[0, 1)` with 53 bits. By IEEE 754 it is the same on every machine.
    #[inline]
    pub fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Puts `items` in a uniformly random order (Fisher and Yates, in the form of Durstenfeld, 1964).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substreams_are_pinned() {
        // These are golden numbers: if they changed, every recorded result would change.
        let mut a = Prng::new(42, "workload");
        let first = [a.next_u64(), a.next_u64()];
        assert_eq!(first, [3264558026967516685, 14410103883846867758]);
        assert_ne!(Prng::new(42, "other").next_u64(), first[0]);
        assert_ne!(Prng::new(43, "workload").next_u64(), first[0]);
    }

    #[test]
    fn below_is_uniform() {
        let mut prng = Prng::new(1, "below");
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[prng.below(7) as usize] += 1;
        }
        // The counts are binomial (70,000 draws, probability 1/7) with a standard deviation of 92.6; the
        // bound is five standard deviations.
        assert!(counts.iter().all(|&c| (c as i64 - 10_000).abs() < 463), "{counts:?}");
    }

    #[test]
    fn every_order_is_equally_likely() {
        let mut prng = Prng::new(1, "shuffle");
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..60_000 {
            let mut order = [0, 1, 2, 3];
            prng.shuffle(&mut order);
            *counts.entry(order).or_insert(0) += 1;
        }
        // Each of the 24 orders has 2,500 draws on average with a standard deviation of 48.9; the bound is five
        // standard deviations.
        assert_eq!(counts.len(), 24);
        assert!(counts.values().all(|&c: &i64| (c - 2_500).abs() < 245), "{counts:?}");
    }
}
