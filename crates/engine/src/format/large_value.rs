//! The references to large values, which are too long for a leaf, and the keys of their pieces.
//!
//! A separate tree stores each large value in pieces, under the keys `number of the value (8), number of the
//! piece (4)`, both big-endian. The leaf stores a reference: `number of the value (8), length in bytes (8)`.
//!
//! The key `0 (8), number of the value (8)` in the same tree is a *mark*: the pieces of this value belong to no record,
//! or not yet. The value of a mark is empty, or `count (8, little-endian)` if it holds for so many values, from that
//! number on. No value has the number 0.

use crate::Error;
use crate::format::page::get_u64;
use crate::format::page::node::longest_record;
use crate::format::tree::Tree;
use fulgurite_base::PageId;
use std::ops::Range;

/// A reference to a large value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LargeValue {
    pub number: u64,
    /// The length of the value in bytes.
    pub bytes: u64,
}

impl LargeValue {
    /// Decodes a reference that was read from a leaf.
    pub(crate) fn read(bytes: &[u8]) -> Result<LargeValue, Error> {
        if bytes.len() != 16 {
            return Err(Error::corrupt(PageId(0), "the reference to a large value has the wrong length"));
        }
        Ok(LargeValue { number: get_u64(bytes, 0), bytes: get_u64(bytes, 8) })
    }

    /// Encodes the reference for a leaf.
    pub(crate) fn write(&self) -> Vec<u8> {
        [self.number.to_le_bytes(), self.bytes.to_le_bytes()].concat()
    }

    /// Returns the error for a missing large value to which a leaf of `tree` refers.
    pub(crate) fn is_gone(&self, tree: Tree) -> Error {
        Error::corrupt(tree.root, format!("large value {} of this tree is missing", self.number))
    }

    pub(crate) fn key(&self, piece: u32) -> Vec<u8> {
        let mut key = self.number.to_be_bytes().to_vec();
        key.extend_from_slice(&piece.to_be_bytes());
        key
    }

    /// Returns the number of the value from the key of one of its pieces; `None` if the key is too short.
    pub(crate) fn number_of(piece: &[u8]) -> Option<u64> {
        piece.first_chunk().map(|number| u64::from_be_bytes(*number))
    }

    /// Returns the key of the mark of a value, or of the values from a number on.
    pub(crate) fn mark(number: u64) -> Vec<u8> {
        [[0; 8], number.to_be_bytes()].concat()
    }

    /// Returns the numbers of the values that a record of the tree marks; `None` if the record is a piece.
    pub(crate) fn marked(key: &[u8], value: &[u8]) -> Option<Range<u64>> {
        let first = u64::from_be_bytes(key.strip_prefix(&[0; 8])?.try_into().ok()?);
        let count = value.try_into().map_or(1, u64::from_le_bytes);
        Some(first..first.saturating_add(count))
    }

    pub(crate) fn pieces(&self, page_bytes: u32) -> u32 {
        self.bytes.div_ceil(piece_bytes(page_bytes) as u64) as u32
    }
}

/// The size of a piece in bytes, such that three pieces fill a page.
pub(crate) fn piece_bytes(page_bytes: u32) -> usize {
    longest_record(page_bytes) - 64
}
