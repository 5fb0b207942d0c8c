//! The interval tree of `ranges.rs`: inserts and removes ranges, and finds those that overlap given keys.
//!
//! The tree is a treap: it is ordered by `from`, and is a heap by random priorities, which keep it balanced
//! in expectation (Seidel and Aragon, 1996). Each node stores the range in its subtree with the farthest
//! `to`. A search for overlaps skips every subtree that ends before the first requested key, and takes O(log
//! n) for each range that it finds (Cormen et al., Introduction to Algorithms, interval trees).

use super::mode::Mode;
use super::ranges::{Range, Ranges, Tree, end_order};
use super::slab::Slot;
use std::cmp::Ordering;
use std::ops::Bound;

impl Ranges {
    /// Inserts a range into the tree of its table.
    pub(super) fn link(&mut self, slot: Slot, waiting: bool) {
        let priority = self.prng.next_u64();
        let range = &mut self.ranges[slot];
        (range.waiting, range.priority, range.left, range.right) =
            (waiting, priority, Slot::NONE, Slot::NONE);
        let (table, exclusive) = (range.table, range.mode == Mode::Exclusive);
        let tree = self.trees.get(&table).copied().unwrap_or(Tree { root: Slot::NONE, exclusive: 0 });
        let root = self.insert(tree.root, slot);
        self.trees.insert(table, Tree { root, exclusive: tree.exclusive + usize::from(exclusive) });
    }

    /// Removes a range from its tree, and frees its record.
    pub(super) fn remove(&mut self, slot: Slot) {
        let (table, exclusive) = (self.ranges[slot].table, self.ranges[slot].mode == Mode::Exclusive);
        if let Some(tree) = self.trees.get(&table).copied() {
            let root = self.without(tree.root, slot);
            self.trees.insert(table, Tree { root, exclusive: tree.exclusive - usize::from(exclusive) });
        }
        self.discard(slot);
    }

    /// Calls `each` for the ranges of a subtree that overlap the keys from `from` up to `last`.
    pub(super) fn visit(&self, at: Slot, from: &[u8], last: Bound<&[u8]>, each: &mut impl FnMut(&Range)) {
        if at == Slot::NONE {
            return;
        }
        let node = &self.ranges[at];
        let ends_before = |range: &Range| !range.endless && range.to.as_slice() <= from;
        if ends_before(&self.ranges[node.farthest]) {
            return;
        }
        self.visit(node.left, from, last, each);
        let begins_behind = match last {
            Bound::Included(last) => node.from.as_slice() > last,
            Bound::Excluded(last) => node.from.as_slice() >= last,
            Bound::Unbounded => false,
        };
        // Stop here, because the ranges to the right begin even later.
        if begins_behind {
            return;
        }
        if !ends_before(node) {
            each(node);
        }
        self.visit(node.right, from, last, each);
    }

    /// Whether range `a` is before range `b` in the order of the tree. Ranges with equal beginnings are
    /// ordered by slot.
    fn is_before(&self, a: Slot, b: Slot) -> bool {
        (&self.ranges[a].from, a) < (&self.ranges[b].from, b)
    }

    /// Recomputes which range of the subtree of `at` ends last. Returns `at`.
    fn refresh(&mut self, at: Slot) -> Slot {
        let node = &self.ranges[at];
        let mut farthest = at;
        for child in [node.left, node.right] {
            if child != Slot::NONE {
                let candidate = self.ranges[child].farthest;
                if end_order(&self.ranges[candidate], &self.ranges[farthest]) == Ordering::Greater {
                    farthest = candidate;
                }
            }
        }
        self.ranges[at].farthest = farthest;
        at
    }

    /// Inserts `slot` into the subtree of `at`. Returns the new root of the subtree.
    fn insert(&mut self, at: Slot, slot: Slot) -> Slot {
        if at == Slot::NONE {
            return self.refresh(slot);
        }
        if self.ranges[slot].priority > self.ranges[at].priority {
            (self.ranges[slot].left, self.ranges[slot].right) = self.split(at, slot);
            return self.refresh(slot);
        }
        if self.is_before(slot, at) {
            self.ranges[at].left = self.insert(self.ranges[at].left, slot);
        } else {
            self.ranges[at].right = self.insert(self.ranges[at].right, slot);
        }
        self.refresh(at)
    }

    /// Splits a subtree into the ranges before `slot` and the ranges after it.
    fn split(&mut self, at: Slot, slot: Slot) -> (Slot, Slot) {
        if at == Slot::NONE {
            return (Slot::NONE, Slot::NONE);
        }
        if self.is_before(at, slot) {
            let (before, behind) = self.split(self.ranges[at].right, slot);
            self.ranges[at].right = before;
            (self.refresh(at), behind)
        } else {
            let (before, behind) = self.split(self.ranges[at].left, slot);
            self.ranges[at].left = behind;
            (before, self.refresh(at))
        }
    }

    /// Removes `slot` from the subtree of `at`. Returns the new root of the subtree.
    fn without(&mut self, at: Slot, slot: Slot) -> Slot {
        if at == Slot::NONE {
            return at;
        }
        if at == slot {
            return self.join(self.ranges[at].left, self.ranges[at].right);
        }
        if self.is_before(slot, at) {
            self.ranges[at].left = self.without(self.ranges[at].left, slot);
        } else {
            self.ranges[at].right = self.without(self.ranges[at].right, slot);
        }
        self.refresh(at)
    }

    /// Joins two subtrees. All ranges of the first must be before those of the second. Returns the new root.
    fn join(&mut self, before: Slot, behind: Slot) -> Slot {
        if before == Slot::NONE || behind == Slot::NONE {
            return if before == Slot::NONE { behind } else { before };
        }
        if self.ranges[before].priority > self.ranges[behind].priority {
            self.ranges[before].right = self.join(self.ranges[before].right, behind);
            self.refresh(before)
        } else {
            self.ranges[behind].left = self.join(before, self.ranges[behind].left);
            self.refresh(behind)
        }
    }
}
