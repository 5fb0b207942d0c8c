//! Random numbers and texts in the shapes that benchmarks ask for.

use fulgurite_base::Prng;

/// A whole number from `least` to `most`.
pub(crate) fn between(prng: &mut Prng, least: u64, most: u64) -> u64 {
    least + prng.below(most - least + 1)
}

/// The same in 32 bits.
pub(crate) fn between_u32(prng: &mut Prng, least: u32, most: u32) -> u32 {
    // The number lies below `most`, which has 32 bits.
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
    // Six bits make a digit with a slight preference for the first four, which no benchmark could notice.
    symbols(prng, count, |bits| b'0' + (bits % 64 % 10) as u8)
}

/// A text of `count` symbols, each from six bits: a loading takes most of its time here.
fn symbols(prng: &mut Prng, count: u64, symbol: impl Fn(u64) -> u8) -> String {
    let mut text = String::with_capacity(count as usize);
    let mut bits = 0;
    for index in 0..count {
        bits = if index % 10 == 0 { prng.next_u64() } else { bits >> 6 };
        text.push(char::from(symbol(bits)));
    }
    text
}

/// A number with a normal distribution of mean 0 and variance 1: twelve uniform ones less six, which needs no function
/// of the platform.
pub(crate) fn normal(prng: &mut Prng) -> f64 {
    (0..12).map(|_| prng.unit_f64()).sum::<f64>() - 6.0
}

/// Which part of a mix is drawn: the index of a weight, each as likely as its share of their sum.
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
