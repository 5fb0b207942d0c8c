//! Measures short lifetimes on every page, in bursts.
//!
//! A burst is two ranges long. In its first half, written pages are entered into a table. In its second half,
//! each write is counted in the bucket of its interval, or as longer than the range. An interval below the
//! range cannot have begun before the burst, so none is cut short. Bursts begin every 32 ranges, so a
//! sixteenth of all writes accesses the table. The table has room for twice the pages of a burst and is
//! cleared before each burst.

use fulgurite_base::PageId;

/// The distance between the starts of two bursts, in ranges.
const PERIOD: u64 = 32;
/// The mark of an empty slot. Page numbers have 32 bits, but no page has this number.
const NONE: u32 = u32::MAX;

/// The table of the pages of a burst, and the counts of intervals.
#[derive(Clone, Debug)]
pub(super) struct ShortIntervals {
    /// The bound in page writes below which intervals are measured; a multiple of `bucket`. 0 disables
    /// measuring.
    range: u64,
    bucket: u64,
    /// The start of the current burst, or of the next one.
    begins_at: u64,
    /// The pages of this burst with the time of their last write in it, by hash.
    slots: Vec<(u32, u32)>,
    counts: Vec<u64>,
    longer: u64,
}

impl ShortIntervals {
    pub(crate) fn new(range: u64, bucket: u32) -> ShortIntervals {
        let bucket = u64::from(bucket);
        let range = range - range % bucket;
        let slots = if range == 0 { 0 } else { (4 * range).next_power_of_two() };
        ShortIntervals {
            range,
            bucket,
            begins_at: u64::MAX,
            slots: vec![(NONE, 0); slots as usize],
            counts: vec![0; (range / bucket) as usize],
            longer: 0,
        }
    }

    /// Starts measuring.
    pub(crate) fn start(&mut self, now: u64) {
        self.begins_at = if self.range == 0 { u64::MAX } else { now };
        self.slots.fill((NONE, 0));
        self.clear();
    }

    /// Records a host write of a page.
    #[inline]
    pub(crate) fn written(&mut self, lpn: u32, now: u64) {
        if now >= self.begins_at {
            self.in_burst(lpn, now - self.begins_at);
        }
    }

    /// Records a host write of a page at the time `since` after the start of a burst.
    #[inline(never)]
    fn in_burst(&mut self, lpn: u32, since: u64) {
        if since >= 2 * self.range {
            self.begins_at += PERIOD * self.range;
            self.slots.fill((NONE, 0));
            return;
        }
        let mask = self.slots.len() - 1;
        let mut at = PageId(u64::from(lpn)).mixed() as usize & mask;
        // The search ends, since the table is at most half full.
        while self.slots[at].0 != NONE && self.slots[at].0 != lpn {
            at = (at + 1) & mask;
        }
        let (page, before) = std::mem::replace(&mut self.slots[at], (lpn, since as u32));
        if since < self.range {
            return;
        }
        let interval = if page == NONE { self.range } else { since - u64::from(before) };
        match self.counts.get_mut((interval / self.bucket) as usize) {
            Some(count) => *count += 1,
            None => self.longer += 1,
        }
    }

    /// Returns the number of intervals by bucket, and the number of intervals longer than the range.
    pub(crate) fn counts(&self) -> (&[u64], u64) {
        (&self.counts, self.longer)
    }

    /// Resets the counts, but keeps a current burst.
    pub(crate) fn clear(&mut self) {
        self.counts.fill(0);
        self.longer = 0;
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.slots[..]) + size_of_val(&self.counts[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: intervals below the range are counted by bucket, and others as longer. Page 7 is written
    /// every 10 writes, and all other writes are to new pages.
    #[test]
    fn every_page_counts() {
        let mut short = ShortIntervals::new(100, 4);
        short.start(5);
        for now in 5..205 {
            short.written(if now % 10 == 0 { 7 } else { 1_000 + now as u32 }, now);
        }
        let mut expected = [0; 25];
        expected[2] = 10;
        assert_eq!(short.counts(), (&expected[..], 90));
        // Between two bursts no interval is counted; the next burst counts again.
        (205..3_205).for_each(|now| short.written(7, now));
        assert_eq!(short.counts(), (&expected[..], 90));
        (3_205..3_405).for_each(|now| short.written(7, now));
        expected[0] += 100;
        assert_eq!(short.counts(), (&expected[..], 90));
    }

    #[test]
    fn a_bucket_beyond_the_range_measures_nothing() {
        let mut short = ShortIntervals::new(100, 128);
        short.start(0);
        (0..1_000).for_each(|now| short.written(7, now));
        assert_eq!((short.counts(), short.bytes()), ((&[][..], 0), 0));
    }

    /// The rule: a new start of measuring drops all earlier counts and write times.
    #[test]
    fn measuring_starts_from_empty_counts() {
        let mut short = ShortIntervals::new(100, 10);
        short.start(0);
        (0..130).for_each(|now| short.written(7, now));
        short.start(1_000);
        assert_eq!(short.counts(), (&[0; 10][..], 0));
        short.written(7, 1_130);
        assert_eq!(short.counts(), (&[0; 10][..], 1), "it was not written in this burst");
    }
}
