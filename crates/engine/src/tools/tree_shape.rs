//! Measures the depth of trees, and how full their leaves are.

use crate::format::page::node::Node;
use crate::format::page::node::leaf;
use crate::format::tree::{FIRST_USER_TREE, LARGE, Tree};
use crate::memory::catalogue::{Named, Table};
use crate::shard::Shard;
use crate::shard::tree::Seek;
use crate::store::Store;
use crate::{Error, StoreFuture};

/// The shape of the tree of a table, of an index, or of all large values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeShape {
    /// The name of the table or index, or `(large values)`.
    pub name: String,
    /// The table that the index belongs to; `None` if this is not an index.
    pub index_of: Option<Table>,
    /// The number of levels; 1 if the root is a leaf.
    pub levels: u32,
    /// The number of nodes above the leaves.
    pub inner_pages: u64,
    /// The number of leaves.
    pub leaves: u64,
    /// The number of records in the leaves, without pending records.
    pub entries: u64,
    /// The number of bytes in the leaves that records and their slots take.
    pub used_bytes: u64,
    /// The number of bytes in the leaves that are free for more records.
    pub free_bytes: u64,
}

impl TreeShape {
    /// Returns the fraction of the space in the leaves that is in use, from 0 to 1.
    pub fn leaf_fill(&self) -> f64 {
        self.used_bytes as f64 / (self.used_bytes + self.free_bytes).max(1) as f64
    }
}

impl Store {
    /// Returns the shapes of all tables and indexes, and of the tree of large values if there are any. The
    /// indexes of a table follow the table. Reads all pages of these trees. A concurrent change is counted as
    /// before or after it.
    pub fn shapes(&self) -> StoreFuture<'_, Vec<TreeShape>> {
        Box::pin(async move {
            let trees = self.0.state.catalogue().trees();
            let mut shapes = Vec::new();
            for tree in trees.into_iter().filter(|tree| tree.id >= FIRST_USER_TREE || tree.id == LARGE) {
                let shape = match self.0.shape(tree).await {
                    // The tree was dropped meanwhile.
                    Err(_) if !self.0.state.catalogue().is_live(tree.id) => continue,
                    shape => shape?,
                };
                if tree.id != LARGE || shape.entries > 0 {
                    shapes.push(shape);
                }
            }
            Ok(shapes)
        })
    }
}

impl Shard {
    async fn shape(&self, tree: Tree) -> Result<TreeShape, Error> {
        let (name, index_of) = {
            let catalogue = self.state.catalogue();
            let name = catalogue.name_of(tree.id);
            let index_of = match catalogue.get(&name) {
                Some(Named::Index(index)) => Some(index.table),
                _ => None,
            };
            (name, index_of)
        };
        let root = leaf(self.find(tree, Seek::At(b""), u8::MAX).await?.bytes())?.level();
        let mut shape = TreeShape {
            name,
            index_of,
            levels: u32::from(root) + 1,
            inner_pages: 0,
            leaves: 0,
            entries: 0,
            used_bytes: 0,
            free_bytes: 0,
        };
        for level in 1..=root {
            shape.inner_pages += self.count_nodes(tree, level).await?;
        }
        let look = |node: Node<'_>| {
            shape.leaves += 1;
            shape.entries += node.len() as u64;
            shape.used_bytes += node.used() as u64;
            shape.free_bytes += node.free() as u64;
            Ok(())
        };
        self.each_leaf(tree, look).await?;
        Ok(shape)
    }

    /// Counts the nodes on a level above the leaves.
    async fn count_nodes(&self, tree: Tree, level: u8) -> Result<u64, Error> {
        let (mut low, mut nodes) = (Vec::new(), 0);
        loop {
            let guard = self.find(tree, Seek::At(&low), level).await?;
            nodes += 1;
            match leaf(guard.bytes())?.high() {
                Some(high) => low = high.to_vec(),
                None => return Ok(nodes),
            }
        }
    }
}
