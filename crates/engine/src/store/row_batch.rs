//! Records that a scan has found.

use crate::format::page::node::{Cell, Node};
use std::ops::Range;

/// Records in order, one behind the other in one piece of memory: a record costs no allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

/// A key and its value, where a scan has found them.
pub type Row<'a> = (&'a [u8], &'a [u8]);

/// Where a record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    from: usize,
    /// Bytes of the key; the value is behind it.
    key: u32,
    value: usize,
    /// The value says where a large one lies.
    is_large: bool,
}

impl Rows {
    /// Records.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// A record's key and value; `None` behind the last.
    pub fn get(&self, index: usize) -> Option<Row<'_>> {
        self.cell(index).map(|(key, value)| (key, value.bytes))
    }

    /// The keys and values in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Row<'_>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// A key and what is there as its value; `None` behind the last.
    pub(crate) fn cell(&self, index: usize) -> Option<(&[u8], Cell<'_>)> {
        let place = self.places.get(index)?;
        let (key, rest) = self.bytes[place.from..].split_at(place.key as usize);
        Some((key, Cell { bytes: &rest[..place.value], large: place.is_large }))
    }

    /// Whether a value is only where a large one lies.
    pub(crate) fn has_large(&self) -> bool {
        self.places.iter().any(|place| place.is_large)
    }

    /// Adds a record behind the last.
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

    /// Turns the order of the records from `from` on around.
    pub(crate) fn reverse(&mut self, from: usize) {
        self.places[from..].reverse();
    }

    /// Forgets all but the first ones. Their memory stays.
    pub(crate) fn truncate(&mut self, rows: usize) {
        self.places.truncate(rows);
        if rows == 0 {
            self.bytes.clear();
        }
    }
}
