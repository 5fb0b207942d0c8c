//! The model of MiDAS in closed form (sections 3.3 and 3.4 of Oh et al., FAST 2024). From the lifetimes of
//! pages and the sizes of groups it predicts the share of valid pages that each group passes on, and the
//! write amplification.
//!
//! All times are page writes of the host, and all sizes are pages. S(t) is the share of written pages that
//! are still valid after t more writes. In a chain HOT → G1 → … → GN, HOT takes the writes of pages with
//! lifetimes below its residence τ; their share is h. G1 receives the other writes, and pages that are still
//! valid when they leave HOT. A group of `p` pages with an inflow of w pages a write keeps a page for p / w
//! writes. If pages enter Gi at age W, the share S(W + p/w) / S(W) of them is valid when they leave. GN holds
//! pages of all ages; its valid share is that of the form by Desnoyers (2014) for two classes of pages.

use crate::analytic;

/// The distribution of lifetimes: the share of host writes whose page is written again after a given number
/// of writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Lifetimes {
    /// The number of page writes in a bucket.
    bucket: f64,
    /// S at the start of each bucket; the last value is the share that outlives all buckets.
    survival: Vec<f64>,
    /// The integral of S up to the start of each bucket.
    integral: Vec<f64>,
    /// The sum of share × lifetime over the buckets before each bucket. By Little's law this is a number of
    /// pages.
    pages: Vec<f64>,
}

/// Short intervals, measured on every page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Short<'a> {
    /// The number of intervals by bucket, for the whole range.
    pub(crate) counts: &'a [u64],
    /// The number of intervals longer than the range.
    pub(crate) longer: u64,
}

impl Lifetimes {
    /// Creates the distribution from the number of intervals by bucket; the number of intervals only known to
    /// be longer than each bucket; and the number of intervals beyond all buckets. `None` if all are zero.
    pub fn from_counts(bucket: u32, counts: &[u64], longer: &[u64], beyond: u64) -> Option<Lifetimes> {
        Lifetimes::from_counts_and_short(bucket, counts, longer, beyond, Short::default())
    }

    /// Creates the distribution with the first buckets of the sample replaced by counts over all pages. The
    /// sample then only gives the distribution of the longer intervals.
    pub(crate) fn from_counts_and_short(
        bucket: u32,
        counts: &[u64],
        longer: &[u64],
        beyond: u64,
        short: Short<'_>,
    ) -> Option<Lifetimes> {
        let total = counts.iter().chain(longer).sum::<u64>() + beyond;
        if total == 0 || bucket == 0 {
            return None;
        }
        let bucket = f64::from(bucket);
        let (mut survival, mut integral, mut pages) = (vec![1.0], vec![0.0], vec![0.0]);
        // The numbers of intervals, of the sample and of all pages, that are at least as long as the current
        // bucket. A share of them ends in the bucket.
        let (mut left, mut left_of_all) = (total, short.counts.iter().sum::<u64>() + short.longer);
        for (at, count) in counts.iter().enumerate() {
            let mut ends = *count as f64 / left.max(1) as f64;
            left -= count + longer.get(at).unwrap_or(&0);
            if let Some(count) = short.counts.get(at).filter(|_| left_of_all > 0) {
                ends = *count as f64 / left_of_all as f64;
                left_of_all -= count;
            }
            let (before, after) = (survival[at], survival[at] * (1.0 - ends));
            survival.push(after);
            integral.push(integral[at] + bucket * (before + after) / 2.0);
            pages.push(pages[at] + (before - after) * bucket * (at as f64 + 0.5));
        }
        Some(Lifetimes { bucket, survival, integral, pages })
    }

    /// Returns the longest interval that is distinguished from an infinite one.
    pub fn range(&self) -> f64 {
        self.bucket * (self.survival.len() - 1) as f64
    }

