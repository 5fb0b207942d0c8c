//! The record cache: its records by key, and its pending records by leaf.

use super::cost::{LEAST_COST, hash, in_log, reserved_for_deletes, with_tables};
use super::division::Division;
use super::merge_threshold::MergeThreshold;
use super::ring::{Record, Ring, Slot};
use super::tables::{KeyTable, Leaves, Pending};
use crate::Lsn;
use crate::options::FRAME_TABLES;
use fulgurite_base::PageId;
use fulgurite_pool::Lent;

/// The number of bytes of adjacent leaves that are merged together, with few commands. A drive reads this
/// much in little more time than a page.
pub(super) const NEIGHBOURHOOD: usize = 64 << 10;
/// The number of new entries that are added to the key table together.
const INDEXED_TOGETHER: usize = 1 << 16;
/// The outcome of inserting a write into the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// The cache has no space, and nothing was changed.
    NoRoom,
    /// The record is in the cache and pending.
    Done,
}

/// The result of merging the pending records of a leaf.
pub(crate) struct Merged {
    /// The LSN since which the oldest of the merged records was pending.
    pub since: Lsn,
    pub records: u64,
    /// The slot of a record that did not fit into the leaf; `None` if all fit.
    pub too_large: Option<Slot>,
    pub outcome: Result<(), crate::Error>,
}

/// The counters of the record cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounters {
    /// The number of reads of records that needed no page.
    pub hits: u64,
    /// The number of records that were inserted because they were read.
    pub kept: u64,
    /// The number of records that were merged into their leaves.
    pub merged: u64,
    /// The number of merges of a leaf with at least one record.
    pub merges: u64,
    /// The number of records that were copied forward in the log.
    pub carried: u64,
    /// The number of writes that went to their leaves because the cache or the log had no space.
    pub refused: u64,
}

/// The record cache: single records in memory.
pub(crate) struct RecordCache {
    pub(super) ring: Ring,
    /// The slots of the records, by tree and key.
    pub(super) keys: KeyTable,
    /// The entries of [`RecordCache::put_new`] that are not in the key table yet.
    pub(super) new: Vec<Slot>,
    /// The first pending entry of each leaf.
    pub(super) leaves: Leaves,
    pub(super) pending: u64,
    /// An upper bound of the bytes that the pending records take in the log.
    pub(super) pending_bytes: u64,
    /// The bytes that are reserved for commits in progress, both in the cache and in the log.
    pub(super) reserved: u64,
    /// The current limit in bytes, the limit while the cache is in use, and the highest limit.
    pub(super) limit_bytes: u64,
    pub(super) share_bytes: u64,
    pub(super) most_bytes: u64,
    pub(super) most_pending_bytes: u64,
    pub(super) division: Division,
    pub(super) counters: RecordCounters,
    /// The number of reads since the last one that needed the drive. Some records that were in the pool are
    /// inserted too, depending on this number.
    pub(super) passed: u32,
    /// Decides which neighbourhoods of leaves are worth merging.
    pub(super) merge_threshold: MergeThreshold,
}

impl RecordCache {
    /// Creates a cache of `most_bytes` in `frames`, for records of pages of `page_bytes`. Pending records may
    /// take a third of the log, which has `log_bytes`. If `most_bytes` is 0, the cache is not used.
    pub(crate) fn new(most_bytes: u64, page_bytes: u32, log_bytes: u64, frames: Lent) -> RecordCache {
        RecordCache {
            ring: Ring::new(page_bytes as usize, frames),
            keys: KeyTable::new(most_bytes),
            new: Vec::new(),
            leaves: Leaves::new(most_bytes),
            pending: 0,
            pending_bytes: 0,
            reserved: 0,
            limit_bytes: most_bytes,
            share_bytes: most_bytes,
            most_bytes,
            division: Division::fixed(),
            most_pending_bytes: log_bytes / 3,
            counters: RecordCounters::default(),
            passed: 0,
            merge_threshold: MergeThreshold::new(
                most_bytes,
                (NEIGHBOURHOOD / page_bytes as usize).max(1) as u32,
            ),
        }
    }

    /// Whether the store uses a record cache.
    pub(crate) fn is_used(&self) -> bool {
        self.most_bytes > 0
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len() + self.new.len()
    }

    pub(crate) fn pending(&self) -> u64 {
        self.pending
    }

    /// Returns the number of bytes in use, including the tables.
    pub(crate) fn bytes(&self) -> u64 {
        (self.ring.used() as u64 * self.chunk_cost()).max(self.len() as u64 * LEAST_COST)
    }

