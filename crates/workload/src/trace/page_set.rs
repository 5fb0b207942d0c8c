//! A set of page numbers, stored as disjoint runs of consecutive pages. Its size grows with the number of
//! inserted runs and not with the pages in them, so a trace of long requests costs no more memory than one of
//! short requests.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of page numbers, stored as runs of consecutive pages.
#[derive(Debug, Default)]
pub(super) struct PageSet {
    /// Maps the first page of each run to the end of the run. Runs neither overlap nor touch.
    runs: BTreeMap<u64, u64>,
    pages: u64,
}

impl PageSet {
    /// Adds a run of at least one page. Returns whether any page of this run was in the set before.
    pub(crate) fn insert(&mut self, pages: Range<u64>) -> bool {
        let (mut first, mut end) = (pages.start, pages.end);
        let mut was_there = false;
        // The loop merges overlapping and touching runs, from the last one to the first.
        while let Some((&run_first, &run_end)) = self.runs.range(..=end).next_back() {
            // A touching run is merged too, so the comparison is `<` and not `<=`.
            if run_end < first {
                break;
            }
            was_there |= run_first < pages.end && pages.start < run_end;
            if run_first <= first && end <= run_end {
                return was_there;
            }
            self.runs.remove(&run_first);
            self.pages -= run_end - run_first;
            first = first.min(run_first);
            end = end.max(run_end);
        }
        self.runs.insert(first, end);
        self.pages += end - first;
        was_there
    }

    /// The number of pages in the set.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// Whether the set has a page.
    pub(crate) fn contains(&self, page: u64) -> bool {
        self.runs.range(..=page).next_back().is_some_and(|(_, end)| page < *end)
    }

    /// Returns a numbering of the set's pages from zero on, in ascending order.
    pub(crate) fn numbering(&self) -> Numbering {
        let runs = self.runs.iter().scan(0, |before, (&first, &end)| {
            let run = (first, *before);
            *before += end - first;
            Some(run)
        });
        Numbering(runs.collect())
    }
}

/// A set of pages of several volumes, and the number of its runs.
#[derive(Debug, Default)]
pub(super) struct PageSets(Vec<PageSet>, usize);

impl PageSets {
    /// Adds a run of at least one page of a volume. Returns whether any of its pages was in the set before.
    pub(crate) fn insert(&mut self, volume: u32, pages: Range<u64>) -> bool {
        let at = volume as usize;
        if self.0.len() <= at {
            self.0.resize_with(at + 1, PageSet::default);
        }
        let set = &mut self.0[at];
        let before = set.runs.len();
        let was_there = set.insert(pages);
        self.1 = self.1 + set.runs.len() - before;
        was_there
    }

    /// The number of runs in the set.
    pub(crate) fn runs(&self) -> usize {
        self.1
    }

    /// Whether the set has a page of a volume.
    pub(crate) fn contains(&self, volume: u32, page: u64) -> bool {
        self.0.get(volume as usize).is_some_and(|set| set.contains(page))
    }

    /// Calls `each` with every run and its volume.
    pub(crate) fn for_each_run(&self, mut each: impl FnMut(u32, Range<u64>)) {
        for (volume, set) in (0..).zip(&self.0) {
            set.runs.iter().for_each(|(first, end)| each(volume, *first..*end));
        }
    }

    /// The number of pages in the set.
    pub(crate) fn pages(&self) -> u64 {
        self.0.iter().fold(0, |pages, set| pages.saturating_add(set.pages()))
    }

    /// Returns a numbering of the pages from zero on: volume by volume, each in ascending order.
    pub(crate) fn numbering(&self) -> Numberings {
        let volumes = self.0.iter().scan(0, |before: &mut u64, set| {
            let first = *before;
            *before = before.saturating_add(set.pages());
            Some((first, set.numbering()))
        });
        Numberings(volumes.collect())
    }
}

/// A dense numbering of the pages of several volumes. Each pair has the number of a volume's first page, and
/// the numbering of its pages among each other.
pub(super) struct Numberings(Vec<(u64, Numbering)>);

impl Numberings {
    /// Returns the number of a page, which must be in the set. Pages of one run have consecutive numbers.
    pub(crate) fn of(&self, volume: u32, page: u64) -> u64 {
        let (first, numbering) = &self.0[volume as usize];
        first + numbering.of(page)
    }
}

/// A dense numbering of the pages of a set. Each pair has the first page of a run and the number of this
/// page.
pub(super) struct Numbering(Vec<(u64, u64)>);

impl Numbering {
    /// Returns the number of a page, which must be in the set. Pages of one run have consecutive numbers.
    pub(crate) fn of(&self, page: u64) -> u64 {
        let behind = self.0.partition_point(|(first, _)| *first <= page);
        // The page is in the set, so a run begins at or before it, and `behind` is at least one.
        let (first, number) = self.0[behind - 1];
        number + (page - first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn runs_equal_a_set_of_single_pages(
            inserts in prop::collection::vec((0u64..200, 1u64..20), 0..60)
        ) {
            let (mut runs, mut single) = (PageSet::default(), BTreeSet::new());
            for (first, count) in inserts {
                let pages = first..first + count;
                let was_there = pages.clone().any(|page| single.contains(&page));
                single.extend(pages.clone());
                prop_assert_eq!(runs.insert(pages), was_there);
                prop_assert_eq!(runs.pages(), single.len() as u64);
                let ends: Vec<_> = runs.runs.iter().collect();
                prop_assert!(ends.windows(2).all(|pair| pair[0].1 < pair[1].0), "{:?}", ends);
            }
            let numbering = runs.numbering();
            for (number, page) in (0..).zip(single) {
                prop_assert_eq!(numbering.of(page), number);
            }
        }
    }

    #[test]
    fn a_set_can_hold_the_greatest_pages() {
        let mut set = PageSet::default();
        assert!(!set.insert(0..1) && !set.insert(u64::MAX - 1..u64::MAX) && set.insert(1..u64::MAX));
        assert_eq!(set.pages(), u64::MAX);
    }
}
