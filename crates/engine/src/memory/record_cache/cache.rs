//! The cache: records by key, and by the leaf that lacks them.

use super::cost::{LEAST_COST, hash, in_log, kept_to_remove, with_tables};
use super::division::Division;
use super::merge_threshold::MergeThreshold;
use super::ring::{Record, Ring, Slot};
use super::tables::{Leaves, Places};
use crate::Lsn;
use crate::options::FRAME_TABLES;
use fulgurite_base::PageId;
use fulgurite_pool::Lent;

/// Bytes of leaves that follow each other, of which some are read by one command. Drives read so much little later than a page.
pub const NEIGHBOURHOOD: usize = 64 << 10;
/// New entries that are made known at once.
const INDEXED_TOGETHER: usize = 1 << 16;
/// What has become of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// There was no room, and nothing has changed.
    NoRoom,
    /// The record is pending.
    Done,
}

/// What was merged into a leaf.
pub struct Merged {
    /// Since when the leaf has lacked the oldest of the records.
    pub since: Lsn,
    pub records: u64,
    /// A record for which there was no room.
    pub too_large: Option<Slot>,
    pub outcome: Result<(), crate::Error>,
}

/// Counts of what records have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounters {
    /// Reads that were answered without a page.
    pub hits: u64,
    /// Records that came because they were read.
    pub kept: u64,
    /// Records merged into their leaves.
    pub merged: u64,
    /// Leaves that records were merged into.
    pub merges: u64,
    /// Records put into the log once more.
    pub carried: u64,
    /// Writes that went to their leaves for want of room here or in the log.
    pub refused: u64,
}

/// Records in memory.
pub struct RecordCache {
    pub(super) ring: Ring,
    /// By tree and key.
    pub(super) places: Places,
    /// Entries that came with [`RecordCache::put_new`] and are not among the places yet.
    pub(super) new: Vec<Slot>,
    /// The first pending entry of a leaf.
    pub(super) leaves: Leaves,
    pub(super) pending: u64,
    /// What they take in the log, at most.
    pub(super) pending_bytes: u64,
    /// Room for commits under way: here, and in the log.
    pub(super) promised: u64,
    /// What they may have now, what while they are used, and at most.
    pub(super) limit_bytes: u64,
    pub(super) share_bytes: u64,
    pub(super) most_bytes: u64,
    pub(super) most_pending_bytes: u64,
    pub(super) division: Division,
    pub(super) counters: RecordCounters,
    /// Reads of records that stayed out, so that some of them come in.
    pub(super) passed: u32,
    /// Which neighbourhoods are worth a merge.
    pub(super) worth: MergeThreshold,
}

impl RecordCache {
    /// Room for `most_bytes` of records from pages of `page_bytes`, of which `log_bytes` / 3 may be pending. None for 0. They lie in
    /// `frames`.
    pub fn new(most_bytes: u64, page_bytes: u32, log_bytes: u64, frames: Lent) -> RecordCache {
        RecordCache {
            ring: Ring::new(page_bytes as usize, frames),
            places: Places::new(most_bytes),
            new: Vec::new(),
            leaves: Leaves::new(most_bytes),
            pending: 0,
            pending_bytes: 0,
            promised: 0,
            limit_bytes: most_bytes,
            share_bytes: most_bytes,
            most_bytes,
            division: Division::fixed(),
            most_pending_bytes: log_bytes / 3,
            counters: RecordCounters::default(),
            passed: 0,
            worth: MergeThreshold::new(most_bytes, (NEIGHBOURHOOD / page_bytes as usize).max(1) as u32),
        }
    }

    /// Whether there is such memory at all.
    pub fn is_used(&self) -> bool {
        self.most_bytes > 0
    }

    /// Records.
    pub fn len(&self) -> usize {
        self.places.len() + self.new.len()
    }

    /// Records that their leaves lack.
    pub fn pending(&self) -> u64 {
        self.pending
    }

