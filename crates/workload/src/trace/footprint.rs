//! Counts the distinct pages of a trace in bounded memory.
//!
//! The pages are kept as runs, exactly, while there are few runs. Beyond that, a sample of the pages is kept: those
//! whose hash is below a threshold, which is halved whenever there are too many. So the sample is the same whatever
//! the order of the requests is, and the number of pages in it, times its divisor, estimates all pages. Runs of
//! many pages stay exact, since there are few of them and each has too many pages to be looked at.

use super::page_set::PageSets;
use fulgurite_base::PageId;
use rustc_hash::FxHashSet;
use std::ops::Range;

/// The most runs that are kept, and the most pages of a sample. A run takes about 40 bytes, and a page at most 64.
pub(super) const RUNS_AT_MOST: usize = 1 << 19;
/// The least number of pages of a run that stays exact.
const LONG: u64 = 1 << 12;
/// The quantile of the normal distribution that a value of either sign exceeds in 5 of 100 cases.
const NORMAL: f64 = 1.96;

/// A set of pages of several volumes.
pub(super) struct Footprint {
    /// All pages, or those of long runs if there is a sample.
    exact: PageSets,
    sample: Option<Sample>,
    most: usize,
}

struct Sample {
    divisor: u32,
    pages: FxHashSet<(u32, u64)>,
    most: usize,
}

impl Sample {
    fn has(&self, volume: u32, page: u64) -> bool {
        let volume = PageId(u64::from(volume) + 1).mixed();
        PageId(page).is_sampled(volume, self.divisor)
    }

    /// Adds the pages of a run that belong to the sample.
    fn add(&mut self, volume: u32, pages: Range<u64>) {
        for page in pages {
            if self.has(volume, page) {
                self.pages.insert((volume, page));
            }
        }
        while self.pages.len() > self.most {
            self.divisor *= 2;
            let mut pages = std::mem::take(&mut self.pages);
            pages.retain(|(volume, page)| self.has(*volume, *page));
            self.pages = pages;
        }
    }
}

impl Footprint {
    /// Creates an empty set that keeps at most about `most` runs or pages.
    pub(super) fn new(most: usize) -> Footprint {
        Footprint { exact: PageSets::default(), sample: None, most }
    }

    /// Adds a run of at least one page of a volume. Returns whether any of its pages was in the set before; of a
    /// sample, whether its first page was, or `None` if that is not known. Beside it is the number of runs that it
    /// stands for: the others are those of which it is not known.
    pub(super) fn insert(&mut self, volume: u32, pages: Range<u64>) -> Option<(bool, u64)> {
        let Some(sample) = &mut self.sample else {
            let was_there = self.exact.insert(volume, pages);
            if self.exact.runs() > self.most {
                self.thin();
            }
            return Some((was_there, 1));
        };
        let first = pages.start;
        let known = if self.exact.contains(volume, first) {
            Some((true, 1))
        } else if sample.has(volume, first) {
            Some((sample.pages.contains(&(volume, first)), u64::from(sample.divisor)))
        } else {
            None
        };
        if pages.end - pages.start >= LONG {
            self.exact.insert(volume, pages);
        } else {
            sample.add(volume, pages);
        }
        known
    }

    /// Replaces the exact set by a sample and the long runs.
    #[cold]
    fn thin(&mut self) {
        let all = std::mem::take(&mut self.exact);
        let mut sample = Sample { divisor: 1, pages: FxHashSet::default(), most: self.most };
        all.for_each_run(|volume, run| {
            if run.end - run.start >= LONG {
                self.exact.insert(volume, run);
            } else {
                sample.add(volume, run);
            }
        });
        self.sample = Some(sample);
    }

    /// Whether the set is exact.
    pub(super) fn is_exact(&self) -> bool {
        self.sample.is_none()
    }

