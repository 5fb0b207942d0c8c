//! Large values: stores each as pieces in a tree of its own (see [`crate::format::large_value`]).
//!
//! The pieces are ordinary records, so the log, recovery and space management need no special case for them.

use super::Seek;
use crate::Error;
use crate::format::large_value::{LargeValue, piece_bytes};
use crate::format::log_record::Op;
use crate::format::page::node::leaf;
use crate::format::tree::{LARGE, Tree};
use crate::shard::Shard;

/// Returns the operation that puts or deletes a mark of large values, from a number on; see
/// [`crate::format::large_value`].
pub(crate) fn mark(number: u64, value: Option<Box<[u8]>>) -> Op {
    Op { tree: LARGE, key: LargeValue::mark(number).into(), value, large: false }
}

impl Shard {
    fn large_tree(&self) -> Result<Tree, Error> {
        self.tree(LARGE)
    }

    /// Returns the operations that store a value under a number, and the reference to it for the leaf.
    pub(crate) fn put_large(&self, number: u64, value: &[u8]) -> (LargeValue, Vec<Op>) {
        let place = LargeValue { number, bytes: value.len() as u64 };
        let pieces = value.chunks(piece_bytes(self.page_bytes())).zip(0..);
        let put = |(piece, index): (&[u8], u32)| Op {
            tree: LARGE,
            key: place.key(index).into(),
            value: Some(piece.into()),
            large: false,
        };
        (place, pieces.map(put).collect())
    }

    /// Returns the operations that delete a large value.
    pub(crate) fn delete_large(&self, place: LargeValue) -> Vec<Op> {
        let delete = |index| Op { tree: LARGE, key: place.key(index).into(), value: None, large: false };
        (0..place.pieces(self.page_bytes())).map(delete).collect()
    }

    /// Reads a large value; `None` if a piece is missing.
    pub(crate) async fn read_large(&self, place: LargeValue) -> Result<Option<Vec<u8>>, Error> {
        let tree = self.large_tree()?;
        let mut value = Vec::new();
        let mut piece = 0;
        while (value.len() as u64) < place.bytes {
            let guard = self.find(tree, Seek::At(&place.key(piece)), 0).await?;
            let node = leaf(guard.bytes())?;
            // Takes the following pieces from the same leaf too.
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
