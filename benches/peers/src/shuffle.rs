//! A pseudo-random order of the rows that can be computed in both directions: the row at a place, and the
//! place of a row.
//!
//! It is a bijection of the numbers below the next power of two. Its steps are invertible: an addition, a
//! multiplication by an odd number, and an xor of the upper half of the bits into the lower. A result that is
//! too large is mapped again until it is a row ("cycle walking", Black and Rogaway, CT-RSA 2002).

/// Odd factors, one per round.
const FACTORS: [u64; 3] = [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];
const OFFSET: u64 = 0x1405_7b7e_f767_814f;

/// An order of `0..rows`.
#[derive(Clone, Copy)]
pub struct Shuffle {
    rows: u64,
    mask: u64,
    half: u32,
    /// The inverse of each factor modulo 2^64, and so modulo each smaller power of two.
    inverses: [u64; 3],
}

impl Shuffle {
    /// `rows` is at least 1.
    pub fn new(rows: u64) -> Shuffle {
        let size = rows.next_power_of_two().max(4);
        let half = size.trailing_zeros().div_ceil(2);
        Shuffle { rows, mask: size - 1, half, inverses: FACTORS.map(inverse) }
    }

    /// The row at `place`.
    pub fn row(&self, place: u64) -> u64 {
        let mut v = self.forth(place);
        while v >= self.rows {
            v = self.forth(v);
        }
        v
    }

    /// The place of `row`.
    pub fn place(&self, row: u64) -> u64 {
        let mut v = self.back(row);
        while v >= self.rows {
            v = self.back(v);
        }
        v
    }

    fn forth(&self, value: u64) -> u64 {
        FACTORS.iter().fold(value, |v, factor| {
            let v = v.wrapping_add(OFFSET).wrapping_mul(*factor) & self.mask;
            v ^ (v >> self.half)
        })
    }

    fn back(&self, value: u64) -> u64 {
        self.inverses.iter().rev().fold(value, |v, inverse| {
            // Folding half of the bits or fewer is its own inverse.
            let v = v ^ (v >> self.half);
            v.wrapping_mul(*inverse).wrapping_sub(OFFSET) & self.mask
        })
    }
}

/// The multiplicative inverse of `odd` by Newton's method. Each step doubles the number of correct bits, from
/// 3.
fn inverse(odd: u64) -> u64 {
    (0..5).fold(odd, |x, _| x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_one_place() {
        for rows in [1, 2, 3, 5, 1000, 4096, 5000] {
            let shuffle = Shuffle::new(rows);
            let mut all: Vec<u64> = (0..rows).map(|place| shuffle.row(place)).collect();
            for (place, &row) in all.iter().enumerate() {
                assert_eq!(shuffle.place(row), place as u64);
            }
            all.sort_unstable();
            assert_eq!(all, (0..rows).collect::<Vec<u64>>());
        }
    }

    /// Consecutive rows are spread over the table: each pair of sixteenths of the table is about equally
    /// frequent. 20,000 pairs over 256 cells are 78 per cell, with a standard deviation of 9.
    #[test]
    fn the_order_looks_random() {
        for rows in [20_001, 1 << 15, 8_000_000] {
            let shuffle = Shuffle::new(rows);
            let part = |place| (shuffle.row(place) * 16 / rows) as usize;
            let mut counts = [[0u32; 16]; 16];
            for place in 0..20_000 {
                counts[part(place)][part(place + 1)] += 1;
            }
            let all = counts.as_flattened();
            assert!(all.iter().all(|count| (28..=128).contains(count)), "{rows} rows: {all:?}");
        }
    }
}