    fn at(&self, values: &[f64], time: f64) -> f64 {
        let place = (time / self.bucket).clamp(0.0, (values.len() - 1) as f64);
        let low = place as usize;
        let high = (low + 1).min(values.len() - 1);
        values[low] + (values[high] - values[low]) * (place - low as f64)
    }

    /// Returns S(t): the share of written pages that are still valid after `time` writes.
    pub fn survival(&self, time: f64) -> f64 {
        self.at(&self.survival, time)
    }

    /// Returns the integral of S from 0 to `time`: the number of valid pages among the last `time` writes.
    pub fn valid_among_last(&self, time: f64) -> f64 {
        self.at(&self.integral, time)
            + (time - self.range()).max(0.0) * self.survival[self.survival.len() - 1]
    }

    /// Returns the share of writes with a lifetime from `from` to `to`, and the number of pages that they are
    /// for.
    fn between(&self, from: f64, to: f64) -> (f64, f64) {
        (
            (self.survival(from) - self.survival(to)).max(0.0),
            (self.at(&self.pages, to) - self.at(&self.pages, from)).max(0.0),
        )
    }

    /// Returns half the sum of the differences to `other` over classes of lifetime: 0 for equal
    /// distributions, 1 for disjoint ones. Classes are quarters of octaves.
    pub fn difference(&self, other: &Lifetimes) -> f64 {
        let range = self.range().max(other.range());
        let bounds = (0..64).map(|step| range * libm::exp2(-f64::from(63 - step) / 4.0));
        let (mut sum, mut before) = (0.0, (1.0, 1.0));
        for bound in bounds {
            let now = (self.survival(bound), other.survival(bound));
            sum += ((before.0 - now.0) - (before.1 - now.1)).abs();
            before = now;
        }
        (sum + (before.0 - before.1).abs()) / 2.0
    }
}

/// The victim policy of GN. The model knows two policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastGroup {
    /// FIFO: the oldest segment.
    Fifo,
    /// Greedy: the segment with the fewest valid pages.
    Greedy {
        /// The number of pages in a segment.
        segment_pages: u32,
    },
}

/// The group for hot pages in the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Hot {
    /// There is no group for hot pages.
    Off,
    /// HOT has this many pages. Its traffic follows from the lifetimes, and all of its pages are overwritten
    /// in it, unless other values were learned.
    Pages(f64),
}

/// A drive and its groups: the input of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// The group for hot pages.
    pub hot: Hot,
    /// The sizes of G1 … G(N−1) in pages.
    pub sized: Vec<f64>,
    /// The number of pages of all groups.
    pub pages: f64,
    /// The number of valid pages in all groups.
    pub valid: f64,
    /// The victim policy of GN.
    pub last: LastGroup,
    /// The share of GN's mean lifetime below which a page belongs to GN's hot class.
    pub hot_class: f64,
    /// Half a segment, in pages: the average difference between a group's size and its contents.
    pub half_segment: f64,
    /// The number of valid pages in segments of GN that are never overwritten. Victim policies by valid share
    /// never pick these segments, so they do not belong to GN's space; a FIFO policy may pick them.
    pub still: f64,
    /// The learned errors of the model.
    pub learned: Learned,
}

/// The learned differences between a configuration at work and its prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learned {
    /// HOT's share of host writes divided by the predicted share; 0 if no page is hot, so that HOT is not
    /// possible.
    pub hot_traffic: f64,
    /// The valid share of HOT's segments at collection after `hot_residence`. For other residences, all pages
    /// of HOT are assumed to be overwritten at the same rate.
    pub hot_valid: f64,
    /// The residence in HOT for which `hot_valid` was measured, in host page writes.
    pub hot_residence: f64,
    /// The number of copies in GN for each page that enters it, divided by the predicted number.
    pub last: f64,
}

impl Learned {
    /// Corrections that change nothing.
    pub const NOTHING: Learned = Learned { hot_traffic: 1.0, hot_valid: 0.0, hot_residence: 1.0, last: 1.0 };
}

