//! Encodes database rows as keys and values. The fields of a key are unsigned big-endian numbers or padded
//! texts, so that the bytes sort like the fields. A value is a sequence of fields: a number is little-endian,
//! and a text is its length in 16 bits and its bytes.

use crate::Error;
use std::ops::Bound;

/// A key, which is built field by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key(Vec<u8>);

impl Key {
    /// Creates a key without fields.
    pub fn new() -> Key {
        Key::default()
    }

    /// Appends a number of 8 bits.
    pub fn u8(mut self, number: u8) -> Key {
        self.0.push(number);
        self
    }

    /// Appends a number of 32 bits.
    pub fn u32(mut self, number: u32) -> Key {
        self.0.extend(number.to_be_bytes());
        self
    }

    /// Appends a number of 64 bits.
    pub fn u64(mut self, number: u64) -> Key {
        self.0.extend(number.to_be_bytes());
        self
    }

    /// Appends a text in `width` bytes. A longer text is cut, and a shorter one is padded with zeros, so that
    /// the keys sort like the texts.
    pub fn text(mut self, text: &str, width: usize) -> Key {
        let end = self.0.len() + width;
        self.0.extend(text.bytes().take(width));
        self.0.resize(end, 0);
        self
    }

    /// Returns the bytes of the key.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Converts the key to its bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Returns the range of all keys that begin with this key.
    pub fn prefix(self) -> KeyRange {
        let mut end = self.0.clone();
        // The first key after the prefix is the prefix with its last byte that is below 255 incremented, and
        // without the bytes after that byte.
        while end.last() == Some(&u8::MAX) {
            end.pop();
        }
        let end = match end.last_mut() {
            Some(last) => {
                *last += 1;
                Bound::Excluded(end)
            }
            None => Bound::Unbounded,
        };
        KeyRange { start: Bound::Included(self.0), end }
    }

    /// Returns the range of all keys from this key up to `end`, without `end`.
    pub fn until(self, end: Key) -> KeyRange {
        KeyRange { start: Bound::Included(self.0), end: Bound::Excluded(end.0) }
    }
}

/// A range of keys in a table or an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    start: Bound<Vec<u8>>,
    end: Bound<Vec<u8>>,
}

impl KeyRange {
    /// The range of all keys.
    pub const ALL: KeyRange = KeyRange { start: Bound::Unbounded, end: Bound::Unbounded };

    /// Creates the range of all keys from `first` on.
    pub fn from(first: Key) -> KeyRange {
        KeyRange { start: Bound::Included(first.0), end: Bound::Unbounded }
    }

    /// Returns the bounds of the range, in the form that the store takes.
    pub fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.start.as_ref().map(Vec::as_slice), self.end.as_ref().map(Vec::as_slice))
    }
}

/// Reads the fields of a key or of a value, from front to back.
#[derive(Clone, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Creates a reader that begins at the first byte.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    /// Consumes the next `count` bytes. Returns `None` if fewer are left.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// Reads a field of 8 bits of a key.
    pub(crate) fn key_u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    /// Reads a field of 32 bits of a key.
    pub(crate) fn key_u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads a field of 64 bits of a key.
    pub(crate) fn key_u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// Reads a field of a value.
    pub fn field<F: Field>(&mut self) -> Option<F> {
        F::read(self)
    }

    /// Whether all bytes have been read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A field of a value, which can be written as bytes.
pub trait Field: Sized {
    /// Appends the bytes of the field to `bytes`.
    fn write(&self, bytes: &mut Vec<u8>);

    /// Reads the field. Returns `None` if the bytes are not a field of this type.
    fn read(reader: &mut Reader<'_>) -> Option<Self>;
}

macro_rules! number_fields {
    ($($number:ty)*) => {$(
        impl Field for $number {
            fn write(&self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }

            fn read(reader: &mut Reader<'_>) -> Option<$number> {
                reader.array().map(<$number>::from_le_bytes)
            }
        }
    )*};
}

number_fields!(u8 u16 u32 u64 i64);

impl Field for String {
    fn write(&self, bytes: &mut Vec<u8>) {
        // A text of more than 64 KiB is cut at the end of a character. No text of a benchmark is longer.
        let end = (0..=self.len().min(usize::from(u16::MAX))).rev().find(|end| self.is_char_boundary(*end));
        let text = &self[..end.unwrap_or(0)];
        (text.len() as u16).write(bytes);
        bytes.extend(text.as_bytes());
    }

