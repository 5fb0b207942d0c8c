//! Finds pending records by age, for checkpoints: old ones hold back the redo point.

use super::cache::RecordCache;
use super::ring::{Record, Slot};
use crate::Lsn;
use fulgurite_base::PageId;
use std::collections::VecDeque;

impl RecordCache {
    /// Returns the chunks that may have records pending since before `goal`.
    pub(crate) fn chunks_pending_before(&self, goal: Lsn) -> Vec<u32> {
        self.ring.pending_before(goal)
    }

    /// Returns a lower bound of the LSNs since which the records of a chunk are pending.
    pub(crate) fn oldest_in(&self, chunk: u32) -> Lsn {
        self.ring.oldest_in(chunk)
    }

    /// Scans a chunk to update the bound that [`RecordCache::oldest_in`] returns.
    pub(crate) fn find_since(&mut self, chunk: u32) {
        self.ring.find_since(chunk);
    }

    /// Whether a tree has pending records.
    pub(crate) fn has_pending(&self, tree: u32) -> bool {
        self.leaves.iter().any(|(_, slot)| self.ring.entry(slot).tree == tree)
    }

    /// Drops the pending records of a dropped tree.
    pub(crate) fn discard_pending(&mut self, tree: u32) {
        let leaves = self.leaves.iter().filter(|(_, slot)| self.ring.entry(*slot).tree == tree);
        let leaves: Vec<u32> = leaves.map(|(leaf, _)| leaf).collect();
        for leaf in leaves {
            for slot in self.unlink_all(leaf) {
                self.settle(slot);
                self.remove(slot);
            }
        }
    }

    /// Appends to `leaves` the leaves of those records of a chunk that have been pending since before `goal`
    /// and were not used. Clears the use flags of the others that old.
    pub(crate) fn add_cold(&mut self, chunk: u32, goal: Lsn, leaves: &mut Vec<PageId>) {
        for slot in self.ring.entries(chunk) {
            if !self.is_older(slot, goal) {
                continue;
            }
            if !self.ring.is_asked_for(slot) {
                leaves.push(PageId(u64::from(self.ring.leaf(slot))));
            }
            self.ring.set_asked_for(slot, false);
        }
    }

    /// Appends to `keys` the keys of those records of a chunk that have been pending since before `goal`.
    pub(crate) fn add_keys(&self, chunk: u32, goal: Lsn, keys: &mut VecDeque<(u32, Vec<u8>)>) {
        let older = self.ring.entries(chunk).into_iter().filter(|slot| self.is_older(*slot, goal));
        keys.extend(older.map(|slot| {
            let Record { tree, key, .. } = self.ring.entry(slot);
            (tree, key.to_vec())
        }));
    }

    /// Whether a record has been pending since before `goal`.
    pub(crate) fn is_older(&self, slot: Slot, goal: Lsn) -> bool {
        self.ring.is_pending(slot) && self.ring.since(slot) < goal
    }

    /// Returns the value of a record if it has been pending since before `goal`; the inner `None` means that
    /// it is deleted.
    pub(crate) fn pending_value(&self, tree: u32, key: &[u8], goal: Lsn) -> Option<Option<&[u8]>> {
        let slot = self.find(tree, key).filter(|slot| self.is_older(*slot, goal))?;
        Some(self.ring.entry(slot).value)
    }

    /// Records that a copy of a pending record is durable in the log from `since` on.
    pub(crate) fn carried(&mut self, tree: u32, key: &[u8], since: Lsn) {
        let Some(slot) = self.find(tree, key).filter(|slot| self.ring.is_pending(*slot)) else { return };
        self.counters.carried += 1;
        let since = self.ring.since(slot).max(since);
        self.ring.set_pending(slot, since);
    }
}
