//! Counts the misses of LRU for every size of the pool in one pass.
//!
//! LRU is a stack algorithm (Mattson, Gecsei, Slutz and Traiger, Evaluation techniques for storage hierarchies,
//! IBM Systems Journal 9(2), 1970): a pool holds the pages of each smaller one. So a request hits if and only
//! if the pool has more frames than other pages were requested since the last request for the same page. That
//! number is the *distance* of the request.
//!
//! Each request takes the next of a row of slots, and its page leaves the slot of its last request. The
//! distance is the number of occupied slots behind that slot. A Fenwick tree over blocks of slots counts them in
//! O(log n). When the slots are used up, the pages move together. The memory grows with the number of distinct
//! pages only: at most 88 bytes for each page.

use crate::page_numbers::PageNumbers;
use fulgurite_base::{PageId, prefetch};

/// The distance, in requests, at which the home slot of a page in the table is fetched, the one for its slot, and
/// the one for the bits of this slot.
const HOMES_AHEAD: usize = 24;
const SLOTS_AHEAD: usize = 12;
const BITS_AHEAD: usize = 4;

/// The number of distances that are counted together.
const RECENT: usize = 32;

/// The number of slots of a block, as a power of two.
const BLOCK_BITS: u32 = 7;
const WORDS: usize = (1 << BLOCK_BITS) / 64;
/// The least number of slots.
const SLOTS_AT_LEAST: usize = 1 << 12;

/// The distances of all requests so far.
pub struct StackDistances {
    pages: PageNumbers,
    /// The slot of each page, by its number.
    slots: Vec<u32>,
    /// The number of the page that was last in each slot.
    in_slot: Vec<u32>,
    /// A bit for each slot, set if a page is in it.
    occupied: Vec<u64>,
    /// A Fenwick tree with the number of occupied slots of each block before the open one.
    tree: Vec<u32>,
    /// The next free slot, which is in the open block.
    next: usize,
    /// The number of requests of each distance, without the last ones.
    histogram: Vec<u64>,
    /// The last distances. Their counters are fetched into the processor's cache meanwhile.
    recent: Vec<usize>,
    requests: u64,
}

impl Default for StackDistances {
    fn default() -> StackDistances {
        let mut distances = StackDistances {
            pages: PageNumbers::new(),
            slots: Vec::new(),
            in_slot: Vec::new(),
            occupied: Vec::new(),
            tree: Vec::new(),
            next: 0,
            histogram: Vec::new(),
            recent: Vec::with_capacity(RECENT),
            requests: 0,
        };
        distances.move_together();
        distances
    }
}

impl StackDistances {
    /// Adds requests for these pages, in their order.
    pub fn request_all(&mut self, requests: &[(PageId, bool)]) {
        for (at, (page, _)) in requests.iter().enumerate() {
            if let Some((page, _)) = requests.get(at + HOMES_AHEAD) {
                self.pages.prefetch(*page);
            }
            let guess = |ahead| requests.get(at + ahead).and_then(|(page, _)| self.pages.guess(*page));
            if let Some(number) = guess(SLOTS_AHEAD) {
                prefetch(&self.slots, number as usize);
                prefetch(self.pages.pages(), number as usize);
            }
            if let Some(slot) = guess(BITS_AHEAD).and_then(|number| self.slots.get(number as usize)) {
                prefetch(&self.occupied, *slot as usize / 64);
            }
            self.request(*page);
        }
        self.count_recent();
        self.requests += requests.len() as u64;
    }

    #[inline]
    fn request(&mut self, page: PageId) {
        match self.place(page).1 {
            None => self.histogram.push(0),
            Some(distance) => {
                prefetch(&self.histogram, distance);
                self.recent.push(distance);
                if self.recent.len() == RECENT {
                    self.count_recent();
                }
            }
        }
    }

    /// Puts a page behind all others. Returns its number, and the distance of this request; `None` if the page is
    /// new. Does not count the request.
    #[inline]
    pub(crate) fn place(&mut self, page: PageId) -> (u32, Option<usize>) {
        if self.next == self.in_slot.len() {
            self.move_together();
        }
        let (number, is_new) = self.pages.number(page);
        let distance = if is_new {
            self.slots.push(0);
            None
        } else {
            let slot = self.slots[number as usize] as usize;
            // The page itself is in its slot, so the slots behind it hold the other pages.
            let distance = self.pages.len() - self.occupied_up_to(slot);
            self.vacate(slot);
            Some(distance)
        };
        self.occupy(number);
        (number, distance)
    }

    /// Returns all pages and their numbers, from the page whose last request is the longest ago to that of the last
    /// request.
    pub(crate) fn by_recency(&self) -> impl Iterator<Item = (PageId, u32)> {
        let is_occupied = |slot: &usize| self.occupied[slot / 64] >> (slot % 64) & 1 == 1;
        (0..self.next).filter(is_occupied).map(|slot| {
            let number = self.in_slot[slot];
            (self.pages.pages()[number as usize], number)
        })
    }

    #[inline]
    fn count_recent(&mut self) {
        for distance in self.recent.drain(..) {
            self.histogram[distance] += 1;
        }
    }

    /// Returns the number of occupied slots up to `slot`, which is included.
    #[inline]
    fn occupied_up_to(&self, slot: usize) -> usize {
        let block = slot >> BLOCK_BITS;
        let mut before = 0;
        let mut node = block;
        while node > 0 {
            before += self.tree[node] as usize;
            node &= node - 1;
        }
        let (first, last) = (block * WORDS, slot / 64);
        let words = self.occupied[first..last].iter().map(|word| word.count_ones() as usize).sum::<usize>();
        let within = self.occupied[last] & (u64::MAX >> (63 - slot % 64));
        before + words + within.count_ones() as usize
    }