    fn read(reader: &mut Reader<'_>) -> Option<String> {
        let length = u16::read(reader)?;
        String::from_utf8(reader.take(usize::from(length))?.to_vec()).ok()
    }
}

impl<const N: usize> Field for [String; N] {
    fn write(&self, bytes: &mut Vec<u8>) {
        self.iter().for_each(|text| text.write(bytes));
    }

    fn read(reader: &mut Reader<'_>) -> Option<[String; N]> {
        let texts: Option<Vec<String>> = (0..N).map(|_| String::read(reader)).collect();
        texts?.try_into().ok()
    }
}

/// A database row whose fields are the fields of a value.
pub trait Row: Sized {
    /// The name of the row's table.
    const TABLE: &'static str;

    /// Returns the value of the row as bytes.
    fn encode(&self) -> Vec<u8>;

    /// Returns the row with these bytes as its value. Fails if the bytes are not a row of this type.
    fn decode(bytes: &[u8]) -> Result<Self, Error>;

    /// Returns the row with the value that a look-up found. Fails if the look-up found none.
    fn found(bytes: Option<Vec<u8>>) -> Result<Self, Error> {
        let bytes = bytes.ok_or_else(|| Error::row(Self::TABLE, "is missing"))?;
        Self::decode(&bytes)
    }
}

/// Declares a type of database rows, which is a struct with the fields of the value, in this order.
macro_rules! row {
    ($(#[$doc:meta])* $name:ident in $table:literal { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[allow(unreachable_pub)] // some rows are exported
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl $crate::codec::Row for $name {
            const TABLE: &'static str = $table;

            #[allow(unused_mut)] // a row may have no fields
            fn encode(&self) -> Vec<u8> {
                let mut bytes = Vec::new();
                $($crate::codec::Field::write(&self.$field, &mut bytes);)*
                bytes
            }

            #[allow(unused_mut)]
            fn decode(bytes: &[u8]) -> Result<$name, $crate::Error> {
                let mut reader = $crate::codec::Reader::new(bytes);
                let mut read = || Some($name { $($field: $crate::codec::Field::read(&mut reader)?,)* });
                let row = read();
                row.filter(|_| reader.is_empty())
                    .ok_or_else(|| $crate::Error::row($table, "cannot be read"))
            }
        }
    };
}

pub(crate) use row;

#[cfg(test)]
mod tests {
    use super::*;

    row! {
        /// A row for tests, with a number, an amount of money and a text.
        Sample in "sample" {
            number: u32,
            money: i64,
            text: String,
        }
    }

    #[test]
    fn keys_sort_as_their_fields() {
        let key = |a: u32, text: &str, b: u8| Key::new().u32(a).text(text, 4).u8(b).into_bytes();
        let sorted = [key(1, "b", 9), key(1, "ba", 1), key(1, "c", 0), key(2, "a", 0), key(256, "a", 0)];
        assert!(sorted.is_sorted(), "{sorted:?}");
    }

    #[test]
    fn a_prefix_ends_before_its_successor() {
        let range = Key::new().u8(7).u8(255).prefix();
        assert_eq!(range.bounds(), (Bound::Included(&[7, 255][..]), Bound::Excluded(&[8][..])));
        assert_eq!(Key::new().u8(255).prefix().bounds().1, Bound::Unbounded);
    }

    #[test]
    fn rows_are_decoded_and_broken_ones_are_refused() {
        let row = Sample { number: 7, money: -1, text: "abc".to_owned() };
        let bytes = row.encode();
        assert_eq!(Sample::decode(&bytes).unwrap(), row);
        let longer = [&bytes[..], &[0]].concat();
        for broken in [&bytes[..bytes.len() - 1], &longer, &[]] {
            let error = Sample::decode(broken).unwrap_err().to_string();
            assert_eq!(error, "a row of `sample` cannot be read");
        }
        assert_eq!(Sample::found(None).unwrap_err().to_string(), "a row of `sample` is missing");
    }
}
