//! Divides the workload into parts, which provide the evidence for the advice. The parts are seeds of a
//! generated workload, or slices of a trace. Some parts choose the settings, and the others judge the choice.
//!
//! No part both chooses and judges. The best of many settings owes a share of its lead to chance, so the
//! parts that chose it overstate its gain.

use fulgurite_stack::StackError;
use std::collections::BTreeMap;
use std::ops::Range;

/// The number of seeds that choose the settings, and the number that judge the choice. The first pair is for
/// a simulated drive, the second for a real one, which is slow.
const SEEDS: [(u64, u64); 2] = [(3, 5), (2, 3)];

/// The possible numbers of slices of a trace. The largest number for which the slices are long enough is
/// used. Half of the slices choose, and the others judge.
const SLICES: [usize; 3] = [8, 4, 2];

/// The minimum number of page requests in a slice.
const LEAST: u64 = 1_000;

/// The number of times that the page requests of a slice must fill the pool for the slice to be long enough.
const FILLS: u64 = 4;

/// The requests of one part of the workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The seed of the runs of this part.
    pub seed: u64,
    /// The number of page requests of the trace before this part; 0 for a generated workload.
    pub skip: u64,
    /// The number of page requests in this part.
    pub ops: u64,
}

/// The parts of a workload.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    /// The word for the parts that the workload is measured in: `seeds`, or `slices` of a trace.
    pub called: &'static str,
    /// The parts, by page size in bytes. In each list the parts that choose are first.
    parts: BTreeMap<u32, Vec<Part>>,
    /// The number of parts that choose.
    choosing: usize,
}

impl Evidence {
    /// Creates one part per seed, from `seed` on, with `ops` page requests each.
    pub(super) fn seeds(seed: u64, ops: u64, page_bytes: u32, is_real: bool) -> Evidence {
        let (choosing, judging) = SEEDS[usize::from(is_real)];
        let part = |at: u64| Part { seed: seed.wrapping_add(at), skip: 0, ops };
        let parts = BTreeMap::from([(page_bytes, (0..choosing + judging).map(part).collect())]);
        Evidence { called: "seeds", parts, choosing: choosing as usize }
    }

    /// Creates evenly spaced slices of a trace with at most `most` page requests each. Every second slice
    /// chooses. For a page size, the function `pages` returns the number of pages of each request of the
    /// trace. The first of `sizes` is the plain page size.
    pub(super) fn slices<I: Iterator<Item = u32>>(
        pages: impl Fn(u32) -> Result<I, StackError>,
        sizes: &[u32],
        (seed, frames, most): (u64, u64, u64),
    ) -> Result<Evidence, StackError> {
        let plain: Vec<u32> = pages(sizes[0])?.collect();
        let all: u64 = plain.iter().map(|pages| u64::from(*pages)).sum();
        let wanted = LEAST.max(FILLS * frames);
        // The shortest traces are divided in two, even if one of these two slices cannot fill the pool.
        let count = SLICES.into_iter().find(|count| all / *count as u64 >= wanted).unwrap_or(2);
        if all < 2 * LEAST || plain.len() < count {
            return Err(StackError::request(format!(
                "the trace has {all} page requests, too few to choose by one half and to judge by the \
                 other; accepted: at least {}",
                2 * LEAST
            )));
        }
        let cuts = Cuts::of(&plain, count, most);
        let mut parts = BTreeMap::new();
        for size in sizes {
            let placed = cuts.parts(pages(*size)?, seed);
            let (choosing, judging): (Vec<_>, Vec<_>) =
                placed.into_iter().enumerate().partition(|(at, _)| at % 2 == 0);
            parts.insert(*size, choosing.into_iter().chain(judging).map(|(_, part)| part).collect());
        }
        // For the plain page size all slices have the same number of page requests, so that their figures
        // have equal weight.
        let own: &mut Vec<Part> = parts.entry(sizes[0]).or_default();
        own.iter_mut().for_each(|part| part.ops = cuts.length);
        Ok(Evidence { called: "slices", parts, choosing: count / 2 })
    }

    /// Returns the part with the number `at` for pages of this size in bytes, or `None` if there is no such
    /// part.
    pub(super) fn part(&self, page_bytes: u32, at: usize) -> Option<&Part> {
        self.parts.get(&page_bytes)?.get(at)
    }

    /// Returns the numbers of the parts that choose.
    pub(super) fn choosing(&self) -> Range<usize> {
        0..self.choosing
    }

    /// Returns the numbers of the parts that judge.
    pub(super) fn judging(&self) -> Range<usize> {
        self.choosing..self.parts.values().next().map_or(0, Vec::len)
    }
}

