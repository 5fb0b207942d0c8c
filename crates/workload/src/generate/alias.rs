//! Draws an index with given weights in O(1): the alias method (Walker 1977; Vose 1991) with integer
//! thresholds. Weights are rounded once, to multiples of 2^-64 of their sum. All further arithmetic is exact,
//! so the table is the same on every machine and has no leftovers.

use fulgurite_base::Prng;

const ONE: u128 = 1 << 64;

/// A table for drawing indices.
#[derive(Clone, Debug)]
pub(crate) struct Alias(Box<[Column]>);

/// One of n equal columns. It draws its own index below the threshold (a fraction of 2^64), and another index
/// above it.
#[derive(Clone, Debug)]
struct Column {
    threshold: u64,
    other: u32,
}

impl Alias {
    /// The table for these weights: at least one, fewer than 2^32, none negative, one positive.
    pub(crate) fn new(weights: &[f64]) -> Alias {
        let columns = weights.len() as u128;
        // A part has at most 65 bits and the number of columns 32, so the product fits.
        let mut rest: Vec<u128> = in_parts_of_one(weights).into_iter().map(|part| part * columns).collect();
        // A column that never gets a part from another one draws its own index in both cases.
        let mut table: Vec<Column> =
            (0..weights.len() as u32).map(|index| Column { threshold: 0, other: index }).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..weights.len()).partition(|&index| rest[index] < ONE);
        // The remaining weights sum to one for each remaining column, so if a small one remains, a large one
        // does too.
        while let (Some(&taker), Some(giver)) = (large.last(), small.pop()) {
            table[giver] = Column { threshold: rest[giver] as u64, other: taker as u32 };
            rest[taker] -= ONE - rest[giver];
            if rest[taker] < ONE {
                small.extend(large.pop());
            }
        }
        Alias(table.into())
    }

    /// An index, each with its weight's share as probability.
    #[inline]
    pub(crate) fn draw(&self, prng: &mut Prng) -> usize {
        // One random word gives both the column and the position in it: the high and the low half of the
        // product.
        let wide = u128::from(prng.next_u64()) * self.0.len() as u128;
        let index = (wide >> 64) as usize;
        let column = &self.0[index];
        if (wide as u64) < column.threshold { index } else { column.other as usize }
    }
}

/// The weights as integers that sum to exactly 2^64.
fn in_parts_of_one(weights: &[f64]) -> Vec<u128> {
    let total: f64 = weights.iter().sum();
    let mut parts: Vec<u128> = weights.iter().map(|weight| (weight / total * ONE as f64) as u128).collect();
    // The rounding error is added to the heaviest weight, where it is relatively smallest.
    let rounding = ONE.wrapping_sub(parts.iter().sum());
    if let Some(heaviest) = parts.iter_mut().max() {
        *heaviest = heaviest.wrapping_add(rounding);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The total of each index over all columns, in parts of 2^64 of one column.
    fn received(alias: &Alias) -> Vec<u128> {
        let mut parts = vec![0; alias.0.len()];
        for (index, column) in alias.0.iter().enumerate() {
            parts[index] += u128::from(column.threshold);
            parts[column.other as usize] += ONE - u128::from(column.threshold);
        }
        parts
    }

    proptest! {
        #[test]
        fn every_index_gets_exactly_its_weight(
            weights in prop::collection::vec(prop_oneof![0.0f64..1.0, 1e-30..1e-10, Just(0.0)], 1..200)
        ) {
            prop_assume!(weights.iter().any(|weight| *weight > 0.0));
            let columns = weights.len() as u128;
            let expected: Vec<u128> =
                in_parts_of_one(&weights).into_iter().map(|part| part * columns).collect();
            prop_assert_eq!(received(&Alias::new(&weights)), expected);
        }
    }

    #[test]
    fn draws_follow_the_weights() {
        let alias = Alias::new(&[0.0, 3.0, 1.0]);
        let mut prng = Prng::new(5, "alias");
        let mut counts = [0i64; 3];
        for _ in 0..40_000 {
            counts[alias.draw(&mut prng)] += 1;
        }
        // Binomial(40000, 3/4): sigma 86.6; five sigma.
        assert!(counts[0] == 0 && (counts[1] - 30_000).abs() < 433, "{counts:?}");
    }
}
