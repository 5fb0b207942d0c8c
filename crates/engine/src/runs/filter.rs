//! Says of most keys that are not in a run that they are not.
//!
//! A Bloom filter in blocks (Putze, Sanders and Singler, WEA 2007): all bits of a key lie in one line of the processor's cache.

/// Bits for each key. With these about one key in a thousand that is not there seems to be.
const BITS: usize = 14;
/// Bits that a key sets.
const SET: u32 = 8;
/// Words of 64 bits in a block.
const BLOCK: usize = 8;

/// A filter of keys by their hashes.
pub struct Filter(Vec<u64>);

/// Spreads a hash anew, so that block and bits do not depend on each other.
fn spread(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ hash >> 29
}

impl Filter {
    /// Bytes that it takes.
    pub fn bytes(&self) -> u64 {
        8 * self.0.len() as u64
    }

    fn blocks(keys: usize) -> usize {
        (keys * BITS).div_ceil(BLOCK * 64).max(1)
    }

    /// A filter of these.
    pub fn new(hashes: impl ExactSizeIterator<Item = u64>) -> Filter {
        let mut filter = Filter(vec![0; Filter::blocks(hashes.len()) * BLOCK]);
        for hash in hashes {
            let block = filter.block(hash);
            for (word, bit) in bits(hash) {
                filter.0[block + word] |= bit;
            }
        }
        filter
    }

    fn block(&self, hash: u64) -> usize {
        let blocks = (self.0.len() / BLOCK) as u128;
        ((u128::from(spread(hash)) * blocks) >> 64) as usize * BLOCK
    }

    /// False where a key of this hash is not there for sure.
    pub fn may_have(&self, hash: u64) -> bool {
        let block = self.block(hash);
        bits(hash).all(|(word, bit)| self.0[block + word] & bit != 0)
    }
}

/// The bits of a key in its block: the word and the bit.
fn bits(hash: u64) -> impl Iterator<Item = (usize, u64)> {
    let (from, step) = (spread(hash.rotate_left(32)), spread(!hash) | 1);
    (0..SET).map(move |index| {
        let bit = from.wrapping_add(step.wrapping_mul(u64::from(index))) >> 55;
        (bit as usize / 64, 1 << (bit % 64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::hash_of_key;

    #[test]
    fn what_is_there_is_found_and_most_else_is_not() {
        for keys in [1usize, 100, 20_000] {
            let hash = |key: usize| hash_of_key(2, &(key as u64).to_be_bytes());
            let filter = Filter::new((0..keys).map(hash));
            assert!((0..keys).all(|key| filter.may_have(hash(key))));
            let wrong = (keys..keys + 100_000).filter(|key| filter.may_have(hash(*key))).count();
            assert!(wrong < 500, "{wrong} of 100,000 seem to be among {keys}");
        }
    }
}
