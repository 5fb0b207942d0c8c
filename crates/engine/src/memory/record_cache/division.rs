//! How the memory is divided between records and pages: so that the drive has the least to do.
//!
//! Both have a *margin*: a sixteenth of all frames that they could have more. Of what has left not long ago, each remembers what the margin
//! would have kept, and counts what comes back:
//!
//! - Pages that are read again. Each would have spared a read, and the write of those that left changed.
//! - Records that are read again, if a page had to be read for them. Each would have spared that read.
//! - Leaves that lack a record again soon after they were merged to make room. Each would have spared a merge: a read and a write.
//! - Writes that go to their leaves since records have no room. Each reads its leaf and has it written, as a merge does.
//!
//! Whoever's margin would have spared clearly more gets frames of the other, up to the margin. Where pages leave and nobody asks for records or brings some, pages
//! have more and more frames until somebody does. So updates that are spread over all rows have nearly all of the
//! memory for records, and scans have it for pages. A merge that a checkpoint asks for does not
//! count: more memory would not have spared it, only a larger log.
//!
//! What has left is remembered as in the ghost lists of ARC (Megiddo and Modha, FAST 2003). ARC moves the border with every hit; here
//! entries differ in size and in what they spare, so savings are added up first.

use super::cost::hash;
use super::ring::Record;
use fulgurite_base::PageId;
use fulgurite_pool::{Departed, Departures, hash_of_page};

/// Of records and leaves, one in so many is watched.
pub const WATCHED_PART: u64 = 8;
/// Savings, in reads and writes of pages, below which nothing is decided: they may be chance.
const LEAST_SAVED: u64 = 32;
/// Savings are clearly more than others from so many tenths of them on.
const CLEARLY_MORE: u64 = 12;

/// What the margin of records would have spared since the memory was divided last.
#[derive(Default)]
pub struct Spared {
    pub reads: u64,
    pub merges: u64,
}

/// What the division goes by.
pub struct Division {
    /// Chunks of the margin; 0: nothing is divided anew.
    pub margin: u64,
    pub chunk_bytes: u64,
    pub records: Departed,
    pub leaves: Departed,
    /// Bytes of entries that came, which is the clock of both.
    pub clock: u64,
    pub spared: Spared,
    /// The pool's counts when the memory was divided last: departures, and pages written.
    pub pool: (Departures, u64),
    /// Chunks that had been filled, and pages that had left, at the last look.
    pub looked: u64,
    /// What had been done with records then.
    pub used: u64,
}

impl Division {
    /// Watches nothing.
    pub fn fixed() -> Division {
        Division {
            margin: 0,
            chunk_bytes: 1,
            records: Departed::new(0, 1),
            leaves: Departed::new(0, 1),
            clock: 0,
            spared: Spared::default(),
            pool: Default::default(),
            looked: 0,
            used: 0,
        }
    }

    /// Entries of `bytes` have come.
    pub fn come(&mut self, bytes: usize) {
        self.clock += bytes as u64;
    }

    /// A leaf was merged to make room.
    pub fn leaf_leaves(&mut self, leaf: PageId) {
        if let Some(hash) = self.watched(hash_of_page(leaf)) {
            self.leaves.leave(hash, self.clock);
        }
    }

    /// A leaf that lacked nothing lacks a record.
    pub fn leaf_comes(&mut self, leaf: PageId) {
        if let Some(hash) = self.watched(hash_of_page(leaf)) {
            self.spared.merges += WATCHED_PART * u64::from(self.leaves.comes_back(hash, self.clock));
        }
    }

    /// A write goes to its leaf, since records have no room for it.
    pub fn refused(&mut self) {
        self.spared.merges += u64::from(self.margin > 0);
    }

    /// A record goes that no leaf lacks.
    pub fn record_leaves(&mut self, entry: Record<'_>) {
        if let Some(hash) = self.watched(hash(entry)) {
            self.records.leave(hash, self.clock);
        }
    }

    /// A record comes for which a page was read.
    pub fn record_comes(&mut self, entry: Record<'_>) {
        if let Some(hash) = self.watched(hash(entry)) {
            self.spared.reads += WATCHED_PART * u64::from(self.records.comes_back(hash, self.clock));
        }
    }

    /// The hash of what is watched. The tables take their places from its upper bits.
    pub fn watched(&self, hash: u64) -> Option<u64> {
        (self.margin > 0 && (hash >> 20).is_multiple_of(WATCHED_PART)).then_some(hash)
    }

    /// Whether as much has come or left since the last look as the margin holds. `left` pages have left so far.
    pub fn is_due(&mut self, left: u64) -> bool {
        let now = left + self.clock / self.chunk_bytes;
        let is_due = self.margin > 0 && now - self.looked >= self.margin;
        if is_due {
            self.looked = now;
        }
        is_due
    }

