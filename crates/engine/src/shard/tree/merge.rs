//! Merges of nodes: a node with few records gives them to a neighbour under the same parent and is freed. A
//! root with one child takes over the contents of this child.

use crate::Error;
use crate::format::log_record::Delta;
use crate::format::page;
use crate::format::page::node::leaf;
use crate::format::page::node::{Node, NodeMut};
use crate::format::tree::Tree;
use crate::shard::Shard;
use fulgurite_base::PageId;

/// Whether a node has so few records that it should be merged: they take less than a quarter of the page.
pub(crate) fn is_sparse(node: Node<'_>) -> bool {
    node.used() < node.bytes().len() / 4
}

/// Returns both nodes as one node with the page number of the left one; `None` if its records would take more
/// than `most` bytes.
fn unite(left: Node<'_>, right: Node<'_>, most: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; left.bytes().len()];
    let (page, tree) = (page::number(left.bytes()), page::tree(left.bytes()));
    let mut node = NodeMut::init(&mut bytes, page, tree, left.level(), (left.low(), right.high()));
    for (key, value) in left.records().chain(right.records()) {
        if !node.push(&key, value) {
            return None;
        }
    }
    (node.node().used() <= most).then_some(bytes)
}

impl Shard {
    /// Merges the leaf that covers `key` with a neighbour if it is sparse, and likewise the nodes above.
    pub(crate) async fn shrink(&self, tree: Tree, key: &[u8]) -> Result<(), Error> {
        let _turn = self.jobs.structure_turn().await;
        let path = self.path(tree, key).await?;
        for at in (1..path.len()).rev() {
            let sparse = is_sparse(leaf(self.read_page(path[at]).await?.bytes())?);
            // The merged node is at most three quarters full, so that the next records do not split it again.
            let most = self.page_bytes() as usize * 3 / 4;
            if !sparse || !self.unite_children(path[at], path[at - 1], key, most).await? {
                return Ok(());
            }
            self.counters.count(|counts| counts.merges += 1);
        }
        self.lower_root(tree).await
    }

    /// Merges `child` with a neighbour under `parent`, if the records of the two take at most `most` bytes.
    /// Returns whether it did.
    pub(crate) async fn unite_children(
        &self,
        child: PageId,
        parent: PageId,
        key: &[u8],
        most: usize,
    ) -> Result<bool, Error> {
        let (left, right) = {
            let guard = self.read_page(parent).await?;
            let node = leaf(guard.bytes())?;
            let index = node.child_for(key);
            match (index + 1 < node.len(), index > 0) {
                (true, _) => (child, node.child(index + 1)),
                (false, true) => (node.child(index - 1), child),
                (false, false) => return Ok(false),
            }
        };
        let (map, index) = self.state.space().place(right);
        let held = self.hold(&[parent, left, right, map], &[]).await?;
        let (left_node, right_node) = (leaf(held.bytes(left)?)?, leaf(held.bytes(right)?)?);
        let Some(united) = unite(left_node, right_node, most) else { return Ok(false) };
        let deltas = vec![
            Delta::image(&united),
            Delta::DropChild { page: parent, key: right_node.low().into() },
            Delta::Free { page: right },
            Delta::Map { page: map, from: index, count: 1, used: false },
        ];
        self.restructure(held, deltas, Vec::new())?;
        Ok(true)
    }

    /// Replaces a root that has one child by that child, repeatedly.
    pub(crate) async fn lower_root(&self, tree: Tree) -> Result<(), Error> {
        loop {
            let child = {
                let guard = self.read_page(tree.root).await?;
                let root = leaf(guard.bytes())?;
                if root.level() == 0 || root.len() > 1 {
                    return Ok(());
                }
                root.child(0)
            };
            let (map, index) = self.state.space().place(child);
            let held = self.hold(&[tree.root, child, map], &[]).await?;
            let node = leaf(held.bytes(child)?)?;
            let root = super::split::copy(node, tree.root, (b"", None));
            let deltas = vec![
                Delta::image(&root),
                Delta::Free { page: child },
                Delta::Map { page: map, from: index, count: 1, used: false },
            ];
            self.restructure(held, deltas, Vec::new())?;
        }
    }
}
