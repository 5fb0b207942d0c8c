//! The entries of secondary indexes. An index is a tree with empty values. Each of its keys combines an index
//! key with the key of the indexed record.
//!
//! The encoding keeps the order of `(index key, key)`: in the index key, a zero byte is written as `0 255`,
//! and `0 0` ends it.

use std::ops::Bound;

/// Encodes the entry for the record with this index key and key.
pub(crate) fn entry(index_key: &[u8], key: &[u8]) -> Vec<u8> {
    let mut entry = escaped(index_key);
    entry.extend_from_slice(&[0, 0]);
    entry.extend_from_slice(key);
    entry
}

fn escaped(index_key: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(index_key.len() + 2);
    for byte in index_key {
        escaped.push(*byte);
        if *byte == 0 {
            escaped.push(255);
        }
    }
    escaped
}

/// Splits an entry into the index key and the key of the record. Returns `None` if the entry is invalid.
pub(crate) fn split(entry: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut index_key = Vec::new();
    let mut rest = entry.iter();
    while let Some(byte) = rest.next() {
        if *byte != 0 {
            index_key.push(*byte);
            continue;
        }
        match rest.next()? {
            0 => return Some((index_key, rest.copied().collect())),
            255 => index_key.push(0),
            _ => return None,
        }
    }
    None
}

/// Returns the range of entries for a range of index keys.
pub(crate) fn entries(range: (Bound<&[u8]>, Bound<&[u8]>)) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let first = |key: &[u8]| [&escaped(key)[..], &[0, 0]].concat();
    // This bound is above every entry of the index key, and below all entries of the next index key.
    let behind = |key: &[u8]| [&escaped(key)[..], &[0, 1]].concat();
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(vec![0u8, 1, 254, 255]), 0..5)
    }

    proptest! {
        #[test]
        fn entries_keep_the_order_and_read_back(a in bytes(), b in bytes(), x in bytes(), y in bytes()) {
            prop_assert_eq!((&a, &x).cmp(&(&b, &y)), entry(&a, &x).cmp(&entry(&b, &y)));
            prop_assert_eq!(split(&entry(&a, &x)), Some((a.clone(), x.clone())));
            let (low, high) = entries((Bound::Excluded(&a), Bound::Included(&b)));
            let one = entry(&b, &y);
            let above = match &low { Bound::Included(low) => *low <= one, _ => false };
            let below = match &high { Bound::Excluded(high) => one < *high, _ => false };
            prop_assert!(below && above == (b > a));
        }
    }
}
