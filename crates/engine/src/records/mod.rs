//! Records in memory by themselves, beside the pages of the pool, which lends them frames.
//!
//! A page is the unit of the drive, and mostly a few records of it are asked for and changed. So a part of the memory belongs
//! to records: those that were read, and those that were written and that their leaf lacks. For a row of 116 bytes on a page
//! of 4 KiB, memory holds about 29 times as many hot rows that way.
//!
//! - A *write* goes to the log as ever, and into this memory; its leaf is not read. The record is *pending* until it has been
//!   merged into its leaf.
//! - A *read* looks here first. A record that had to be fetched from the drive comes to stay.
//! - A *scan* reads leaves, and puts the pending records of each leaf over it.
//! - *Merging*: where room is needed, the oldest entries go that were not asked for since (second chance). One that is pending
//!   moves on and waits for more, unless its leaf and those beside it lack many records together. Then these leaves are read, get all
//!   their pending records at once, and are written when the pool wants to: a few long commands. Afterwards the newer records of such a
//!   leaf take room for nothing, until they are the oldest.
//! - A *checkpoint* merges the pending records that hold the redo point back, except those that were asked for: these are put
//!   into the log once more, at its end, and their leaves are not touched.
//!
//! **The log.** What is pending is in the log and nowhere else on the drive, so the redo point does not move past it. A record
//! that is carried along counts as old as before until its new place in the log is durable. Room for carrying everything along
//! once is kept free, and pending records take at most a third of the log. So a checkpoint can always make room, even if
//! there is none for the records of splits that merging may need. Recovery has each record pending since its last place in the
//! log: after a crash in the middle of a checkpoint, there is room for those that were not carried yet.
//!
//! **Old versions.** Who writes a record without reading its leaf does not know what it replaces. The old value is *beneath*
//! it, in the leaf, and readers of older states find it there; merging takes it along into the old versions.
//!
//! **Structure.** Pending records are listed by their leaf. A split, or two leaves that become one, share out the lists of the
//! pages that they hold.
//!
//! **What stays out**: large values, the catalogue, and writes to a leaf that is changed in the pool anyway, where a record of
//! its own would save nothing. Where there is no room, a write goes to its leaf as if there were no such memory.
//!
//! **Memory.** Entries lie in frames that the pool lends. As long as there are few records, pages have the memory; each frame that
//! records need is that of the page that would leave next. Room for commits under way is lent when it is promised; some frames more are
//! borrowed ahead, since the page that would leave next may have to be written first.
//!
//! After Bf-Tree's mini-pages (Hao and Chandramouli, VLDB 2024), which are kept by leaf, in size classes; here entries of all
//! leaves lie side by side in the order in which they came, without room between.

mod carry;
mod division;
mod lending;
mod merge;
mod ring;
mod tables;
#[cfg(test)]
mod tests;
mod worth;

pub use ring::{Entry, Place};

use crate::Lsn;
use crate::locks::hash_of_key;
use crate::options::FRAME_TABLES;
use division::Division;
use fulgurite_base::PageId;
use fulgurite_pool::Lent;
use ring::Ring;
use tables::{Leaves, Places};
use worth::Worth;

/// Bytes of tables for an entry, about: its place by key, and its leaf's list.
const ENTRY_TABLES: u64 = 16;
/// Of so many bytes that records may have, one is for tables. The others are frames of the pool.
const PER_TABLE_BYTE: u64 = 8;
/// Bytes that an entry counts for at least, so that tables do not take more than that.
const LEAST_COST: u64 = PER_TABLE_BYTE * ENTRY_TABLES;
/// Chunks that are looked through in one slice, before others have a turn.
const CHUNKS_TOGETHER: usize = 32;
/// New entries that are made known at once.
const INDEXED_TOGETHER: usize = 1 << 16;
/// What a pending record takes in the log beside its key, its value and a 64th of both for the heads of blocks, at most.
const IN_LOG: u64 = 24;

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
    since: Lsn,
    records: u64,
    /// A record for which there was no room.
    too_large: Option<Place>,
    outcome: Result<(), crate::Error>,
}

