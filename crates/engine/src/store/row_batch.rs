//! The rows that a scan returns.

use crate::format::page::node::{Cell, Node};
use std::ops::Range;

/// Rows in order, one behind the other in one piece of memory: a row costs no allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

/// A key and its value.
pub type Row<'a> = (&'a [u8], &'a [u8]);

/// The place of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    from: usize,
    /// Bytes of the key; the value is behind it.
    key: u32,
    value: usize,
    /// The value is a reference to a large one.
    is_large: bool,
}

impl Rows {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The key and value of a row; `None` behind the last.
    pub fn get(&self, index: usize) -> Option<Row<'_>> {
        self.cell(index).map(|(key, value)| (key, value.bytes))
    }

    /// The keys and values in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Row<'_>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// The key of a row, and its cell; `None` behind the last.
    pub(crate) fn cell(&self, index: usize) -> Option<(&[u8], Cell<'_>)> {
        let place = self.places.get(index)?;
        let (key, rest) = self.bytes[place.from..].split_at(place.key as usize);
        Some((key, Cell { bytes: &rest[..place.value], large: place.is_large }))
    }

    /// Whether some value is a reference to a large one.
    pub(crate) fn has_large(&self) -> bool {
        self.places.iter().any(|place| place.is_large)
    }

    /// Adds a row behind the last.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.push_parts(&[], key, Cell::inline(value));
    }

    /// Adds records of a leaf behind the last.
    pub(crate) fn push_from(&mut self, node: Node<'_>, records: Range<usize>) {
        self.places.reserve(records.len());
        let prefix = node.prefix();
        for index in records {
            self.push_parts(prefix, node.suffix(index), node.value(index));
        }
    }

    fn push_parts(&mut self, prefix: &[u8], suffix: &[u8], value: Cell<'_>) {
        let (from, key) = (self.bytes.len(), (prefix.len() + suffix.len()) as u32);
        self.places.push(Place { from, key, value: value.bytes.len(), is_large: value.large });
        self.bytes.extend_from_slice(prefix);
        self.bytes.extend_from_slice(suffix);
        self.bytes.extend_from_slice(value.bytes);
    }

    /// Reverses the order of the rows from `from` on.
    pub(crate) fn reverse(&mut self, from: usize) {
        self.places[from..].reverse();
    }

    /// Drops all but the first rows. Their memory stays.
    pub(crate) fn truncate(&mut self, rows: usize) {
        self.places.truncate(rows);
        if rows == 0 {
            self.bytes.clear();
        }
    }
}
