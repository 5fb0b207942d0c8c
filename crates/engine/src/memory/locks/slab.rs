//! A slab that reuses free slots together with their contents.
//!
//! The records of locks own small vectors: a key, owners and waiters. A reused record keeps the memory of its
//! vectors, so that short locks allocate nothing.

use std::ops::{Index, IndexMut};

/// The number of a record in a [`Slab`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot(u32);

impl Slot {
    /// Stands for no record, at the end of a chain or as an empty subtree.
    pub(super) const NONE: Slot = Slot(u32::MAX);
}

/// The records, used and free, by their slots.
#[derive(Debug)]
pub(super) struct Slab<T> {
    records: Vec<T>,
    free: Vec<Slot>,
}

impl<T: Default> Slab<T> {
    pub(super) fn new() -> Slab<T> {
        Slab { records: Vec::new(), free: Vec::new() }
    }

    /// Returns a free slot. Its record is new, or in the state in which its last user left it.
    pub(super) fn take(&mut self) -> Slot {
        if let Some(slot) = self.free.pop() {
            return slot;
        }
        let slot = Slot(self.records.len() as u32);
        assert!(slot < Slot::NONE, "there are no more than 2^32 - 1 locks");
        self.records.push(T::default());
        slot
    }

    pub(super) fn free(&mut self, slot: Slot) {
        self.free.push(slot);
    }

    /// Returns the number of slots in use.
    pub(super) fn used(&self) -> usize {
        self.records.len() - self.free.len()
    }

    /// Iterates over all slots, including free ones.
    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> + use<T> {
        (0..self.records.len() as u32).map(Slot)
    }
}

impl<T> Index<Slot> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, slot: Slot) -> &T {
        &self.records[slot.0 as usize]
    }
}

impl<T> IndexMut<Slot> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, slot: Slot) -> &mut T {
        &mut self.records[slot.0 as usize]
    }
}
