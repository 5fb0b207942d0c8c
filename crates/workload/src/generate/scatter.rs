//! Maps popularity ranks to pages by a fixed bijection, `page = rank × stride mod pages`.
//!
//! The stride is the first number from `pages / φ` on that is coprime with `pages`, where φ is the golden
//! ratio. Such a stride spreads any number of top ranks evenly over the address space (three-distance
//! theorem), and places neighbouring ranks far apart. A mapping costs three multiplications.

/// Maps the ranks `1..=pages` onto the pages `0..pages`.
#[derive(Clone, Debug)]
pub(crate) struct Scatter {
    pages: u64,
    stride: u64,
    /// `⌊stride × 2^64 / pages⌋`, which replaces a division in each mapping.
    reciprocal: u64,
}

impl Scatter {
    /// Creates the bijection for this number of pages, at least 1 and less than 2^63.
    pub(crate) fn new(pages: u64) -> Scatter {
        let golden = (u128::from(pages) * 0x9e37_79b9_7f4a_7c15) >> 64;
        // The search ends, because `pages − 1` is coprime with `pages`.
        let stride = (golden as u64..).find(|stride| gcd(*stride, pages) == 1).unwrap_or(1);
        Scatter { pages, stride, reciprocal: ((u128::from(stride) << 64) / u128::from(pages)) as u64 }
    }

    /// Returns the page of a rank in `1..=pages`.
    #[inline]
    pub(crate) fn page(&self, rank: u64) -> u64 {
        // This is Shoup's modular multiplication. The quotient is at most one too small. So the remainder,
        // which is right modulo 2^64, is below twice `pages`, and one subtraction corrects it.
        let quotient = ((u128::from(rank) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = rank.wrapping_mul(self.stride).wrapping_sub(quotient.wrapping_mul(self.pages));
        if rest >= self.pages { rest - self.pages } else { rest }
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_spaces_are_covered_exactly_once() {
        for pages in 1..=400 {
            let scatter = Scatter::new(pages);
            let mut seen = vec![false; pages as usize];
            for rank in 1..=pages {
                assert!(!std::mem::replace(&mut seen[scatter.page(rank) as usize], true), "{pages} {rank}");
            }
        }
    }

    #[test]
    fn top_ranks_are_spread_evenly() {
        let scatter = Scatter::new(100_003);
        let mut tenths = [0; 10];
        for rank in 1..=1000 {
            tenths[(scatter.page(rank) * 10 / 100_003) as usize] += 1;
        }
        assert!(tenths.iter().all(|count| (98..=102).contains(count)), "{tenths:?}");
    }

    proptest! {
        #[test]
        fn no_division_gives_the_same_as_division(pages in 1u64..1 << 62, part in any::<u64>()) {
            let scatter = Scatter::new(pages);
            let rank = 1 + part % pages;
            let expected = u128::from(rank) * u128::from(scatter.stride) % u128::from(pages);
            prop_assert_eq!(u128::from(scatter.page(rank)), expected);
            prop_assert_eq!(gcd(scatter.stride, pages), 1);
        }
    }
}