    /// Returns the current limit in bytes.
    pub(crate) fn limit(&self) -> u64 {
        self.limit_bytes
    }

    /// Returns the size of a chunk with its share of the tables, in bytes.
    pub(crate) fn chunk_cost(&self) -> u64 {
        with_tables(self.ring.chunk_bytes() as u64 + FRAME_TABLES)
    }

    /// Returns the number of chunks within the limit.
    pub(crate) fn chunks(&self) -> usize {
        (self.limit_bytes / self.chunk_cost()) as usize
    }

    /// Returns the counters since the store was opened.
    pub(crate) fn counters(&self) -> RecordCounters {
        self.counters
    }

    /// Returns the number of chunks that can still be begun within the limit.
    pub(crate) fn room(&self) -> usize {
        (self.limit_bytes.saturating_sub(self.bytes()) / self.chunk_cost()) as usize
    }

    /// Whether entries should be evicted before others are inserted.
    pub(crate) fn is_tight(&self) -> bool {
        self.is_used() && self.room() < (self.chunks() / 8).max(4)
    }

    /// Whether a checkpoint should merge records before they take all of the log that they may take.
    pub(crate) fn is_log_tight(&self) -> bool {
        self.needed_log() > self.most_pending_bytes / 8 * 7
    }

    /// Returns the number of chunks to sweep before giving up. It allows for the second chance of each entry,
    /// and for entries that turn out not to be mergeable.
    pub(crate) fn most_sweeps(&self) -> usize {
        4 * self.chunks()
    }

    /// Returns the number of bytes to reserve for a write.
    pub(crate) fn reserved_bytes(entry: Record<'_>) -> u64 {
        with_tables(entry.bytes() as u64).max(LEAST_COST).max(in_log(entry))
    }

    /// Reserves space for a write, in the cache and in the log. Returns the number of bytes to release later,
    /// or `None` if there is no space.
    pub(crate) fn reserve(&mut self, entry: Record<'_>) -> Option<u64> {
        self.wake();
        let bytes = RecordCache::reserved_bytes(entry);
        let kept = |most: u64| if entry.value.is_some() { reserved_for_deletes(most) } else { 0 };
        let has_room = self.held(self.reserved + bytes) + kept(self.limit_bytes) <= self.limit_bytes;
        let pending_bytes = self.pending_bytes + self.reserved + bytes;
        let has_log = pending_bytes + kept(self.most_pending_bytes) <= self.most_pending_bytes;
        if !has_room || !has_log || !self.ring.reserve(self.chunks_for(self.reserved + bytes)) {
            self.counters.refused += 1;
            if !has_room && has_log {
                self.division.refused();
            }
            return None;
        }
        self.reserved += bytes;
        Some(bytes)
    }

    /// Returns the most bytes that a transaction may reserve, which the cache can always make room for.
    pub(crate) fn most_reserved(&self) -> u64 {
        let in_cache = self.most_bytes - reserved_for_deletes(self.most_bytes);
        let in_cache = in_cache.saturating_sub(4 * self.chunk_cost()) / 3 * 2;
        in_cache.min(self.most_pending_bytes - reserved_for_deletes(self.most_pending_bytes))
    }

    /// Returns the number of bytes in use, plus the bytes that guarantee space for `reserved` bytes.
    pub(crate) fn held(&self, reserved: u64) -> u64 {
        // The end of a chunk may be too small for an entry, so reserve more than requested. One chunk more is
        // reserved for entries that are moved.
        self.bytes() + reserved * 3 / 2 + 2 * self.chunk_cost()
    }

    /// Returns the number of chunks that guarantee space for so many reserved bytes.
    pub(crate) fn chunks_for(&self, reserved: u64) -> usize {
        (reserved * 3 / 2).div_ceil(self.chunk_cost()) as usize + 2
    }

    pub(crate) fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Releases reserved bytes, whether they were used or not.
    pub(crate) fn release(&mut self, bytes: u64) {
        self.reserved -= bytes;
    }

