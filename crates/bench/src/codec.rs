//! Encodes rows as bytes. Keys are unsigned big-endian numbers, so that their bytes sort like the numbers.
//! Values are sequences of fields: numbers are little-endian, a text is a length of 16 bits and the text's
//! bytes.

use crate::Error;
use std::ops::Bound;

/// A key under construction, field by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key(Vec<u8>);

impl Key {
    /// A key without fields.
    pub fn new() -> Key {
        Key::default()
    }

    /// Adds a number of 8 bits.
    pub fn u8(mut self, number: u8) -> Key {
        self.0.push(number);
        self
    }

    /// Adds a number of 32 bits.
    pub fn u32(mut self, number: u32) -> Key {
        self.0.extend(number.to_be_bytes());
        self
    }

    /// Adds a number of 64 bits.
    pub fn u64(mut self, number: u64) -> Key {
        self.0.extend(number.to_be_bytes());
        self
    }

    /// Adds a text in `width` bytes: longer texts are cut, shorter ones padded with zeros, so that the keys
    /// sort like the texts.
    pub fn text(mut self, text: &str, width: usize) -> Key {
        let end = self.0.len() + width;
        self.0.extend(text.bytes().take(width));
        self.0.resize(end, 0);
        self
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, owned.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// All keys that begin with this one.
    pub fn prefix(self) -> KeyRange {
        let mut end = self.0.clone();
        // The first key behind the prefix: increment its last byte that is below 255, and drop the bytes
        // after it.
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

    /// All keys from this one up to `end`, without `end`.
    pub fn until(self, end: Key) -> KeyRange {
        KeyRange { start: Bound::Included(self.0), end: Bound::Excluded(end.0) }
    }
}

/// A range of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    start: Bound<Vec<u8>>,
    end: Bound<Vec<u8>>,
}

impl KeyRange {
    /// Every key.
    pub const ALL: KeyRange = KeyRange { start: Bound::Unbounded, end: Bound::Unbounded };

    /// From `first` on, without end.
    pub fn from(first: Key) -> KeyRange {
        KeyRange { start: Bound::Included(first.0), end: Bound::Unbounded }
    }

    /// The range as the store takes it.
    pub fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.start.as_ref().map(Vec::as_slice), self.end.as_ref().map(Vec::as_slice))
    }
}

/// Reads the fields of a key or of a value, from the front.
#[derive(Clone, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// A reader from the first byte on.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    /// The next `count` bytes; `None` if fewer are left.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// A key's field of 8 bits.
    pub(crate) fn key_u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    /// A key's field of 32 bits.
    pub(crate) fn key_u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// A key's field of 64 bits.
    pub(crate) fn key_u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A value's field.
    pub fn field<F: Field>(&mut self) -> Option<F> {
        F::read(self)
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A field of a value.
pub trait Field: Sized {
    /// Appends the field's bytes.
    fn write(&self, bytes: &mut Vec<u8>);

    /// Reads the field; `None` if the bytes are not such a field.
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
        // A text is cut after 64 KiB at the end of a character. No text of a benchmark is longer.
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

/// A row: the fields of a value.
pub trait Row: Sized {
    /// The table's name.
    const TABLE: &'static str;

    /// The value's bytes.
    fn encode(&self) -> Vec<u8>;

    /// The row with these bytes as its value. Fails if they are not such a row.
    fn decode(bytes: &[u8]) -> Result<Self, Error>;

    /// The row with the value that was found. Fails if there is none.
    fn found(bytes: Option<Vec<u8>>) -> Result<Self, Error> {
        let bytes = bytes.ok_or_else(|| Error::row(Self::TABLE, "is missing"))?;
        Self::decode(&bytes)
    }
}

/// Declares a row: a struct with the fields of the value, in this order.
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
        /// A row.
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