/// A prediction for a chain of groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The predicted write amplification.
    pub waf: f64,
    /// The predicted valid shares at collection of G1 … GN.
    pub valid: Vec<f64>,
    /// The predicted share of host writes that goes to HOT, and the predicted valid share of HOT's segments.
    pub hot: (f64, f64),
    /// The corrections that the prediction used.
    pub learned: Learned,
}

impl Chain {
    /// Returns the model's prediction. `None` if the groups do not fit, because GN would hold more valid
    /// pages than it has room for, or a page would stay in the sized groups beyond the range of the
    /// lifetimes.
    pub fn predict(&self, lifetimes: &Lifetimes) -> Option<Prediction> {
        let hot = self.hot_flow(lifetimes)?;
        let hot_pages = if let Hot::Pages(pages) = self.hot { pages } else { 0.0 };
        let (mut age, mut in_groups) = (0.0, hot.held(lifetimes));
        let mut inflow = hot.leaves(lifetimes, age);
        let mut waf = 1.0 + hot.traffic * hot.valid;
        let mut left = self.pages - hot_pages - self.half_segment;
        let mut valid = Vec::with_capacity(self.sized.len() + 1);
        for pages in &self.sized {
            if inflow <= 0.0 {
                return None;
            }
            let until = age + (pages - self.half_segment).max(0.0) / inflow;
            if until + hot.residence > lifetimes.range() {
                return None;
            }
            in_groups += hot.held_beside(lifetimes, until) - hot.held_beside(lifetimes, age);
            age = until;
            // No more pages can leave a group than have entered it.
            let outflow = hot.leaves(lifetimes, age).min(inflow);
            valid.push(outflow / inflow);
            inflow = outflow;
            waf += inflow;
            left -= pages;
        }
        let in_last = self.valid - in_groups;
        if in_last <= 0.0 || left <= in_last || inflow <= 0.0 {
            return None;
        }
        let still = if self.last == LastGroup::Fifo { 0.0 } else { self.still };
        if still >= in_last {
            return None;
        }
        // Pages that are overwritten in HOT never reach GN, the last group, even if no group is between the
        // two. So a page that enters GN is at least as old as the residence in HOT.
        let entry = age.max(hot.residence);
        let share = self.valid_share_of_last(lifetimes, entry, left - still, in_last - still)?;
        let copies = self.learned.last * share / (1.0 - share);
        let share = copies / (1.0 + copies);
        waf += inflow * copies;
        valid.push(share);
        Some(Prediction { waf, valid, hot: (hot.traffic, hot.valid), learned: self.learned })
    }

    /// Returns the inflow and outflow of HOT; `None` if pages would stay in HOT beyond the range of the
    /// lifetimes.
    fn hot_flow(&self, lifetimes: &Lifetimes) -> Option<HotFlow> {
        let Hot::Pages(pages) = self.hot else {
            return Some(HotFlow { traffic: 0.0, valid: 0.0, residence: 0.0, survival: 1.0 });
        };
        let Learned { hot_traffic, hot_valid, hot_residence, .. } = self.learned;
        // With a part of the traffic, a group of this size keeps pages longer in proportion.
        let residence = residence_of_hot(lifetimes, pages / hot_traffic)?;
        let survival = lifetimes.survival(residence);
        let traffic = hot_traffic * (1.0 - survival);
        let is_used = traffic > 0.0 && survival > 0.0 && survival < 1.0;
        let valid = libm::pow(hot_valid, residence / hot_residence);
        // Limits the valid share: at most the pages with longer lifetimes leave HOT valid.
        is_used.then(|| HotFlow { traffic, valid: valid.min(survival / traffic), residence, survival })
    }

