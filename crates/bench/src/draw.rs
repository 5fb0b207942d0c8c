//! Random numbers and texts for benchmarks.

use fulgurite_base::Prng;

/// A whole number from `least` to `most`.
pub(crate) fn between(prng: &mut Prng, least: u64, most: u64) -> u64 {
    least + prng.below(most - least + 1)
}

/// A whole number of 32 bits from `least` to `most`.
pub(crate) fn between_u32(prng: &mut Prng, least: u32, most: u32) -> u32 {
    // The number is at most `most`, which has 32 bits.
    between(prng, u64::from(least), u64::from(most)) as u32
}

/// True with a probability of `percent`.
pub(crate) fn percent(prng: &mut Prng, percent: u64) -> bool {
    prng.below(100) < percent
}

/// A text of `least` to `most` letters and digits.
pub(crate) fn letters(prng: &mut Prng, least: u64, most: u64) -> String {
    const SYMBOLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let count = between(prng, least, most);
    symbols(prng, count, |bits| SYMBOLS[(bits % 64) as usize])
}

/// A text of `count` digits.
pub(crate) fn digits(prng: &mut Prng, count: u64) -> String {
    // Six bits make a digit. The digits 0 to 3 are slightly more frequent, which does not matter for a
    // benchmark.
    symbols(prng, count, |bits| b'0' + (bits % 64 % 10) as u8)
}

/// A text of `count` symbols, each from six bits, because a load spends most of its time here.
fn symbols(prng: &mut Prng, count: u64, symbol: impl Fn(u64) -> u8) -> String {
    let mut text = String::with_capacity(count as usize);
    let mut bits = 0;
    for index in 0..count {
        bits = if index % 10 == 0 { prng.next_u64() } else { bits >> 6 };
        text.push(char::from(symbol(bits)));
    }
    text
}

/// An approximately normal number of mean 0 and variance 1: the sum of twelve uniform numbers minus six,
/// which needs no function of the platform.
pub(crate) fn normal(prng: &mut Prng) -> f64 {
    (0..12).map(|_| prng.unit_f64()).sum::<f64>() - 6.0
}

/// Draws an index of `weights`, with a probability in proportion to its weight.
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
