//! Counts the requests of each interval of a trace whose length is not known before.
//!
//! Intervals of several lengths are counted at once, each length a multiple of the one before. A length begins when the
//! trace is as long, and is given up when it has too many intervals, so that the memory is bounded. A page is another
//! one of an interval if the request before for it was in another interval, so that the different pages need no set
//! for each interval.

use fulgurite_workload::Op;
use std::collections::VecDeque;

/// The counts of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// The reads.
    pub reads: u64,
    /// The writes.
    pub writes: u64,
    /// The trims.
    pub trims: u64,
    /// The requests that begin at the end of the previous one.
    pub sequential: u64,
    /// The different pages that are requested, estimated if a sample of the pages is followed.
    pub pages: u64,
    /// Those of them that were not requested before.
    pub new_pages: u64,
}

impl Interval {
    /// All requests.
    pub fn requests(&self) -> u64 {
        self.reads + self.writes + self.trims
    }

    /// Returns all of `intervals`, which are the first ones, as one.
    fn all(intervals: &[Interval]) -> Interval {
        let mut all = Interval::default();
        for interval in intervals {
            all.reads += interval.reads;
            all.writes += interval.writes;
            all.trims += interval.trims;
            all.sequential += interval.sequential;
            all.new_pages += interval.new_pages;
        }
        // No page was requested before the first interval.
        all.pages = all.new_pages;
        all
    }
}

/// The intervals of one length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intervals {
    /// The length, in the unit of the places of requests.
    pub length: u64,
    /// The intervals, the first one from the first request on.
    pub all: Vec<Interval>,
    /// The place of the end of the last interval.
    end: u64,
}

impl Intervals {
    fn new(length: u64, all: Vec<Interval>) -> Intervals {
        Intervals { length, end: length.saturating_mul(all.len() as u64), all }
    }

    /// Adds intervals until the last one contains the place `at`.
    fn extend(&mut self, at: u64) {
        while at >= self.end && self.end < u64::MAX {
            self.all.push(Interval::default());
            self.end = self.end.saturating_add(self.length);
        }
    }
}

/// The intervals of several lengths.
pub(super) struct Series {
    /// The lengths that are counted, the shortest first.
    counted: VecDeque<Intervals>,
    /// The lengths that begin later.
    later: VecDeque<u64>,
    /// The most intervals of a length, unless no other length is left.
    most: usize,
}

impl Series {
    /// Creates the counts before the first request. Each of `lengths` is a multiple of the one before.
    pub(super) fn new(lengths: &[u64], most: usize) -> Series {
        let mut later: VecDeque<u64> = lengths.iter().copied().collect();
        let first = later.pop_front().into_iter().map(|length| Intervals::new(length, vec![]));
        Series { counted: first.collect(), later, most }
    }

    /// Counts a request at the place `at`, which is not before the previous one.
    pub(super) fn request(&mut self, at: u64, op: Op, is_sequential: bool) {
        self.begin(at);
        for interval in self.counted.iter_mut().filter_map(|intervals| intervals.all.last_mut()) {
            match op {
                Op::Read => interval.reads += 1,
                Op::Write => interval.writes += 1,
                Op::Trim => interval.trims += 1,
            }
            interval.sequential += u64::from(is_sequential);
        }
    }

    /// Counts a page of the last request, given the place of the request before for that page. It stands for `weight`
    /// pages.
    pub(super) fn page(&mut self, before: Option<u64>, weight: u64) {
        for intervals in &mut self.counted {
            let is_other = before.is_none_or(|before| before < intervals.end - intervals.length);
            let Some(interval) = intervals.all.last_mut().filter(|_| is_other) else { break };
            interval.pages += weight;
            interval.new_pages += if before.is_none() { weight } else { 0 };
        }
    }

    /// Begins the intervals that the place `at` is in, and gives up lengths that have too many.
    fn begin(&mut self, at: u64) {
        while let Some(length) = self.later.front().copied().filter(|length| at >= *length) {
            self.later.pop_front();
            let so_far = self.counted.back().map(|shorter| Interval::all(&shorter.all));
            self.counted.push_back(Intervals::new(length, so_far.into_iter().collect()));
        }
        let most = self.most as u64;
        while self.counted.len() > 1 && at / self.counted[0].length >= most {
            self.counted.pop_front();
        }
        self.counted.iter_mut().for_each(|intervals| intervals.extend(at));
    }

    /// Returns the intervals of the shortest length that is counted.
    pub(super) fn finish(mut self) -> Intervals {
        self.counted.swap_remove_front(0).unwrap_or_else(|| Intervals::new(1, vec![]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_base::Prng;
    use std::collections::{BTreeMap, BTreeSet};

    /// The rule: whatever the length of the trace, the intervals of the length that is left have the counts that their
    /// definitions give, and there are at most as many as asked for.
    #[test]
    fn intervals_equal_those_of_sets() {
        for last in [0, 5, 9, 10, 99, 100, 101, 3_000, 40_000, 123_456] {
            let mut prng = Prng::new(last, "series");
            let mut series = Series::new(&[1, 10, 100, 1_000, 10_000], 50);
            let mut at = 0;
            let mut known: BTreeMap<u64, u64> = BTreeMap::new();
            let mut all = Vec::new();
            while at <= last {
                let page = prng.below(40);
                let op = [Op::Read, Op::Write, Op::Trim][prng.below(3) as usize];
                series.request(at, op, page.is_multiple_of(7));
                series.page(known.insert(page, at), 1);
                all.push((at, op, page));
                at += prng.below(last / 100 + 2);
            }
            let intervals = series.finish();
            let end = all.last().map_or(0, |(at, ..)| at / intervals.length + 1);
            assert_eq!(intervals.all.len() as u64, end, "{last}");
            assert!(end <= 50 && (end > 4 || intervals.length == 1), "{end} of {}", intervals.length);
            let mut seen = BTreeSet::new();
            for (number, interval) in (0..).zip(&intervals.all) {
                let is_in = |(at, ..): &&(u64, Op, u64)| at / intervals.length == number;
                let of = |op: Op| all.iter().filter(is_in).filter(|(_, of, _)| *of == op).count() as u64;
                let pages: BTreeSet<u64> = all.iter().filter(is_in).map(|(.., page)| *page).collect();
                let expected = Interval {
                    reads: of(Op::Read),
                    writes: of(Op::Write),
                    trims: of(Op::Trim),
                    sequential: all.iter().filter(is_in).filter(|(.., page)| page.is_multiple_of(7)).count()
                        as u64,
                    pages: pages.len() as u64,
                    new_pages: pages.difference(&seen).count() as u64,
                };
                assert_eq!(*interval, expected, "{number} of {last}");
                seen.extend(pages);
            }
        }
    }
}