/// What has become of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// There is none.
    Nothing,
    /// It has room for others now.
    Freed,
    /// It holds entries that cannot go yet.
    Stays,
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
pub struct Records {
    ring: Ring,
    /// By tree and key.
    places: Places,
    /// Entries that came with [`Records::put_new`] and are not among the places yet.
    new: Vec<Place>,
    /// The first pending entry of a leaf.
    leaves: Leaves,
    pending: u64,
    /// What they take in the log, at most.
    pending_bytes: u64,
    /// Room for commits under way: here, and in the log.
    promised: u64,
    /// What they may have now, what while they are used, and at most.
    limit_bytes: u64,
    share_bytes: u64,
    most_bytes: u64,
    most_pending_bytes: u64,
    division: Division,
    counters: RecordCounters,
    /// Reads of records that stayed out, so that some of them come in.
    passed: u32,
    /// Which neighbourhoods are worth a merge.
    worth: Worth,
}

fn hash(entry: Entry<'_>) -> u64 {
    // The table takes its tags from the upper bits and places from the lower ones; keys that are counted up differ in few.
    let hash = hash_of_key(entry.tree, entry.key);
    (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// What entries of so many bytes take with their part of the tables.
fn with_tables(bytes: u64) -> u64 {
    (bytes * PER_TABLE_BYTE).div_ceil(PER_TABLE_BYTE - 1)
}

/// Of so much room, what is for writes that take records away: on a full store they are what makes room.
fn kept_to_remove(most: u64) -> u64 {
    most / 16
}

fn in_log(entry: Entry<'_>) -> u64 {
    let bytes = (entry.key.len() + entry.value.map_or(0, <[u8]>::len)) as u64;
    IN_LOG + bytes + bytes / 64
}

impl Records {
    /// Room for `most_bytes` of records from pages of `page_bytes`, of which `log_bytes` / 3 may be pending. None for 0. They lie in
    /// `frames`.
    pub fn new(most_bytes: u64, page_bytes: u32, log_bytes: u64, frames: Lent) -> Records {
        Records {
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
            worth: Worth::new(most_bytes, (merge::NEIGHBOURHOOD / page_bytes as usize).max(1) as u32),
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
    fn chunk_cost(&self) -> u64 {
        with_tables(self.ring.chunk_bytes() as u64 + FRAME_TABLES)
    }

    /// Chunks that there may be.
    fn chunks(&self) -> usize {
        (self.limit_bytes / self.chunk_cost()) as usize
    }

    /// Bytes of frames that records take at most, of so many that they may have.
    pub fn frame_bytes(most_bytes: u64) -> u64 {
        most_bytes - most_bytes.div_ceil(PER_TABLE_BYTE)
    }

    /// What was done since the store was opened.
    pub fn counters(&self) -> RecordCounters {
        self.counters
    }

    /// Chunks that may still be begun.
    fn room(&self) -> usize {
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
    fn most_sweeps(&self) -> usize {
        4 * self.chunks()
    }

    /// Bytes that are promised to a write.
    pub fn promise_bytes(entry: Entry<'_>) -> u64 {
        with_tables(entry.bytes() as u64).max(LEAST_COST).max(in_log(entry))
    }

    /// Promises room to a write, here and in the log. Returns how much, in bytes to be given back; `None` where there is none.
    pub fn promise(&mut self, entry: Entry<'_>) -> Option<u64> {
        self.wake();
        let bytes = Records::promise_bytes(entry);
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
    fn held(&self, promised: u64) -> u64 {
        // A chunk may end with less room than an entry needs, and one is kept for entries that move.
        self.bytes() + promised * 3 / 2 + 2 * self.chunk_cost()
    }

    /// Chunks in which so many bytes that are promised find room, for sure.
    fn chunks_for(&self, promised: u64) -> usize {
        (promised * 3 / 2).div_ceil(self.chunk_cost()) as usize + 2
    }

    /// Takes promises back, kept or not.
    pub fn release(&mut self, bytes: u64) {
        self.promised -= bytes;
    }

    /// Bytes of log that a record of these takes, at most.
    pub fn log_bytes<'a>(entries: impl Iterator<Item = Entry<'a>>) -> u64 {
        entries.map(in_log).sum()
    }

    /// Bytes of log that it may take to put everything that is pending, or promised to become so, there once more.
    pub fn needed_log(&self) -> u64 {
        self.pending_bytes + self.promised
    }

    #[inline]
    fn find(&self, tree: u32, key: &[u8]) -> Option<Place> {
        if self.places.len() == 0 {
            return None;
        }
        let is_it = |place: &Place| {
            let entry = self.ring.entry(*place);
            entry.tree == tree && entry.key == key
        };
        self.places.find(hash(Entry { tree, key, value: None }), is_it)
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
        let entry = Entry { tree, key, value: Some(value) };
        if self.passed == 0 {
            self.division.record_comes(entry);
        }
        if self.insert(entry, 2).is_some() {
            self.counters.kept += 1;
        }
    }

    /// Adds an entry that is not here yet, if `least` chunks can still be begun or it fits into the last one.
    fn insert(&mut self, entry: Entry<'_>, least: usize) -> Option<Place> {
        let may_begin = self.room() >= least;
        let place = self.ring.push(entry, may_begin)?;
        self.division.come(entry.bytes());
        self.places.insert(hash(entry), place, |place| hash(self.ring.entry(*place)));
        Some(place)
    }

    /// [`Records::put`] for recovery: the entry is the only one of its key. It is found from the next [`Records::index_new`] on.
    pub fn put_new(&mut self, entry: Entry<'_>, leaf: PageId, since: Lsn) -> Put {
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

    /// Makes the entries of [`Records::put_new`] known by their keys, in the order of the table, which is too large for a
    /// processor's cache.
    pub fn index_new(&mut self) {
        let rehash = |place: &Place| hash(self.ring.entry(*place));
        let mut new: Vec<(u64, Place)> = self.new.drain(..).map(|place| (rehash(&place), place)).collect();
        new.sort_unstable_by_key(|(hash, _)| self.places.order(*hash));
        for (hash, place) in new {
            self.places.insert(hash, place, rehash);
        }
    }

    /// Notes a write that is in the log from `since` on, of a record that belongs to `leaf`.
    pub fn put(&mut self, entry: Entry<'_>, leaf: PageId, since: Lsn) -> Put {
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

    fn remove(&mut self, place: Place) {
        self.places.remove(hash(self.ring.entry(place)), place);
        self.ring.kill(place);
    }

    /// The entry at `old` lies at `new` now.
    fn replace(&mut self, old: Place, new: Place) {
        if let Some(place) = self.places.find_mut(hash(self.ring.entry(new)), |other| *other == old) {
            *place = new;
        }
        self.ring.kill(old);
    }

    fn begin_pending(&mut self, place: Place, leaf: u32, since: Lsn) {
        if self.leaves.get(leaf).is_none() {
            self.division.leaf_comes(PageId(u64::from(leaf)));
        }
        self.ring.set_pending(place, since);
        self.pending += 1;
        self.pending_bytes += in_log(self.ring.entry(place));
        self.list(place, leaf);
    }

    /// Puts a pending entry into a leaf's list.
    fn list(&mut self, place: Place, leaf: u32) {
        let next = self.leaves.insert(leaf, place);
        self.worth.lacks_more(leaf);
        self.ring.set_leaf(place, leaf, next);
    }

    /// The entry at `new` is pending in place of that at `old`, which says the same.
    fn relist(&mut self, old: Place, new: Place) {
        let (leaf, next) = (self.ring.leaf(old), self.ring.next(old));
        self.ring.set_pending(new, self.ring.since(old));
        self.ring.set_leaf(new, leaf, next);
        let is_before = |place: &Place| self.ring.next(*place) == Some(old);
        let before = self.list_of(PageId(u64::from(leaf))).find(is_before);
        match before {
            Some(before) => self.ring.set_leaf(before, leaf, Some(new)),
            None => drop(self.leaves.insert(leaf, new)),
        }
        self.ring.set_settled(old);
    }

    /// The leaf has the entry, or another has taken its place.
    fn end_pending(&mut self, place: Place) {
        let leaf = self.ring.leaf(place);
        let mut rest = self.take_list(leaf);
        rest.retain(|other| *other != place);
        rest.into_iter().for_each(|other| self.list(other, leaf));
        self.settle(place);
    }

    fn settle(&mut self, place: Place) {
        self.ring.set_settled(place);
        self.pending -= 1;
        self.pending_bytes -= in_log(self.ring.entry(place));
    }

    /// Empties a leaf's list.
    fn take_list(&mut self, leaf: u32) -> Vec<Place> {
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
    pub fn of_leaf(&self, leaf: PageId) -> impl Iterator<Item = Entry<'_>> {
        self.list_of(leaf).map(|place| self.ring.entry(place))
    }

    fn list_of(&self, leaf: PageId) -> impl Iterator<Item = Place> {
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
    pub fn share_out(&mut self, leaves: &[PageId], leaf_for: impl Fn(Entry<'_>) -> Option<PageId>) -> bool {
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
        mut put: impl FnMut(Entry<'_>) -> Result<bool, crate::Error>,
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
    fn entry(&self, place: Place) -> Entry<'_> {
        self.ring.entry(place)
    }

    /// Empties the chunk that is behind `at` others, the oldest first. Entries that were asked for get another chance. So do those that
    /// their leaves lack, unless their neighbourhood is worth a merge: then the leaf is added to `lacking`, and the chunk stays.
    /// Without `lacking`, none is.
    fn sweep(&mut self, at: usize, mut lacking: Option<&mut Vec<PageId>>) -> Outcome {
        let Some(chunk) = self.ring.take(at) else { return Outcome::Nothing };
        let mut stays = false;
        for place in self.ring.entries(chunk) {
            let is_pending = self.ring.is_pending(place);
            let is_asked_for = self.ring.is_asked_for(place);
            if is_asked_for || (is_pending && (lacking.is_none() || !self.is_worth_merging(place))) {
                if !self.move_on(place) {
                    self.ring.set_asked_for(place, false);
                    stays = true;
                }
            } else if !is_pending {
                self.division.record_leaves(self.ring.entry(place));
                self.remove(place);
            } else if let Some(lacking) = &mut lacking {
                lacking.push(PageId(u64::from(self.ring.leaf(place))));
                stays = true;
            }
        }
        if stays {
            self.ring.put_back(at, chunk);
            Outcome::Stays
        } else {
            self.ring.free(chunk);
            self.give_frames_back();
            Outcome::Freed
        }
    }

    /// Whether the leaf of a pending entry at the ring's end should be merged.
    fn is_worth_merging(&mut self, place: Place) -> bool {
        let leaf = self.ring.leaf(place);
        self.worth.look(leaf);
        self.worth.is_enough(leaf)
    }

    /// Moves an entry behind the last one, and takes back that it was asked for. False where there is no room.
    fn move_on(&mut self, place: Place) -> bool {
        // What is promised keeps its room, beside which one chunk is for entries that move.
        let may_begin = self.room() >= self.chunks_for(self.promised) - 1;
        // The copy lets go of the ring.
        let Entry { tree, key, value } = self.ring.entry(place);
        let (key, value) = (key.to_vec(), value.map(<[u8]>::to_vec));
        let entry = Entry { tree, key: &key, value: value.as_deref() };
        let Some(new) = self.ring.push(entry, may_begin) else { return false };
        if self.ring.is_pending(place) {
            self.relist(place, new);
        }
        self.replace(place, new);
        true
    }
}
