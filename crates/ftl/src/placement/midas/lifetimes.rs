//! Measuring how long pages live: one page in `sample` is watched, intervals between its writes are counted in
//! buckets.
//!
//! The paper samples one page in a hundred and counts intervals in units of a segment. Times are kept from epoch
//! to epoch, so an interval may begin in any epoch and no epoch's end cuts it short. The paper's
//! program forgets them and corrects for it. If a page was last written before measuring began, its interval is
//! only known to be longer than that; such intervals are counted apart and spread over the longer
//! ones (Kaplan and Meier, 1958). Within each run of `sample` neighbours a hash chooses the page, so that no
//! stride of the workload falls in with it.

use super::model::Lifetimes;
use crate::Divisor;
use fulgurite_base::PageId;

const NEVER: u32 = u32::MAX;

/// The watched pages' times and the counts.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    sample: Divisor,
    bucket: u32,
    /// When each watched page was written, modulo 2^32.
    written_at: Vec<u32>,
    counts: Vec<u64>,
    /// By the time since measuring began, intervals that are longer.
    longer: Vec<u64>,
    beyond: u64,
    started_at: u64,
}

impl Sampler {
    pub fn new(pages: u32, sample: u32, bucket: u32, buckets: usize) -> Sampler {
        Sampler {
            sample: Divisor::new(sample),
            bucket,
            written_at: vec![NEVER; pages.div_ceil(sample) as usize],
            counts: vec![0; buckets],
            longer: vec![0; buckets],
            beyond: 0,
            started_at: 0,
        }
    }

    /// Measuring begins.
    pub fn start(&mut self, now: u64) {
        self.started_at = now;
        self.clear();
    }

    /// A page is written by the host.
    #[inline]
    pub fn written(&mut self, lpn: u32, now: u64) {
        let (run, place) = self.sample.divide(lpn);
        if place != self.sample.divide(PageId(u64::from(run)).mixed() as u32).1 {
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
        let lifetimes = Lifetimes::from_counts(self.bucket, &self.counts, &self.longer, self.beyond);
        self.clear();
        lifetimes
    }

    fn clear(&mut self) {
        self.counts.fill(0);
        self.longer.fill(0);
        self.beyond = 0;
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&self.written_at[..]) + 2 * size_of_val(&self.counts[..])
    }
}
