//! Draws random numbers and texts for the data and the requests of benchmarks.

use fulgurite_base::Prng;

/// Returns a uniformly drawn whole number from `least` to `most`, both included.
pub(crate) fn between(prng: &mut Prng, least: u64, most: u64) -> u64 {
    least + prng.below(most - least + 1)
}

/// Returns a uniformly drawn whole number of 32 bits from `least` to `most`, both included.
pub(crate) fn between_u32(prng: &mut Prng, least: u32, most: u32) -> u32 {
    // The number is at most `most`, which has 32 bits.
    between(prng, u64::from(least), u64::from(most)) as u32
}

/// Returns true with a probability of `percent` in a hundred.
pub(crate) fn percent(prng: &mut Prng, percent: u64) -> bool {
    prng.below(100) < percent
}

/// Returns a random text of `least` to `most` letters, digits, hyphens and underscores.
pub(crate) fn letters(prng: &mut Prng, least: u64, most: u64) -> String {
    const SYMBOLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let count = between(prng, least, most);
    symbols(prng, count, |bits| SYMBOLS[(bits % 64) as usize])
}

/// Returns a random text of `count` digits.
pub(crate) fn digits(prng: &mut Prng, count: u64) -> String {
    // Six random bits make a digit. The digits 0 to 3 are slightly more frequent, which does not matter for a
    // benchmark.
    symbols(prng, count, |bits| b'0' + (bits % 64 % 10) as u8)
}

/// Returns a text of `count` symbols. Each takes only six random bits, because a load spends most of its time
/// here.
fn symbols(prng: &mut Prng, count: u64, symbol: impl Fn(u64) -> u8) -> String {
    let mut text = String::with_capacity(count as usize);
    let mut bits = 0;
    for index in 0..count {
        bits = if index % 10 == 0 { prng.next_u64() } else { bits >> 6 };
        text.push(char::from(symbol(bits)));
    }
    text
}

/// Returns an approximately normal number of mean 0 and variance 1. It is the sum of twelve uniform numbers
/// minus six, which needs no mathematical function of the platform.
pub(crate) fn normal(prng: &mut Prng) -> f64 {
    (0..12).map(|_| prng.unit_f64()).sum::<f64>() - 6.0
}

/// Draws an index of `weights` with a probability in proportion to the weight at the index.
pub(crate) fn weighted(prng: &mut Prng, weights: &[u64]) -> usize {
    let mut drawn = prng.below(weights.iter().sum());
    for (index, weight) in weights.iter().enumerate() {
        if drawn < *weight {
            return index;
        }
        drawn -= weight;
    }
    weights.len() - 1
}
