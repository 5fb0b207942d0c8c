//! Typed keys: values as bytes that order as the values do.
//!
//! A store orders keys as bytes. This module writes numbers, texts, tuples and the like so that the order of the bytes
//! is the order of the values ([`Ord`]; for floating-point numbers `total_cmp`).
//!
//! ```
//! use fulgurite_db::{Db, Direction, Options, keys};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("shop.store");
//! let db = Db::open(&path, Options::default())?;
//! let orders = db.create_table("orders")?;
//! for (customer, day) in [("ada", -3), ("ada", 12), ("bob", 5)] {
//!     db.put(&orders, &keys::encode(&(customer, day)), b"")?;
//! }
//! // All orders of Ada, and those of them since day 0.
//! let hers = keys::prefix(&"ada");
//! let days = db.scan(&orders, hers.range(), Direction::Forward).map(|record| {
//!     let (_, day) = keys::decode::<(String, i32)>(&record?.0).expect("a key of this table");
//!     Ok(day)
//! });
//! assert_eq!(days.collect::<Result<Vec<_>, fulgurite_db::Error>>()?, [-3, 12]);
//! let since = keys::range(("ada", 0)..=("ada", i32::MAX));
//! assert_eq!(db.scan(&orders, since.range(), Direction::Forward).count(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! | type | bytes |
//! |---|---|
//! | unsigned integers, `char` | big-endian |
//! | signed integers | big-endian, with the sign bit inverted |
//! | `f32`, `f64` | big-endian bits; all inverted if negative, else the sign bit |
//! | `bool` | 0 or 1 |
//! | `[u8; N]` | as they are |
//! | text and bytes | as they are at the end of a key; elsewhere `0 0` ends them, and a byte 0 is written as `0 255` |
//! | `Option<T>` | 0, or 1 and the value |
//! | `Reverse<T>` | the bytes of the value, inverted |
//! | tuples of up to six | one after the other |

use fulgurite_engine::Prefix;
use std::cmp::Reverse;
use std::ops::{Bound, RangeBounds};

/// A value that can be written as a key, or as a part of one.
pub trait Key {
    /// Appends the bytes of the value. Parts of the key may follow.
    fn write(&self, bytes: &mut Vec<u8>);

    /// Appends the bytes of the value at the end of a key.
    fn write_last(&self, bytes: &mut Vec<u8>) {
        self.write(bytes);
    }
}

/// A value that can be read back from a key.
pub trait ReadKey: Key + Sized {
    /// Reads the value from the beginning of `bytes`, and removes its bytes. Returns `None` if they are no value.
    fn read(bytes: &mut &[u8]) -> Option<Self>;

    /// Reads the value at the end of a key.
    fn read_last(bytes: &mut &[u8]) -> Option<Self> {
        Self::read(bytes)
    }
}

/// Returns a value as a key.
pub fn encode<K: Key + ?Sized>(key: &K) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.write_last(&mut bytes);
    bytes
}

/// Returns the value of a key; `None` if [`encode`] makes no such key of this type.
pub fn decode<K: ReadKey>(mut key: &[u8]) -> Option<K> {
    let value = K::read_last(&mut key)?;
    key.is_empty().then_some(value)
}

/// Returns the keys of the tuples whose first parts are `first`, which is one part or a tuple of several.
pub fn prefix<K: Key + ?Sized>(first: &K) -> Prefix {
    let mut bytes = Vec::new();
    first.write(&mut bytes);
    fulgurite_engine::prefix(&bytes)
}

/// A range of keys, from [`range`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
}

impl KeyRange {
    /// Returns the range as scans take it.
    pub fn range(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.low.as_ref().map(Vec::as_slice), self.high.as_ref().map(Vec::as_slice))
    }
}

/// Returns the keys of a range of values.
pub fn range<K: Key>(range: impl RangeBounds<K>) -> KeyRange {
    KeyRange { low: range.start_bound().map(encode), high: range.end_bound().map(encode) }
}

impl<K: Key + ?Sized> Key for &K {
    fn write(&self, bytes: &mut Vec<u8>) {
        (**self).write(bytes);
    }

