//! The range locks and the waiting range requests, in an interval tree for each table.
//!
//! A range is stored as `from <= key < to`, with an optional `to`. All bounds can be expressed in this way,
//! because the direct successor of key `k` is `k` with a zero byte appended. The operations of the tree are
//! in `tree.rs`.

use super::mode::{Conflicts, Mode};
use super::slab::{Slab, Slot};
use fulgurite_base::Prng;
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::ops::Bound;

/// The capacity in bytes up to which a free record keeps its key buffer.
const KEPT: usize = 64;

/// The keys `from..to`. If `to` is `None`, the span has no upper bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span<'a> {
    from: &'a [u8],
    to: Option<&'a [u8]>,
}

impl<'a> Span<'a> {
    pub(super) fn contains(self, key: &[u8]) -> bool {
        self.from <= key && self.to.is_none_or(|to| key < to)
    }

    pub(super) fn bounds(self) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
        (Bound::Included(self.from), self.to.map_or(Bound::Unbounded, Bound::Excluded))
    }
}

/// The record of a range that is locked or waited for. It is a node of the interval tree.
#[derive(Debug)]
pub(super) struct Range {
    pub(super) table: u32,
    pub(super) owner: Slot,
    pub(super) mode: Mode,
    pub(super) waiting: bool,
    pub(super) from: Vec<u8>,
    pub(super) to: Vec<u8>,
    pub(super) endless: bool,
    pub(super) priority: u64,
    pub(super) left: Slot,
    pub(super) right: Slot,
    /// The range in the subtree of this node that ends last.
    pub(super) farthest: Slot,
}

impl Default for Range {
    fn default() -> Range {
        Range {
            table: 0,
            owner: Slot::NONE,
            mode: Mode::Shared,
            waiting: false,
            from: Vec::new(),
            to: Vec::new(),
            endless: false,
            priority: 0,
            left: Slot::NONE,
            right: Slot::NONE,
            farthest: Slot::NONE,
        }
    }
}

impl Range {
    fn span(&self) -> Span<'_> {
        Span { from: &self.from, to: (!self.endless).then_some(&self.to) }
    }
}

/// The interval tree of the ranges of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tree {
    pub(super) root: Slot,
    /// The number of exclusive ranges. A shared request skips a table without exclusive ranges.
    pub(super) exclusive: usize,
}

/// The range locks of all tables.
#[derive(Debug)]
pub(super) struct Ranges {
    pub(super) ranges: Slab<Range>,
    pub(super) trees: FxHashMap<u32, Tree>,
    pub(super) prng: Prng,
    /// The number of bytes of the bounds in use.
    key_bytes: usize,
}

impl Ranges {
    pub(super) fn new() -> Ranges {
        Ranges {
            ranges: Slab::new(),
            trees: FxHashMap::default(),
            prng: Prng::new(0, "range locks"),
            key_bytes: 0,
        }
    }

    /// Creates the record of a request. The record is in no tree until `link`. Returns `None` if the range is
    /// empty.
    pub(super) fn create(
        &mut self,
        table: u32,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        owner: Slot,
        mode: Mode,
    ) -> Option<Slot> {
        let slot = self.ranges.take();
        let range = &mut self.ranges[slot];
        (range.table, range.owner, range.mode) = (table, owner, mode);
        if let Bound::Included(key) | Bound::Excluded(key) = bounds.0 {
            range.from.extend_from_slice(key);
        }
        if let Bound::Excluded(_) = bounds.0 {
            range.from.push(0);
        }
        if let Bound::Included(key) | Bound::Excluded(key) = bounds.1 {
            range.to.extend_from_slice(key);
        }
        if let Bound::Included(_) = bounds.1 {
            range.to.push(0);
        }
        range.endless = bounds.1 == Bound::Unbounded;
        let empty = !range.endless && range.from >= range.to;
        self.key_bytes += range.from.len() + range.to.len();
        if empty {
            self.discard(slot);
        }
        (!empty).then_some(slot)
    }

    /// Frees the record of a range that is in no tree.
    pub(super) fn discard(&mut self, slot: Slot) {
        let range = &mut self.ranges[slot];
        self.key_bytes -= range.from.len() + range.to.len();
        for key in [&mut range.from, &mut range.to] {
            key.clear();
            if key.capacity() > KEPT {
                *key = Vec::new();
            }
        }
        self.ranges.free(slot);
    }

    pub(super) fn table(&self, slot: Slot) -> u32 {
        self.ranges[slot].table
    }

    pub(super) fn span(&self, slot: Slot) -> Span<'_> {
        self.ranges[slot].span()
    }

    /// Whether the lock `outer` includes the request `inner`.
    pub(super) fn covers(&self, outer: Slot, inner: Slot) -> bool {
        let (outer, inner) = (&self.ranges[outer], &self.ranges[inner]);
        outer.table == inner.table
            && (outer.mode == Mode::Exclusive || inner.mode == Mode::Shared)
            && outer.from <= inner.from
            && end_order(outer, inner) != Ordering::Less
    }

    /// Turns a waiting range into a lock.
    pub(super) fn grant(&mut self, slot: Slot) {
        self.ranges[slot].waiting = false;
    }

    /// Adds the range locks and requests that conflict with a request of `requester` on one key to
    /// `conflicts`.
    #[inline]
    pub(super) fn conflicts_at(
        &self,
        table: u32,
        key: &[u8],
        requester: Slot,
        mode: Mode,
        conflicts: &mut Conflicts,
    ) {
        if self.ranges.used() > 0 {
            self.search(table, key, Bound::Included(key), requester, mode, conflicts);
        }
    }

    /// Adds the range locks and requests that conflict with the request for a range to `conflicts`. The range
    /// is not linked yet.
    pub(super) fn conflicts_of(&self, slot: Slot, conflicts: &mut Conflicts) {
        let range = &self.ranges[slot];
        let last = range.span().bounds().1;
        self.search(range.table, &range.from, last, range.owner, range.mode, conflicts);
    }

    fn search(
        &self,
        table: u32,
        from: &[u8],
        last: Bound<&[u8]>,
        requester: Slot,
        mode: Mode,
        conflicts: &mut Conflicts,
    ) {
        let Some(tree) = self.trees.get(&table) else { return };
        if mode == Mode::Shared && tree.exclusive == 0 {
            return;
        }
        self.visit(tree.root, from, last, &mut |range: &Range| {
            if range.owner == requester || !mode.conflicts(range.mode) {
                return;
            }
            if range.waiting { conflicts.waiting(range.owner) } else { conflicts.held(range.owner) }
        });
    }

    /// Returns an estimate of the memory in use, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.ranges.used() * (size_of::<Range>() + size_of::<Slot>()) + self.key_bytes
    }
}

/// Compares the ends of two ranges.
pub(super) fn end_order(a: &Range, b: &Range) -> Ordering {
    match (a.endless, b.endless) {
        (false, false) => a.to.cmp(&b.to),
        (a, b) => a.cmp(&b),
    }
}
