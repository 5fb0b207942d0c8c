//! Collects the leaves of a tree: those that its root leads to, and leaves without a parent that fill its
//! lost ranges.

use super::pages::{Pages, Stray};
use crate::format::page;
use crate::format::page::node::Node;
use crate::format::tree::Tree;
use fulgurite_base::PageId;
use std::collections::BTreeSet;

/// A key range of a tree: the range of one leaf, or a range whose leaf is lost.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub low: Vec<u8>,
    pub high: Option<Vec<u8>>,
    pub leaf: Option<PageId>,
}

impl Segment {
    /// Whether the range contains all keys of a leaf without a parent.
    fn has(&self, stray: &Stray) -> bool {
        let below = match (&stray.high, &self.high) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(leaf), Some(own)) => leaf <= own,
        };
        self.low <= stray.low && below
    }

    /// Whether the range and that of a leaf without a parent have no key in common.
    fn is_apart(&self, stray: &Stray) -> bool {
        self.high.as_ref().is_some_and(|high| *high <= stray.low)
            || stray.high.as_ref().is_some_and(|high| *high <= self.low)
    }
}

/// A page to visit, with the tree, level and fences that its parent gives it.
struct Visit {
    page: PageId,
    low: Vec<u8>,
    high: Option<Vec<u8>>,
    level: Option<u8>,
}

impl Visit {
    fn segment(self, leaf: Option<PageId>) -> Segment {
        Segment { low: self.low, high: self.high, leaf }
    }
}

/// Follows a tree from its root. Returns its key ranges in order, without gaps. Adds the pages of the tree to
/// `reached`.
pub(super) async fn walk(pages: &Pages<'_>, tree: Tree, reached: &mut BTreeSet<PageId>) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut left = vec![Visit { page: tree.root, low: Vec::new(), high: None, level: None }];
    while let Some(visit) = left.pop() {
        let bytes = match reached.contains(&visit.page) {
            // A page has only one parent, so a second reference to it is damage.
            true => None,
            false => pages.get(visit.page).await,
        };
        let node = bytes.as_ref().and_then(|bytes| Node::new(bytes)).filter(|node| {
            page::tree(node.bytes()) == tree.id
                && node.low() == visit.low
                && node.high() == visit.high.as_deref()
                && visit.level.is_none_or(|level| level == node.level())
        });
        let Some(node) = node else {
            segments.push(visit.segment(None));
            continue;
        };
        reached.insert(visit.page);
        if node.level() == 0 {
            let page = visit.page;
            segments.push(visit.segment(Some(page)));
            continue;
        }
        for index in (0..node.len()).rev() {
            let next = (index + 1 < node.len()).then(|| node.key(index + 1));
            left.push(Visit {
                page: node.child(index),
                low: node.key(index),
                high: next.or_else(|| node.high().map(<[u8]>::to_vec)),
                level: Some(node.level() - 1),
            });
        }
    }
    segments
}

/// Fills the lost ranges of a tree with leaves without a parent: the newest first, and none that overlaps
/// another. Returns the pages of these leaves.
pub(super) fn fill(segments: &mut Vec<Segment>, tree: u32, strays: &[Stray]) -> Vec<PageId> {
    let mut own: Vec<&Stray> = strays.iter().filter(|stray| stray.tree == tree).collect();
    own.sort_by_key(|stray| (std::cmp::Reverse(stray.lsn), stray.page));
    let mut used = Vec::new();
    let mut filled = Vec::new();
    for lost in std::mem::take(segments) {
        if lost.leaf.is_some() {
            filled.push(lost);
            continue;
        }
        let mut leaves: Vec<Segment> = Vec::new();
        for stray in own.iter().filter(|stray| lost.has(stray)) {
            if leaves.iter().all(|leaf| leaf.is_apart(stray)) {
                used.push(stray.page);
                let (low, high) = (stray.low.clone(), stray.high.clone());
                leaves.push(Segment { low, high, leaf: Some(stray.page) });
            }
        }
        leaves.sort_by(|a, b| a.low.cmp(&b.low));
        with_gaps(lost, leaves, &mut filled);
    }
    *segments = filled;
    used
}

/// Adds leaves in order, and the lost ranges between them.
fn with_gaps(lost: Segment, leaves: Vec<Segment>, filled: &mut Vec<Segment>) {
    let mut from = Some(lost.low);
    for leaf in leaves {
        if let Some(low) = from.take().filter(|low| *low < leaf.low) {
            filled.push(Segment { low, high: Some(leaf.low.clone()), leaf: None });
        }
        from.clone_from(&leaf.high);
        filled.push(leaf);
    }
    // The rest of the range behind the last leaf stays lost.
    if let Some(low) = from.filter(|low| lost.high.as_ref().is_none_or(|high| low < high)) {
        filled.push(Segment { low, high: lost.high, leaf: None });
    }
}
