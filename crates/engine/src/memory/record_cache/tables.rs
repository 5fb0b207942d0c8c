//! The tables of the record cache: slots by key, and pending entries by leaf.
//!
//! A full hash table moves all its entries to a larger one in one step. This takes 0.1 s for half a million
//! records, because the key of each record is hashed again. All other work would wait for that step. So both
//! tables are partitioned, and each part grows by itself.

use super::ring::Slot;
use hashbrown::HashTable;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// The largest number of parts of a table.
const MOST_PARTS: u64 = 256;
/// The table has one part for this many bytes of records, up to [`MOST_PARTS`].
const BYTES_A_PART: u64 = 256 << 10;

/// Returns the number of parts for so many bytes of records, which is a power of two.
fn parts_for(most_bytes: u64) -> usize {
    (most_bytes / BYTES_A_PART).next_power_of_two().min(MOST_PARTS) as usize
}

/// The slots of records, by the hashes of the records' keys.
pub(super) struct KeyTable {
    parts: Vec<HashTable<Slot>>,
    len: usize,
}

impl KeyTable {
    /// Creates a table for a cache of so many bytes.
    pub(super) fn new(most_bytes: u64) -> KeyTable {
        KeyTable { parts: (0..parts_for(most_bytes)).map(|_| HashTable::new()).collect(), len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the index of the part for a hash. It depends on the middle bits, because the table of a part
    /// uses the lowest and the highest bits.
    fn part(&self, hash: u64) -> usize {
        (hash >> 32) as usize & (self.parts.len() - 1)
    }

    #[inline]
    pub(super) fn find(&self, hash: u64, is_it: impl FnMut(&Slot) -> bool) -> Option<Slot> {
        self.parts[self.part(hash)].find(hash, is_it).copied()
    }

    pub(super) fn find_mut(&mut self, hash: u64, is_it: impl FnMut(&Slot) -> bool) -> Option<&mut Slot> {
        let part = self.part(hash);
        self.parts[part].find_mut(hash, is_it)
    }

    /// Adds a slot that is not in the table.
    pub(super) fn insert(&mut self, hash: u64, slot: Slot, hash_of: impl Fn(&Slot) -> u64) {
        self.len += 1;
        let part = self.part(hash);
        self.parts[part].insert_unique(hash, slot, hash_of);
    }

    /// Removes a slot, if it is in the table.
    pub(super) fn remove(&mut self, hash: u64, slot: Slot) {
        let part = self.part(hash);
        if let Ok(found) = self.parts[part].find_entry(hash, |other| *other == slot) {
            found.remove();
            self.len -= 1;
        }
    }

    /// Reserves memory for so many more slots.
    pub(super) fn reserve(&mut self, slots: usize, hash_of: impl Fn(&Slot) -> u64) {
        let each = slots.div_ceil(self.parts.len());
        for part in &mut self.parts {
            // Reserve more than the average for each part, because hashes are not spread evenly over the
            // parts.
            part.reserve(each * 9 / 8, &hash_of);
        }
    }

    /// Returns a key that sorts hashes by their positions in memory.
    pub(super) fn order(&self, hash: u64) -> (usize, u64) {
        let part = self.part(hash);
        // The lower bits of the hash select the bucket. The number of buckets is a power of two, of which at
        // least an eighth is free, so it follows from the capacity.
        let buckets = (self.parts[part].capacity() as u64).next_power_of_two();
        (part, hash & (buckets - 1))
    }
}

/// The pending entries of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pending {
    /// The first entry of the list.
    pub first: Slot,
    /// The bytes of the keys and values of all entries, as they were when the entries were listed.
    pub bytes: u32,
}

/// The pending entries of each leaf that has some.
pub(super) struct Leaves(Vec<FxHashMap<u32, Pending>>);

impl Leaves {
    /// Creates a table for a cache of so many bytes.
    pub(super) fn new(most_bytes: u64) -> Leaves {
        Leaves((0..parts_for(most_bytes)).map(|_| FxHashMap::default()).collect())
    }

    fn part(&self, leaf: u32) -> usize {
        leaf as usize & (self.0.len() - 1)
    }

