//! Draws an index from a discrete distribution in O(1), by the alias method (Walker 1977; Vose 1991) with
//! integer thresholds.
//!
//! The weights are rounded once, to multiples of 2^-64 of their sum. All further arithmetic is exact, so the
//! table is the same on every machine, and the table gives each index exactly its rounded weight.

use fulgurite_base::Prng;

const ONE: u128 = 1 << 64;

/// An alias table, which has n indices with their weights.
#[derive(Clone, Debug)]
pub(crate) struct Alias(Box<[Column]>);

/// One of n equally likely columns of the table. A draw has a uniform position in its column. Below the
/// threshold (a fraction of 2^64) it returns the index of the column, and otherwise the index `other`.
#[derive(Clone, Debug)]
struct Column {
    threshold: u64,
    other: u32,
}

impl Alias {
    /// Creates the table for these weights. There must be at least one weight and fewer than 2^32, none may
    /// be negative, and at least one must be positive.
    pub(crate) fn new(weights: &[f64]) -> Alias {
        let columns = weights.len() as u128;
        // A rounded weight has at most 65 bits and the number of columns 32, so the product fits in 128 bits.
        let mut rest: Vec<u128> = in_parts_of_one(weights).into_iter().map(|part| part * columns).collect();
        // The preset alias of a column is its own index: a column that takes no weight from another one draws
        // its own index above the threshold too.
        let mut table: Vec<Column> =
            (0..weights.len() as u32).map(|index| Column { threshold: 0, other: index }).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..weights.len()).partition(|&index| rest[index] < ONE);
        // The remaining weights sum to one for each remaining column. So if an index with less than one
        // remains, an index with at least one remains too.
        while let (Some(&taker), Some(giver)) = (large.last(), small.pop()) {
            table[giver] = Column { threshold: rest[giver] as u64, other: taker as u32 };
            rest[taker] -= ONE - rest[giver];
            if rest[taker] < ONE {
                small.extend(large.pop());
            }
        }
        Alias(table.into())
    }

    /// Draws an index. The probability of an index is its weight divided by the sum of the weights.
    #[inline]
    pub(crate) fn draw(&self, prng: &mut Prng) -> usize {
        // One random word gives both the column and the position in the column: the high half and the low
        // half of the product.
        let wide = u128::from(prng.next_u64()) * self.0.len() as u128;
        let index = (wide >> 64) as usize;
        let column = &self.0[index];
        if (wide as u64) < column.threshold { index } else { column.other as usize }
    }
}

/// Returns the weights as integers that sum to exactly 2^64.
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

    /// Returns the total weight that each index has in all columns, in units of 2^-64 of a column.
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
        // The count is binomial (40,000 draws, probability 3/4) with a standard deviation of 86.6; the bound
        // is five of them.
        assert!(counts[0] == 0 && (counts[1] - 30_000).abs() < 433, "{counts:?}");
    }
}
