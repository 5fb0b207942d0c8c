//! Pending records by age: those that hold back the redo point.

use super::cache::RecordCache;
use super::ring::{Record, Slot};
use crate::Lsn;
use fulgurite_base::PageId;
use std::collections::VecDeque;

impl RecordCache {
    /// The chunks that may have records pending since before `goal`.
    pub(crate) fn chunks_pending_before(&self, goal: Lsn) -> Vec<u32> {
        self.ring.pending_before(goal)
    }

    /// A lower bound of the LSNs of a chunk's pending records.
    pub(crate) fn oldest_in(&self, chunk: u32) -> Lsn {
        self.ring.oldest_in(chunk)
    }

    /// Updates [`RecordCache::oldest_in`] by scanning the chunk.
    pub(crate) fn find_since(&mut self, chunk: u32) {
        self.ring.find_since(chunk);
    }

    /// Whether a leaf of the tree has pending records.
    pub(crate) fn has_pending(&self, tree: u32) -> bool {
        self.leaves.iter().any(|(_, slot)| self.ring.entry(slot).tree == tree)
    }

    /// Adds the leaves of a chunk's records that have been pending since before `goal` and were not used.
    /// Clears the use bits of the others.
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

    /// Adds the keys of a chunk's records that have been pending since before `goal`.
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

    /// The value of a record, if it has been pending since before `goal`.
    pub(crate) fn pending_value(&self, tree: u32, key: &[u8], goal: Lsn) -> Option<Option<&[u8]>> {
        let slot = self.find(tree, key).filter(|slot| self.is_older(*slot, goal))?;
        Some(self.ring.entry(slot).value)
    }

    /// Notes that a copy of a record is durable in the log from `since` on.
    pub(crate) fn carried(&mut self, tree: u32, key: &[u8], since: Lsn) {
        let Some(slot) = self.find(tree, key).filter(|slot| self.ring.is_pending(*slot)) else { return };
        self.counters.carried += 1;
        let since = self.ring.since(slot).max(since);
        self.ring.set_pending(slot, since);
    }
}