    pub(super) fn get(&self, leaf: u32) -> Option<Pending> {
        self.0[self.part(leaf)].get(&leaf).copied()
    }

    /// Adds an entry of so many bytes in front of those of its leaf. Returns the previous first one.
    pub(super) fn push(&mut self, leaf: u32, first: Slot, bytes: usize) -> Option<Slot> {
        let part = self.part(leaf);
        let bytes = bytes as u32;
        match self.0[part].entry(leaf) {
            Entry::Vacant(free) => {
                free.insert(Pending { first, bytes });
                None
            }
            Entry::Occupied(mut taken) => {
                let pending = taken.get_mut();
                pending.bytes += bytes;
                Some(std::mem::replace(&mut pending.first, first))
            }
        }
    }

    /// Replaces the first entry of a leaf by a copy.
    pub(super) fn replace_first(&mut self, leaf: u32, first: Slot) {
        let part = self.part(leaf);
        if let Some(pending) = self.0[part].get_mut(&leaf) {
            pending.first = first;
        }
    }

    pub(super) fn remove(&mut self, leaf: u32) -> Option<Slot> {
        let part = self.part(leaf);
        self.0[part].remove(&leaf).map(|pending| pending.first)
    }

    /// Iterates over all leaves, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, Slot)> {
        self.0.iter().flatten().map(|(leaf, pending)| (*leaf, pending.first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Returns the hash of the record at a slot, which these tests derive from the number of the slot.
    fn hash(slot: &Slot) -> u64 {
        (u64::from(slot.0) ^ 0x5bd1_e995).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn slots(count: u32) -> KeyTable {
        let mut slots = KeyTable::new(1 << 30);
        (0..count).map(Slot).for_each(|slot| slots.insert(hash(&slot), slot, hash));
        slots
    }

    /// A slot is found and counted from its insertion to its removal, even if the table grows meanwhile.
    #[test]
    fn inserted_slots_are_found() {
        let mut slots = slots(100_000);
        for slot in (0..100_000).step_by(3).map(Slot) {
            slots.remove(hash(&slot), slot);
            slots.remove(hash(&slot), slot);
        }
        assert_eq!(slots.len(), 66_666);
        for number in 0..100_001 {
            let slot = Slot(number);
            let found = slots.find(hash(&slot), |other| *other == slot);
            assert_eq!(found, (number < 100_000 && !number.is_multiple_of(3)).then_some(slot));
        }
    }

    /// No step moves more than a small part of the entries, and no step moves an entry after `reserve`.
    #[test]
    fn no_step_moves_many_entries() {
        let most = |mut slots: KeyTable, from: u32| {
            let moved = Cell::new(0_u32);
            let mut most = 0;
            for slot in (from..200_000).map(Slot) {
                moved.set(0);
                slots.insert(hash(&slot), slot, |slot| {
                    moved.set(moved.get() + 1);
                    hash(slot)
                });
                most = most.max(moved.get());
            }
            most
        };
        let grown = most(KeyTable::new(1 << 30), 0);
        assert!((200..2_000).contains(&grown), "{grown}");
        let mut ready = slots(1_000);
        ready.reserve(199_000, hash);
        assert_eq!(most(ready, 1_000), 0);
        // A small cache has few parts, because each part takes memory.
        let parts = [0, 100_000, 1 << 20, 10 << 20, 1 << 30].map(|bytes| KeyTable::new(bytes).parts.len());
        assert_eq!(parts, [1, 1, 4, 64, 256]);
    }

    /// Hashes in the order of the table visit one part after the other, and the buckets of each part in
    /// order.
    #[test]
    fn the_order_follows_memory() {
        let known = &slots(100_000);
        let mut hashes: Vec<u64> = (0..1_000).map(|number| hash(&Slot(number))).collect();
        hashes.sort_unstable_by_key(|hash| known.order(*hash));
        let parts: Vec<usize> = hashes.iter().map(|hash| known.part(*hash)).collect();
        assert!(parts.is_sorted());
        let in_part = |part: usize| hashes.iter().filter(move |hash| known.part(**hash) == part);
        // A part has some four hundred entries in 512 buckets.
        assert!((0..known.parts.len()).all(|part| in_part(part).map(|hash| hash % 512).is_sorted()));
    }
}
