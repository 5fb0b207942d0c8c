//! The division of memory between the record cache and the buffer pool, which minimises I/O.
//!
//! Each of these two sides has a *margin*: a sixteenth of all frames, by which the side could grow. Each side
//! keeps track of the entries that it has evicted recently and would have kept with the margin. It counts the
//! savings that the margin would have made:
//!
//! - Pages that are read again. With the margin, each of them would have saved a read, and a write if it was
//!   dirty.
//! - Records that are read again and need a page read. Each of them would have saved that read.
//! - Leaves that have pending records again soon after they were merged to free space. Each of them would
//!   have saved a merge, which is a read and a write.
//! - Writes that go to their leaves because the cache has no space. Each causes a read and a write of its
//!   leaf, as a merge does.
//!
//! The side whose margin would have saved clearly more gets frames of the other, up to the margin. While
//! pages are evicted and the record cache is idle, pages get more and more frames, until the record cache is
//! used again. So uniform updates get nearly all of the memory for records, and scans get it for pages.
//! Merges by checkpoints do not count, because a larger log would save them and more memory would not.
//!
//! Evicted entries are tracked as in the ghost lists of ARC (Megiddo and Modha, FAST 2003). ARC adapts with
//! every hit. Here, entries differ in size and in the I/O that they save, so savings are summed up first.

use super::cost::hash;
use super::ring::Record;
use fulgurite_base::PageId;
use fulgurite_pool::{Departed, Departures, hash_of_page};

/// The number of records and leaves of which one is sampled.
pub(super) const WATCHED_PART: u64 = 8;
/// The least savings for a decision, in page reads and writes. Smaller savings may be chance.
const LEAST_SAVED: u64 = 32;
/// The savings of one side are clearly more if they exceed this many tenths of those of the other side.
const CLEARLY_MORE: u64 = 12;

/// The I/O that the margin of the record cache would have saved since the last decision.
#[derive(Default)]
pub(super) struct Savings {
    pub reads: u64,
    pub merges: u64,
}

/// The state of the division: the evicted entries that are tracked, and the savings since the last decision.
pub(super) struct Division {
    /// The number of chunks of the margin; 0 if the division is fixed.
    pub margin: u64,
    pub chunk_bytes: u64,
    pub records: Departed,
    pub leaves: Departed,
    /// The number of bytes of inserted entries, which is the clock of both `records` and `leaves`.
    pub clock: u64,
    pub savings: Savings,
    /// The pool's counters at the last decision: the departures of pages, and the number of pages written.
    pub pool: (Departures, u64),
    /// The number of filled chunks and evicted pages at the last check.
    pub looked: u64,
    /// The number of uses of the record cache at the last check.
    pub used: u64,
}

impl Division {
    /// Creates a division that is fixed.
    pub(super) fn fixed() -> Division {
        Division {
            margin: 0,
            chunk_bytes: 1,
            records: Departed::new(0, 1),
            leaves: Departed::new(0, 1),
            clock: 0,
            savings: Savings::default(),
            pool: Default::default(),
            looked: 0,
            used: 0,
        }
    }

    /// Counts an inserted entry of `bytes`.
    pub(super) fn inserted(&mut self, bytes: usize) {
        self.clock += bytes as u64;
    }

    /// Records that a leaf was merged to free space.
    pub(super) fn leaf_merged(&mut self, leaf: PageId) {
        if let Some(hash) = self.watched(hash_of_page(leaf)) {
            self.leaves.leave(hash, self.clock);
        }
    }

    /// Records that a leaf has pending records again, and counts a saved merge if it was merged recently.
    pub(super) fn leaf_pending(&mut self, leaf: PageId) {
        if let Some(hash) = self.watched(hash_of_page(leaf)) {
            self.savings.merges += WATCHED_PART * u64::from(self.leaves.comes_back(hash, self.clock));
        }
    }

    /// Counts a write that goes to its leaf because the cache has no space.
    pub(super) fn refused(&mut self) {
        self.savings.merges += u64::from(self.margin > 0);
    }

    /// Records that a clean record was evicted.
    pub(super) fn record_evicted(&mut self, entry: Record<'_>) {
        if let Some(hash) = self.watched(hash(entry)) {
            self.records.leave(hash, self.clock);
        }
    }

    /// Records that a record was inserted after a page read, and counts a saved read if it was evicted
    /// recently.
    pub(super) fn record_fetched(&mut self, entry: Record<'_>) {
        if let Some(hash) = self.watched(hash(entry)) {
            self.savings.reads += WATCHED_PART * u64::from(self.records.comes_back(hash, self.clock));
        }
    }

    /// Returns the hash if it is sampled, else `None`. Other bits than the upper ones select the sample,
    /// because the upper bits are positions in the tables of evicted entries.
    pub(super) fn watched(&self, hash: u64) -> Option<u64> {
        (self.margin > 0 && (hash >> 20).is_multiple_of(WATCHED_PART)).then_some(hash)
    }

    /// Whether at least as much was inserted and evicted since the last check as the margin holds. `left` is
    /// the total number of evicted pages.
    pub(super) fn is_due(&mut self, left: u64) -> bool {
        let now = left + self.clock / self.chunk_bytes;
        let is_due = self.margin > 0 && now - self.looked >= self.margin;
        if is_due {
            self.looked = now;
        }
        is_due
    }