    /// Bytes in use.
    pub fn bytes(&self) -> u64 {
        (self.ring.used() as u64 * self.chunk_cost()).max(self.len() as u64 * LEAST_COST)
    }

    /// Bytes that they may have now.
    pub fn limit(&self) -> u64 {
        self.limit_bytes
    }

    /// What a chunk takes with its part of the tables.
    pub fn chunk_cost(&self) -> u64 {
        with_tables(self.ring.chunk_bytes() as u64 + FRAME_TABLES)
    }

    /// Chunks that there may be.
    pub fn chunks(&self) -> usize {
        (self.limit_bytes / self.chunk_cost()) as usize
    }

    /// What was done since the store was opened.
    pub fn counters(&self) -> RecordCounters {
        self.counters
    }

    /// Chunks that may still be begun.
    pub fn room(&self) -> usize {
        (self.limit_bytes.saturating_sub(self.bytes()) / self.chunk_cost()) as usize
    }

    /// Whether entries should go before others come.
    pub fn is_tight(&self) -> bool {
        self.is_used() && self.room() < (self.chunks() / 8).max(4)
    }

    /// Whether a checkpoint should merge records before they take all of the log that they may.
    pub fn is_log_tight(&self) -> bool {
        self.needed_log() > self.most_pending_bytes / 8 * 7
    }

    /// Chunks to look at before giving up: each entry gets its second chance, and may turn out not to be mergeable.
    pub fn most_sweeps(&self) -> usize {
        4 * self.chunks()
    }

    /// Bytes that are promised to a write.
    pub fn promise_bytes(entry: Record<'_>) -> u64 {
        with_tables(entry.bytes() as u64).max(LEAST_COST).max(in_log(entry))
    }

    /// Promises room to a write, here and in the log. Returns how much, in bytes to be given back; `None` where there is none.
    pub fn promise(&mut self, entry: Record<'_>) -> Option<u64> {
        self.wake();
        let bytes = RecordCache::promise_bytes(entry);
        let kept = |most: u64| if entry.value.is_some() { kept_to_remove(most) } else { 0 };
        let has_room = self.held(self.promised + bytes) + kept(self.limit_bytes) <= self.limit_bytes;
        let pending_bytes = self.pending_bytes + self.promised + bytes;
        let has_log = pending_bytes + kept(self.most_pending_bytes) <= self.most_pending_bytes;
        if !has_room || !has_log || !self.ring.reserve(self.chunks_for(self.promised + bytes)) {
            self.counters.refused += 1;
            if !has_room && has_log {
                self.division.refused();
            }
            return None;
        }
        self.promised += bytes;
        Some(bytes)
    }

    /// Bytes in use, and what it takes for so many that are promised to find room, for sure.
    pub fn held(&self, promised: u64) -> u64 {
        // A chunk may end with less room than an entry needs, and one is kept for entries that move.
        self.bytes() + promised * 3 / 2 + 2 * self.chunk_cost()
    }

    /// Chunks in which so many bytes that are promised find room, for sure.
    pub fn chunks_for(&self, promised: u64) -> usize {
        (promised * 3 / 2).div_ceil(self.chunk_cost()) as usize + 2
    }

    /// Bytes that are promised to commits.
    pub fn promised(&self) -> u64 {
        self.promised
    }

    /// Takes promises back, kept or not.
    pub fn release(&mut self, bytes: u64) {
        self.promised -= bytes;
    }

