//! Remembers for a while what has left a memory, to tell what a little more memory would have kept.
//!
//! An entry that is asked for again within the next `window` departures would still be there if the memory had room for
//! `window` entries more. This is the ghost list of ARC (Megiddo and Modha, FAST 2003), but without an order: a hash table
//! in which a later entry overwrites an earlier one in the same place. So it takes as little memory as it is given, and
//! forgets a few entries too early.

use fulgurite_base::PageId;

/// Places of the table for each departure of the window.
const PLACES: usize = 2;

/// What has left, and when.
#[derive(Clone, Debug)]
pub struct Departed {
    /// A hash and the time at which it left; the time is [`NEVER`] where there is none.
    table: Vec<(u64, u64)>,
    window: u64,
}

/// In place of a time.
const NEVER: u64 = u64::MAX;

impl Departed {
    /// What leaves is remembered for `window` of its clock, in which about `entries` leave.
    pub fn new(window: u64, entries: usize) -> Departed {
        Departed { table: vec![(0, NEVER); (PLACES * entries).next_power_of_two()], window }
    }

    /// Something has left at `now`. Its hash must differ in the upper bits.
    pub fn leave(&mut self, hash: u64, now: u64) {
        let place = self.place(hash);
        self.table[place] = (hash, now);
    }

    /// Something comes at `now`: whether it left within the window. It is then forgotten.
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
        // Shifted by 64 bits, which is no shift, only where there is but one place.
        (hash >> 1 >> (63 - self.table.len().trailing_zeros())) as usize
    }
}

/// A hash of a page for [`Departed`].
pub fn hash_of_page(page: PageId) -> u64 {
    page.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Pages that have left a pool, and those of them that came back soon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Departures {
    /// Pages that have left.
    pub left: u64,
    /// Misses that as many more frames as the window has would have spared.
    pub came_back: u64,
}

/// The departures of a pool, as they are counted.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    departed: Departed,
    pub counts: Departures,
}

impl Watched {
    pub fn new(window: u32) -> Watched {
        let departed = Departed::new(u64::from(window), window as usize);
        Watched { departed, counts: Departures::default() }
    }

    pub fn leave(&mut self, page: PageId) {
        self.departed.leave(hash_of_page(page), self.counts.left);
        self.counts.left += 1;
    }

    pub fn come(&mut self, page: PageId) {
        let comes_back = self.departed.comes_back(hash_of_page(page), self.counts.left);
        self.counts.came_back += u64::from(comes_back);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_within_the_window_is_counted_once() {
        for window in [1, 2, 3, 100] {
            let mut watched = Watched::new(window);
            let count = |watched: &mut Watched, page| {
                let before = watched.counts.came_back;
                watched.come(PageId(page));
                watched.counts.came_back - before
            };
            for page in 0..1_000 {
                watched.leave(PageId(page));
                assert_eq!(count(&mut watched, page + 1), 0, "it has not left");
            }
            let oldest = 1_000 - u64::from(window);
            assert_eq!(count(&mut watched, oldest - 1), 0, "window {window}: it left too long ago");
            assert_eq!(count(&mut watched, oldest), 1, "window {window}");
            assert_eq!(count(&mut watched, oldest), 0, "it is here now");
            assert_eq!(watched.counts.left, 1_000);
        }
    }

    #[test]
    fn most_of_a_window_is_remembered() {
        let mut watched = Watched::new(1_000);
        (0..5_000).for_each(|page| watched.leave(PageId(page)));
        (4_000..5_000).for_each(|page| watched.come(PageId(page)));
        // Two places for each: of hashes that fell at random, 79 % would keep theirs.
        assert!((750..=1_000).contains(&watched.counts.came_back), "{:?}", watched.counts);
    }
}
