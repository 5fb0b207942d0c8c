//! The entries of secondary indexes. An index is a tree with empty values. Each of its keys combines an index
//! key with the key of the indexed record.
//!
//! The encoding keeps the order of `(index key, key)`. In the index key, a byte 0 begins a code of two bytes
//! ([`Coding`]). The code that ends the index key says so, and the key of the record follows as it is.

use std::ops::Bound;

/// The code for zero bytes in index keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Coding {
    /// `0 255` is one zero byte, and `0 0` the end. Indexes that were made before format 8 have this code.
    Single,
    /// `0 n` is a run of zero bytes: of n, and then the index key ends (0 to 126); of 127, and what follows is coded
    /// by itself; of 255 - n, and then another byte follows (129 to 254).
    ///
    /// A longer run comes before a shorter one that another byte follows, and behind one that ends the key. So the
    /// codes order as the keys do. A number that is written big-endian takes at most one byte more than without a code.
    Runs,
}

/// The longest run that one code gives, except [`LONG`].
const MOST: usize = 126;
/// The code for a long run, and its length.
const LONG: u8 = 127;

impl Coding {
    /// Encodes the entry for the record with this index key and key.
    pub(crate) fn entry(self, index_key: &[u8], key: &[u8]) -> Vec<u8> {
        let mut entry = self.first(index_key);
        entry.extend_from_slice(key);
        entry
    }

    /// Encodes an index key, with the code for its end. Entries of the index key begin with it.
    fn first(self, index_key: &[u8]) -> Vec<u8> {
        let mut coded = Vec::with_capacity(index_key.len() + 2);
        let mut rest = index_key;
        loop {
            let plain = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
            coded.extend_from_slice(&rest[..plain]);
            rest = &rest[plain..];
            let zeros = rest.iter().take_while(|byte| **byte == 0).count();
            let is_end = zeros == rest.len();
            let (run, code) = match self {
                Coding::Single if zeros == 0 => (0, 0),
                Coding::Single => (1, 255),
                Coding::Runs if zeros > MOST => (LONG.into(), LONG),
                Coding::Runs if is_end => (zeros, zeros as u8),
                Coding::Runs => (zeros, 255 - zeros as u8),
            };
            coded.extend_from_slice(&[0, code]);
            rest = &rest[run..];
            if rest.is_empty() && code <= MOST as u8 {
                return coded;
            }
        }
    }

    /// Splits an entry into the index key and the key of the record. Returns `None` if the entry is invalid.
    pub(crate) fn split(self, entry: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let (mut index_key, mut rest) = (Vec::new(), entry);
        loop {
            let plain = rest.iter().position(|byte| *byte == 0)?;
            index_key.extend_from_slice(&rest[..plain]);
            let code = *rest.get(plain + 1)?;
            rest = &rest[plain + 2..];
            let (zeros, is_end) = match (self, code) {
                (Coding::Single, 0) => (0, true),
                (Coding::Single, 255) => (1, false),
                (Coding::Runs, LONG) => (LONG.into(), false),
                (Coding::Runs, zeros @ ..LONG) => (zeros.into(), true),
                // A run that another byte follows.
                (Coding::Runs, 129..=254) if rest.first().is_some_and(|next| *next > 0) => {
                    (255 - usize::from(code), false)
                }
                _ => return None,
            };
            index_key.resize(index_key.len() + zeros, 0);
            if is_end {
                return Some((index_key, rest.to_vec()));
            }
        }
    }

    /// Returns the range of entries for a range of index keys.
    pub(crate) fn entries(self, range: (Bound<&[u8]>, Bound<&[u8]>)) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let first = |key: &[u8]| self.first(key);
        // This bound is above every entry of the index key, and not above any entry of the next index key.
        let behind = |key: &[u8]| {
            let mut behind = self.first(key);
            // The code of the end is at most 126.
            behind.last_mut().into_iter().for_each(|end| *end += 1);
            behind
        };
        let low = match range.0 {
            Bound::Included(key) => Bound::Included(first(key)),
            Bound::Excluded(key) => Bound::Included(behind(key)),
            Bound::Unbounded => Bound::Unbounded,
        };
        let high = match range.1 {
            Bound::Included(key) => Bound::Excluded(behind(key)),
            Bound::Excluded(key) => Bound::Excluded(first(key)),
            Bound::Unbounded => Bound::Unbounded,
        };
        (low, high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(vec![0u8, 1, 254, 255]), 0..5)
    }

    /// Index keys of few bytes, with runs of zero bytes of all lengths.
    fn index_key() -> impl Strategy<Value = Vec<u8>> {
        let run = prop_oneof![
            3 => bytes(),
            1 => prop::sample::select(vec![1usize, 2, 125, 126, 127, 128, 253, 254, 255, 300])
                .prop_map(|zeros| vec![0; zeros]),
        ];
        prop::collection::vec(run, 0..4).prop_map(|runs| runs.concat())
    }

    proptest! {
        #[test]
        fn entries_keep_the_order_and_read_back(a in index_key(), b in index_key(), x in bytes(), y in bytes()) {
            for coding in [Coding::Single, Coding::Runs] {
                let (of_a, of_b) = (coding.entry(&a, &x), coding.entry(&b, &y));
                prop_assert_eq!((&a, &x).cmp(&(&b, &y)), of_a.cmp(&of_b), "{:?}", coding);
                prop_assert_eq!(coding.split(&of_a), Some((a.clone(), x.clone())));
                let (low, high) = coding.entries((Bound::Excluded(&a), Bound::Included(&b)));
                let above = match &low { Bound::Included(low) => *low <= of_b, _ => false };
                let below = match &high { Bound::Excluded(high) => of_b < *high, _ => false };
                prop_assert!(below && above == (b > a));
                let below_a = match &high { Bound::Excluded(high) => of_a < *high, _ => false };
                prop_assert_eq!(below_a, a <= b);
            }
        }

        /// The rule: an entry that reads back is the one that its index key and key have.
        #[test]
        fn other_bytes_are_refused(entry in index_key(), end in bytes()) {
            for coding in [Coding::Single, Coding::Runs] {
                let entry = [&entry[..], &end].concat();
                if let Some((index_key, key)) = coding.split(&entry) {
                    prop_assert_eq!(coding.entry(&index_key, &key), entry);
                }
            }
        }
    }

    /// The rule: zero bytes cost no more than others, and the codes do not change, because stores have them.
    #[test]
    fn zero_bytes_are_cheap() {
        let coded = |index_key: &[u8]| Coding::Runs.entry(index_key, b"k");
        assert_eq!(coded(&5u64.to_be_bytes()), [0, 248, 5, 0, 0, b'k']);
        assert_eq!(coded(&[0; 8]), [0, 8, b'k']);
        assert_eq!(coded(b"a\0b"), *b"a\0\xfeb\0\0k");
        assert_eq!(coded(&[0; 300]), [0, 127, 0, 127, 0, 46, b'k']);
        assert_eq!(Coding::Single.entry(b"a\0b", b"k"), *b"a\0\xffb\0\0k");
        for number in [0u64, 1, 255, 256, 1 << 32, 1 << 56, u64::MAX] {
            assert!(coded(&number.to_be_bytes()).len() <= 8 + 3 + 1, "{number}");
        }
    }
}