    /// Returns GN's valid share at collection, if pages enter GN at `age`.
    fn valid_share_of_last(&self, lifetimes: &Lifetimes, age: f64, pages: f64, valid: f64) -> Option<f64> {
        let space = pages / valid;
        let (writes, held) = lifetimes.between(age, lifetimes.range());
        // Pages that outlive the range are assumed to be written to all valid pages that the other writes do
        // not account for.
        let outlive = lifetimes.survival(lifetimes.range());
        let (writes, held) = if outlive > 0.0 { (writes + outlive, held.max(valid)) } else { (writes, held) };
        let correction = match self.last {
            LastGroup::Fifo => 1.0,
            LastGroup::Greedy { segment_pages } => 1.0 + 0.5 / f64::from(segment_pages),
        };
        let waf = if writes <= 0.0 || held <= 0.0 {
            // Without an overwritten page in GN, there is nothing to collect, so the write amplification of
            // GN is 1.
            1.0
        } else {
            let mean = held / writes;
            let (hot_writes, hot_held) = lifetimes.between(age, (self.hot_class * mean).max(age));
            let cold_held = (valid - hot_held).max(held - hot_held);
            let (r, f) = (hot_writes / writes, hot_held / (hot_held + cold_held));
            analytic::waf_fifo_two_classes(space * correction, r, f)? / correction
        };
        Some((1.0 - 1.0 / waf).clamp(0.0, 1.0 - 1e-9))
    }
}

/// The flow through HOT. HOT takes the share `traffic` of host writes and keeps a page for `residence`
/// writes. The share `valid` of its pages is still valid after that and moves on to G1. Its other pages live
/// like all pages with lifetimes below the residence. G1 gets the other host writes directly, so their age in
/// G1 begins at 0.
struct HotFlow {
    traffic: f64,
    valid: f64,
    residence: f64,
    /// S(residence).
    survival: f64,
}

impl HotFlow {
    /// Returns HOT's traffic times the share of its pages that are valid. For the share at one age, `survival`
    /// is S at that age (the share of pages that live longer), and `age` is 1. For the integral of the share
    /// from 0 to an age, `survival` is the integral of S, and `age` is that age, the integral of 1.
    fn of_hot(&self, survival: f64, age: f64) -> f64 {
        // Computes the share of pages that reach this age, among the pages with lifetimes below the
        // residence.
        let short = (survival - self.survival * age) / (1.0 - self.survival);
        self.traffic * (self.valid * age + (1.0 - self.valid) * short)
    }

    /// Returns the number of valid pages in HOT.
    fn held(&self, lifetimes: &Lifetimes) -> f64 {
        if self.traffic == 0.0 {
            return 0.0;
        }
        self.of_hot(lifetimes.valid_among_last(self.residence), self.residence)
    }

    /// Returns, for each host write, the number of pages that leave the groups behind HOT valid after `age`
    /// writes in these groups.
    fn leaves(&self, lifetimes: &Lifetimes, age: f64) -> f64 {
        let all = lifetimes.survival(age);
        if self.traffic == 0.0 {
            return all;
        }
        let returned = self.traffic * self.valid / self.survival;
        let still_returned = returned * lifetimes.survival(self.residence + age);
        let direct = if age < self.residence { all - self.of_hot(all, 1.0) } else { all * (1.0 - returned) };
        direct + still_returned
    }

    /// Returns the number of valid pages that have been in the groups behind HOT for less than `age` writes.
    fn held_beside(&self, lifetimes: &Lifetimes, age: f64) -> f64 {
        let all = lifetimes.valid_among_last(age);
        if self.traffic == 0.0 {
            return all;
        }
        let returned = self.traffic * self.valid / self.survival;
        let in_hot = lifetimes.valid_among_last(self.residence);
        let still_returned = returned * (lifetimes.valid_among_last(self.residence + age) - in_hot);
        let direct = if age < self.residence {
            all - self.of_hot(all, age)
        } else {
            all - self.held(lifetimes) - returned * (all - in_hot)
        };
        direct + still_returned
    }
}