    fn write_last(&self, bytes: &mut Vec<u8>) {
        (**self).write_last(bytes);
    }
}

/// Removes the first `N` bytes.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

impl<const N: usize> Key for [u8; N] {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }
}

impl<const N: usize> ReadKey for [u8; N] {
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        take(bytes)
    }
}

/// Implements keys of types that have a number of bits. The functions turn a value into an unsigned number that orders
/// as the value does, and back.
macro_rules! by_number {
    ($($type:ty as $number:ty: $to:expr, $from:expr;)*) => {$(
        impl Key for $type {
            fn write(&self, bytes: &mut Vec<u8>) {
                let to: fn($type) -> $number = $to;
                bytes.extend_from_slice(&to(*self).to_be_bytes());
            }
        }

        impl ReadKey for $type {
            fn read(bytes: &mut &[u8]) -> Option<Self> {
                let from: fn($number) -> Option<$type> = $from;
                from(<$number>::from_be_bytes(take(bytes)?))
            }
        }
    )*};
}

by_number! {
    u8 as u8: |value| value, Some;
    u16 as u16: |value| value, Some;
    u32 as u32: |value| value, Some;
    u64 as u64: |value| value, Some;
    u128 as u128: |value| value, Some;
    i8 as u8: |value| value.cast_unsigned() ^ 1 << 7, |number| Some((number ^ 1 << 7).cast_signed());
    i16 as u16: |value| value.cast_unsigned() ^ 1 << 15, |number| Some((number ^ 1 << 15).cast_signed());
    i32 as u32: |value| value.cast_unsigned() ^ 1 << 31, |number| Some((number ^ 1 << 31).cast_signed());
    i64 as u64: |value| value.cast_unsigned() ^ 1 << 63, |number| Some((number ^ 1 << 63).cast_signed());
    i128 as u128: |value| value.cast_unsigned() ^ 1 << 127, |number| Some((number ^ 1 << 127).cast_signed());
    f32 as u32:
        |value| value.to_bits() ^ if value.is_sign_negative() { u32::MAX } else { 1 << 31 },
        |number| Some(f32::from_bits(number ^ if number >> 31 == 0 { u32::MAX } else { 1 << 31 }));
    f64 as u64:
        |value| value.to_bits() ^ if value.is_sign_negative() { u64::MAX } else { 1 << 63 },
        |number| Some(f64::from_bits(number ^ if number >> 63 == 0 { u64::MAX } else { 1 << 63 }));
    char as u32: |value| value.into(), char::from_u32;
    bool as u8: u8::from, |number| (number < 2).then_some(number == 1);
}

impl Key for [u8] {
    fn write(&self, bytes: &mut Vec<u8>) {
        for byte in self {
            bytes.push(*byte);
            if *byte == 0 {
                bytes.push(255);
            }
        }
        bytes.extend_from_slice(&[0, 0]);
    }

    fn write_last(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }
}

impl Key for Vec<u8> {
    fn write(&self, bytes: &mut Vec<u8>) {
        self.as_slice().write(bytes);
    }

    fn write_last(&self, bytes: &mut Vec<u8>) {
        self.as_slice().write_last(bytes);
    }
}

impl ReadKey for Vec<u8> {
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let mut value = Vec::new();
        loop {
            match take(bytes)? {
                [0] => match take(bytes)? {
                    [0] => return Some(value),
                    [255] => value.push(0),
                    _ => return None,
                },
                [byte] => value.push(byte),
            }
        }
    }

    fn read_last(bytes: &mut &[u8]) -> Option<Self> {
        Some(std::mem::take(bytes).to_vec())
    }
}

impl Key for str {
    fn write(&self, bytes: &mut Vec<u8>) {
        self.as_bytes().write(bytes);
    }

    fn write_last(&self, bytes: &mut Vec<u8>) {
        self.as_bytes().write_last(bytes);
    }
}

impl Key for String {
    fn write(&self, bytes: &mut Vec<u8>) {
        self.as_str().write(bytes);
    }

    fn write_last(&self, bytes: &mut Vec<u8>) {
        self.as_str().write_last(bytes);
    }
}

