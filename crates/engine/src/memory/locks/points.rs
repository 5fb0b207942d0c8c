//! The point locks: a hash table for requests on keys, and an ordered index for requests on ranges.
//!
//! The index is built lazily. It is needed only for range requests, and updating it would cost every point
//! lock more than the lock itself. So a key that is locked exclusively is added to the list of unindexed keys
//! of its table. A shared range request first moves the keys of that list to the index. Each lock is indexed
//! at most once, and most locks end before they are indexed. A key with only shared locks is not indexed,
//! because it conflicts only with an exclusive range. A request for such a range scans all keys instead.

use super::mode::{Conflicts, Mode};
use super::ranges::Span;
use super::slab::{Slab, Slot};
use super::waits::Waits;
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::BTreeMap;
use std::hash::Hasher;

/// The capacity in bytes up to which a free record keeps its key buffer.
const KEPT: usize = 64;

/// Whether a point is in the ordered index of its table.
#[derive(Debug, Default)]
enum Indexed {
    /// The point is neither listed nor indexed, because it was never locked exclusively.
    #[default]
    No,
    /// The point is at this position of the unindexed list.
    Listed(usize),
    Yes,
}

/// The record of a key that is locked or waited for.
#[derive(Debug)]
struct Point {
    hash: u64,
    /// The next point of the same bucket.
    next: Slot,
    table: u32,
    /// The mode of the owners' locks. An exclusive owner is the only owner.
    mode: Mode,
    indexed: Indexed,
    key: Vec<u8>,
    owners: Vec<Slot>,
    /// The transactions with a waiting request on this key.
    waiters: Vec<Slot>,
}

impl Default for Point {
    fn default() -> Point {
        Point {
            hash: 0,
            next: Slot::NONE,
            table: 0,
            mode: Mode::Shared,
            indexed: Indexed::No,
            key: Vec::new(),
            owners: Vec::new(),
            waiters: Vec::new(),
        }
    }
}

/// The exclusively locked points of a table: the unindexed list, and the others ordered by key.
#[derive(Debug, Default)]
struct Index {
    unindexed: Vec<Slot>,
    ordered: BTreeMap<Box<[u8]>, Slot>,
}

/// The point locks of all tables.
#[derive(Debug)]
pub(super) struct Points {
    points: Slab<Point>,
    /// The heads of the hash chains. Their number is a power of two.
    buckets: Vec<Slot>,
    indexes: FxHashMap<u32, Index>,
    /// The number of keys in ordered indexes.
    indexed: usize,
    /// The number of bytes of the keys in use, plus those of the copies in ordered indexes.
    key_bytes: usize,
}

/// Returns the hash of a key of a table.
#[inline]
pub(crate) fn hash(table: u32, key: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u32(table);
    hasher.write(key);
    hasher.finish()
}

impl Points {
    pub(super) fn new() -> Points {
        Points {
            points: Slab::new(),
            buckets: vec![Slot::NONE; 64],
            indexes: FxHashMap::default(),
            indexed: 0,
            key_bytes: 0,
        }
    }

    fn bucket(&self, hash: u64) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    /// Returns the record of a key, and creates it if there is none. A new record has no owner and no waiter,
    /// so the caller must add one or call `drop_unused`.
    #[inline]
    pub(super) fn enter(&mut self, table: u32, key: &[u8]) -> Slot {
        let hash = hash(table, key);
        self.look(table, key, hash).unwrap_or_else(|| self.insert(table, key, hash))
    }

    /// Returns the record of a key, or `None` if the key is neither locked nor waited for.
    pub(super) fn find(&self, table: u32, key: &[u8]) -> Option<Slot> {
        self.look(table, key, hash(table, key))
    }

    #[inline]
    fn look(&self, table: u32, key: &[u8], hash: u64) -> Option<Slot> {
        let mut slot = self.buckets[self.bucket(hash)];
        while slot != Slot::NONE {
            let point = &self.points[slot];
            if point.hash == hash && point.table == table && point.key == key {
                return Some(slot);
            }
            slot = point.next;
        }
        None
    }

    fn insert(&mut self, table: u32, key: &[u8], hash: u64) -> Slot {
        if self.points.used() >= self.buckets.len() {
            self.grow();
        }
        let bucket = self.bucket(hash);
        let slot = self.points.take();
        let point = &mut self.points[slot];
        point.hash = hash;
        point.table = table;
        point.mode = Mode::Shared;
        point.key.extend_from_slice(key);
        point.next = self.buckets[bucket];
        self.buckets[bucket] = slot;
        self.key_bytes += key.len();
        slot
    }

    fn grow(&mut self) {
        let old = std::mem::take(&mut self.buckets);
        self.buckets = vec![Slot::NONE; old.len() * 2];
        for mut slot in old {
            while slot != Slot::NONE {
                let bucket = self.bucket(self.points[slot].hash);
                let next = std::mem::replace(&mut self.points[slot].next, self.buckets[bucket]);
                self.buckets[bucket] = slot;
                slot = next;
            }
        }
    }

    /// Frees the record of a key if the key has neither owners nor waiters.
    #[inline]
    pub(super) fn drop_unused(&mut self, slot: Slot) {
        let point = &self.points[slot];
        if !point.owners.is_empty() || !point.waiters.is_empty() {
            return;
        }
        let bucket = self.bucket(point.hash);
        let next = point.next;
        if self.buckets[bucket] == slot {
            self.buckets[bucket] = next;
        } else {
            let mut before = self.buckets[bucket];
            while self.points[before].next != slot {
                before = self.points[before].next;
            }
            self.points[before].next = next;
        }
        self.unindex(slot);
        let point = &mut self.points[slot];
        self.key_bytes -= point.key.len();
        point.key.clear();
        if point.key.capacity() > KEPT {
            point.key = Vec::new();
        }
        self.points.free(slot);
    }