/// Returns the residence τ of a page in a HOT of `pages` pages, which solves τ·(1 − S(τ)) = pages. `None` if
/// τ would be beyond the range of the lifetimes.
fn residence_of_hot(lifetimes: &Lifetimes, pages: f64) -> Option<f64> {
    let holds = |time: f64| time * (1.0 - lifetimes.survival(time));
    let (mut low, mut high) = (0.0, lifetimes.range());
    if holds(high) < pages {
        return None;
    }
    // Forty halvings of any range leave less than a page.
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if holds(middle) < pages {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lifetimes of two classes: half of the writes live for 1,000 writes, half for 9,000.
    fn two_lifetimes() -> Lifetimes {
        let mut counts = vec![0; 1_000];
        counts[100] = 1_000;
        counts[900] = 1_000;
        Lifetimes::from_counts(10, &counts, &[], 0).unwrap()
    }

    fn chain(hot: Hot, sized: Vec<f64>) -> Chain {
        let last = LastGroup::Fifo;
        Chain {
            hot,
            sized,
            pages: 6_000.0,
            valid: 5_000.0,
            last,
            hot_class: 1.0,
            half_segment: 0.0,
            still: 0.0,
            learned: Learned::NOTHING,
        }
    }

    #[test]
    fn lifetimes_obey_littles_law() {
        let lifetimes = two_lifetimes();
        assert!((lifetimes.survival(500.0) - 1.0).abs() < 1e-12);
        assert!((lifetimes.survival(5_000.0) - 0.5).abs() < 1e-12);
        // Half of the writes × 1,000 and half × 9,000 are 5,000 pages.
        assert!((lifetimes.valid_among_last(10_000.0) - 5_005.0).abs() < 1.0);
        let (writes, pages) = lifetimes.between(0.0, 2_000.0);
        assert!((writes - 0.5).abs() < 1e-12 && (pages - 502.5).abs() < 1.0);
        assert!(lifetimes.difference(&lifetimes) < 1e-12);
        let mut other = vec![0; 1_000];
        other[500] = 7;
        assert!(lifetimes.difference(&Lifetimes::from_counts(10, &other, &[], 0).unwrap()) > 0.99);
    }

    /// The rule: intervals that are only known to be longer than 5,000, here a quarter of all, end like the
    /// longer intervals, here at 9,000.
    #[test]
    fn censored_intervals_end_later() {
        let (mut counts, mut longer) = (vec![0; 1_000], vec![0; 1_000]);
        (counts[100], counts[900], longer[500]) = (1_000, 500, 500);
        let lifetimes = Lifetimes::from_counts(10, &counts, &longer, 0).unwrap();
        assert!((lifetimes.survival(8_000.0) - 0.5).abs() < 1e-12 && lifetimes.survival(9_100.0) < 1e-12);
    }

    #[test]
    fn a_group_passes_on_pages_that_outlive_it() {
        // In G1 of 1,100 pages, at an inflow of 1, the short-lived pages are overwritten; the others move on.
        let prediction = chain(Hot::Off, vec![1_100.0]).predict(&two_lifetimes()).unwrap();
        assert!((prediction.valid[0] - 0.5).abs() < 1e-9);
        // A smaller G1 passes on every page.
        let prediction = chain(Hot::Off, vec![500.0]).predict(&two_lifetimes()).unwrap();
        assert!((prediction.valid[0] - 1.0).abs() < 1e-9);
    }

    #[test]
    fn hot_takes_the_short_lived() {
        // Half of the writes live for 1,010 writes, so a HOT of 505 pages holds their pages until they are
        // overwritten.
        let prediction = chain(Hot::Pages(510.0), vec![]).predict(&two_lifetimes()).unwrap();
        assert!((prediction.hot.0 - 0.5).abs() < 1e-6);
        // The pages of the other writes live for 9,000 writes, uniformly: 4,500 valid pages on 5,490.
        let expected = 1.0 + 0.5 * (analytic::waf_fifo(5_490.0 / 4_500.0 - 1.0) - 1.0);
        assert!((prediction.waf / expected - 1.0).abs() < 0.02, "{} {expected}", prediction.waf);
    }

    #[test]
    fn groups_that_do_not_fit_are_refused() {
        assert_eq!(chain(Hot::Off, vec![5_900.0]).predict(&two_lifetimes()), None);
        assert_eq!(chain(Hot::Pages(1e6), vec![]).predict(&two_lifetimes()), None);
        assert!(Lifetimes::from_counts(10, &[0, 0], &[], 0).is_none());
    }

    #[test]
    fn still_pages_are_no_part_of_the_last_group() {
        let with = |still, last| {
            let chain = Chain { still, last, ..chain(Hot::Off, vec![]) };
            chain.predict(&two_lifetimes()).map(|prediction| prediction.waf)
        };
        let greedy = LastGroup::Greedy { segment_pages: 1_000 };
        // Still pages do not count: GN has 5,000 pages for 4,000 valid ones.
        let alone = Chain { pages: 5_000.0, valid: 4_000.0, last: greedy, ..chain(Hot::Off, vec![]) };
        assert_eq!(with(1_000.0, greedy), alone.predict(&two_lifetimes()).map(|prediction| prediction.waf));
        assert!(with(1_000.0, greedy) < with(0.0, greedy));
        // FIFO collects the oldest segment even without an invalid page, so still pages change nothing.
        assert_eq!(with(1_000.0, LastGroup::Fifo), with(0.0, LastGroup::Fifo));
        assert_eq!(with(5_000.0, greedy), None);
    }

    #[test]
    fn learned_corrections_enter_the_prediction() {
        let predict =
            |learned, hot| Chain { learned, ..chain(hot, vec![1_100.0]) }.predict(&two_lifetimes()).unwrap();
        let plain = predict(Learned::NOTHING, Hot::Off);
        let last = predict(Learned { last: 2.0, ..Learned::NOTHING }, Hot::Off);
        // Half of the writes reach GN. The copies in GN double, and no others.
        assert!((last.waf - 1.5 - 2.0 * (plain.waf - 1.5)).abs() < 1e-9, "{} {}", last.waf, plain.waf);
        let copies = |share: f64| share / (1.0 - share);
        assert!((copies(last.valid[1]) - 2.0 * copies(plain.valid[1])).abs() < 1e-9);
        // A HOT that gets half of its predicted writes keeps pages twice as long. A tenth of the pages is
        // still valid after that, as was measured for that residence.
        let stay = 510.0 / 0.25;
        let learned = Learned { hot_traffic: 0.5, hot_valid: 0.1, hot_residence: stay, last: 1.0 };
        let hot = predict(learned, Hot::Pages(510.0));
        assert!((hot.hot.0 - 0.25).abs() < 1e-6 && (hot.hot.1 - 0.1).abs() < 1e-4, "{:?}", hot.hot);
        // Half of all writes outlive 1,000 writes, whether or not through HOT, and leave G1 after that.
        let inflow = 1.0 - 0.25 + 0.25 * 0.1;
        assert!((hot.valid[0] - 0.5 / inflow).abs() < 1e-4, "{}", hot.valid[0]);
        // Twice the size keeps pages twice as long, so a tenth of a tenth is still valid.
        let larger = predict(learned, Hot::Pages(1_020.0));
        assert!((larger.hot.1 - 0.01).abs() < 1e-4, "{:?}", larger.hot);
    }

    /// The rule: the number of pages in the groups behind HOT that are younger than an age is the integral of
    /// the number of pages that leave at each age.
    #[test]
    fn held_pages_are_the_sum_of_leaving_pages() {
        let lifetimes = two_lifetimes();
        let half = Learned { hot_traffic: 0.5, hot_valid: 0.3, hot_residence: 900.0, last: 1.0 };
        for (hot, learned) in
            [(Hot::Off, half), (Hot::Pages(200.0), half), (Hot::Pages(510.0), Learned::NOTHING)]
        {
            let flow = Chain { learned, ..chain(hot, vec![]) }.hot_flow(&lifetimes).unwrap();
            let (mut sum, mut checked) = (0.0, 0);
            for age in 0..8_000 {
                if [0, 300, 900, 1_100, 3_000, 7_900].contains(&age) {
                    let held = flow.held_beside(&lifetimes, f64::from(age));
                    assert!((held - sum).abs() < 1.0, "{hot:?} at {age}: {held} for {sum}");
                    checked += 1;
                }
                sum += flow.leaves(&lifetimes, f64::from(age) + 0.5);
            }
            assert_eq!(checked, 6);
            // Pages that leave HOT valid live on in other groups, so the pages in HOT and in the other groups
            // together are all valid pages.
            let all = flow.held(&lifetimes) + flow.held_beside(&lifetimes, 1e5);
            assert!((all - 5_005.0).abs() < 1.0 || learned == half, "{hot:?}: {all}");
        }
    }

    /// The rule: lifetimes are known up to the end of the last bucket. Pages that outlive it are valid for
    /// ever.
    #[test]
    fn pages_that_outlive_all_buckets_stay_valid() {
        let lifetimes = Lifetimes::from_counts(10, &[0, 2, 0, 1], &[], 1).unwrap();
        assert_eq!(
            (lifetimes.range(), lifetimes.survival(40.0), lifetimes.survival(1e9)),
            (40.0, 0.25, 0.25)
        );
        // The integral is 10 + 7.5 + 5 + 3.75, and a quarter of the time beyond the buckets.
        assert_eq!([40.0, 45.0, 140.0].map(|time| lifetimes.valid_among_last(time)), [26.25, 27.5, 51.25]);
        // Half of the intervals end in the same bucket in both distributions; the other half differs.
        let all = Lifetimes::from_counts(10, &[0, 4, 0, 0], &[], 0).unwrap();
        let half = Lifetimes::from_counts(10, &[0, 2, 0, 0], &[], 2).unwrap();
        assert_eq!((all.difference(&half), half.difference(&all)), (0.5, 0.5));
    }

    /// The rule: the shares of all pages replace the sample's short intervals, over the measured range and
    /// while pages are left.
    #[test]
    fn short_intervals_are_those_of_all_pages() {
        let survival = |short: &[u64], longer| {
            let short = Short { counts: short, longer };
            let lifetimes = Lifetimes::from_counts_and_short(10, &[5, 5, 5, 5], &[], 0, short).unwrap();
            // The survival in per cent.
            [10.0, 20.0, 30.0, 40.0].map(|time| (100.0 * lifetimes.survival(time)).round())
        };
        assert_eq!(survival(&[], 0), [75.0, 50.0, 25.0, 0.0]);
        assert_eq!(survival(&[8, 1], 1), [20.0, 10.0, 5.0, 0.0]);
        assert_eq!(survival(&[9, 0], 0), [0.0; 4]);
    }

    /// The rule: GN's pages form two classes, pages with lifetimes below the mean, or below a share of it,
    /// and all others. Valid pages that the writes do not account for are cold. The valid share is that of
    /// FIFO victims; greedy victims act like FIFO with half a page more in each segment.
    #[test]
    fn the_last_group_is_one_of_two_classes() {
        let share = |chain: &Chain, age, valid| {
            chain.valid_share_of_last(&two_lifetimes(), age, 1.2 * valid, valid).unwrap()
        };
        let expected = |space, r, f: f64| 1.0 - 1.0 / analytic::waf_fifo_two_classes(space, r, f).unwrap();
        let fifo = chain(Hot::Off, vec![]);
        // Half of the writes are for 502.5 pages, half for 4,502.5; the mean is 5,005.
        assert!((share(&fifo, 0.0, 5_000.0) - expected(1.2, 0.5, 502.5 / 5_005.0)).abs() < 1e-9);
        assert!((share(&fifo, 0.0, 8_000.0) - expected(1.2, 0.5, 502.5 / 8_000.0)).abs() < 1e-9);
        // The mean lifetime is an average over the writes, so valid pages that no write accounts for do not
        // change it.
        assert!((share(&fifo, 0.0, 10_000.0) - expected(1.2, 0.5, 502.5 / 10_000.0)).abs() < 1e-9);
        // A tenth of the mean plus 10 writes is less than any lifetime.
        let one_class = Chain { hot_class: 0.1, ..fifo.clone() };
        assert!((share(&one_class, 0.0, 5_000.0) - expected(1.2, 0.0, 0.0)).abs() < 1e-9);
        assert!((expected(1.2, 0.0, 0.0) - 1.0 + 1.0 / analytic::waf_fifo(0.2)).abs() < 1e-6);
        // Half of the pages with lifetimes of 9,000 to 9,010 writes are older than the mean.
        let old = share(&fifo, 1_500.0, 4_502.5);
        assert!((old - expected(1.2, 0.5, 0.5)).abs() < 1e-3, "{old}");
        let greedy = Chain { last: LastGroup::Greedy { segment_pages: 16 }, ..fifo.clone() };
        let waf =
            analytic::waf_fifo_two_classes(1.2 * 33.0 / 32.0, 0.5, 502.5 / 5_005.0).unwrap() * 32.0 / 33.0;
        assert!((share(&greedy, 0.0, 5_000.0) - 1.0 + 1.0 / waf).abs() < 1e-9);
        // Half of the writes outlive all buckets. They are for all valid pages that the other writes do not
        // account for.
        let mut counts = vec![0; 1_000];
        counts[100] = 1_000;
        let outlived = Lifetimes::from_counts(10, &counts, &[], 1_000).unwrap();
        let share = fifo.valid_share_of_last(&outlived, 0.0, 6_000.0, 5_000.0).unwrap();
        assert!((share - expected(1.2, 0.5, 502.5 / 5_000.0)).abs() < 1e-9);
    }

    /// The rule: the model refuses groups that hold more pages than are valid, a GN without invalid pages, a
    /// HOT in which all pages are overwritten, and a HOT with a residence beyond the range.
    #[test]
    fn impossible_groups_are_refused() {
        let fits = |chain: Chain| chain.predict(&two_lifetimes()).is_some();
        let greedy = Chain { last: LastGroup::Greedy { segment_pages: 16 }, ..chain(Hot::Off, vec![]) };
        assert!(fits(Chain { pages: 5_001.0, ..greedy.clone() }));
        assert!(!fits(Chain { pages: 4_999.0, ..greedy.clone() }), "half a page in a segment is no garbage");
        assert!(fits(Chain { valid: 1_010.0, ..chain(Hot::Off, vec![1_000.0]) }));
        assert!(!fits(Chain { valid: 990.0, ..chain(Hot::Off, vec![1_000.0]) }));
        let room = |hot, sized| Chain { pages: 30_000.0, valid: 8_000.0, ..chain(hot, sized) };
        assert!(fits(room(Hot::Pages(600.0), vec![])) && !fits(room(Hot::Pages(9_500.0), vec![])));
        assert!(
            fits(room(Hot::Pages(600.0), vec![3_900.0])) && !fits(room(Hot::Pages(600.0), vec![4_500.0]))
        );
        let outlived = Lifetimes::from_counts(10, &[0, 0, 1, 0, 0, 0, 0, 0, 0, 0], &[], 1).unwrap();
        let fits = |pages| room(Hot::Off, vec![pages]).predict(&outlived).is_some();
        assert!(fits(100.0) && !fits(101.0));
    }
}
