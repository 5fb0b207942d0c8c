//! The groups of DOGI: which categories share a group, and to which group a copy goes.
//!
//! Sections 4.3 and 4.4 of the paper: of all 512 ways to merge ten neighbouring categories, the one with the
//! lowest predicted write amplification is chosen. The prediction follows pages through the groups. Its input is
//! the log of predictions, PLog: the predicted category and the true lifetime of some pages. The paper leaves
//! out the formulas; they are those of its program. A group but the last gives up a segment after the upper
//! bound of its categories, and pages that live longer go on to the next group. The last group uses what space
//! is left, and collects first in, first out, with uniform traffic ([`waf_fifo`]).

use super::network::CATEGORIES;
use crate::analytic::waf_fifo;

/// The predicted category of a page, from 0, and its lifetime in page writes.
pub(super) type Record = (usize, u64);

/// The upper bounds of all categories but the last, in page writes.
pub(super) type Bounds = [u64; CATEGORIES - 1];

/// The hot group, as it was measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hot {
    /// Its share of the host's writes.
    pub share: f64,
    /// The share of its pages that are still valid at collection.
    pub survive: f64,
    /// Its size in pages.
    pub pages: f64,
}

/// The space of the drive in pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Space {
    pub valid: f64,
    /// The physical pages without the reserve.
    pub usable: f64,
    pub segment: f64,
}

/// The least share of the host's writes that makes a group.
const LEAST_TRAFFIC: f64 = 0.000_5;
/// The least share of valid pages in a victim of the last group that is believed. Below it, the other groups are
/// so large that they would hold all valid pages, and the last group has no room.
const HARDLY_ANY: f64 = 0.05;
/// The share of valid pages in a victim of a last group that has no room.
const WITHOUT_ROOM: f64 = 0.8;
/// The percentage of the longest lifetimes that the destination of a copy leaves out.
const TOO_LONG: usize = 15;

/// A configuration of groups, which are counted from 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Groups {
    /// The group of each category.
    pub of: [u16; CATEGORIES],
    /// The upper bounds of all groups but the last, in page writes.
    pub bounds: Vec<u64>,
    /// The group of the first copy of a page, by its category.
    pub copies_to: [u16; CATEGORIES],
}

impl Groups {
    /// Returns the groups with the lowest predicted write amplification. `None` if no configuration has enough
    /// traffic in all groups.
    pub(super) fn best(log: &[Record], bounds: &Bounds, hot: Hot, space: Space) -> Option<Groups> {
        let counts = Counts::of(log, bounds);
        let predicted = (0..1 << bounds.len()).map(Merge).filter_map(|merge| {
            let waf = counts.predicted(merge, bounds, hot, space)?;
            Some((waf, merge.lasts().count(), merge))
        });
        let best = predicted.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        best.map(|(_, _, merge)| Groups::new(merge, log, bounds))
    }

    fn new(merge: Merge, log: &[Record], all: &Bounds) -> Groups {
        let lasts: Vec<usize> = merge.lasts().collect();
        let group = |category: usize| lasts.iter().take_while(|last| **last < category).count();
        let bounds: Vec<u64> = lasts.iter().filter_map(|last| all.get(*last)).copied().collect();
        let copies_to = |category: usize| {
            let own = group(category);
            let Some(bound) = bounds.get(own).copied() else { return own };
            let left = |mean: f64| mean - bound as f64;
            let fits = |mean: f64| (own..bounds.len()).find(|group| left(mean) <= bounds[*group] as f64);
            match mean_beyond(bound, log.iter().filter(|record| record.0 == category)) {
                Some(mean) => fits(mean).unwrap_or(bounds.len()),
                None => own + 1,
            }
        };
        Groups {
            of: std::array::from_fn(|category| 1 + group(category) as u16),
            copies_to: std::array::from_fn(|category| 1 + copies_to(category) as u16),
            bounds,
        }
    }

    /// Returns the number of groups.
    pub(super) fn count(&self) -> u16 {
        self.bounds.len() as u16 + 1
    }
}

/// Returns the geometric mean of the lifetimes above a bound, without the longest ones.
fn mean_beyond<'a>(bound: u64, records: impl Iterator<Item = &'a Record>) -> Option<f64> {
    let mut lives: Vec<u64> = records.map(|record| record.1).filter(|life| *life > bound).collect();
    lives.sort_unstable();
    lives.truncate(lives.len() - lives.len() * TOO_LONG / 100);
    let logarithms: f64 = lives.iter().map(|life| libm::log(*life as f64)).sum();
    (!lives.is_empty()).then(|| libm::exp(logarithms / lives.len() as f64))
}

