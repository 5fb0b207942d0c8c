//! Records that leave memory for runs (see [`crate::runs`]).

use super::{Entry, Place, Records};
use crate::runs::Which;
use fulgurite_base::PageId;
use rustc_hash::{FxHashMap, FxHashSet};

/// Where the pending records of a leaf take less than one in so many bytes of it, a run is better: it takes what they take, and the leaf is read and
/// written for many times as many later.
const THIN_PART: u64 = 5;
/// Entries that are looked at for that.
const SAMPLE: usize = 1024;
/// Of the memory that records may have, one in so many bytes is spilled at once: the larger a part, the fewer runs there are.
const SPILLED_PART: u64 = 3;

impl Records {
    /// Whether there are pending records of so many bytes.
    pub fn are_enough(&self, least_bytes: u64) -> bool {
        self.pending_bytes >= least_bytes
    }

    /// A sweep has brought so many leaves up to date, while so many pages of runs wait.
    pub fn swept(&mut self, leaves: u64, unswept_pages: u64) {
        let in_runs = unswept_pages * self.ring.chunk_bytes() as u64;
        self.division.swept(leaves, self.pending_bytes + in_runs);
    }

    /// Of the trees of some entries, those that have `least_bytes` of them and whose leaves lack little each. A sample tells.
    pub fn thin_trees(&self, places: &[Place], least_bytes: u64) -> FxHashSet<u32> {
        // By tree: entries in the sample, their bytes, and those of all that their leaves lack.
        let mut trees: FxHashMap<u32, (u64, u64, u64)> = FxHashMap::default();
        let step = places.len() / SAMPLE + 1;
        for place in places.iter().step_by(step) {
            let (entry, leaf) = (self.ring.entry(*place), PageId(u64::from(self.ring.leaf(*place))));
            let (sampled, own, lacking) = trees.entry(entry.tree).or_default();
            *sampled += 1;
            *own += entry.bytes() as u64;
            *lacking += self.of_leaf(leaf).map(|entry| entry.bytes() as u64).sum::<u64>();
        }
        let page = self.ring.chunk_bytes() as u64;
        let is_thin = |(sampled, own, lacking): &(u64, u64, u64)| {
            own * step as u64 >= least_bytes && lacking * THIN_PART < sampled * page
        };
        trees.into_iter().filter(|(_, sums)| is_thin(sums)).map(|(tree, _)| tree).collect()
    }

    /// While entries are pinned, the memory of none is used for others.
    pub fn pin(&mut self, is_pinned: bool) {
        self.is_pinned = is_pinned;
    }

    /// Whether entries are pinned.
    pub fn is_pinned(&self) -> bool {
        self.is_pinned
    }

    /// Chunks with entries that may leave memory, the oldest first.
    pub fn chunks_to_spill(&self, which: Which) -> Vec<u32> {
        match which {
            Which::Oldest => self.ring.oldest_first().collect(),
            Which::Before(goal) => self.ring.pending_before(goal),
        }
    }

    /// Bytes of entries that leave memory at once.
    pub fn most_to_spill(&self, which: Which) -> u64 {
        match which {
            Which::Oldest => self.limit_bytes / SPILLED_PART,
            Which::Before(_) => u64::MAX,
        }
    }

    /// Entries of a chunk that may leave memory, since nobody asks for them, and their bytes.
    pub fn to_spill(&self, which: Which, chunk: u32) -> (Vec<Place>, u64) {
        let is_old = |place: &Place| match which {
            Which::Oldest => true,
            Which::Before(goal) => self.is_older(*place, goal),
        };
        let mut places = self.ring.entries(chunk);
        places.retain(|place| self.may_spill(*place) && is_old(place));
        let bytes = places.iter().map(|place| self.ring.entry(*place).bytes() as u64).sum();
        (places, bytes)
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

    /// Whether a pinned entry is still pending.
    pub fn still_pending(&self, place: Place) -> bool {
        self.ring.is_alive(place) && self.ring.is_pending(place)
    }

    /// The tree and the key of a pinned entry. Nobody's tree where the entry is dead.
    pub fn key_of(&self, place: Place) -> (u32, &[u8]) {
        let entry = self.ring.entry(place);
        (entry.tree, entry.key)
    }

    /// Runs have these entries, durably. Those that were not written since are pending no more, and leave memory when others need it.
    /// Returns how many.
    pub fn spilled(&mut self, places: &[Place]) -> u64 {
        let mut gone = 0;
        for place in places {
            if !self.still_pending(*place) || !self.ring.is_spilling(*place) {
                continue;
            }
            gone += 1;
            self.end_pending(*place);
            if self.ring.entry(*place).value.is_none() {
                self.remove(*place);
            }
        }
        gone
    }
}