    /// Returns the number of pages in the set, and half the width of an interval around it that should have the
    /// exact number in 95 of 100 cases; zero if the number is exact.
    pub(super) fn pages(&self) -> (u64, u64) {
        let exact = self.exact.pages();
        let Some(sample) = &self.sample else { return (exact, 0) };
        let is_counted = |(volume, page): &&(u32, u64)| !self.exact.contains(*volume, *page);
        // A page of a long run may have been in the sample before.
        let sampled = sample.pages.iter().filter(is_counted).count() as u64;
        let divisor = u64::from(sample.divisor);
        let estimated = sampled * divisor;
        let deviation = (estimated as f64 * (divisor - 1) as f64).sqrt();
        (exact.saturating_add(estimated), (NORMAL * deviation).ceil() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_base::Prng;
    use std::collections::BTreeSet;

    /// The rule: with few runs the number of pages is exact; beyond that it is within its error, and memory stays
    /// bounded. Pages of several volumes are different pages.
    #[test]
    fn pages_are_counted_within_the_error() {
        let (mut within, mut all) = (0, 0);
        for seed in 0..20 {
            let mut prng = Prng::new(seed, "footprint");
            let (mut footprint, mut exact) = (Footprint::new(1_000), BTreeSet::new());
            for number in 0..20_000u64 {
                let (volume, first) = (prng.below(3) as u32, prng.below(100_000) * 3);
                let pages = first..first + 1 + prng.below(3);
                exact.extend(pages.clone().map(|page| (volume, page)));
                footprint.insert(volume, pages);
                if footprint.is_exact() {
                    assert_eq!(footprint.pages(), (exact.len() as u64, 0));
                }
                if number % 5_000 == 4_999 {
                    let (pages, error) = footprint.pages();
                    assert!(!footprint.is_exact() && error * 5 < pages, "{pages} ± {error}");
                    within += u32::from(pages.abs_diff(exact.len() as u64) <= error);
                    all += 1;
                }
            }
            let sample = footprint.sample.as_ref().unwrap();
            assert!(sample.pages.len() <= 1_000 && sample.divisor >= 16);
        }
        // Of 80 numbers 76 are expected; the standard deviation is 2 for independent ones.
        assert!(within >= 68, "{within} of {all}");
    }

    /// The rule: runs of many pages are exact also beside a sample, and their pages do not count twice.
    #[test]
    fn long_runs_stay_exact() {
        let mut footprint = Footprint::new(100);
        for at in 0..1_000 {
            footprint.insert(1, at * 10..at * 10 + 1);
        }
        assert!(!footprint.is_exact());
        footprint.insert(1, 0..1 << 40);
        assert_eq!(footprint.insert(1, 0..1 << 40), Some((true, 1)));
        assert_eq!(footprint.pages(), (1 << 40, 0), "no page of the sample is outside of the run");
        assert_eq!(footprint.insert(1, 77..78), Some((true, 1)));
        assert!(footprint.insert(2, 77..78).is_none_or(|(was_there, _)| !was_there));
    }

    /// The rule: while the set is exact it tells of every run whether a page was there, and of a sample of the
    /// others.
    #[test]
    fn reuse_is_known_of_a_sample() {
        let mut footprint = Footprint::new(1_000);
        assert_eq!(
            [5..9, 8..12, 20..21].map(|run| footprint.insert(0, run)),
            [false, true, false].map(|was_there| Some((was_there, 1)))
        );
        for at in 0..30_000 {
            footprint.insert(0, at * 2..at * 2 + 1);
        }
        let known = |from: u64, footprint: &mut Footprint| {
            let told = (from..from + 10_000).filter_map(|at| footprint.insert(0, at * 2..at * 2 + 1));
            told.fold((0, 0), |(count, reused), (was_there, stands_for)| {
                (count + stands_for, reused + if was_there { stands_for } else { 0 })
            })
        };
        // They stand for all 10,000 runs, of which about 300 are in the sample.
        let (again, reused) = known(0, &mut footprint);
        assert!(again.abs_diff(10_000) < 2_500 && reused == again, "{reused} of {again}");
        let (new, reused) = known(1_000_000, &mut footprint);
        assert!(new.abs_diff(10_000) < 2_500 && reused == 0, "{reused} of {new}");
    }
}