    #[inline]
    fn vacate(&mut self, slot: usize) {
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        let block = slot >> BLOCK_BITS;
        // The tree does not contain the open block.
        if block != self.next >> BLOCK_BITS {
            self.add(block, u32::MAX);
        }
    }

    /// Puts a page into the next slot.
    #[inline]
    fn occupy(&mut self, number: u32) {
        let slot = self.next;
        self.slots[number as usize] = slot as u32;
        self.in_slot[slot] = number;
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.next += 1;
        if self.next.is_multiple_of(1 << BLOCK_BITS) {
            let block = slot >> BLOCK_BITS;
            let words = &self.occupied[block * WORDS..(block + 1) * WORDS];
            let occupied = words.iter().map(|word| word.count_ones()).sum();
            self.add(block, occupied);
        }
    }

    /// Adds to the count of a block, modulo 2^32.
    #[inline]
    fn add(&mut self, block: usize, count: u32) {
        let mut node = block + 1;
        while let Some(sum) = self.tree.get_mut(node) {
            *sum = sum.wrapping_add(count);
            node += node & node.wrapping_neg();
        }
    }

    /// Moves the pages into the first slots, in their order, and makes the slots two to four times as many as
    /// the pages.
    #[cold]
    fn move_together(&mut self) {
        let slots = (2 * self.pages.len()).next_power_of_two().max(SLOTS_AT_LEAST);
        let mut next = 0;
        for word in 0..self.occupied.len() {
            let mut left = self.occupied[word];
            while left > 0 {
                let number = self.in_slot[64 * word + left.trailing_zeros() as usize];
                left &= left - 1;
                self.in_slot[next] = number;
                self.slots[number as usize] = next as u32;
                next += 1;
            }
        }
        self.in_slot.resize(slots, 0);
        self.occupied.clear();
        self.occupied.resize(next / 64, u64::MAX);
        self.occupied.push((1 << (next % 64)) - 1);
        self.occupied.resize(slots / 64, 0);
        self.tree.clear();
        self.tree.resize((slots >> BLOCK_BITS) + 1, 0);
        self.next = next;
        for block in 0..next >> BLOCK_BITS {
            self.add(block, 1 << BLOCK_BITS);
        }
    }

    /// The number of requests so far.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// The number of distinct pages so far.
    pub fn distinct_pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Returns the misses of an LRU pool for each of `frames`, which ascend.
    pub fn misses(&self, frames: &[u64]) -> Vec<u64> {
        let (mut hits, mut counted) = (0, 0);
        let misses = frames.iter().map(|frames| {
            let end = (*frames).min(self.histogram.len() as u64).max(counted);
            hits += self.histogram[counted as usize..end as usize].iter().sum::<u64>();
            counted = end;
            self.requests - hits
        });
        misses.collect()
    }

    /// The bytes of memory that are in use. They may double with the next request.
    pub fn bytes(&self) -> u64 {
        let counters = 4 * (self.slots.capacity() + self.in_slot.capacity() + self.tree.capacity());
        let words = 8 * (self.occupied.capacity() + self.histogram.capacity());
        (counters + words) as u64 + self.pages.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the distances of all requests that are not the first for their page, by their definition.
    fn slow(pages: &[u64]) -> Vec<usize> {
        let mut stack: Vec<u64> = Vec::new();
        let mut distances = Vec::new();
        for page in pages {
            if let Some(at) = stack.iter().rposition(|known| known == page) {
                distances.push(stack.len() - 1 - at);
                stack.remove(at);
            }
            stack.push(*page);
        }
        distances
    }

    fn check(pages: &[u64]) {
        let mut fast = StackDistances::default();
        let requests: Vec<(PageId, bool)> = pages.iter().map(|page| (PageId(*page), false)).collect();
        for some in requests.chunks(100) {
            fast.request_all(some);
        }
        let mut histogram = vec![0; fast.distinct_pages() as usize];
        slow(pages).into_iter().for_each(|distance| histogram[distance] += 1);
        assert_eq!(fast.histogram, histogram);
        assert_eq!(fast.requests(), pages.len() as u64);
    }

    proptest! {
        /// The rule: the distance is the number of other pages since the last request for the page.
        #[test]
        fn distances_are_those_of_a_list(pages in prop::collection::vec(0u64..60, 0..500)) {
            check(&pages);
        }
    }

    /// The rule: the distances stay right when pages move together, and when the number of slots and of table
    /// entries grows.
    #[test]
    fn distances_survive_growth_and_many_moves() {
        let mut prng = fulgurite_base::Prng::new(7, "distances");
        // Half of the requests are for few pages, so that slots in all blocks become free.
        let mut page =
            |at: u64| if prng.below(2) == 0 { prng.below(50) } else { prng.below(10 + at / 3) << 40 };
        let pages: Vec<u64> = (0..20_000).map(&mut page).collect();
        check(&pages);
    }

    /// The rule: a pool hits if it has more frames than the distance, and misses never grow with frames.
    #[test]
    fn misses_follow_from_distances() {
        let mut distances = StackDistances::default();
        // The distances are 0, 1 and 2.
        distances.request_all(&[1, 1, 2, 1, 3, 2].map(|page| (PageId(page), true)));
        assert_eq!(distances.misses(&[0, 1, 2, 3, 9]), [6, 5, 4, 3, 3]);
        assert_eq!((distances.distinct_pages(), distances.requests()), (3, 6));
    }
}