impl ReadKey for String {
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        String::from_utf8(Vec::read(bytes)?).ok()
    }

    fn read_last(bytes: &mut &[u8]) -> Option<Self> {
        String::from_utf8(Vec::read_last(bytes)?).ok()
    }
}

impl<K: Key> Key for Option<K> {
    fn write(&self, bytes: &mut Vec<u8>) {
        self.is_some().write(bytes);
        self.iter().for_each(|value| value.write(bytes));
    }

    fn write_last(&self, bytes: &mut Vec<u8>) {
        self.is_some().write(bytes);
        self.iter().for_each(|value| value.write_last(bytes));
    }
}

impl<K: ReadKey> ReadKey for Option<K> {
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        if bool::read(bytes)? { K::read(bytes).map(Some) } else { Some(None) }
    }

    fn read_last(bytes: &mut &[u8]) -> Option<Self> {
        if bool::read(bytes)? { K::read_last(bytes).map(Some) } else { Some(None) }
    }
}

// A text at the end of a key has no end mark, so a shorter one comes before a longer one, inverted or not. Therefore
// the end of a key is no exception here.
impl<K: Key> Key for Reverse<K> {
    fn write(&self, bytes: &mut Vec<u8>) {
        let from = bytes.len();
        self.0.write(bytes);
        bytes[from..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

impl<K: ReadKey> ReadKey for Reverse<K> {
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let inverted: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
        let mut rest = &inverted[..];
        let value = K::read(&mut rest)?;
        *bytes = &bytes[bytes.len() - rest.len()..];
        Some(Reverse(value))
    }
}

macro_rules! tuples {
    ($(($($part:ident)* | $last:ident))*) => {$(
        impl<$($part: Key,)* $last: Key> Key for ($($part,)* $last,) {
            #[allow(non_snake_case)]
            fn write(&self, bytes: &mut Vec<u8>) {
                let ($($part,)* $last,) = self;
                $($part.write(bytes);)*
                $last.write(bytes);
            }

            #[allow(non_snake_case)]
            fn write_last(&self, bytes: &mut Vec<u8>) {
                let ($($part,)* $last,) = self;
                $($part.write(bytes);)*
                $last.write_last(bytes);
            }
        }

        impl<$($part: ReadKey,)* $last: ReadKey> ReadKey for ($($part,)* $last,) {
            fn read(bytes: &mut &[u8]) -> Option<Self> {
                Some(($($part::read(bytes)?,)* $last::read(bytes)?,))
            }

            fn read_last(bytes: &mut &[u8]) -> Option<Self> {
                Some(($($part::read(bytes)?,)* $last::read_last(bytes)?,))
            }
        }
    )*};
}

tuples! {
    (| A)
    (A | B)
    (A B | C)
    (A B C | D)
    (A B C D | E)
    (A B C D E | F)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fmt::Debug;

    /// Checks that two keys order as their values, and read back.
    fn check<K: ReadKey + Ord + Clone + Debug>(a: &K, b: &K) {
        let (of_a, of_b) = (encode(a), encode(b));
        assert_eq!(of_a.cmp(&of_b), a.cmp(b), "{a:?} {b:?}");
        assert_eq!(decode::<K>(&of_a).as_ref(), Some(a));
        // The same holds for a part that others follow, whose first part groups them.
        let pair = |first: &K, last: u8| encode(&(first.clone(), last));
        assert_eq!(pair(a, 7).cmp(&pair(b, 7)), a.cmp(b), "{a:?} {b:?}");
        assert_eq!(decode(&pair(a, 255)), Some((a.clone(), 255u8)));
        for last in [0, 255] {
            assert_eq!(prefix(a).contains(&pair(b, last)), a == b, "{a:?} {b:?}");
        }
        let within = range(a.clone()..b.clone());
        let is_in = |key: &Vec<u8>| RangeBounds::<[u8]>::contains(&within.range(), &key[..]);
        assert_eq!([is_in(&of_a), is_in(&of_b)], [a < b, false]);
    }

    /// Floating-point numbers that order as `total_cmp` says.
    #[derive(Clone, Debug)]
    struct Total(f64);

    impl PartialEq for Total {
        fn eq(&self, other: &Total) -> bool {
            self.cmp(other).is_eq()
        }
    }

    impl Eq for Total {}

    impl PartialOrd for Total {
        fn partial_cmp(&self, other: &Total) -> Option<std::cmp::Ordering> {
            Some(self.cmp(other))
        }
    }

    impl Ord for Total {
        fn cmp(&self, other: &Total) -> std::cmp::Ordering {
            self.0.total_cmp(&other.0)
        }
    }

    impl Key for Total {
        fn write(&self, bytes: &mut Vec<u8>) {
            self.0.write(bytes);
        }
    }

    impl ReadKey for Total {
        fn read(bytes: &mut &[u8]) -> Option<Self> {
            f64::read(bytes).map(Total)
        }
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(vec![0u8, 1, 254, 255]), 0..4)
    }

    fn text() -> impl Strategy<Value = String> {
        "[\0a\u{7f}é]{0,3}"
    }

    proptest! {
        #[test]
        fn numbers_order_as_their_bytes(a: (u8, i8, u16, i16, u32, i32), b: (u8, i8, u16, i16, u32, i32)) {
            check(&a, &b);
            check(&a.1, &b.1);
            check(&a.3, &b.3);
            check(&(a.4, a.5), &(a.4, b.5));
        }

        #[test]
        fn wide_numbers_order_as_their_bytes(a: (u64, i64, u128, i128), b: (u64, i64, u128, i128)) {
            check(&a, &b);
            check(&a.1, &b.1);
            check(&a.3, &b.3);
        }

        #[test]
        fn fractions_order_as_their_bytes(a in prop::num::f64::ANY, b in prop::num::f64::ANY) {
            check(&Total(a), &Total(b));
            let (x, y) = (a as f32, b as f32);
            assert_eq!(encode(&x).cmp(&encode(&y)), x.total_cmp(&y));
            assert_eq!(decode::<f32>(&encode(&x)).map(f32::to_bits), Some(x.to_bits()));
        }

        #[test]
        fn texts_and_parts_order_as_their_bytes(
            a in (bytes(), text(), any::<bool>(), any::<char>(), prop::option::of(text())),
            b in (bytes(), text(), any::<bool>(), any::<char>(), prop::option::of(text())),
        ) {
            check(&a, &b);
            check(&a.0, &b.0);
            check(&a.1, &b.1);
            check(&a.3, &b.3);
            check(&a.4, &b.4);
            check(&Reverse(a.0.clone()), &Reverse(b.0.clone()));
            check(&(Reverse(a.1.clone()), a.2), &(Reverse(b.1.clone()), b.2));
        }

        /// The rule: bytes that are no key of a type are refused, and those that are have one value.
        #[test]
        fn other_bytes_are_refused(key in prop::collection::vec(any::<u8>(), 0..12)) {
            let back = [
                decode::<(String, u8)>(&key).map(|value| encode(&value)),
                decode::<(bool, char)>(&key).map(|value| encode(&value)),
                decode::<(Option<Vec<u8>>, u16)>(&key).map(|value| encode(&value)),
                decode::<Reverse<String>>(&key).map(|value| encode(&value)),
            ];
            for back in back.into_iter().flatten() {
                prop_assert_eq!(&back, &key);
            }
        }
    }

    /// The rule: the bytes of a key do not change, because stores have them.
    #[test]
    fn the_bytes_of_keys_stay() {
        assert_eq!(encode(&(1u16, -1i8, "a\0", true, Some(b'x'), "z")), b"\0\x01\x7fa\0\xff\0\0\x01\x01xz");
        assert_eq!(encode(&(1.0f64, Reverse('a'))), b"\xbf\xf0\0\0\0\0\0\0\xff\xff\xff\x9e");
        assert_eq!(encode("plain"), b"plain");
        assert_eq!(decode::<u8>(b"\x01\x02"), None);
        assert_eq!(decode::<bool>(b"\x02"), None);
        assert_eq!(decode::<(String, u8)>(b"a\0\x01"), None);
    }
}