    /// Whether nobody has used records since the last look. They were asked for so many times so far.
    pub fn is_idle(&mut self, hits: u64) -> bool {
        let used = hits + self.clock;
        std::mem::replace(&mut self.used, used) == used
    }

    /// Chunks that records should have more, or fewer. `pool` says what has left the pool and how many pages it has written, `times` how
    /// often a page is written on the drive.
    pub fn decide(&mut self, pool: (Departures, u64), times: u64) -> i64 {
        let (left, written) = (pool.0.left - self.pool.0.left, pool.1 - self.pool.1);
        let came_back = pool.0.came_back - self.pool.0.came_back;
        // Pages that come back had to be written as often as others.
        let pages = came_back + came_back * written.min(left) * times / left.max(1);
        let records = self.spared.reads + self.spared.merges * (1 + times);
        if pages + records < LEAST_SAVED {
            return 0;
        }
        (self.spared, self.pool) = (Spared::default(), pool);
        if 10 * records.max(pages) <= CLEARLY_MORE * records.min(pages) {
            return 0;
        }
        // All of the margin where only one side would have spared anything.
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

    /// What the margin would have spared of `count` leaves or records that come back after `bytes` of others.
    fn spared(bytes: usize, count: u32) -> (u64, u64) {
        let mut division = division();
        let leaf = |number: u32| PageId(u64::from(number));
        let key = |number: u32| number.to_be_bytes();
        for number in 0..count {
            division.leaf_leaves(leaf(number));
            division.record_leaves(Record { tree: 2, key: &key(number), value: Some(b"old") });
        }
        division.come(bytes);
        for number in 0..2 * count {
            division.leaf_comes(leaf(number));
            division.record_comes(Record { tree: 2, key: &key(number), value: Some(b"new") });
        }
        (division.spared.merges, division.spared.reads)
    }

    #[test]
    fn what_the_margin_would_have_kept_counts() {
        let within = (MARGIN * CHUNK) as usize;
        let (merges, reads) = spared(within, 1_000);
        // One in eight is watched and counts for eight.
        assert!((800..1_200).contains(&merges) && (800..1_200).contains(&reads), "{merges}, {reads}");
        assert_eq!(spared(within + 1, 1_000), (0, 0), "the margin has no room for more than itself");
    }

    #[test]
    fn whoever_would_spare_more_gets_a_part_of_the_margin() {
        // (reads and merges spared by records), (pages that came back, written of 1,000), how often a page is written: chunks.
        let cases = [
            ((100, 0), (50, 0), 1, 21),
            ((50, 0), (100, 0), 1, -21),
            // A merge is a read and a write, or two writes where each is written twice.
            ((0, 50), (80, 0), 1, 7),
            ((0, 30), (80, 0), 1, -9),
            ((0, 34), (80, 0), 2, 7),
            // Of pages that leave half are written.
            ((120, 0), (80, 500), 1, 0),
            ((0, 50), (100, 500), 1, -12),
            // A difference of a fifth and less is none.
            ((120, 0), (100, 0), 1, 0),
            ((121, 0), (100, 0), 1, 6),
            ((0, 0), (100, 0), 1, -64),
            ((0, 100), (0, 0), 1, 64),
            // Too little to tell.
            ((20, 0), (0, 0), 1, 0),
        ];
        for ((reads, merges), (came_back, written), times, expected) in cases {
            let mut division = division();
            division.spared = Spared { reads, merges };
            let decided = division.decide(pages(1_000, came_back, written), times);
            assert_eq!(decided, expected, "{reads} {merges} {came_back} {written} {times}");
            if reads + merges + came_back > LEAST_SAVED {
                assert_eq!(division.decide(pages(1_000, came_back, written), times), 0, "it was counted");
            }
        }
    }

    #[test]
    fn records_are_idle_that_nobody_asks_for_or_brings() {
        let mut division = division();
        assert!(!division.is_idle(5), "they were asked for");
        assert!(division.is_idle(5));
        division.come(100);
        assert!(!division.is_idle(5), "one has come");
        assert!(division.is_idle(5));
    }

    #[test]
    fn a_look_is_due_when_the_margin_has_gone_through() {
        let mut division = division();
        division.come((MARGIN / 2 * CHUNK) as usize);
        assert!(!division.is_due(MARGIN / 2 - 1));
        assert!(division.is_due(MARGIN / 2));
        assert!(!division.is_due(MARGIN));
        assert!(!Division::fixed().is_due(1 << 40), "nothing is divided");
    }
}
