//! Measures the lifetimes of pages: some pages are watched, and the intervals between their writes are
//! counted in buckets.
//!
//! Oh et al. (FAST 2024) watch one page in a hundred and count intervals in units of a segment. If few pages
//! take most of the writes, such a sample contains none of them or too many. So short intervals are measured
//! on *every* page, in bursts (`short`), and the watched pages only give the distribution of longer
//! intervals. The authors' program does so for its first bucket. The number of watched pages is absolute and
//! not a share, since the error depends on the number.
//!
//! Write times are kept from epoch to epoch, so an interval may begin in an earlier epoch. The authors'
//! program drops the times and corrects for that. If a page was last written before measuring began, its
//! interval is only known to be longer than the time since measuring began. Such intervals are counted
//! separately and spread over the longer intervals (Kaplan and Meier, 1958). In each run of consecutive
//! pages, a hash chooses the watched page, so that strides of the workload do not coincide with the watched
//! pages.

use super::model::{Lifetimes, Short};
use super::short::ShortIntervals;
use crate::Divisor;
use fulgurite_base::PageId;

const NEVER: u32 = u32::MAX;

/// The write times of the watched pages, and the counts of intervals.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    /// The length of a run, in which one page is watched.
    one_in: Divisor,
    bucket: u32,
    /// The time of each watched page's last write, modulo 2^32.
    written_at: Vec<u32>,
    counts: Vec<u64>,
    /// The number of intervals that are longer than the time since measuring began, by the bucket of that
    /// time.
    longer: Vec<u64>,
    beyond: u64,
    started_at: u64,
    short: ShortIntervals,
}

impl Sampler {
    /// Creates a sampler that watches at least `watched` of `pages` pages, or all. It distinguishes intervals
    /// of up to `buckets` buckets; intervals below `short` page writes are measured on every page.
    pub(crate) fn new(pages: u32, watched: u64, bucket: u32, buckets: usize, short: u64) -> Sampler {
        let one_in = (u64::from(pages) / watched.max(1)).clamp(1, u64::from(u32::MAX)) as u32;
        Sampler {
            one_in: Divisor::new(one_in),
            bucket,
            written_at: vec![NEVER; pages.div_ceil(one_in) as usize],
            counts: vec![0; buckets],
            longer: vec![0; buckets],
            beyond: 0,
            started_at: 0,
            short: ShortIntervals::new(short, bucket),
        }
    }

    /// Starts measuring.
    pub(crate) fn start(&mut self, now: u64) {
        self.started_at = now;
        self.short.start(now);
        self.clear();
    }

    /// Records a host write of a page.
    #[inline]
    pub(crate) fn written(&mut self, lpn: u32, now: u64) {
        self.short.written(lpn, now);
        let (run, place) = self.one_in.divide(lpn);
        if place != self.one_in.divide(PageId(u64::from(run)).mixed() as u32).1 {
            return;
        }
        self.watch(run, now);
    }

    /// Records a write of the watched page of its run.
    #[inline(never)]
    fn watch(&mut self, run: u32, now: u64) {
        let before = std::mem::replace(&mut self.written_at[run as usize], now as u32);
        // The first write of a page ends no interval.
        if before == NEVER {
            return;
        }
        let interval = u64::from((now as u32).wrapping_sub(before));
        let measured = now - self.started_at;
        let counts = if interval > measured { &mut self.longer } else { &mut self.counts };
        match counts.get_mut((interval.min(measured) / u64::from(self.bucket)) as usize) {
            Some(count) => *count += 1,
            None => self.beyond += 1,
        }
    }

    /// Returns the measured lifetimes and resets the counts; `None` if no interval was counted.
    pub(crate) fn take(&mut self) -> Option<Lifetimes> {
        let (counts, longer) = self.short.counts();
        let short = Short { counts, longer };
        let lifetimes =
            Lifetimes::from_counts_and_short(self.bucket, &self.counts, &self.longer, self.beyond, short);
        self.clear();
        lifetimes
    }

    fn clear(&mut self) {
        self.counts.fill(0);
        self.longer.fill(0);
        self.beyond = 0;
        self.short.clear();
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.written_at[..]) + 2 * size_of_val(&self.counts[..]) + self.short.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: the result does not depend on whether the one hot page is watched. Half of the writes go to
    /// that page and the others to 999 pages in turn, with ten pages watched. So half of the writes live for
    /// 2 writes and half for 1,998.
    #[test]
    fn a_page_with_half_of_the_writes_need_not_be_watched() {
        for hot in 0..100 {
            let mut sampler = Sampler::new(1_000, 10, 16, 500, 64);
            sampler.start(0);
            for now in 0..40_000u64 {
                let other = (now / 2 % 999) as u32;
                sampler.written(if now % 2 == 0 { hot } else { other + u32::from(other >= hot) }, now);
            }
            let lifetimes = sampler.take().unwrap();
            let survival = lifetimes.survival(1_000.0);
            assert!((survival - 0.5).abs() < 0.02, "page {hot}: {survival}");
            assert!(lifetimes.survival(1_900.0) > 0.4 && lifetimes.survival(2_100.0) < 0.02, "page {hot}");
        }
    }

    #[test]
    fn the_requested_number_of_pages_is_watched() {
        for (pages, watched) in [(1_000, 10), (1_000, 999), (1_000, 5_000), (65_537, 65_536), (7, 0)] {
            let sampler = Sampler::new(pages, watched, 16, 10, 0);
            let watches = sampler.written_at.len() as u64;
            assert!(watches >= watched.min(u64::from(pages)), "{watches} of {pages} for {watched}");
            assert!(
                watches <= (2 * watched).max(1) || watches == u64::from(pages),
                "{watches} for {watched}"
            );
        }
    }

    /// The rule: the length of an interval is known if the interval began after measuring did. Otherwise the
    /// interval is only known to be longer.
    #[test]
    fn an_interval_begun_before_measuring_is_censored() {
        for (written, survival) in [(99, 1.0), (100, 0.0), (101, 0.0)] {
            let mut sampler = Sampler::new(8, 8, 10, 20, 0);
            sampler.written(3, written);
            sampler.start(100);
            sampler.written(3, 152);
            // Another page lives for 100 writes.
            sampler.written(4, 110);
            sampler.written(4, 210);
            let lifetimes = sampler.take().unwrap();
            assert_eq!(lifetimes.survival(60.0), 0.5 + survival / 2.0, "written at {written}");
        }
    }
}
