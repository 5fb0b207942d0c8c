//! The tables of records: by key, and by leaf.
//!
//! A hash table that is full moves all its entries into a larger one, in one step: 0.1 s for half a million records, as each is looked up
//! for its key. All else would wait. So both are divided into parts, each of which grows by itself.

use super::ring::Slot;
use hashbrown::HashTable;
use rustc_hash::FxHashMap;

/// Parts of a table, at most.
const MOST_PARTS: u64 = 256;
/// Bytes of records for which there is a part.
const BYTES_A_PART: u64 = 256 << 10;

/// Parts for so many bytes of records: a power of two.
fn parts_for(most_bytes: u64) -> usize {
    (most_bytes / BYTES_A_PART).next_power_of_two().min(MOST_PARTS) as usize
}

/// Places by the hashes of what lies there.
pub struct Places {
    parts: Vec<HashTable<Slot>>,
    len: usize,
}

impl Places {
    /// For records of so many bytes.
    pub fn new(most_bytes: u64) -> Places {
        Places { parts: (0..parts_for(most_bytes)).map(|_| HashTable::new()).collect(), len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// The part of a hash. A part's table goes by the lowest and the highest bits.
    fn part(&self, hash: u64) -> usize {
        (hash >> 32) as usize & (self.parts.len() - 1)
    }

    #[inline]
    pub fn find(&self, hash: u64, is_it: impl FnMut(&Slot) -> bool) -> Option<Slot> {
        self.parts[self.part(hash)].find(hash, is_it).copied()
    }

    pub fn find_mut(&mut self, hash: u64, is_it: impl FnMut(&Slot) -> bool) -> Option<&mut Slot> {
        let part = self.part(hash);
        self.parts[part].find_mut(hash, is_it)
    }

    /// Adds a place that is not there yet.
    pub fn insert(&mut self, hash: u64, place: Slot, hash_of: impl Fn(&Slot) -> u64) {
        self.len += 1;
        let part = self.part(hash);
        self.parts[part].insert_unique(hash, place, hash_of);
    }

    /// Removes a place, if it is there.
    pub fn remove(&mut self, hash: u64, place: Slot) {
        let part = self.part(hash);
        if let Ok(found) = self.parts[part].find_entry(hash, |other| *other == place) {
            found.remove();
            self.len -= 1;
        }
    }

    /// Makes room for so many more.
    pub fn reserve(&mut self, places: usize, hash_of: impl Fn(&Slot) -> u64) {
        let each = places.div_ceil(self.parts.len());
        for part in &mut self.parts {
            // Some get more than others.
            part.reserve(each * 9 / 8, &hash_of);
        }
    }

    /// What to sort hashes by, so that those that lie near each other follow each other.
    pub fn order(&self, hash: u64) -> (usize, u64) {
        let part = self.part(hash);
        // A table takes the bucket from as many of the lower bits as it has buckets, of which an eighth stays free.
        let buckets = (self.parts[part].capacity() as u64).next_power_of_two();
        (part, hash & (buckets - 1))
    }
}

/// The first pending entry of each leaf that lacks some.
pub struct Leaves(Vec<FxHashMap<u32, Slot>>);

impl Leaves {
    /// For records of so many bytes.
    pub fn new(most_bytes: u64) -> Leaves {
        Leaves((0..parts_for(most_bytes)).map(|_| FxHashMap::default()).collect())
    }

    fn part(&self, leaf: u32) -> usize {
        leaf as usize & (self.0.len() - 1)
    }

    pub fn get(&self, leaf: u32) -> Option<Slot> {
        self.0[self.part(leaf)].get(&leaf).copied()
    }

    /// Returns what was there.
    pub fn insert(&mut self, leaf: u32, first: Slot) -> Option<Slot> {
        let part = self.part(leaf);
        self.0[part].insert(leaf, first)
    }

    pub fn remove(&mut self, leaf: u32) -> Option<Slot> {
        let part = self.part(leaf);
        self.0[part].remove(&leaf)
    }

    /// All, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Slot)> {
        self.0.iter().flatten().map(|(leaf, first)| (*leaf, *first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// The hash of what lies at a place, which here is its number.
    fn hash(place: &Slot) -> u64 {
        (u64::from(place.0) ^ 0x5bd1_e995).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn places(count: u32) -> Places {
        let mut places = Places::new(1 << 30);
        (0..count).map(Slot).for_each(|place| places.insert(hash(&place), place, hash));
        places
    }

    /// The rule: what was added is found until it is removed, through all growth, and counted.
    #[test]
    fn what_was_added_is_found() {
        let mut places = places(100_000);
        for place in (0..100_000).step_by(3).map(Slot) {
            places.remove(hash(&place), place);
            places.remove(hash(&place), place);
        }
        assert_eq!(places.len(), 66_666);
        for number in 0..100_001 {
            let place = Slot(number);
            let found = places.find(hash(&place), |other| *other == place);
            assert_eq!(found, (number < 100_000 && !number.is_multiple_of(3)).then_some(place));
        }
    }

    /// The rule: no step moves more than a small part of the entries, and none where room was made before.
    #[test]
    fn no_step_moves_many() {
        let most = |mut places: Places, from: u32| {
            let moved = Cell::new(0_u32);
            let mut most = 0;
            for place in (from..200_000).map(Slot) {
                moved.set(0);
                places.insert(hash(&place), place, |place| {
                    moved.set(moved.get() + 1);
                    hash(place)
                });
                most = most.max(moved.get());
            }
            most
        };
        let grown = most(Places::new(1 << 30), 0);
        assert!((200..2_000).contains(&grown), "{grown}");
        let mut ready = places(1_000);
        ready.reserve(199_000, hash);
        assert_eq!(most(ready, 1_000), 0);
        // A small store has few parts, which take memory too.
        let parts = [0, 100_000, 1 << 20, 10 << 20, 1 << 30].map(|bytes| Places::new(bytes).parts.len());
        assert_eq!(parts, [1, 1, 4, 64, 256]);
    }

    /// The rule: hashes in this order go through one part after the other, and through the buckets of each.
    #[test]
    fn the_order_is_that_of_the_memory() {
        let known = &places(100_000);
        let mut hashes: Vec<u64> = (0..1_000).map(|number| hash(&Slot(number))).collect();
        hashes.sort_unstable_by_key(|hash| known.order(*hash));
        let parts: Vec<usize> = hashes.iter().map(|hash| known.part(*hash)).collect();
        assert!(parts.is_sorted());
        let in_part = |part: usize| hashes.iter().filter(move |hash| known.part(**hash) == part);
        // Some four hundred entries to a part: 512 buckets.
        assert!((0..known.parts.len()).all(|part| in_part(part).map(|hash| hash % 512).is_sorted()));
    }
}
