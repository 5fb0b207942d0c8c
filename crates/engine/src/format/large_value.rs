//! Values that are too long for a leaf.
//!
//! A tree of its own holds them in pieces, under `number of the value (8), number of the piece (4)`, both big-endian. The
//! leaf holds `number of the value (8), length in bytes (8)`.

use crate::Error;
use crate::format::page::get_u64;
use crate::format::page::node::longest_record;
use crate::format::tree::Tree;
use fulgurite_base::PageId;

/// A reference to a large value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargeValue {
    /// Its number.
    pub number: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

impl LargeValue {
    /// Reads what a leaf says.
    pub fn read(bytes: &[u8]) -> Result<LargeValue, Error> {
        if bytes.len() != 16 {
            return Err(Error::corrupt(PageId(0), "the place of a large value has the wrong length"));
        }
        Ok(LargeValue { number: get_u64(bytes, 0), bytes: get_u64(bytes, 8) })
    }

    /// What a leaf says.
    pub fn write(&self) -> Vec<u8> {
        [self.number.to_le_bytes(), self.bytes.to_le_bytes()].concat()
    }

    /// The value is not there, though a leaf of `tree` says so.
    pub fn is_gone(&self, tree: Tree) -> Error {
        Error::corrupt(tree.root, format!("a large value of this tree is gone (number {})", self.number))
    }

    /// The key of a piece.
    pub fn key(&self, piece: u32) -> Vec<u8> {
        let mut key = self.number.to_be_bytes().to_vec();
        key.extend_from_slice(&piece.to_be_bytes());
        key
    }

    pub fn pieces(&self, page_bytes: u32) -> u32 {
        self.bytes.div_ceil(piece_bytes(page_bytes) as u64) as u32
    }
}

/// Bytes of a piece: three fill a page.
pub fn piece_bytes(page_bytes: u32) -> usize {
    longest_record(page_bytes) - 64
}
