//! The sweep, which evicts records and selects leaves for merging.

use super::cache::RecordCache;
use super::cost::reserved_for_deletes;
use super::ring::Slot;
use crate::Lsn;
use fulgurite_base::PageId;

/// The number of chunks that are swept in one slice, and the number of pending records of leaves to merge at
/// which the slice ends earlier.
const SWEPT_TOGETHER: usize = 16;
const MERGED_TOGETHER: usize = 8;

/// The result of sweeping some chunks.
pub(crate) struct Swept {
    /// The leaves to merge.
    pub behind: Vec<PageId>,
    /// The number of chunks that could not be freed. They are the oldest chunks now.
    pub stay: usize,
    /// The number of all chunks that were swept.
    pub swept: usize,
}

/// The result of sweeping one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The ring has no chunk at this index.
    Nothing,
    /// The chunk was freed.
    Freed,
    /// The chunk has entries that cannot be evicted yet.
    Stays,
}

impl RecordCache {
    /// Resets the merge threshold.
    pub(crate) fn forget_threshold(&mut self) {
        self.merge_threshold.reset();
    }

    /// Records that a leaf was merged to free space.
    pub(crate) fn leaf_left(&mut self, leaf: PageId) {
        self.division.leaf_merged(leaf);
    }

    /// Sweeps the full chunk at index `at`, where the oldest chunk has index 0. Entries in use get a second
    /// chance. Pending entries do as well, unless their neighbourhood is worth merging: then the leaf is
    /// added to `behind`, and the chunk is kept. If `behind` is `None`, no leaf is merged.
    pub(crate) fn sweep(&mut self, at: usize, mut behind: Option<&mut Vec<PageId>>) -> Outcome {
        let Some(chunk) = self.ring.take(at) else { return Outcome::Nothing };
        let mut stays = false;
        for slot in self.ring.entries(chunk) {
            let is_pending = self.ring.is_pending(slot);
            let is_asked_for = self.ring.is_asked_for(slot);
            if is_asked_for || (is_pending && (behind.is_none() || !self.is_worth_merging(slot))) {
                if !self.move_on(slot) {
                    self.ring.set_asked_for(slot, false);
                    stays = true;
                }
            } else if !is_pending {
                self.division.record_evicted(self.ring.entry(slot));
                self.remove(slot);
            } else if let Some(behind) = &mut behind {
                behind.push(PageId(u64::from(self.ring.leaf(slot))));
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

    /// Whether the leaf of a swept pending entry should be merged.
    fn is_worth_merging(&mut self, slot: Slot) -> bool {
        let leaf = self.ring.leaf(slot);
        self.merge_threshold.count_swept(leaf);
        self.merge_threshold.is_reached(leaf)
    }

    /// Moves an entry to the head of the ring, and clears its use flag. Returns false if there is no space.
    fn move_on(&mut self, slot: Slot) -> bool {
        // Keep reserved space free, except for the one chunk that is reserved for moved entries.
        let may_begin = self.room() >= self.chunks_for(self.reserved) - 1;
        let Some(new) = self.ring.push_copy(slot, may_begin) else { return false };
        if self.ring.is_pending(slot) {
            self.relist(slot, new);
        }
        self.replace(slot, new);
        true
    }

    /// Sweeps the oldest chunks until there are leaves to merge or enough space.
    pub(crate) fn sweep_some(&mut self) -> Swept {
        let (mut behind, mut stay, mut swept) = (Vec::new(), 0, 0);
        while swept < SWEPT_TOGETHER && behind.len() < MERGED_TOGETHER && self.is_tight() {
            match self.sweep(stay, Some(&mut behind)) {
                Outcome::Nothing => break,
                Outcome::Freed => {}
                Outcome::Stays => stay += 1,
            }
            swept += 1;
        }
        Swept { behind, stay, swept }
    }

    /// Evicts records that are not pending, and takes more memory if necessary, until `bytes` can be reserved. Returns
    /// whether this is possible now.
    pub(crate) fn make_room(&mut self, bytes: u64) -> bool {
        let needed = self.reserved + bytes;
        let pending_bytes = self.pending_bytes + needed + reserved_for_deletes(self.most_pending_bytes);
        if pending_bytes > self.most_pending_bytes {
            return false;
        }
        let has_room = |cache: &RecordCache| {
            cache.held(needed) + reserved_for_deletes(cache.limit_bytes) <= cache.limit_bytes
        };
        // Records in use get a second chance, so each chunk is swept at most twice.
        let mut left = 2 * self.chunks();
        while !has_room(self) && left > 0 && self.sweep(0, None) == Outcome::Freed {
            left -= 1;
        }
        if !has_room(self) {
            let wanted = self.held(needed) + 2 * reserved_for_deletes(self.most_bytes);
            self.limit_bytes = self.limit_bytes.max(wanted.min(self.most_bytes));
        }
        has_room(self)
    }

    /// Returns the number of pages of a neighbourhood.
    pub(crate) fn neighbourhood(&self) -> u64 {
        u64::from(self.merge_threshold.size())
    }

    /// Appends to `all` the given leaves of one neighbourhood, in order, and its other leaves that have at
    /// least `least` pending records not in use. Records in use do not count, because they will be written
    /// again.
    pub(crate) fn add_neighbourhood(&self, leaves: &[PageId], least: usize, all: &mut Vec<PageId>) {
        let size = self.neighbourhood();
        let first = leaves[0].0 / size * size;
        let mut leaves = leaves.iter().peekable();
        let is_cold = |slot: &Slot| !self.ring.is_asked_for(*slot);
        let comes_along = |leaf: PageId| self.list_of(leaf).filter(is_cold).take(least).count() == least;
        for leaf in (first..first + size).map(PageId) {
            if leaves.next_if_eq(&&leaf).is_some() || comes_along(leaf) {
                all.push(leaf);
            }
        }
    }

    /// Returns the leaf of a record if the record is pending.
    pub(crate) fn leaf_of(&self, tree: u32, key: &[u8]) -> Option<PageId> {
        let slot = self.find(tree, key).filter(|slot| self.ring.is_pending(*slot))?;
        Some(PageId(u64::from(self.ring.leaf(slot))))
    }

    /// Returns the upper limit of the redo point; `None` if no record is pending.
    pub(crate) fn least(&self) -> Option<Lsn> {
        self.ring.oldest_pending()
    }
}