/// A way to merge neighbouring categories: bit `c` is set if a group ends with category `c`.
#[derive(Clone, Copy, Debug)]
struct Merge(u32);

impl Merge {
    /// Returns the last category of each group.
    fn lasts(self) -> impl Iterator<Item = usize> {
        (0..CATEGORIES).filter(move |category| *category == CATEGORIES - 1 || self.0 >> category & 1 == 1)
    }
}

/// The log by category.
struct Counts {
    /// The number of pages of each predicted category.
    pages: [f64; CATEGORIES],
    /// Those of them whose lifetime is within the upper bound of each category.
    within: [[f64; CATEGORIES - 1]; CATEGORIES],
    all: f64,
}

impl Counts {
    fn of(log: &[Record], bounds: &Bounds) -> Counts {
        let mut counts = Counts {
            pages: [0.0; CATEGORIES],
            within: [[0.0; CATEGORIES - 1]; CATEGORIES],
            all: log.len() as f64,
        };
        for (category, life) in log {
            counts.pages[*category] += 1.0;
            for (within, bound) in counts.within[*category].iter_mut().zip(bounds) {
                *within += f64::from(u8::from(life <= bound));
            }
        }
        counts
    }

    /// Returns the predicted write amplification. `None` if a group has too little traffic.
    fn predicted(&self, merge: Merge, bounds: &Bounds, hot: Hot, space: Space) -> Option<f64> {
        let from_hot = hot.share * hot.survive;
        // Pages from the hot group die in the first group.
        let (mut carried, mut die) = (from_hot, from_hot);
        let (mut copies, mut size, mut valid) = (from_hot, hot.pages, hot.pages * hot.survive);
        let mut first = 0;
        for last in merge.lasts() {
            let pages: f64 = self.pages[first..=last].iter().sum();
            let direct = (1.0 - hot.share) * pages / self.all;
            if direct < LEAST_TRAFFIC {
                return None;
            }
            let inflow = direct + carried;
            if let Some(bound) = bounds.get(last) {
                let within: f64 = self.within[first..=last].iter().map(|within| within[last]).sum();
                // Pages that outlived an earlier group die here at the same rate as others.
                let dead = die + (inflow - die) * within / pages;
                (carried, die) = (inflow - dead, 0.0);
                copies += carried;
                let of_group = (inflow * *bound as f64).max(2.0 * space.segment);
                size += of_group;
                valid += of_group * carried / inflow;
            } else {
                let half_open = 0.5 * space.segment * (merge.lasts().count() + 1) as f64;
                let room = (space.usable - size - half_open).max(2.0 * space.segment);
                let full = ((space.valid - valid) / room).clamp(1e-6, 0.999_999);
                let survive = 1.0 - 1.0 / waf_fifo(1.0 / full - 1.0);
                let survive = if survive > HARDLY_ANY { survive } else { WITHOUT_ROOM };
                copies += inflow * survive / (1.0 - survive);
            }
            first = last + 1;
        }
        Some(1.0 + copies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = [10, 20, 40, 80, 160, 320, 640, 1_280, 2_560];
    const HOT: Hot = Hot { share: 0.2, survive: 0.5, pages: 16.0 };
    const NO_HOT: Hot = Hot { share: 0.0, survive: 0.0, pages: 0.0 };
    const SPACE: Space = Space { valid: 1_000.0, usable: 1_200.0, segment: 8.0 };

    /// A log of 1,000 pages, with as many of every category. The page `at` lives for `life(at)`.
    fn log(life: impl Fn(usize) -> u64) -> Vec<Record> {
        (0..1_000).map(|at| (at % CATEGORIES, life(at))).collect()
    }

    /// The rule: the prediction is the sum of the copies of all groups, worked out here by hand for two groups.
    #[test]
    fn the_prediction_counts_the_copies_of_each_group() {
        // The categories 0 to 3 are group 1, with the bound 80. Those of category 3 outlive it.
        let log = log(|at| if at % CATEGORIES < 3 { 5 } else { 500 });
        let is = Counts::of(&log, &BOUNDS).predicted(Merge(0b1000), &BOUNDS, HOT, SPACE).unwrap();
        // From the hot group come 0.1. Group 1 has 0.8 · 0.4 + 0.1 = 0.42, of which 0.08 go on; it has 33.6 pages.
        // Group 2 has 0.8 · 0.6 + 0.08 = 0.56 on 1200 − 16 − 33.6 − 12 pages, of which
        // 1000 − 8 − 33.6 · 0.08 / 0.42 are valid.
        let (room, valid) = (1_200.0 - 16.0 - 33.6 - 12.0, 1_000.0 - 8.0 - 33.6 * 0.08 / 0.42);
        let by_hand = 1.0 + 0.1 + 0.08 + 0.56 * (waf_fifo(room / valid - 1.0) - 1.0);
        assert!((is - by_hand).abs() < 1e-9, "{is} and {by_hand}");
        let none = Counts::of(&log[..3], &BOUNDS).predicted(Merge(0b1000), &BOUNDS, HOT, SPACE);
        assert_eq!(none, None, "the second group has no traffic");
    }

    /// The rule: if the groups with a bound need more space than there is, four of five pages of the last group
    /// survive, so that such groups are not chosen.
    #[test]
    fn groups_that_need_too_much_space_are_expensive() {
        let log = log(|_| 3_000);
        let is = Counts::of(&log, &BOUNDS).predicted(Merge(1 << 8), &BOUNDS, HOT, SPACE).unwrap();
        // Group 1 has 0.8 · 0.9 + 0.1 = 0.82 on 2,099 pages, of which 0.72 go on to 0.08 in group 2.
        let by_hand = 1.0 + 0.1 + 0.72 + 0.8 * 0.8 / 0.2;
        assert!((is - by_hand).abs() < 1e-9, "{is} and {by_hand}");
    }

    /// The rule: of all ways to merge categories the one with the lowest prediction is chosen. If predictions are
    /// right there are several groups, if they say nothing there is one.
    #[test]
    fn the_groups_follow_the_accuracy() {
        let right = |at: usize| BOUNDS.get(at % CATEGORIES).map_or(5_000, |bound| bound - 1);
        let (right, wrong) = (log(right), log(|at| 7_919 * at as u64 % 2_000));
        let best = |log: &[Record]| Groups::best(log, &BOUNDS, NO_HOT, SPACE).unwrap();
        let counts = Counts::of(&right, &BOUNDS);
        let groups = best(&right);
        let merge =
            groups.bounds.iter().map(|bound| 1 << BOUNDS.iter().position(|known| known == bound).unwrap());
        let chosen = counts.predicted(Merge(merge.sum()), &BOUNDS, NO_HOT, SPACE).unwrap();
        let all = (0..512).filter_map(|merge| counts.predicted(Merge(merge), &BOUNDS, NO_HOT, SPACE));
        assert_eq!(chosen, all.fold(f64::INFINITY, f64::min));
        assert!(groups.count() > 2 && best(&wrong).count() == 1, "{groups:?} and {:?}", best(&wrong));
    }

    /// The rule: the first copy of a page goes by the pages of its category that outlive the bound of their group.
    /// It goes to the first group, from its own on, that has a bound above the mean time which is left then. A
    /// category without such pages goes on to the next group.
    #[test]
    fn a_copy_goes_by_the_remaining_lifetime_of_its_category() {
        // The groups are the categories 0 to 2, 3 to 6, and 7 to 9, with the bounds 40 and 640.
        let log = [(1, 42), (1, 150), (1, 7), (2, 100), (2, 900), (3, 100), (4, 5_000), (6, 680), (8, 9)];
        let groups = Groups::new(Merge(0b100_0100), &log, &BOUNDS);
        assert_eq!(groups.bounds, [40, 640]);
        assert_eq!(groups.of, [1, 1, 1, 2, 2, 2, 2, 3, 3, 3]);
        // Category 1 has √(42 · 150) − 40 = 39 left, category 2 260, category 4 4360, and category 6 40.
        assert_eq!(groups.copies_to, [2, 1, 2, 3, 3, 3, 2, 3, 3, 3]);
    }

    /// The rule: 15 % of the lifetimes, the longest, have no part in the mean.
    #[test]
    fn a_few_long_lifetimes_do_not_count() {
        let mut log = vec![(0, 60); 6];
        log.insert(2, (0, 1_000_000));
        assert!((mean_beyond(40, log.iter()).unwrap() - 60.0).abs() < 1e-9);
        log.pop();
        assert!(mean_beyond(40, log.iter()).unwrap() > 100.0, "one of six pages is more than 15 %");
        assert_eq!(mean_beyond(1_000_000, log.iter()), None);
    }
}
