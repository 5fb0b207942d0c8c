//! Draws the page of popularity rank r with a probability exactly proportional to `r^-theta` (Zipf's law),
//! for any number of pages, from a table of a few hundred rows.
//!
//! Ranks are grouped in buckets, sixteen to the octave; each of the first 31 ranks has its own. An alias
//! table picks a bucket by its exact mass. In the bucket, a uniformly drawn rank is accepted with probability
//! `(r / low)^-theta`, at least 0.73 (rejection sampling); `low` is the first rank of the bucket. Two
//! polynomials bound that power from below and above, so that `pow` is called about once in a thousand draws
//! at theta 1. The popular pages are scattered over the address space, see `Scatter`.
//!
//! The usual approximation (Gray et al., SIGMOD 1994, as in YCSB) needs theta < 1. At theta 0.99 over a
//! million pages, it draws rank 3 by 19 % and rank 10 by 4 % too often.

use super::alias::Alias;
use super::draw::draw_op;
use super::power_sum::power_sum;
use super::scatter::Scatter;
use crate::Request;
use fulgurite_base::{Form, Prng, Share, SpecError};

const SUB_BUCKETS: u64 = 16;
pub(super) const THETA_MAX: f64 = 5.0;

/// The form of an exponent from 0 to 5, like `0.99`.
pub const EXPONENT: Form<f64> = Form { written: "N.N", parse: parse_theta, show: f64::to_string };

/// A generator of requests to pages with Zipf-distributed popularity.
#[derive(Clone, Debug)]
pub struct Zipf {
    law: ZipfLaw,
    write: Share,
    prng: Prng,
}

/// The Zipf distribution of the popularity of items. It has no random state, so many users can draw from one.
#[derive(Clone, Debug)]
pub struct ZipfLaw {
    theta: f64,
    /// `theta (theta + 1) / 2`, the coefficient of the quadratic term of the upper bound.
    curvature: f64,
    buckets: Box<[Bucket]>,
    alias: Alias,
    scatter: Scatter,
}

/// A bucket, which has the ranks `low..low + ranks`.
#[derive(Clone, Debug, PartialEq)]
struct Bucket {
    low: u64,
    ranks: u64,
    /// `1 / low`, by which an offset in the bucket is multiplied.
    step: f64,
}

impl Zipf {
    /// Creates a generator that draws pages in proportion to the `-theta`th power of their rank. Popular
    /// pages are scattered.
    pub(super) fn new(pages: u64, theta: f64, write: Share, prng: Prng) -> Zipf {
        Zipf { law: ZipfLaw::new(pages, theta), write, prng }
    }

    #[inline]
    pub(super) fn request(&mut self) -> Request {
        let op = draw_op(&mut self.prng, self.write);
        let rank = self.rank();
        Request::of_page(op, self.law.place(rank))
    }

    /// Draws a rank, from 1 to the number of pages.
    #[inline]
    pub(super) fn rank(&mut self) -> u64 {
        self.law.rank(&mut self.prng)
    }
}

impl ZipfLaw {
    /// Creates the distribution over `things` items, at least 1 and at most 2^48. Their popularity is
    /// proportional to the `-theta`th power of their rank, for theta from 0 (uniform) to 5.
    pub fn new(things: u64, theta: f64) -> ZipfLaw {
        let buckets = buckets(things);
        let masses: Vec<f64> =
            buckets.iter().map(|bucket| power_sum(bucket.low, bucket.ranks, theta)).collect();
        ZipfLaw {
            theta,
            curvature: theta * (theta + 1.0) / 2.0,
            buckets,
            alias: Alias::new(&masses),
            scatter: Scatter::new(things),
        }
    }

    /// Draws a rank from 1, the most popular, to the number of items.
    #[inline]
    pub fn rank(&self, prng: &mut Prng) -> u64 {
        let bucket = &self.buckets[self.alias.draw(prng)];
        // A bucket of one rank takes the same path, because a branch would cost more than two unused draws.
        loop {
            let offset = prng.below(bucket.ranks);
            let height = prng.unit_f64();
            if self.accepts(offset as f64 * bucket.step, height) {
                return bucket.low + offset;
            }
        }
    }

    /// Returns the number of the item with this rank, counted from zero. Popular items are scattered.
    #[inline]
    pub fn place(&self, rank: u64) -> u64 {
        self.scatter.page(rank)
    }

    /// Returns whether `height`, uniform in [0, 1), is below `(1 + x)^-theta`, for x in [0, 1/16].
    #[inline]
    fn accepts(&self, x: f64, height: f64) -> bool {
        // The Taylor series of the power alternates, so its linear polynomial is below the power, and its
        // quadratic polynomial above.
        let below = 1.0 - self.theta * x;
        height < below || (height < below + self.curvature * x * x && height < self.power(x))
    }

    #[cold]
    fn power(&self, x: f64) -> f64 {
        libm::pow(1.0 + x, -self.theta)
    }
}

/// Returns the buckets that cover the ranks `1..=pages`.
fn buckets(pages: u64) -> Box<[Bucket]> {
    let mut buckets = Vec::new();
    let mut low = 1;
    while low <= pages {
        let octave = 1 << low.ilog2();
        // The first octaves have fewer than sixteen ranks, so each rank has its own bucket.
        let ranks = (octave / SUB_BUCKETS).max(1).min(pages - low + 1);
        buckets.push(Bucket { low, ranks, step: 1.0 / low as f64 });
        low += ranks;
    }
    buckets.into()
}

