//! Records that leave memory for runs (see [`crate::runs`]).

use super::{Entry, Place, Records};
use crate::Lsn;

/// Pending records for each leaf that lacks some, from which on they are better merged into the leaves at once.
const ENOUGH_FOR_A_LEAF: u64 = 8;
/// Of the memory that records may have, one in so many bytes is spilled at once: the larger a part, the fewer runs there are.
const SPILLED_PART: u64 = 3;

impl Records {
    /// Whether there are pending records of so many bytes, and few of them for each leaf.
    pub fn are_thin(&self, least_bytes: u64) -> bool {
        self.pending_bytes >= least_bytes && self.pending < ENOUGH_FOR_A_LEAF * self.leaves.len() as u64
    }

    /// While entries are pinned, the memory of none is used for others.
    pub fn pin(&mut self, is_pinned: bool) {
        self.is_pinned = is_pinned;
    }

    /// Whether entries are pinned.
    pub fn is_pinned(&self) -> bool {
        self.is_pinned
    }

    /// The oldest pending entries that nobody asks for, as many as should leave memory at once.
    pub fn oldest_to_spill(&self) -> Vec<Place> {
        let most = self.limit_bytes / SPILLED_PART;
        let (mut places, mut bytes) = (Vec::new(), 0);
        for chunk in self.ring.oldest_first() {
            for place in self.ring.entries(chunk).into_iter().filter(|place| self.may_spill(*place)) {
                bytes += self.ring.entry(place).bytes() as u64;
                places.push(place);
            }
            if bytes >= most {
                break;
            }
        }
        places
    }

    /// Entries that have been pending since before `goal` and that nobody asks for.
    pub fn older_to_spill(&self, goal: Lsn) -> Vec<Place> {
        let older = self.places_before(goal).into_iter();
        older.filter(|place| self.may_spill(*place)).collect()
    }

    fn may_spill(&self, place: Place) -> bool {
        self.ring.is_pending(place) && !self.ring.is_asked_for(place)
    }

    /// What an entry says that goes into a run; `None` where it should stay. It leaves memory with [`Records::spilled`], unless
    /// somebody writes it before.
    pub fn begin_to_spill(&mut self, place: Place) -> Option<Entry<'_>> {
        if !self.ring.is_alive(place) || !self.may_spill(place) {
            return None;
        }
        self.ring.set_spilling(place);
        Some(self.ring.entry(place))
    }

    /// The tree and the key of a pinned entry. Nobody's tree where the entry is dead.
    pub fn key_of(&self, place: Place) -> (u32, &[u8]) {
        let entry = self.ring.entry(place);
        (entry.tree, entry.key)
    }

    /// Runs have these entries, durably. Those that were not written since go. Returns how many.
    pub fn spilled(&mut self, places: &[Place]) -> u64 {
        let mut gone = 0;
        for place in places {
            if !self.ring.is_alive(*place) || !self.ring.is_pending(*place) || !self.ring.is_spilling(*place) {
                continue;
            }
            gone += 1;
            self.end_pending(*place);
            // Who asked meanwhile finds it here again, unless there is nothing to find.
            if !self.ring.is_asked_for(*place) || self.ring.entry(*place).value.is_none() {
                self.remove(*place);
            }
        }
        gone
    }
}
