//! Measuring how long pages live: some pages are watched, intervals between their writes are counted in buckets.
//!
//! The paper watches one page in a hundred and counts intervals in units of a segment. A few pages can take most
//! of the writes, and such a sample holds none of them or too many. So intervals that are shorter than a range are
//! measured on *every* page, in bursts (`short`), and the watched pages only say how the longer ones are
//! distributed. The paper's program does so for its first bucket. How many pages are watched is a number and not
//! a share, since the error depends on the number.
//!
//! Times are kept from epoch to epoch, so an interval may begin in any epoch and no epoch's end cuts it short. The
//! paper's program forgets them and corrects for it. If a page was last written before measuring began, its
//! interval is only known to be longer than that; such intervals are counted apart and spread over the longer
//! ones (Kaplan and Meier, 1958). Within each run of neighbours a hash chooses the page that is watched, so that
//! no stride of the workload falls in with it.

use super::model::{Lifetimes, Short};
use super::short::ShortIntervals;
use crate::Divisor;
use fulgurite_base::PageId;

const NEVER: u32 = u32::MAX;

/// The watched pages' times and the counts.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    /// One page in so many is watched.
    one_in: Divisor,
    bucket: u32,
    /// When each watched page was written, modulo 2^32.
    written_at: Vec<u32>,
    counts: Vec<u64>,
    /// By the time since measuring began, intervals that are longer.
    longer: Vec<u64>,
    beyond: u64,
    started_at: u64,
    short: ShortIntervals,
}

impl Sampler {
    /// Watches at least `watched` of `pages`, or all. Intervals of up to `buckets` buckets are told apart, those
    /// below `short` page writes on every page.
    pub fn new(pages: u32, watched: u64, bucket: u32, buckets: usize, short: u64) -> Sampler {
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

    /// Measuring begins.
    pub fn start(&mut self, now: u64) {
        self.started_at = now;
        self.short.start(now);
        self.clear();
    }

    /// A page is written by the host.
    #[inline]
    pub fn written(&mut self, lpn: u32, now: u64) {
        self.short.written(lpn, now);
        let (run, place) = self.one_in.divide(lpn);
        if place != self.one_in.divide(PageId(u64::from(run)).mixed() as u32).1 {
            return;
        }
        self.watch(run, now);
    }

    /// The page that is watched of this run is written.
    #[inline(never)]
    fn watch(&mut self, run: u32, now: u64) {
        let before = std::mem::replace(&mut self.written_at[run as usize], now as u32);
        // A page's first write says nothing of how long pages live.
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

    /// What was measured, and starts anew.
    pub fn take(&mut self) -> Option<Lifetimes> {
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

    pub fn bytes(&self) -> usize {
        size_of_val(&self.written_at[..]) + 2 * size_of_val(&self.counts[..]) + self.short.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half of the writes go to one page, the others to 999 in turn; ten pages are watched. Whether the one page is
    /// among them must not matter: half of the writes live for 2 writes and half for 1,998.
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
    fn as_many_pages_are_watched_as_were_asked_for() {
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

    /// The rule: an interval is known if it began when measuring did, or later, and only to be longer than that if it began before.
    #[test]
    fn an_interval_from_before_is_only_known_to_be_longer() {
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