    /// Whether the record cache was unused since the last check. `hits` is the total number of its hits.
    pub(super) fn is_idle(&mut self, hits: u64) -> bool {
        let used = hits + self.clock;
        std::mem::replace(&mut self.used, used) == used
    }

    /// Returns the number of chunks by which the record cache should grow, or shrink if it is negative.
    /// `pool` has the pool's departures and its number of written pages. `times` is the number of drive
    /// writes for each page write.
    pub(super) fn decide(&mut self, pool: (Departures, u64), times: u64) -> i64 {
        let (left, written) = (pool.0.left - self.pool.0.left, pool.1 - self.pool.1);
        let came_back = pool.0.came_back - self.pool.0.came_back;
        // The estimate assumes that pages that come back were dirty as often as other evicted pages.
        let pages = came_back + came_back * written.min(left) * times / left.max(1);
        let records = self.savings.reads + self.savings.merges * (1 + times);
        if pages + records < LEAST_SAVED {
            return 0;
        }
        (self.savings, self.pool) = (Savings::default(), pool);
        if 10 * records.max(pages) <= CLEARLY_MORE * records.min(pages) {
            return 0;
        }
        // The result is the whole margin if only one side would have saved I/O.
        (records as i64 - pages as i64) * self.margin as i64 / (records + pages) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: u64 = 4096;
    const MARGIN: u64 = 64;

    fn division() -> Division {
        let departed = || Departed::new(MARGIN * CHUNK, 1 << 12);
        Division {
            margin: MARGIN,
            chunk_bytes: CHUNK,
            records: departed(),
            leaves: departed(),
            ..Division::fixed()
        }
    }

    fn pages(left: u64, came_back: u64, written: u64) -> (Departures, u64) {
        (Departures { left, came_back }, written)
    }

    /// Returns the savings of the margin, as merges and reads. `count` leaves and records come back after
    /// `bytes` of other entries were inserted.
    fn savings(bytes: usize, count: u32) -> (u64, u64) {
        let mut division = division();
        let leaf = |number: u32| PageId(u64::from(number));
        let key = |number: u32| number.to_be_bytes();
        for number in 0..count {
            division.leaf_merged(leaf(number));
            division.record_evicted(Record { tree: 2, key: &key(number), value: Some(b"old") });
        }
        division.inserted(bytes);
        for number in 0..2 * count {
            division.leaf_pending(leaf(number));
            division.record_fetched(Record { tree: 2, key: &key(number), value: Some(b"new") });
        }
        (division.savings.merges, division.savings.reads)
    }

    #[test]
    fn entries_that_the_margin_would_have_kept_count() {
        let within = (MARGIN * CHUNK) as usize;
        let (merges, reads) = savings(within, 1_000);
        // One in eight is sampled and counts for eight.
        assert!((800..1_200).contains(&merges) && (800..1_200).contains(&reads), "{merges}, {reads}");
        assert_eq!(savings(within + 1, 1_000), (0, 0), "the margin has no room for more than itself");
    }

    #[test]
    fn the_side_that_saves_more_gets_a_part_of_the_margin() {
        // Each case has the reads and merges that the margin of the record cache would have saved, the pages
        // that came back and the dirty ones of 1,000 evicted pages, the number of drive writes for each page
        // write, and the expected number of chunks.
        let cases = [
            ((100, 0), (50, 0), 1, 21),
            ((50, 0), (100, 0), 1, -21),
            // A merge is a read and a write, or a read and two writes if pages are written twice.
            ((0, 50), (80, 0), 1, 7),
            ((0, 30), (80, 0), 1, -9),
            ((0, 34), (80, 0), 2, 7),
            // Half of the evicted pages were dirty in these cases.
            ((120, 0), (80, 500), 1, 0),
            ((0, 50), (100, 500), 1, -12),
            // A difference of a fifth or less does not count.
            ((120, 0), (100, 0), 1, 0),
            ((121, 0), (100, 0), 1, 6),
            ((0, 0), (100, 0), 1, -64),
            ((0, 100), (0, 0), 1, 64),
            // The savings are too small for a decision.
            ((20, 0), (0, 0), 1, 0),
        ];
        for ((reads, merges), (came_back, written), times, expected) in cases {
            let mut division = division();
            division.savings = Savings { reads, merges };
            let decided = division.decide(pages(1_000, came_back, written), times);
            assert_eq!(decided, expected, "{reads} {merges} {came_back} {written} {times}");
            if reads + merges + came_back > LEAST_SAVED {
                assert_eq!(division.decide(pages(1_000, came_back, written), times), 0, "it was counted");
            }
        }
    }

    #[test]
    fn a_cache_without_reads_and_inserts_is_idle() {
        let mut division = division();
        assert!(!division.is_idle(5), "the cache was read");
        assert!(division.is_idle(5));
        division.inserted(100);
        assert!(!division.is_idle(5), "an entry was inserted");
        assert!(division.is_idle(5));
    }

    #[test]
    fn a_look_is_due_after_a_margin_of_evictions() {
        let mut division = division();
        division.inserted((MARGIN / 2 * CHUNK) as usize);
        assert!(!division.is_due(MARGIN / 2 - 1));
        assert!(division.is_due(MARGIN / 2));
        assert!(!division.is_due(MARGIN));
        assert!(!Division::fixed().is_due(1 << 40), "a fixed division");
    }
}
