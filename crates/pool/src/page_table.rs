//! The page table: an open-addressing hash table from pages to small numbers, such as frame numbers.
//!
//! A slot of the table holds 32 bits of the page's hash, the *tag*, and the number. The page itself is stored
//! with the frame of that number, so a slot has eight bytes, and a look-up touches one cache line of the
//! table. At most a quarter of the slots are in use. The upper bits of the tag are the entry's *home slot*. A
//! colliding entry goes to the next free slot. A removal moves later entries back, so there are no
//! tombstones, and look-ups do not become slower.

use fulgurite_base::{PageId, prefetch};

const EMPTY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Slot {
    tag: u32,
    value: u32,
}

/// A page table of fixed capacity. The `page_of` arguments of its methods return the page of a number in the
/// table.
#[derive(Clone, Debug)]
pub(crate) struct PageTable {
    slots: Vec<Slot>,
    /// The number of bits by which a tag is shifted right to get its home slot.
    shift: u32,
}

impl PageTable {
    /// Creates a table for at most `capacity` pages.
    pub(crate) fn new(capacity: u32) -> PageTable {
        PageTable::with_slots(4 * u64::from(capacity.max(1)))
    }

    /// Creates a table of at least `slots` slots. More than half of them must never be in use.
    pub(crate) fn with_slots(slots: u64) -> PageTable {
        let bits = slots.next_power_of_two().trailing_zeros();
        assert!(bits <= 32, "a table of {slots} slots is too large");
        PageTable { slots: vec![Slot { tag: 0, value: EMPTY }; 1 << bits], shift: 32 - bits }
    }

    /// Returns the number of slots.
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    fn tag(page: PageId) -> u32 {
        (page.mixed() >> 32) as u32
    }

    #[inline]
    fn home(&self, tag: u32) -> usize {
        (u64::from(tag) >> self.shift) as usize
    }

    #[inline]
    fn after(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }

    /// Begins to fetch the home slot of `page` into the processor's cache.
    #[inline]
    pub(crate) fn prefetch(&self, page: PageId) {
        prefetch(&self.slots, self.home(Self::tag(page)));
    }

    /// Returns the number in the home slot of `page`, if any. It is usually the number of this page, so it
    /// tells which frame a look-up will probably touch.
    #[inline]
    pub(crate) fn guess(&self, page: PageId) -> Option<u32> {
        let value = self.slots[self.home(Self::tag(page))].value;
        (value != EMPTY).then_some(value)
    }

    #[inline]
    fn find(&self, page: PageId, page_of: impl Fn(u32) -> PageId) -> Option<usize> {
        let tag = Self::tag(page);
        let mut at = self.home(tag);
        loop {
            // At most a quarter of the slots is in use, so the loop always reaches an empty one.
            let slot = self.slots[at];
            if slot.value == EMPTY {
                return None;
            }
            // The tag is compared first, because reading the page costs another cache line.
            if slot.tag == tag && page_of(slot.value) == page {
                return Some(at);
            }
            at = self.after(at);
        }
    }

    /// Returns the number of `page`, if the page is in the table.
    #[inline]
    pub(crate) fn get(&self, page: PageId, page_of: impl Fn(u32) -> PageId) -> Option<u32> {
        self.find(page, page_of).map(|at| self.slots[at].value)
    }

    /// Adds `page`, which must not be in the table.
    #[inline]
    pub(crate) fn insert(&mut self, page: PageId, value: u32) {
        let tag = Self::tag(page);
        let mut at = self.home(tag);
        while self.slots[at].value != EMPTY {
            at = self.after(at);
        }
        self.slots[at] = Slot { tag, value };
    }

    /// Removes `page` and returns its number, if the page was in the table.
    #[inline]
    pub(crate) fn remove(&mut self, page: PageId, page_of: impl Fn(u32) -> PageId) -> Option<u32> {
        let found = self.find(page, page_of)?;
        let value = self.slots[found].value;
        let mask = self.slots.len() - 1;
        let (mut hole, mut at) = (found, self.after(found));
        while self.slots[at].value != EMPTY {
            // An entry moves back into the hole unless its home slot is behind the hole.
            let distance = at.wrapping_sub(self.home(self.slots[at].tag)) & mask;
            if distance >= (at.wrapping_sub(hole) & mask) {
                self.slots[hole] = self.slots[at];
                hole = at;
            }
            at = self.after(at);
        }
        self.slots[hole].value = EMPTY;
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// The rule: a table has at least four slots for each page, and the home slots of consecutive pages are
    /// spread over the whole table.
    #[test]
    fn pages_are_spread_over_four_slots_each() {
        let table = PageTable::new(1_000);
        assert!(table.slots.len() >= 4_000);
        let homes = (0..1_000).map(|page| table.home(PageTable::tag(PageId(page))));
        let homes: std::collections::BTreeSet<usize> = homes.collect();
        // Random homes would take about 890 different slots.
        assert!(homes.len() > 800, "{} homes", homes.len());
    }

    /// The rule: two pages with the same tag are different entries, and each is found with its own number.
    #[test]
    fn pages_with_the_same_tag_are_told_apart() {
        let mut known = BTreeMap::new();
        let pair = (0..)
            .map(PageId)
            .find_map(|page| known.insert(PageTable::tag(page), page).map(|first| [first, page]));
        let pages = pair.unwrap();
        let mut table = PageTable::new(2);
        table.insert(pages[1], 1);
        assert_eq!(table.get(pages[0], |value| pages[value as usize]), None);
        table.insert(pages[0], 0);
        assert_eq!(pages.map(|page| table.get(page, |value| pages[value as usize])), [Some(0), Some(1)]);
    }

    proptest! {
        /// Compares the table with the standard library's map. The table is nearly full, and the pages
        /// collide.
        #[test]
        fn a_table_behaves_like_a_map(operations in prop::collection::vec((any::<bool>(), 0u64..24), 0..400)) {
            const CAPACITY: u32 = 16;
            let page = |number: u64| PageId(number << 30);
            let mut table = PageTable::new(CAPACITY);
            let mut pages = [PageId(0); CAPACITY as usize];
            let mut model: BTreeMap<PageId, u32> = BTreeMap::new();
            for (add, number) in operations {
                let page = page(number);
                if !add {
                    prop_assert_eq!(table.remove(page, |value| pages[value as usize]), model.remove(&page));
                } else if !model.contains_key(&page) {
                    let free = (0..CAPACITY).find(|value| !model.values().any(|used| used == value));
                    if let Some(value) = free {
                        pages[value as usize] = page;
                        table.insert(page, value);
                        model.insert(page, value);
                    }
                }
                for number in 0..24 {
                    let page = PageId(number << 30);
                    let found = table.get(page, |value| pages[value as usize]);
                    prop_assert_eq!(found, model.get(&page).copied());
                }
            }
        }
    }
}