    /// Returns an upper bound of the bytes of a log record with these entries.
    pub(crate) fn log_bytes<'a>(entries: impl Iterator<Item = Record<'a>>) -> u64 {
        entries.map(in_log).sum()
    }

    /// Returns an upper bound of the log bytes for copying forward all pending records and those of commits
    /// in progress.
    pub(crate) fn needed_log(&self) -> u64 {
        self.pending_bytes + self.reserved
    }

    #[inline]
    pub(crate) fn find(&self, tree: u32, key: &[u8]) -> Option<Slot> {
        if self.keys.len() == 0 {
            return None;
        }
        let is_it = |slot: &Slot| {
            let entry = self.ring.entry(*slot);
            entry.tree == tree && entry.key == key
        };
        self.keys.find(hash(Record { tree, key, value: None }), is_it)
    }

    /// Returns the current value of a record, and counts this as a use. The inner `None` means that the
    /// record is deleted. The outer `None` means that the record is not in the cache.
    pub(crate) fn get(&mut self, tree: u32, key: &[u8]) -> Option<Option<&[u8]>> {
        let slot = self.find(tree, key)?;
        self.counters.hits += 1;
        self.ring.set_asked_for(slot, true);
        Some(self.ring.entry(slot).value)
    }

    /// Returns the current value like [`RecordCache::get`], without counting this as a use.
    pub(crate) fn peek(&self, tree: u32, key: &[u8]) -> Option<Option<&[u8]>> {
        Some(self.ring.entry(self.find(tree, key)?).value)
    }

    pub(crate) fn is_pending(&self, tree: u32, key: &[u8]) -> bool {
        self.find(tree, key).is_some_and(|slot| self.ring.is_pending(slot))
    }

    /// Whether a record that was read from its leaf should be inserted: always if the drive was read for it,
    /// and for every fourth read if not.
    pub(crate) fn wants(&mut self, was_read: bool) -> bool {
        self.passed = if was_read { 0 } else { self.passed + 1 };
        self.is_used() && (was_read || self.passed.is_multiple_of(4))
    }

    /// Inserts a clean record, unless the record is in the cache or the cache has no space.
    pub(crate) fn keep(&mut self, tree: u32, key: &[u8], value: &[u8]) {
        if self.find(tree, key).is_some() {
            return;
        }
        self.wake();
        if self.is_tight() {
            self.sweep(0, None);
        }
        let entry = Record { tree, key, value: Some(value) };
        if self.passed == 0 {
            self.division.record_fetched(entry);
        }
        if self.insert(entry, 2).is_some() {
            self.counters.kept += 1;
        }
    }

    /// Adds an entry that is not in the cache. The entry must fit into the current chunk, or at least `least`
    /// chunks must still be available within the limit.
    pub(crate) fn insert(&mut self, entry: Record<'_>, least: usize) -> Option<Slot> {
        let may_begin = self.room() >= least;
        let slot = self.ring.push(entry, may_begin)?;
        self.division.inserted(entry.bytes());
        self.keys.insert(hash(entry), slot, |slot| hash(self.ring.entry(*slot)));
        Some(slot)
    }

    /// Inserts a write like [`RecordCache::put`], for recovery. The key must have no other entry. The entry
    /// can be found after the next [`RecordCache::index_new`].
    pub(crate) fn put_new(&mut self, entry: Record<'_>, leaf: PageId, since: Lsn) -> Put {
        let Ok(leaf) = u32::try_from(leaf.0) else { return Put::NoRoom };
        let may_begin = self.room() >= 2;
        let Some(slot) = self.ring.push(entry, may_begin) else { return Put::NoRoom };
        self.begin_pending(slot, leaf, since);
        self.new.push(slot);
        if self.new.len() == INDEXED_TOGETHER {
            self.index_new();
        }
        Put::Done
    }

    /// Reserves memory in the key table for so many expected entries of about `bytes` each, within the limit.
    pub(crate) fn expect(&mut self, entries: usize, bytes: usize) {
        let most = self.most_bytes / with_tables((Ring::HEAD + bytes) as u64).max(LEAST_COST);
        let entries = entries.min(usize::try_from(most).unwrap_or(usize::MAX));
        self.keys.reserve(entries, |slot| hash(self.ring.entry(*slot)));
    }

    /// Adds the entries of [`RecordCache::put_new`] to the key table, in the order of the table, because the
    /// table is larger than the processor's cache.
    pub(crate) fn index_new(&mut self) {
        let rehash = |slot: &Slot| hash(self.ring.entry(*slot));
        let mut new: Vec<(u64, Slot)> = self.new.drain(..).map(|slot| (rehash(&slot), slot)).collect();
        new.sort_unstable_by_key(|(hash, _)| self.keys.order(*hash));
        for (hash, slot) in new {
            self.keys.insert(hash, slot, rehash);
        }
    }

    /// Inserts a write of a record that belongs to `leaf` and is in the log from `since` on.
    pub(crate) fn put(&mut self, entry: Record<'_>, leaf: PageId, since: Lsn) -> Put {
        let Ok(leaf) = u32::try_from(leaf.0) else { return Put::NoRoom };
        if !self.is_used() {
            return Put::NoRoom;
        }
        let Some(old) = self.find(entry.tree, entry.key) else {
            let Some(slot) = self.insert(entry, 2) else { return Put::NoRoom };
            self.begin_pending(slot, leaf, since);
            return Put::Done;
        };
        let was_pending = self.ring.is_pending(old);
        // Keep the older LSN: the leaf also lacks the replaced value, which may be durable while the new
        // value is not yet. The new value may be older in the log, if it was prepared before a copy of the replaced
        // one.
        let (leaf, since) =
            if was_pending { (self.ring.leaf(old), self.ring.since(old).min(since)) } else { (leaf, since) };
        let before = in_log(self.ring.entry(old));
        if self.ring.overwrite(old, entry.value) {
            self.ring.set_asked_for(old, true);
            if was_pending {
                self.pending_bytes = self.pending_bytes + in_log(entry) - before;
                self.ring.set_pending(old, since);
            } else {
                self.begin_pending(old, leaf, since);
            }
        } else {
            let may_begin = self.room() >= 2;
            let Some(slot) = self.ring.push(entry, may_begin) else { return Put::NoRoom };
            self.division.inserted(entry.bytes());
            if was_pending {
                self.end_pending(old);
            }
            self.replace(old, slot);
            self.ring.set_asked_for(slot, true);
            self.begin_pending(slot, leaf, since);
        }
        Put::Done
    }

    /// Removes a record because its leaf has a newer value. Returns the LSN since which the record was
    /// pending, or `None` if it was not.
    pub(crate) fn forget(&mut self, tree: u32, key: &[u8]) -> Option<Lsn> {
        let slot = self.find(tree, key)?;
        let since = self.ring.is_pending(slot).then(|| self.ring.since(slot));
        if since.is_some() {
            self.end_pending(slot);
        }
        self.remove(slot);
        since
    }

    pub(crate) fn remove(&mut self, slot: Slot) {
        self.keys.remove(hash(self.ring.entry(slot)), slot);
        self.ring.kill(slot);
    }

    /// Replaces the slot of an entry that was moved in the key table, and drops the old entry.
    pub(crate) fn replace(&mut self, old: Slot, new: Slot) {
        if let Some(slot) = self.keys.find_mut(hash(self.ring.entry(new)), |other| *other == old) {
            *slot = new;
        }
        self.ring.kill(old);
    }

    pub(crate) fn begin_pending(&mut self, slot: Slot, leaf: u32, since: Lsn) {
        if self.leaves.get(leaf).is_none() {
            self.division.leaf_pending(PageId(u64::from(leaf)));
        }
        self.ring.set_pending(slot, since);
        self.pending += 1;
        self.pending_bytes += in_log(self.ring.entry(slot));
        self.list(slot, leaf);
    }

    /// Adds a pending entry to the list of its leaf.
    pub(crate) fn list(&mut self, slot: Slot, leaf: u32) {
        let bytes = self.ring.entry(slot).bytes() - Ring::HEAD;
        let next = self.leaves.push(leaf, slot, bytes);
        self.merge_threshold.add_pending(leaf);
        self.ring.set_leaf(slot, leaf, next);
    }

    /// Makes the entry at `new` pending in place of its old copy at `old`.
    pub(crate) fn relist(&mut self, old: Slot, new: Slot) {
        let (leaf, next) = (self.ring.leaf(old), self.ring.next(old));
        self.ring.set_pending(new, self.ring.since(old));
        self.ring.set_leaf(new, leaf, next);
        let is_before = |slot: &Slot| self.ring.next(*slot) == Some(old);
        let before = self.list_of(PageId(u64::from(leaf))).find(is_before);
        match before {
            Some(before) => self.ring.set_leaf(before, leaf, Some(new)),
            None => self.leaves.replace_first(leaf, new),
        }
        self.ring.set_settled(old);
    }

    /// Ends the pending state of an entry that was merged or replaced.
    pub(crate) fn end_pending(&mut self, slot: Slot) {
        let leaf = self.ring.leaf(slot);
        let mut rest = self.unlink_all(leaf);
        rest.retain(|other| *other != slot);
        rest.into_iter().for_each(|other| self.list(other, leaf));
        self.settle(slot);
    }

    pub(crate) fn settle(&mut self, slot: Slot) {
        self.ring.set_settled(slot);
        self.pending -= 1;
        self.pending_bytes -= in_log(self.ring.entry(slot));
    }

    /// Removes the list of pending entries of a leaf, and returns it.
    pub(crate) fn unlink_all(&mut self, leaf: u32) -> Vec<Slot> {
        let mut next = self.leaves.remove(leaf);
        let mut list = Vec::new();
        while let Some(slot) = next {
            list.push(slot);
            next = self.ring.next(slot);
        }
        self.merge_threshold.remove_pending(leaf, list.len());
        list
    }

    /// Whether a leaf lacks pending records.
    pub(crate) fn lacks(&self, leaf: PageId) -> bool {
        self.pending_of(leaf).is_some()
    }

    /// Iterates over the pending records of a leaf, in no particular order.
    pub(crate) fn of_leaf(&self, leaf: PageId) -> impl Iterator<Item = Record<'_>> {
        self.list_of(leaf).map(|slot| self.ring.entry(slot))
    }

    pub(crate) fn list_of(&self, leaf: PageId) -> impl Iterator<Item = Slot> {
        std::iter::successors(self.pending_of(leaf).map(|pending| pending.first), |slot| {
            self.ring.next(*slot)
        })
    }

    fn pending_of(&self, leaf: PageId) -> Option<Pending> {
        u32::try_from(leaf.0).ok().and_then(|leaf| self.leaves.get(leaf))
    }

    /// Whether the pending records of a leaf take twice the bytes of a page. They cannot all replace records
    /// of the leaf, so the leaf must be split.
    pub(crate) fn lacks_two_pages(&self, leaf: PageId, page_bytes: u32) -> bool {
        self.pending_of(leaf).is_some_and(|pending| pending.bytes >= 2 * page_bytes)
    }

    /// Returns all leaves with pending records, in the order of their page numbers.
    pub(crate) fn leaves(&self) -> Vec<PageId> {
        let mut leaves: Vec<PageId> = self.leaves.iter().map(|(leaf, _)| PageId(u64::from(leaf))).collect();
        leaves.sort_unstable();
        leaves
    }

    /// Redistributes the pending records of leaves whose key ranges changed. `leaf_for` returns the new leaf
    /// of a record. Returns false if a record has no leaf.
    pub(crate) fn redistribute(
        &mut self,
        leaves: &[PageId],
        leaf_for: impl Fn(Record<'_>) -> Option<PageId>,
    ) -> bool {
        let mut all = Vec::new();
        for leaf in leaves.iter().filter_map(|leaf| u32::try_from(leaf.0).ok()) {
            all.append(&mut self.unlink_all(leaf));
        }
        all.into_iter().all(|slot| {
            let leaf = leaf_for(self.ring.entry(slot)).and_then(|leaf| u32::try_from(leaf.0).ok());
            leaf.is_some_and(|leaf| {
                self.list(slot, leaf);
                true
            })
        })
    }

    /// Merges the pending records of a leaf. `put` inserts one record into the leaf and returns whether it
    /// fits. The merge ends at the first error of `put`.
    pub(crate) fn merge(
        &mut self,
        leaf: PageId,
        mut put: impl FnMut(Record<'_>) -> Result<bool, crate::Error>,
    ) -> Merged {
        let mut merged = Merged { since: Lsn(u64::MAX), records: 0, too_large: None, outcome: Ok(()) };
        let Ok(number) = u32::try_from(leaf.0) else { return merged };
        let mut list = self.unlink_all(number);
        while let Some(slot) = list.pop() {
            match put(self.ring.entry(slot)) {
                Ok(true) => {
                    merged.since = merged.since.min(self.ring.since(slot));
                    merged.records += 1;
                    self.settle(slot);
                    if self.ring.entry(slot).value.is_none() {
                        self.remove(slot);
                    }
                }
                Ok(false) => {
                    merged.too_large = Some(slot);
                    self.list(slot, number);
                }
                Err(error) => {
                    merged.outcome = Err(error);
                    self.list(slot, number);
                    break;
                }
            }
        }
        list.into_iter().for_each(|slot| self.list(slot, number));
        self.counters.merged += merged.records;
        self.counters.merges += u64::from(merged.records > 0);
        merged
    }

    pub(crate) fn entry(&self, slot: Slot) -> Record<'_> {
        self.ring.entry(slot)
    }
}