/// The bounds of the slices of a trace, counted in requests of the trace. A request can have several pages,
/// so bounds in page requests would divide the trace differently for each page size.
struct Cuts {
    ranges: Vec<Range<usize>>,
    /// The number of page requests per slice for the plain page size.
    length: u64,
}

impl Cuts {
    fn of(plain: &[u32], count: usize, most: u64) -> Cuts {
        let whole = |at: usize| at * plain.len() / count..(at + 1) * plain.len() / count;
        let pages = |range: Range<usize>| plain[range].iter().map(|pages| u64::from(*pages)).sum::<u64>();
        let length = (0..count).map(|at| pages(whole(at))).min().unwrap_or(0).min(most);
        let shortened = |range: Range<usize>| {
            let mut sum = 0;
            let end = range.clone().find(|at| {
                sum += u64::from(plain[*at]);
                sum >= length
            });
            range.start..end.map_or(range.end, |last| last + 1)
        };
        Cuts { ranges: (0..count).map(|at| shortened(whole(at))).collect(), length }
    }

    /// Returns the slices for one page size. `pages` is the number of pages of each request of the trace.
    fn parts(&self, pages: impl Iterator<Item = u32>, seed: u64) -> Vec<Part> {
        let mut parts: Vec<Part> = self.ranges.iter().map(|_| Part { seed, skip: 0, ops: 0 }).collect();
        let (mut before, mut slice) = (0u64, 0);
        for (at, pages) in pages.enumerate() {
            while slice < parts.len() && at >= self.ranges[slice].end {
                slice += 1;
            }
            let Some(range) = self.ranges.get(slice) else { break };
            if at == range.start {
                parts[slice].skip = before;
            }
            if range.contains(&at) {
                parts[slice].ops += u64::from(pages);
            }
            before += u64::from(pages);
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(requests: &[u32], frames: u64, most: u64) -> Result<Evidence, StackError> {
        // With pages of twice the size a request has half as many pages, rounded up.
        let pages = |size: u32| Ok(requests.iter().map(move |pages| pages.div_ceil(size / 4096)));
        Evidence::slices(pages, &[4096, 8192], (42, frames, most))
    }

    #[test]
    fn no_part_both_chooses_and_judges() {
        let evidence = slices(&[1; 8_000], 10, u64::MAX).unwrap();
        assert_eq!((evidence.choosing(), evidence.judging()), (0..4, 4..8));
        let mut seen = vec![0; 8_000];
        for at in 0..8 {
            let Part { skip, ops, .. } = *evidence.part(4096, at).unwrap();
            assert_eq!(ops, 1_000);
            seen[skip as usize..(skip + ops) as usize].iter_mut().for_each(|seen| *seen += 1);
            // Every second slice chooses.
            assert_eq!(skip / 1_000 % 2 == 0, evidence.choosing().contains(&at), "{skip}");
        }
        assert!(seen.iter().all(|seen| *seen == 1));
        let seeds = Evidence::seeds(u64::MAX, 10, 4096, false);
        let number = |at: usize| seeds.part(4096, at).unwrap().seed;
        let numbers: Vec<u64> = seeds.choosing().chain(seeds.judging()).map(number).collect();
        assert_eq!(numbers, [u64::MAX, 0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_slice_has_the_same_requests_whatever_the_page_size() {
        let evidence = slices(&[3, 4].repeat(4_000), 10, 1_400).unwrap();
        for at in 0..8 {
            let [plain, large] = [4096, 8192].map(|size| evidence.part(size, at).unwrap().clone());
            assert_eq!((plain.ops, large.ops), (1_400, 800), "400 requests of 3 or 4, or of 2");
            assert_eq!((plain.skip % 7, plain.skip / 7 * 4), (0, large.skip));
        }
    }

    #[test]
    fn a_short_trace_has_fewer_slices_or_is_refused() {
        let count = |requests: usize, frames: u64| {
            slices(&vec![1; requests], frames, u64::MAX).map(|evidence| evidence.judging().end)
        };
        assert_eq!(count(100_000, 3_125), Ok(8));
        assert_eq!(count(100_000, 3_126), Ok(4));
        assert_eq!(count(7_000, 3_000), Ok(2), "too few to fill the pool four times");
        assert_eq!(count(2_000, 1), Ok(2));
        let sentence = count(1_999, 1).unwrap_err().to_string();
        assert!(sentence.contains("1999 page requests") && sentence.contains("2000"), "{sentence}");
    }
}