    /// Bytes of log that a record of these takes, at most.
    pub fn log_bytes<'a>(entries: impl Iterator<Item = Record<'a>>) -> u64 {
        entries.map(in_log).sum()
    }

    /// Bytes of log that it may take to put everything that is pending, or promised to become so, there once more.
    pub fn needed_log(&self) -> u64 {
        self.pending_bytes + self.promised
    }

    #[inline]
    pub fn find(&self, tree: u32, key: &[u8]) -> Option<Slot> {
        if self.places.len() == 0 {
            return None;
        }
        let is_it = |place: &Slot| {
            let entry = self.ring.entry(*place);
            entry.tree == tree && entry.key == key
        };
        self.places.find(hash(Record { tree, key, value: None }), is_it)
    }

    /// A record as it is now: its value, or `None` where it has none any more. The outer `None`: only its leaf knows.
    pub fn get(&mut self, tree: u32, key: &[u8]) -> Option<Option<&[u8]>> {
        let place = self.find(tree, key)?;
        self.counters.hits += 1;
        self.ring.set_asked_for(place, true);
        Some(self.ring.entry(place).value)
    }

    /// The same for who does not read it.
    pub fn peek(&self, tree: u32, key: &[u8]) -> Option<Option<&[u8]>> {
        Some(self.ring.entry(self.find(tree, key)?).value)
    }

    /// Whether a record's leaf lacks it.
    pub fn is_pending(&self, tree: u32, key: &[u8]) -> bool {
        self.find(tree, key).is_some_and(|place| self.ring.is_pending(place))
    }

    /// Whether a record that was read from its leaf should come to stay: where the drive was asked for it, and now and then
    /// where it was not.
    pub fn wants(&mut self, was_read: bool) -> bool {
        self.passed = if was_read { 0 } else { self.passed + 1 };
        self.is_used() && (was_read || self.passed.is_multiple_of(4))
    }

    /// Keeps a record as its leaf has it, unless it is here or there is no room.
    pub fn keep(&mut self, tree: u32, key: &[u8], value: &[u8]) {
        if self.find(tree, key).is_some() {
            return;
        }
        self.wake();
        if self.is_tight() {
            self.sweep(0, None);
        }
        let entry = Record { tree, key, value: Some(value) };
        if self.passed == 0 {
            self.division.record_comes(entry);
        }
        if self.insert(entry, 2).is_some() {
            self.counters.kept += 1;
        }
    }

    /// Adds an entry that is not here yet, if `least` chunks can still be begun or it fits into the last one.
    pub fn insert(&mut self, entry: Record<'_>, least: usize) -> Option<Slot> {
        let may_begin = self.room() >= least;
        let place = self.ring.push(entry, may_begin)?;
        self.division.come(entry.bytes());
        self.places.insert(hash(entry), place, |place| hash(self.ring.entry(*place)));
        Some(place)
    }

    /// [`RecordCache::put`] for recovery: the entry is the only one of its key. It is found from the next [`RecordCache::index_new`] on.
    pub fn put_new(&mut self, entry: Record<'_>, leaf: PageId, since: Lsn) -> Put {
        let Ok(leaf) = u32::try_from(leaf.0) else { return Put::NoRoom };
        let may_begin = self.room() >= 2;
        let Some(place) = self.ring.push(entry, may_begin) else { return Put::NoRoom };
        self.begin_pending(place, leaf, since);
        self.new.push(place);
        if self.new.len() == INDEXED_TOGETHER {
            self.index_new();
        }
        Put::Done
    }

    /// Makes room in the table of places for entries that come soon, with keys and values of about `bytes` each, as far as there is
    /// memory for them.
    pub fn expect(&mut self, entries: usize, bytes: usize) {
        let most = self.most_bytes / with_tables((Ring::HEAD + bytes) as u64).max(LEAST_COST);
        let entries = entries.min(usize::try_from(most).unwrap_or(usize::MAX));
        self.places.reserve(entries, |place| hash(self.ring.entry(*place)));
    }

    /// Makes the entries of [`RecordCache::put_new`] known by their keys, in the order of the table, which is too large for a
    /// processor's cache.
    pub fn index_new(&mut self) {
        let rehash = |place: &Slot| hash(self.ring.entry(*place));
        let mut new: Vec<(u64, Slot)> = self.new.drain(..).map(|place| (rehash(&place), place)).collect();
        new.sort_unstable_by_key(|(hash, _)| self.places.order(*hash));
        for (hash, place) in new {
            self.places.insert(hash, place, rehash);
        }
    }

    /// Notes a write that is in the log from `since` on, of a record that belongs to `leaf`.
    pub fn put(&mut self, entry: Record<'_>, leaf: PageId, since: Lsn) -> Put {
        let Ok(leaf) = u32::try_from(leaf.0) else { return Put::NoRoom };
        if !self.is_used() {
            return Put::NoRoom;
        }
        let Some(old) = self.find(entry.tree, entry.key) else {
            let Some(place) = self.insert(entry, 2) else { return Put::NoRoom };
            self.begin_pending(place, leaf, since);
            return Put::Done;
        };
        let was_pending = self.ring.is_pending(old);
        // The leaf lacks what came before as well, and that may be durable where this is not yet.
        let (leaf, since) =
            if was_pending { (self.ring.leaf(old), self.ring.since(old)) } else { (leaf, since) };
        let before = in_log(self.ring.entry(old));
        if self.ring.overwrite(old, entry.value) {
            self.ring.set_asked_for(old, true);
            if was_pending {
                self.pending_bytes = self.pending_bytes + in_log(entry) - before;
            } else {
                self.begin_pending(old, leaf, since);
            }
        } else {
            let may_begin = self.room() >= 2;
            let Some(place) = self.ring.push(entry, may_begin) else { return Put::NoRoom };
            self.division.come(entry.bytes());
            if was_pending {
                self.end_pending(old);
            }
            self.replace(old, place);
            self.ring.set_asked_for(place, true);
            self.begin_pending(place, leaf, since);
        }
        Put::Done
    }

    /// A record has a new value in its leaf. Returns since when the leaf has lacked the one that was here, if it has.
    pub fn forget(&mut self, tree: u32, key: &[u8]) -> Option<Lsn> {
        let place = self.find(tree, key)?;
        let since = self.ring.is_pending(place).then(|| self.ring.since(place));
        if since.is_some() {
            self.end_pending(place);
        }
        self.remove(place);
        since
    }

    pub fn remove(&mut self, place: Slot) {
        self.places.remove(hash(self.ring.entry(place)), place);
        self.ring.kill(place);
    }

    /// The entry at `old` lies at `new` now.
    pub fn replace(&mut self, old: Slot, new: Slot) {
        if let Some(place) = self.places.find_mut(hash(self.ring.entry(new)), |other| *other == old) {
            *place = new;
        }
        self.ring.kill(old);
    }

    pub fn begin_pending(&mut self, place: Slot, leaf: u32, since: Lsn) {
        if self.leaves.get(leaf).is_none() {
            self.division.leaf_comes(PageId(u64::from(leaf)));
        }
        self.ring.set_pending(place, since);
        self.pending += 1;
        self.pending_bytes += in_log(self.ring.entry(place));
        self.list(place, leaf);
    }

    /// Puts a pending entry into a leaf's list.
    pub fn list(&mut self, place: Slot, leaf: u32) {
        let next = self.leaves.insert(leaf, place);
        self.worth.lacks_more(leaf);
        self.ring.set_leaf(place, leaf, next);
    }

    /// The entry at `new` is pending in place of that at `old`, which says the same.
    pub fn relist(&mut self, old: Slot, new: Slot) {
        let (leaf, next) = (self.ring.leaf(old), self.ring.next(old));
        self.ring.set_pending(new, self.ring.since(old));
        self.ring.set_leaf(new, leaf, next);
        let is_before = |place: &Slot| self.ring.next(*place) == Some(old);
        let before = self.list_of(PageId(u64::from(leaf))).find(is_before);
        match before {
            Some(before) => self.ring.set_leaf(before, leaf, Some(new)),
            None => drop(self.leaves.insert(leaf, new)),
        }
        self.ring.set_settled(old);
    }

    /// The leaf has the entry, or another has taken its place.
    pub fn end_pending(&mut self, place: Slot) {
        let leaf = self.ring.leaf(place);
        let mut rest = self.take_list(leaf);
        rest.retain(|other| *other != place);
        rest.into_iter().for_each(|other| self.list(other, leaf));
        self.settle(place);
    }

    pub fn settle(&mut self, place: Slot) {
        self.ring.set_settled(place);
        self.pending -= 1;
        self.pending_bytes -= in_log(self.ring.entry(place));
    }

    /// Empties a leaf's list.
    pub fn take_list(&mut self, leaf: u32) -> Vec<Slot> {
        let mut next = self.leaves.remove(leaf);
        let mut list = Vec::new();
        while let Some(place) = next {
            list.push(place);
            next = self.ring.next(place);
        }
        self.worth.lacks_fewer(leaf, list.len());
        list
    }

    /// Whether a leaf lacks records.
    pub fn lacks(&self, leaf: PageId) -> bool {
        u32::try_from(leaf.0).is_ok_and(|leaf| self.leaves.get(leaf).is_some())
    }

    /// The records that a leaf lacks, in no order.
    pub fn of_leaf(&self, leaf: PageId) -> impl Iterator<Item = Record<'_>> {
        self.list_of(leaf).map(|place| self.ring.entry(place))
    }

    pub fn list_of(&self, leaf: PageId) -> impl Iterator<Item = Slot> {
        let first = u32::try_from(leaf.0).ok().and_then(|leaf| self.leaves.get(leaf));
        std::iter::successors(first, |place| self.ring.next(*place))
    }

    /// Whether a leaf lacks twice as many bytes of records as a page has. They cannot all replace others of the leaf, so it will be split.
    pub fn lacks_two_pages(&self, leaf: PageId, page_bytes: u32) -> bool {
        let mut bytes = 0;
        self.of_leaf(leaf).any(|entry| {
            bytes += entry.bytes() - Ring::HEAD;
            bytes >= 2 * page_bytes as usize
        })
    }

    /// All leaves that lack records, in order.
    pub fn leaves(&self) -> Vec<PageId> {
        let mut leaves: Vec<PageId> = self.leaves.iter().map(|(leaf, _)| PageId(u64::from(leaf))).collect();
        leaves.sort_unstable();
        leaves
    }

    /// Shares out the records of leaves whose keys have changed: `leaf_for` says which of them has a record now. False where none
    /// has.
    pub fn share_out(&mut self, leaves: &[PageId], leaf_for: impl Fn(Record<'_>) -> Option<PageId>) -> bool {
        let mut all = Vec::new();
        for leaf in leaves.iter().filter_map(|leaf| u32::try_from(leaf.0).ok()) {
            all.append(&mut self.take_list(leaf));
        }
        all.into_iter().all(|place| {
            let leaf = leaf_for(self.ring.entry(place)).and_then(|leaf| u32::try_from(leaf.0).ok());
            leaf.is_some_and(|leaf| {
                self.list(place, leaf);
                true
            })
        })
    }

    /// Merges the records that a leaf lacks: `put` puts one into it, and says whether there was room. It ends with the first error.
    pub fn merge(
        &mut self,
        leaf: PageId,
        mut put: impl FnMut(Record<'_>) -> Result<bool, crate::Error>,
    ) -> Merged {
        let mut merged = Merged { since: Lsn(u64::MAX), records: 0, too_large: None, outcome: Ok(()) };
        let Ok(number) = u32::try_from(leaf.0) else { return merged };
        let mut list = self.take_list(number);
        while let Some(place) = list.pop() {
            match put(self.ring.entry(place)) {
                Ok(true) => {
                    merged.since = merged.since.min(self.ring.since(place));
                    merged.records += 1;
                    self.settle(place);
                    if self.ring.entry(place).value.is_none() {
                        self.remove(place);
                    }
                }
                Ok(false) => {
                    merged.too_large = Some(place);
                    self.list(place, number);
                }
                Err(error) => {
                    merged.outcome = Err(error);
                    self.list(place, number);
                    break;
                }
            }
        }
        list.into_iter().for_each(|place| self.list(place, number));
        self.counters.merged += merged.records;
        self.counters.merges += u64::from(merged.records > 0);
        merged
    }

    /// What an entry says.
    pub fn entry(&self, place: Slot) -> Record<'_> {
        self.ring.entry(place)
    }
}
