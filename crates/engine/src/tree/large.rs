//! Values that are too long for a leaf: they lie in pieces in a tree of their own, under `number of the value (8),
//! number of the piece (4)`, both big-endian. The leaf has `number of the value (8), bytes (8)`.
//!
//! The pieces are records like all others, so they need no care of their own in the log, in recovery or in the space.

use super::{LARGE, Seek, Tree, leaf};
use crate::Error;
use crate::log::Op;
use crate::page::get_u64;
use crate::page::node::longest_record;
use crate::shard::Shard;
use fulgurite_base::PageId;
use fulgurite_device::Device;

/// Where a large value lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its number.
    pub number: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

impl Place {
    /// Reads what a leaf says.
    pub fn read(bytes: &[u8]) -> Result<Place, Error> {
        if bytes.len() != 16 {
            return Err(Error::corrupt(PageId(0), "the place of a large value has the wrong length"));
        }
        Ok(Place { number: get_u64(bytes, 0), bytes: get_u64(bytes, 8) })
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

    fn pieces(&self, page_bytes: u32) -> u32 {
        self.bytes.div_ceil(piece_bytes(page_bytes) as u64) as u32
    }
}

/// Bytes of a piece: three fill a page.
fn piece_bytes(page_bytes: u32) -> usize {
    longest_record(page_bytes) - 64
}

impl<D: Device + 'static> Shard<D> {
    fn large_tree(&self) -> Result<Tree, Error> {
        self.tree(LARGE)
    }

    /// The operations that put a value away, and what the leaf says of it.
    pub fn put_large(&self, value: &[u8]) -> (Place, Vec<Op>) {
        let place = Place { number: self.next_large.get(), bytes: value.len() as u64 };
        self.next_large.set(place.number + 1);
        let pieces = value.chunks(piece_bytes(self.page_bytes())).zip(0..);
        let put = |(piece, index): (&[u8], u32)| Op {
            tree: LARGE,
            key: place.key(index).into(),
            value: Some(piece.into()),
            large: false,
        };
        (place, pieces.map(put).collect())
    }

    /// The operations that remove a value.
    pub fn delete_large(&self, place: Place) -> Vec<Op> {
        let delete = |index| Op { tree: LARGE, key: place.key(index).into(), value: None, large: false };
        (0..place.pieces(self.page_bytes())).map(delete).collect()
    }

    /// A value; `None` where not all of it is there.
    pub async fn read_large(&self, place: Place) -> Result<Option<Vec<u8>>, Error> {
        let tree = self.large_tree()?;
        let mut value = Vec::new();
        let mut piece = 0;
        while (value.len() as u64) < place.bytes {
            let guard = self.find(tree, Seek::At(&place.key(piece)), 0).await?;
            let node = leaf(guard.bytes())?;
            // The pieces that follow in the same leaf are taken together.
            let Ok(first) = node.search(&place.key(piece)) else { return Ok(None) };
            for index in first..node.len() {
                if node.key(index) != place.key(piece) {
                    break;
                }
                value.extend_from_slice(node.value(index).bytes);
                piece += 1;
            }
        }
        Ok((value.len() as u64 == place.bytes).then_some(value))
    }
}
