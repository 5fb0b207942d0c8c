//! Draws the random values of TPC-C (clauses 2.1.6 and 4.3).

use crate::draw::{between, digits, letters, percent};
use fulgurite_base::Prng;

/// The constants C of the non-uniform random numbers NURand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Constants {
    /// The constant for last names in the load.
    pub last_load: u64,
    /// The constant for last names in the transactions. Clause 2.1.6.1 restricts its distance from
    /// `last_load`.
    pub last_run: u64,
    /// The constant for the numbers of customers.
    pub customer: u64,
    /// The constant for the numbers of items.
    pub item: u64,
}

impl Constants {
    /// Draws the constants for data that are generated from `seed`.
    pub(crate) fn new(seed: u64) -> Constants {
        let mut prng = Prng::new(seed, "tpcc constants");
        let last_load = prng.below(256);
        // The distance of the constants must be from 65 to 119 and neither 96 nor 112, so a distance of 100
        // is valid.
        let last_run = if last_load < 128 { last_load + 100 } else { last_load - 100 };
        Constants { last_load, last_run, customer: prng.below(1_024), item: prng.below(8_192) }
    }
}

/// Draws the non-uniform random number NURand(`a`, `least`, `most`) with the constant `c`.
pub(crate) fn nurand(prng: &mut Prng, a: u64, c: u64, least: u64, most: u64) -> u64 {
    ((between(prng, 0, a) | between(prng, least, most)) + c) % (most - least + 1) + least
}

/// Returns the last name with this number, from 0 to 999. It has three syllables, one for each digit.
pub(crate) fn last_name(number: u64) -> String {
    const SYLLABLES: [&str; 10] =
        ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    let syllable = |digit: u64| SYLLABLES[(digit % 10) as usize];
    [syllable(number / 100), syllable(number / 10), syllable(number)].concat()
}

/// Draws an address of two streets, a city, a state and a zip code.
pub(super) fn address(prng: &mut Prng) -> [String; 5] {
    let [street, second, city] = [(); 3].map(|()| letters(prng, 10, 20));
    [street, second, city, letters(prng, 2, 2), digits(prng, 4) + "11111"]
}

/// Draws a text of 26 to 50 letters. One text in ten contains `ORIGINAL`.
pub(super) fn data(prng: &mut Prng) -> String {
    const ORIGINAL: &str = "ORIGINAL";
    let mut text = letters(prng, 26, 50);
    if percent(prng, 10) {
        let at = prng.below((text.len() - ORIGINAL.len() + 1) as u64) as usize;
        text.replace_range(at..at + ORIGINAL.len(), ORIGINAL);
    }
    text
}

/// Draws a tax from 0 to 20 %, in ten thousandths.
pub(super) fn tax(prng: &mut Prng) -> u32 {
    prng.below(2_001) as u32
}

/// Returns the numbers from 1 to `most` in random order.
pub(super) fn permutation(prng: &mut Prng, most: u32) -> Vec<u32> {
    let mut numbers: Vec<u32> = (1..=most).collect();
    prng.shuffle(&mut numbers);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_are_those_of_the_specification() {
        // Clause 4.3.2.3 gives the first of these names as its example.
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(40), "BARPRESBAR");
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(999), "EINGEINGEING");
    }

    #[test]
    fn the_constants_keep_their_distance() {
        for seed in 0..2_000 {
            let Constants { last_load, last_run, .. } = Constants::new(seed);
            let distance = last_load.abs_diff(last_run);
            assert!(last_run < 256 && (65..=119).contains(&distance) && distance != 96 && distance != 112);
        }
    }

    #[test]
    fn some_numbers_are_much_more_frequent() {
        let (mut prng, mut counts) = (Prng::new(42, "nurand"), vec![0u32; 3_001]);
        for _ in 0..300_000 {
            counts[nurand(&mut prng, 1_023, 259, 1, 3_000) as usize] += 1;
        }
        assert_eq!(counts[0], 0);
        // Uniform numbers would occur about 100 times each, and none of the 3,000 numbers more than 150
        // times.
        let popular = counts.iter().filter(|count| **count > 300).count();
        assert!((50..1_000).contains(&popular), "{popular}");
    }
}