    /// Whether `owner` holds a lock on the key that is at least as strong as `mode`.
    #[inline]
    pub(super) fn covers(&self, slot: Slot, owner: Slot, mode: Mode) -> bool {
        let point = &self.points[slot];
        (point.mode == Mode::Exclusive || mode == Mode::Shared) && point.owners.contains(&owner)
    }

    /// Adds an owner to a key, or upgrades its lock. Returns false if it was an owner already, so that its
    /// lock is now exclusive.
    #[inline]
    pub(super) fn grant(&mut self, slot: Slot, owner: Slot, mode: Mode) -> bool {
        let point = &mut self.points[slot];
        let new = !point.owners.contains(&owner);
        if new {
            point.owners.push(owner);
        }
        debug_assert!(mode == Mode::Shared || point.owners.len() == 1);
        point.mode = mode;
        self.list(slot, mode);
        new
    }

    #[inline]
    pub(super) fn leave(&mut self, slot: Slot, owner: Slot) {
        remove(&mut self.points[slot].owners, owner);
        self.drop_unused(slot);
    }

    /// Adds a transaction to the waiters of a key.
    pub(super) fn wait(&mut self, slot: Slot, waiter: Slot, mode: Mode) {
        self.points[slot].waiters.push(waiter);
        self.list(slot, mode);
    }

    /// Removes a transaction from the waiters of a key. The record of the key is kept for `drop_unused`.
    pub(super) fn stop_waiting(&mut self, slot: Slot, waiter: Slot) {
        remove(&mut self.points[slot].waiters, waiter);
    }

    /// Adds a key that is locked exclusively to the unindexed list, unless it is listed or indexed already.
    #[inline]
    fn list(&mut self, slot: Slot, mode: Mode) {
        let point = &mut self.points[slot];
        if mode == Mode::Shared || !matches!(point.indexed, Indexed::No) {
            return;
        }
        let unindexed = &mut self.indexes.entry(point.table).or_default().unindexed;
        point.indexed = Indexed::Listed(unindexed.len());
        unindexed.push(slot);
    }

    #[inline]
    fn unindex(&mut self, slot: Slot) {
        let point = &mut self.points[slot];
        let indexed = std::mem::take(&mut point.indexed);
        if matches!(indexed, Indexed::No) {
            return;
        }
        let Some(index) = self.indexes.get_mut(&point.table) else { return };
        if let Indexed::Listed(position) = indexed {
            index.unindexed.swap_remove(position);
            if let Some(moved) = index.unindexed.get(position) {
                self.points[*moved].indexed = Indexed::Listed(position);
            }
        } else {
            index.ordered.remove(point.key.as_slice());
            self.indexed -= 1;
            self.key_bytes -= point.key.len();
        }
    }

    /// Adds the locks and requests on a key that conflict with a request of `requester` to `conflicts`.
    #[inline]
    pub(super) fn conflicts(
        &self,
        slot: Slot,
        requester: Slot,
        mode: Mode,
        waits: &Waits,
        conflicts: &mut Conflicts,
    ) {
        let point = &self.points[slot];
        if mode.conflicts(point.mode) {
            point.owners.iter().filter(|owner| **owner != requester).for_each(|owner| conflicts.held(*owner));
        }
        for waiter in &point.waiters {
            let other = waits.waiting(*waiter).map_or(Mode::Exclusive, |request| request.mode);
            if *waiter != requester && mode.conflicts(other) {
                conflicts.waiting(*waiter);
            }
        }
    }

    /// Adds the point locks and requests that conflict with a request of `requester` on a range of keys to
    /// `conflicts`.
    pub(super) fn conflicts_within(
        &mut self,
        table: u32,
        span: Span,
        requester: Slot,
        mode: Mode,
        waits: &Waits,
        conflicts: &mut Conflicts,
    ) {
        if mode == Mode::Exclusive {
            for slot in self.points.slots() {
                let point = &self.points[slot];
                // A free record may match too, but it has no owner and no waiter.
                if point.table == table && span.contains(&point.key) {
                    self.conflicts(slot, requester, mode, waits, conflicts);
                }
            }
            return;
        }
        let Some(index) = self.indexes.get_mut(&table) else { return };
        for slot in index.unindexed.drain(..) {
            let point = &mut self.points[slot];
            point.indexed = Indexed::Yes;
            self.key_bytes += point.key.len();
            self.indexed += 1;
            index.ordered.insert(point.key.as_slice().into(), slot);
        }
        let index = &self.indexes[&table];
        for slot in index.ordered.range::<[u8], _>(span.bounds()).map(|(_, slot)| *slot) {
            self.conflicts(slot, requester, mode, waits, conflicts);
        }
    }

    /// Returns an estimate of the memory in use, in bytes. It assumes four elements in a vector, and that a
    /// tree is half full.
    pub(super) fn bytes(&self) -> usize {
        let lists = 3 * 4 * size_of::<Slot>();
        let ordered = 2 * size_of::<(Box<[u8]>, Slot)>();
        self.points.used() * (size_of::<Point>() + size_of::<Slot>() + lists)
            + self.indexed * ordered
            + self.key_bytes
    }
}

/// Removes `slot` from a list that contains it once. The order of the list does not matter.
#[inline]
fn remove(list: &mut Vec<Slot>, slot: Slot) {
    if let Some(position) = list.iter().position(|other| *other == slot) {
        list.swap_remove(position);
    }
}
