//! B+trees over pages of the buffer pool.
//!
//! A search goes from the root down, one page at a time. It never waits for the drive while it holds a latch.
//! After every wait it compares the page with its target (tree, level, fences). If a split or a merge has
//! changed the page during the wait, the search restarts at the root. So no search holds one latch while it
//! waits for another.
//!
//! Sibling nodes are not linked: a scan continues with a new search for the leaf that covers the upper fence
//! key of the last leaf. The root of a tree never moves.

mod ahead;
mod bulk;
mod large;
mod split;
mod merge;
mod put;
mod structure;

pub(crate) use bulk::Load;
pub(crate) use large::mark;
pub(crate) use merge::{United, should_look};
pub(crate) use put::{Applied, change};

use crate::Error;
use crate::format::page;
use crate::format::page::node::{Node, leaf};
use crate::format::tree::Tree;
use crate::shard::Shard;
use fulgurite_base::PageId;
use fulgurite_pool::{ReadGuard, WriteGuard};

/// The number of restarts after which a search fails, because the pages cannot form a tree.
const MOST_RESTARTS: u32 = 1000;

/// The target of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seek<'a> {
    /// The leaf that covers this key.
    At(&'a [u8]),
    /// The leaf that covers the keys right below this one.
    Below(&'a [u8]),
    /// The rightmost leaf.
    Last,
}

impl Seek<'_> {
    /// Whether the search path leads through a node.
    #[inline]
    fn fits(&self, node: Node<'_>) -> bool {
        match self {
            Seek::At(key) => node.covers(key),
            Seek::Below(key) => node.low() < *key && node.high().is_none_or(|high| *key <= high),
            Seek::Last => node.high().is_none(),
        }
    }

    /// Returns the index of the child that the search continues with.
    #[inline]
    fn child(&self, node: Node<'_>) -> usize {
        match self {
            Seek::At(key) => node.child_for(key),
            Seek::Below(key) => match node.search(key) {
                Ok(index) | Err(index) => index.saturating_sub(1),
            },
            Seek::Last => node.len() - 1,
        }
    }
}

/// The reads from the drive that a search has needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// No read: every node was in the pool.
    Nothing,
    /// Reads of nodes above the target only.
    Above,
    /// A read of the target, and maybe of nodes above it.
    Node,
}

/// The fences and the level that a child must have according to its parent. They are kept while the child is
/// read.
struct Fences {
    low: Vec<u8>,
    high: Option<Vec<u8>>,
    level: u8,
}

impl Fences {
    fn of(parent: Node<'_>, index: usize) -> Fences {
        let next = (index + 1 < parent.len()).then(|| parent.key(index + 1));
        let high = next.or_else(|| parent.high().map(<[u8]>::to_vec));
        Fences { low: parent.key(index), high, level: parent.level().saturating_sub(1) }
    }

    fn fit(&self, child: &[u8]) -> bool {
        Node::new(child).is_some_and(|child| {
            child.level() == self.level && child.low() == self.low && child.high() == self.high.as_deref()
        })
    }
}

/// Returns the node in the bytes of a page; `None` if the search for a node of `tree` does not lead through
/// it.
#[inline]
fn node_of<'a>(bytes: &'a [u8], tree: Tree, seek: Seek<'_>) -> Option<Node<'a>> {
    Node::new(bytes).filter(|node| page::tree(bytes) == tree.id && seek.fits(*node))
}

/// Prefetches the parts of a node that every search touches: the header, the hints with the first slots, and
/// the fences. They lie in different cache lines, whose memory accesses overlap this way.
#[inline]
fn prefetch_node(bytes: &[u8]) {
    for at in [0, 64, 128, bytes.len().saturating_sub(1)] {
        fulgurite_base::prefetch(bytes, at);
    }
}

impl Shard {
    /// Finds the target node on `level`, and latches it for reading.
    #[inline]
    pub(crate) async fn find(&self, tree: Tree, seek: Seek<'_>, level: u8) -> Result<ReadGuard, Error> {
        self.search(tree, seek, level).await.map(|(guard, _)| guard)
    }