fn parse_theta(text: &str) -> Result<f64, SpecError> {
    // The standard parser of floats also accepts signs, exponents and `inf`, so other characters are refused
    // here.
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|theta| is_decimal && *theta <= THETA_MAX).ok_or_else(|| {
        SpecError::new(format!(
            "`{text}` is not an exponent; write a decimal number from 0 to {THETA_MAX}, like 0.99"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zipf(pages: u64, theta: f64) -> Zipf {
        Zipf::new(pages, theta, Share::percent(50), Prng::new(42, "zipf test"))
    }

    /// Returns the probability of each rank from 1 on, computed by the definition.
    fn probabilities(pages: u64, theta: f64) -> Vec<f64> {
        let powers: Vec<f64> = (1..=pages).map(|rank| libm::pow(rank as f64, -theta)).collect();
        let total: f64 = powers.iter().rev().sum();
        powers.into_iter().map(|power| power / total).collect()
    }

    #[test]
    fn buckets_cover_every_rank_once() {
        for pages in [1, 2, 31, 32, 33, 34, 1000, 100_003, (1 << 48) - 1, 1 << 48] {
            let buckets = buckets(pages);
            let mut next = 1;
            for bucket in &buckets {
                assert!((bucket.step * bucket.low as f64 - 1.0).abs() < 1e-15);
                assert!(bucket.low == next && bucket.ranks * SUB_BUCKETS <= bucket.low.max(SUB_BUCKETS));
                next += bucket.ranks;
            }
            assert!(next == pages + 1 && buckets.len() <= 721, "{pages} {}", buckets.len());
        }
    }

    #[test]
    fn ranks_are_drawn_by_the_exact_law() {
        for theta in [0.0, 0.5, 0.99, 1.0, 1.5, 5.0] {
            for pages in [1u64, 2, 3, 17, 1000, 100_003] {
                let draws = 1_000_000;
                let mut counts = vec![0.0; pages as usize];
                let mut generator = zipf(pages, theta);
                for _ in 0..draws {
                    counts[generator.rank() as usize - 1] += 1.0;
                }
                // This is a chi-square test over cells of neighbouring ranks with at least 25 expected draws
                // each.
                let (mut chi_square, mut cells) = (0.0, 0.0);
                let (mut seen, mut expected, mut left) = (0.0, 0.0, f64::from(draws));
                for (count, probability) in counts.iter().zip(probabilities(pages, theta)) {
                    seen += count;
                    expected += probability * f64::from(draws);
                    if expected >= 25.0 && left - expected >= 25.0 {
                        chi_square += (seen - expected) * (seen - expected) / expected;
                        cells += 1.0;
                        left -= expected;
                        (seen, expected) = (0.0, 0.0);
                    }
                }
                chi_square += (seen - expected) * (seen - expected) / expected;
                let limit = cells + 5.0 * f64::sqrt(2.0 * cells) + 1e-9;
                assert!(chi_square <= limit, "theta {theta}, {pages}: {chi_square:.1} > {limit:.1}");
            }
        }
    }

    #[test]
    fn the_top_ranks_get_their_share() {
        let (pages, draws) = (1_000_003, 1_000_000);
        let share: f64 = probabilities(pages, 0.99)[..1000].iter().sum();
        let mut generator = zipf(pages, 0.99);
        let hits = (0..draws).filter(|_| generator.rank() <= 1000).count() as f64;
        let sigma = (share * (1.0 - share) * f64::from(draws)).sqrt();
        assert!((hits - share * f64::from(draws)).abs() < 5.0 * sigma, "{hits} hits, share {share}");
    }

    #[test]
    fn acceptance_follows_the_power_exactly() {
        // The test compares the acceptance function itself, because a histogram would need billions of draws
        // to detect an error.
        for theta in [0.0, 0.5, 0.99, 1.0, 2.5, 5.0] {
            let generator = ZipfLaw::new(1000, theta);
            for step in 0..=1000 {
                let x = f64::from(step) / 16_000.0;
                let power = libm::pow(1.0 + x, -theta);
                assert!(generator.accepts(x, power - 1e-13), "theta {theta}, x {x}");
                assert!(!generator.accepts(x, power + 1e-13), "theta {theta}, x {x}");
            }
        }
    }

    #[test]
    fn the_largest_space_works() {
        let mut generator = zipf(1 << 48, 0.5);
        assert!((0..10_000).map(|_| generator.rank()).all(|rank| (1..=1 << 48).contains(&rank)));
    }

    #[test]
    fn theta_is_a_decimal_from_0_to_5() {
        for (text, theta) in [("0", 0.0), ("0.99", 0.99), ("1", 1.0), ("5", 5.0), ("5.0", 5.0)] {
            assert_eq!(parse_theta(text), Ok(theta));
        }
        for text in ["-1", "5.1", "nan", "inf", "1e0", "x", ".", "1.2.3", "+1"] {
            assert_eq!(
                parse_theta(text).unwrap_err().to_string(),
                format!("`{text}` is not an exponent; write a decimal number from 0 to 5, like 0.99")
            );
        }
    }
}
