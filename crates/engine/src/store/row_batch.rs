//! A batch of result rows of a scan.

use crate::format::page::node::{Cell, Node};
use std::ops::Range;

/// The result rows of a scan in order. All are in one allocation, so a row needs no allocation of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

/// A result row: a key and its value.
pub type Row<'a> = (&'a [u8], &'a [u8]);

/// The position of a row in the bytes of the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    from: usize,
    /// The length of the key in bytes; the value follows the key.
    key: u32,
    value: usize,
    /// Whether the value is a reference to a large value.
    is_large: bool,
}

impl Rows {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the key and value of a row; `None` if `index` is out of range.
    pub fn get(&self, index: usize) -> Option<Row<'_>> {
        self.cell(index).map(|(key, value)| (key, value.bytes))
    }

    /// Iterates over the keys and values in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Row<'_>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Returns the key and the cell of a row; `None` if `index` is out of range.
    pub(crate) fn cell(&self, index: usize) -> Option<(&[u8], Cell<'_>)> {
        let place = self.places.get(index)?;
        let (key, rest) = self.bytes[place.from..].split_at(place.key as usize);
        Some((key, Cell { bytes: &rest[..place.value], large: place.is_large }))
    }

    /// Whether any value is a reference to a large value.
    pub(crate) fn has_large(&self) -> bool {
        self.places.iter().any(|place| place.is_large)
    }

    /// Appends a row.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.push_parts(&[], key, Cell::inline(value));
    }

    /// Appends records of a leaf as rows.
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

    /// Reverses the order of the rows from index `from` on.
    pub(crate) fn reverse(&mut self, from: usize) {
        self.places[from..].reverse();
    }

    /// Drops all rows but the first `rows`. The memory of the dropped rows is not freed.
    pub(crate) fn truncate(&mut self, rows: usize) {
        self.places.truncate(rows);
        if rows == 0 {
            self.bytes.clear();
        }
    }
}
