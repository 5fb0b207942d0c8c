//! Read-ahead: reads the leaves that will be needed soon in parallel. If they were read one after the other,
//! the drive would be idle most of the time.
//!
//! The leaves are a guess, because trees change meanwhile. A task that needs a leaf searches for it itself,
//! and meets any error of the earlier reads there.

use super::Seek;
use crate::Error;
use crate::format::page;
use crate::format::page::node::Node;
use crate::format::page::node::leaf;
use crate::format::tree::Tree;
use crate::shard::Shard;
use fulgurite_base::PageId;
use std::ops::Range;

/// The next leaves of a range that have the same parent.
pub(crate) struct Leaves {
    /// The pages of the leaves, in the order of the scan.
    pub pages: Vec<PageId>,
    /// The fence behind the leaves. For a forward scan it is the lower fence of the next leaf. For a backward
    /// scan it is the upper fence of the next leaf, which the keys of that leaf are below. `None` at the end
    /// of the tree.
    pub end: Option<Vec<u8>>,
}

impl Shard {
    /// Returns the maximum number of leaves to read ahead: `degree`, but few enough that they do not evict
    /// each other.
    pub(crate) fn most_ahead(&self, degree: u32) -> usize {
        degree.min(self.durable.pool().limit() / 4).max(1) as usize
    }

    /// Begins to read the leaves of keys, which are in ascending order. The search goes down level by level,
    /// and reads all nodes of a level at once.
    pub(crate) async fn fetch_leaves(&self, tree: Tree, keys: &[&[u8]]) -> Result<(), Error> {
        let mut nodes: Vec<(PageId, Range<usize>)> = vec![(tree.root, 0..keys.len())];
        // The limit ends the loop on damaged pages: no tree is higher than this.
        for _ in 0..u8::MAX {
            let mut below = Vec::new();
            let mut is_above_leaves = true;
            for (page, own) in nodes {
                let guard = self.read_page(page).await?;
                let node = Node::new(guard.bytes()).filter(|_| page::tree(guard.bytes()) == tree.id);
                if let Some(node) = node.filter(|node| node.level() > 0) {
                    is_above_leaves &= node.level() == 1;
                    children_of(node, keys, own, &mut below);
                }
            }
            let mut pages: Vec<PageId> = below.iter().map(|(page, _)| *page).collect();
            pages.sort_unstable();
            self.durable.pool().fetch(&pages).await.map_err(self.of_pool())?;
            if is_above_leaves {
                break;
            }
            nodes = below;
        }
        Ok(())
    }

    /// Returns the next leaves of a scan, at most `most`, from `seek` up to `bound`. `bound` is the first key
    /// behind the range; for a backward scan it is the least key of the range. `None` if the root is the only
    /// leaf.
    pub(crate) async fn leaves(
        &self,
        tree: Tree,
        seek: Seek<'_>,
        bound: Option<&[u8]>,
        most: usize,
    ) -> Result<Option<Leaves>, Error> {
        let guard = self.find(tree, seek, 1).await?;
        let parent = leaf(guard.bytes())?;
        if parent.level() == 0 {
            return Ok(None);
        }
        let first = seek.child(parent);
        let mut pages = Vec::with_capacity(most.min(parent.len()));
        let mut end = match seek {
            Seek::At(_) => parent.high().map(<[u8]>::to_vec),
            Seek::Below(_) | Seek::Last => Some(parent.low().to_vec()).filter(|low| !low.is_empty()),
        };
        if let Seek::At(_) = seek {
            for index in first..parent.len() {
                let low = (index > first).then(|| parent.key(index));
                let is_behind = bound.is_some_and(|bound| low.as_ref().is_some_and(|low| &low[..] >= bound));
                if pages.len() == most || is_behind {
                    end = low;
                    break;
                }
                pages.push(parent.child(index));
            }
        } else {
            for index in (0..=first).rev() {
                let high = (index < first).then(|| parent.key(index + 1));
                let is_behind =
                    bound.is_some_and(|bound| high.as_ref().is_some_and(|high| &high[..] <= bound));
                if pages.len() == most || is_behind {
                    end = high;
                    break;
                }
                pages.push(parent.child(index));
            }
        }
        Ok(Some(Leaves { pages, end }))
    }
}

/// Adds to `below` the children of an inner node that cover the keys of the range `own`, each with the range
/// of its own keys.
fn children_of(node: Node<'_>, keys: &[&[u8]], own: Range<usize>, below: &mut Vec<(PageId, Range<usize>)>) {
    let mut from = own.start;
    while from < own.end {
        let index = node.child_for(keys[from]);
        let high = (index + 1 < node.len()).then(|| node.key(index + 1));
        let rest = &keys[from..own.end];
        let covered = high.map_or(rest.len(), |high| rest.partition_point(|key| **key < *high));
        let to = from + covered.max(1);
        below.push((node.child(index), from..to));
        from = to;
    }
}
