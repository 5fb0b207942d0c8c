//! Splits of nodes: a full node gives its upper part to a new right neighbour. A full root keeps its page and
//! gives everything to two new children.

use crate::Error;
use crate::format::log_record::Delta;
use crate::format::page;
use crate::format::page::node::leaf;
use crate::format::page::node::{Cell, Node, NodeMut, longest_key, middle, separator};
use crate::format::tree::Tree;
use crate::shard::Shard;
use fulgurite_base::PageId;

/// The separator key of a split, and the bytes of the new right node.
struct Division {
    separator: Vec<u8>,
    right: Vec<u8>,
}

/// Splits a node: its upper part becomes a node at page `right`.
fn divide(node: Node<'_>, right: PageId, key: &[u8]) -> Division {
    // If the new key is greater than all others, keys probably arrive in ascending order. Then the left node
    // keeps nearly all records, so that it stays full.
    let ascending = node.high().is_none() && node.search(key) == Err(node.len());
    let at = middle(node, ascending && node.len() > 2);
    let next = node.key(at);
    let separator = if node.level() == 0 { separator(&node.key(at - 1), &next).to_vec() } else { next };
    let half = copy(node, right, (&separator, node.high()));
    Division { separator, right: half }
}

/// Creates a node at `page` with the records of `node` between the fences.
pub(super) fn copy(node: Node<'_>, page: PageId, (low, high): (&[u8], Option<&[u8]>)) -> Vec<u8> {
    let mut bytes = vec![0; node.bytes().len()];
    let mut new = NodeMut::init(&mut bytes, page, page::tree(node.bytes()), node.level(), (low, high));
    for (key, value) in node.records() {
        if new.node().covers(&key) {
            new.push(&key, value);
        }
    }
    bytes
}

impl Shard {
    /// Splits the leaf that covers `key` so that it has space for a record of `cost` bytes. Does nothing if
    /// it has the space already.
    pub(crate) async fn make_room(&self, tree: Tree, key: &[u8], cost: usize) -> Result<(), Error> {
        let _turn = self.jobs.structure_turn().await;
        let path = self.path(tree, key).await?;
        {
            let guard = self.read_page(path[path.len() - 1]).await?;
            if leaf(guard.bytes())?.free() >= cost {
                return Ok(());
            }
        }
        // On the path from the leaf up, this splits the first node that is the root or whose parent has space
        // for one more child. Later calls split the nodes below it.
        let parent_cost = longest_key(self.page_bytes()) + 32;
        let mut at = path.len() - 1;
        while at > 0 {
            let guard = self.read_page(path[at - 1]).await?;
            if leaf(guard.bytes())?.free() >= parent_cost {
                break;
            }
            at -= 1;
        }
        self.counters.count(|counts| counts.splits += 1);
        match at {
            0 => self.split_root(tree, key).await,
            _ => self.split_node(path[at], path[at - 1], key).await,
        }
    }

    async fn split_node(&self, node: PageId, parent: PageId, key: &[u8]) -> Result<(), Error> {
        let new = self.pick().await?;
        let (map, index) = self.state.space().place(new);
        let held = self.hold(&[parent, node, map], &[new]).await?;
        let full = leaf(held.bytes(node)?)?;
        // Does nothing if the node has fewer than two records: records may have been deleted since the
        // search.
        if full.len() < 2 {
            self.state.space().put_back(new);
            return Ok(());
        }
        let Division { separator, right } = divide(full, new, key);
        let deltas = vec![
            Delta::image(&right),
            Delta::Keep { page: node, high: separator.clone().into() },
            Delta::AddChild { page: parent, key: separator.into(), child: new },
            Delta::Map { page: map, from: index, count: 1, used: true },
        ];
        self.restructure(held, deltas, Vec::new()).map(drop)
    }

    async fn split_root(&self, tree: Tree, key: &[u8]) -> Result<(), Error> {
        let (left, right) = (self.pick().await?, self.pick().await?);
        let ((left_map, left_index), (right_map, right_index)) =
            (self.state.space().place(left), self.state.space().place(right));
        let mut pages = vec![tree.root, left_map];
        if right_map != left_map {
            pages.push(right_map);
        }
        let held = self.hold(&pages, &[left, right]).await?;
        let root = leaf(held.bytes(tree.root)?)?;
        if root.len() < 2 {
            self.state.space().put_back(left);
            self.state.space().put_back(right);
            return Ok(());
        }
        let Division { separator, right: upper } = divide(root, right, key);
        let lower = copy(root, left, (root.low(), Some(&separator)));
        let mut above = vec![0; self.page_bytes() as usize];
        let mut node = NodeMut::init(&mut above, tree.root, tree.id, root.level() + 1, (b"", None));
        node.push(b"", Cell::inline(&left.0.to_le_bytes()));
        node.push(&separator, Cell::inline(&right.0.to_le_bytes()));
        let deltas = vec![
            Delta::image(&lower),
            Delta::image(&upper),
            Delta::image(&above),
            Delta::Map { page: left_map, from: left_index, count: 1, used: true },
            Delta::Map { page: right_map, from: right_index, count: 1, used: true },
        ];
        self.restructure(held, deltas, Vec::new()).map(drop)
    }
}
