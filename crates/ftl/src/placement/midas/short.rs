//! Measuring short lifetimes on every page, in bursts.
//!
//! A burst is two ranges long. In its first half the pages that are written are remembered; in its second half
//! each write counts: in the bucket of its interval, or as longer than the range. No interval below the range can
//! begin before the burst, so nothing is cut short. Bursts begin every 32 ranges, so a sixteenth of all writes
//! looks into the table. The table has room for twice the pages of a burst and is empty when one begins.

use fulgurite_base::PageId;

/// A burst begins every so many ranges.
const PERIOD: u64 = 32;
/// No page: this many pages do not exist, since numbers of pages have 32 bits.
const NONE: u32 = u32::MAX;

/// The table and the counts.
#[derive(Clone, Debug)]
pub(super) struct ShortIntervals {
    /// Intervals below this many page writes are measured; a multiple of `bucket`, 0 for none.
    range: u64,
    bucket: u64,
    /// When the burst began or will begin.
    begins_at: u64,
    /// Pages of this burst and when in it they were last written, by hash.
    slots: Vec<(u32, u32)>,
    counts: Vec<u64>,
    longer: u64,
}

impl ShortIntervals {
    pub fn new(range: u64, bucket: u32) -> ShortIntervals {
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

    /// Measuring begins.
    pub fn start(&mut self, now: u64) {
        self.begins_at = if self.range == 0 { u64::MAX } else { now };
        self.slots.fill((NONE, 0));
        self.clear();
    }

    /// A page is written by the host.
    #[inline]
    pub fn written(&mut self, lpn: u32, now: u64) {
        if now >= self.begins_at {
            self.in_burst(lpn, now - self.begins_at);
        }
    }

    /// The same, so long after the burst began.
    #[inline(never)]
    fn in_burst(&mut self, lpn: u32, since: u64) {
        if since >= 2 * self.range {
            self.begins_at += PERIOD * self.range;
            self.slots.fill((NONE, 0));
            return;
        }
        let mask = self.slots.len() - 1;
        let mut at = PageId(u64::from(lpn)).mixed() as usize & mask;
        // The table is at most half full.
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

    /// Intervals by bucket, and how many were longer than the range.
    pub fn counts(&self) -> (&[u64], u64) {
        (&self.counts, self.longer)
    }

    /// Forgets what was counted, though not a burst that is under way.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.longer = 0;
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&self.slots[..]) + size_of_val(&self.counts[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Page 7 every 10 writes, all other writes to new pages: a tenth of the writes has an interval of 10, and the
    /// others are longer.
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
        // Between two bursts nothing is counted, in the next one as much.
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

    /// The rule: where measuring begins anew, nothing is known of what was before.
    #[test]
    fn measuring_begins_with_nothing() {
        let mut short = ShortIntervals::new(100, 10);
        short.start(0);
        (0..130).for_each(|now| short.written(7, now));
        short.start(1_000);
        assert_eq!(short.counts(), (&[0; 10][..], 0));
        short.written(7, 1_130);
        assert_eq!(short.counts(), (&[0; 10][..], 1), "it was not written in this burst");
    }
}
