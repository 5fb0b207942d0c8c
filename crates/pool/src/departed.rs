//! A ghost table. It remembers for a while which entries a cache has evicted, to tell which ones a slightly
//! larger cache would have kept.
//!
//! If an entry is requested again within the next `window` evictions, a cache with room for `window` more
//! entries would still hold it. This is the ghost list of ARC (Megiddo and Modha, FAST 2003), but without an
//! order: it is a hash table in which a later entry overwrites an earlier one in the same slot. So its memory
//! is fixed, and it forgets a few entries too early.

use fulgurite_base::PageId;

/// The number of slots of the table for each eviction of the window.
const PLACES: usize = 2;

/// The evicted entries of a cache and the times of their evictions.
#[derive(Clone, Debug)]
pub struct Departed {
    /// For each slot, the hash of an entry and the time of its eviction; the time is [`NEVER`] in an empty
    /// slot.
    table: Vec<(u64, u64)>,
    window: u64,
}

/// The time of eviction in an empty slot.
const NEVER: u64 = u64::MAX;

impl Departed {
    /// Remembers evictions for `window` units of the caller's clock, in which about `entries` evictions
    /// happen.
    pub fn new(window: u64, entries: usize) -> Departed {
        Departed { table: vec![(0, NEVER); (PLACES * entries).next_power_of_two()], window }
    }

    /// Records the eviction of an entry at `now`. Hashes of different entries must differ in their upper
    /// bits.
    pub fn leave(&mut self, hash: u64, now: u64) {
        let place = self.place(hash);
        self.table[place] = (hash, now);
    }

    /// Returns whether the entry that is inserted at `now` was evicted within the window. Forgets the entry.
    pub fn comes_back(&mut self, hash: u64, now: u64) -> bool {
        let place = self.place(hash);
        let (known, then) = self.table[place];
        if known != hash || then == NEVER {
            return false;
        }
        self.table[place].1 = NEVER;
        now - then <= self.window
    }

    fn place(&self, hash: u64) -> usize {
        // The shift is split in two, because a table of one slot needs a shift by 64 bits, which would
        // overflow.
        (hash >> 1 >> (63 - self.table.len().trailing_zeros())) as usize
    }
}

/// Returns a hash of a page for [`Departed`].
pub fn hash_of_page(page: PageId) -> u64 {
    page.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Counts of evicted pages and of evicted pages that were soon requested again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Departures {
    /// The number of evicted pages.
    pub left: u64,
    /// The number of misses that a pool with as many more frames as the window has would have avoided.
    pub came_back: u64,
}

/// The ghost table of a pool, with counts of the pool's evictions and of the pages that came back.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    departed: Departed,
    pub counts: Departures,
}

impl Watched {
    pub(crate) fn new(window: u32) -> Watched {
        let departed = Departed::new(u64::from(window), window as usize);
        Watched { departed, counts: Departures::default() }
    }

    pub(crate) fn leave(&mut self, page: PageId) {
        self.departed.leave(hash_of_page(page), self.counts.left);
        self.counts.left += 1;
    }

    pub(crate) fn come(&mut self, page: PageId) {
        let comes_back = self.departed.comes_back(hash_of_page(page), self.counts.left);
        self.counts.came_back += u64::from(comes_back);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_returns_within_the_window_is_counted_once() {
        for window in [1, 2, 3, 100] {
            let mut watched = Watched::new(window);
            let count = |watched: &mut Watched, page| {
                let before = watched.counts.came_back;
                watched.come(PageId(page));
                watched.counts.came_back - before
            };
            for page in 0..1_000 {
                watched.leave(PageId(page));
                assert_eq!(count(&mut watched, page + 1), 0, "the page was not evicted");
            }
            let oldest = 1_000 - u64::from(window);
            assert_eq!(
                count(&mut watched, oldest - 1),
                0,
                "window {window}: the page was evicted too long ago"
            );
            assert_eq!(count(&mut watched, oldest), 1, "window {window}");
            assert_eq!(count(&mut watched, oldest), 0, "the page was counted already");
            assert_eq!(watched.counts.left, 1_000);
        }
    }

    #[test]
    fn most_of_a_window_is_remembered() {
        let mut watched = Watched::new(1_000);
        (0..5_000).for_each(|page| watched.leave(PageId(page)));
        (4_000..5_000).for_each(|page| watched.come(PageId(page)));
        // With two slots for each page, 79 % of random hashes are not overwritten.
        assert!((750..=1_000).contains(&watched.counts.came_back), "{:?}", watched.counts);
    }
}