    /// Finds the target node on `level`, and latches it for reading. Also returns which reads from the drive
    /// it needed.
    #[inline]
    pub(crate) async fn search(
        &self,
        tree: Tree,
        seek: Seek<'_>,
        level: u8,
    ) -> Result<(ReadGuard, Asked), Error> {
        let mut asked = Asked::Nothing;
        for _ in 0..MOST_RESTARTS {
            let mut guard = self.read_page(tree.root).await?;
            prefetch_node(guard.bytes());
            while let Some(node) = node_of(guard.bytes(), tree, seek) {
                if node.level() <= level {
                    return Ok((guard, asked));
                }
                let index = seek.child(node);
                let child = node.child(index);
                // Two pages in the pool may be latched at the same time, but none may stay latched during a
                // wait for the drive.
                let (next, fits) = match self.durable.pool().try_read(child) {
                    Some(next) => {
                        prefetch_node(next.bytes());
                        let fits = node.has_child(index, next.bytes());
                        if asked == Asked::Node {
                            asked = Asked::Above;
                        }
                        (next, fits)
                    }
                    None => {
                        let fences = Fences::of(node, index);
                        drop(guard);
                        asked = Asked::Node;
                        let next = self.read_page(child).await?;
                        let fits = fences.fit(next.bytes());
                        (next, fits)
                    }
                };
                // A split or a merge changed the tree, or the page is stale, so the search restarts.
                if !fits {
                    break;
                }
                guard = next;
            }
        }
        Err(self.no_way(tree))
    }

    /// Returns the page of the leaf that covers a key, and its latched parent. The leaf is not read. It
    /// remains the right one while the parent is latched.
    pub(crate) async fn leaf_page(&self, tree: Tree, key: &[u8]) -> Result<(ReadGuard, PageId), Error> {
        let parent = self.find(tree, Seek::At(key), 1).await?;
        let node = leaf(parent.bytes())?;
        let page = if node.level() == 0 { tree.root } else { node.child(Seek::At(key).child(node)) };
        Ok((parent, page))
    }

    /// Finds a leaf and latches it for a change.
    pub(crate) async fn find_for_change(&self, tree: Tree, key: &[u8]) -> Result<WriteGuard, Error> {
        let seek = Seek::At(key);
        for _ in 0..MOST_RESTARTS {
            let found = self.find(tree, seek, 1).await?;
            let node = leaf(found.bytes())?;
            let index = if node.level() == 0 { None } else { Some(seek.child(node)) };
            let page = index.map_or(tree.root, |index| node.child(index));
            let (guard, fits) = match self.durable.pool().try_write(page).filter(|_| index.is_some()) {
                Some(guard) => {
                    let fits = index.is_none_or(|index| node.has_child(index, guard.bytes()));
                    (guard, fits)
                }
                None => {
                    let fences = index.map(|index| Fences::of(node, index));
                    drop(found);
                    let guard = self.write_page(page).await?;
                    let fits = fences.is_none_or(|fences| fences.fit(guard.bytes()));
                    (guard, fits)
                }
            };
            if fits && node_of(guard.bytes(), tree, seek).is_some_and(|node| node.level() == 0) {
                return Ok(guard);
            }
        }
        Err(self.no_way(tree))
    }

    /// Calls `look` for every leaf of a tree, in order.
    pub(crate) async fn each_leaf(
        &self,
        tree: Tree,
        mut look: impl FnMut(Node<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut low = Vec::new();
        let most = self.most_ahead(self.options.degree);
        // The number of leaves that were read ahead and not visited yet, and the key from which on no leaf
        // was read ahead.
        let (mut ahead, mut unasked) = (0, Some(Vec::new()));
        loop {
            if ahead <= most / 2
                && let Some(from) = unasked.take()
                && let Some(leaves) = self.leaves(tree, Seek::At(&from), None, most).await?
            {
                self.durable.pool().fetch(&leaves.pages).await.map_err(self.of_pool())?;
                ahead += leaves.pages.len();
                unasked = leaves.end;
            }
            ahead = ahead.saturating_sub(1);
            let guard = self.find(tree, Seek::At(&low), 0).await?;
            let node = leaf(guard.bytes())?;
            look(node)?;
            match node.high() {
                Some(high) => low = high.to_vec(),
                None => return Ok(()),
            }
        }
    }

    fn no_way(&self, tree: Tree) -> Error {
        Error::corrupt(tree.root, format!("the leaves of tree {} cannot be reached from its root", tree.id))
    }
}
