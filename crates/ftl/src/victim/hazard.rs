//! Hazard victim selection: cost-benefit with measured death rates, and with the cost of the next collection.
//!
//! Each page of a segment dies (is overwritten or trimmed) at a rate h. Waiting a moment longer saves the
//! copies of the pages that die meanwhile, u·h, where u is the share of valid pages, and keeps 1 − u of a
//! segment from being reused. It also puts off the next collection of the pages that are copied now. Let c be
//! the rate at which a page costs from then on, in copies and in space, and p the price of space. Then a segment
//! shall be collected when u·(h + c) = p·(1 − u).
//!
//! If the copied pages go on to die at the rate h and are collected by the same rule, then c follows: among
//! segments that begin full, u = e^(−ht) after a time t, and the least cost is at h·u = p·(1 − u + u·ln u). So the
//! best victim has the greatest (1/u − 1 + ln u) / h. The form without c, (1/u − 1) / h, empties old segments for
//! a few invalid pages each. With 4 spare segments of 132 and zipf 1.2, writes are amplified 23.0 times with it,
//! 15.1 times with c, and 13.1 times by `greedy`.
//!
//! If pages of all rates are mixed and the frequent ones die first, then h = 1 / age. If all pages die at about
//! one age (in a log, or when blocks are allocated in turn), a segment should not be collected shortly before
//! that age. Waiting does not pay for a segment whose pages will not die.
//!
//! The policy counts deaths of pages in sealed segments by stream and by age since sealing, in quarters of
//! octaves. At intervals it also counts the valid pages. The score is age · (1/u − 1 + ln u), divided by h · age
//! within bounds, because the pages of a segment differ, and the rate of a stream is that of its average page.
//!
//! This is Fulgurite's own policy. The bounds were chosen with seed 1 on the development set of
//! docs/validation/own-placement.md, zipf 1.2 and half sequential traffic. A pick takes O(log n) for each stream.

use super::by_age::ByAge;
use super::policy::VictimPolicy;
use crate::{SegmentId, SegmentTable};
use fulgurite_base::NoOptions;
use std::ops::Range;

/// The number of classes of age, which are quarters of octaves. The first class extends to a quarter more
/// than a segment's worth of writes.
const AGES: usize = 80;
/// The number of spans of 2^n ages.
const SPANS: usize = AGES.ilog2() as usize + 1;
/// The least and the greatest value of h · age.
const BOUNDS: (f64, f64) = (0.1, 16.0);
/// The number of counts of valid pages (`LOOKS`) and of updates of the rates (`LESSONS`) in as many host page
/// writes as the drive has pages.
const LOOKS: u64 = 256;
const LESSONS: u64 = 16;
/// The decay factor of all counts at each update. The half-life is one and a half times the drive's pages in
/// writes.
const KEPT: f64 = 0.97;
/// The weight of the prior rate 1 / age: this many deaths, in segments' worth of pages.
const BELIEF: f64 = 1.0 / 16.0;

/// The counts of one stream's segments.
#[derive(Clone, Debug)]
struct Stream {
    index: ByAge,
    deaths: [f64; AGES],
    /// By age, the number of valid pages summed over all page writes. A death rate is deaths / exposure.
    exposure: [f64; AGES],
    /// 1 / (h · age), a factor of the score: at `[n][age]` the greatest of 2^n ages from this one on. It is below 1
    /// if waiting pays.
    patience: [[f64; AGES]; SPANS],
}

impl Stream {
    fn new(segments: Range<u32>) -> Stream {
        Stream {
            index: ByAge::new(segments),
            deaths: [0.0; AGES],
            exposure: [0.0; AGES],
            patience: [[1.0; AGES]; SPANS],
        }
    }

    fn learn(&mut self, segment_pages: u32) {
        let belief = BELIEF * f64::from(segment_pages);
        for at in 0..AGES {
            let age = libm::exp2((at as f64 + 0.5) / 4.0 + f64::from(segment_pages.ilog2()));
            // The prior keeps the rate near 1 / age until enough deaths have been counted.
            let rate = (self.deaths[at] + belief) / (self.exposure[at] + belief * age);
            self.patience[0][at] = 1.0 / (rate * age).clamp(BOUNDS.0, BOUNDS.1);
            self.deaths[at] *= KEPT;
            self.exposure[at] *= KEPT;
        }
        for span in 1..SPANS {
            let half = self.patience[span - 1];
            let next = |at: usize| half[(at + (1 << (span - 1))).min(AGES - 1)];
            self.patience[span] = std::array::from_fn(|at| half[at].max(next(at)));
        }
    }

    /// Returns the greatest patience of the ages from `youngest` to `oldest`.
    #[inline]
    fn most_patience(&self, youngest: usize, oldest: usize) -> f64 {
        // Two spans cover the ages, and may overlap.
        let span = (oldest - youngest + 1).ilog2() as usize;
        self.patience[span][youngest].max(self.patience[span][oldest + 1 - (1 << span)])
    }
}

/// The sealed segments by stream and age, with the death rates of their pages.
#[derive(Clone, Debug)]
pub(crate) struct Hazard {
    segments: Range<u32>,
    /// 1/u − 1 + ln u by the number of valid pages.
    benefit: Vec<f64>,
    streams: Vec<Stream>,
    /// The stream of the last pick.
    last: usize,
    looks_at: u64,
    looked_at: u64,
    learns_at: u64,
}

impl Hazard {
    pub(super) fn start(_: &NoOptions, segments: Range<u32>, segment_pages: u32) -> Hazard {
        let benefit = (0..=segment_pages).map(|valid| benefit(valid, segment_pages)).collect();
        Hazard { segments, benefit, streams: Vec::new(), last: 0, looks_at: 0, looked_at: 0, learns_at: 0 }
    }

    /// Counts the valid pages, and at longer intervals updates the rates.
    #[cold]
    fn look(&mut self, table: &SegmentTable) {
        let now = table.now();
        let drive = u64::from(table.len()) * u64::from(table.segment_pages());
        let writes = (now - self.looked_at) as f64;
        for stream in &mut self.streams {
            for (segment, sealed_at) in stream.index.iter() {
                let at = age(now - sealed_at, table.segment_pages());
                // Assumes that the number of valid pages has been the same since the last count.
                stream.exposure[at] += writes * f64::from(table.valid(segment));
            }
        }
        let segments = u64::from(table.len());
        (self.looked_at, self.looks_at) = (now, now + (drive / LOOKS).max(segments / 4));
        if now >= self.learns_at {
            self.learns_at = now + drive / LESSONS;
            self.streams.iter_mut().for_each(|stream| stream.learn(table.segment_pages()));
        }
    }
}

/// Returns 1/u − 1 + ln u, where u is the share of valid pages.
fn benefit(valid: u32, segment_pages: u32) -> f64 {
    // The two infinite terms of an empty segment have no sum.
    if valid == 0 {
        return f64::INFINITY;
    }
    let inverse = f64::from(segment_pages) / f64::from(valid);
    inverse - 1.0 - libm::log(inverse)
}

/// Returns the quarter of an octave of an age in page writes. The first octave begins at the largest power of
/// two that is at most a segment.
#[inline]
fn age(age: u64, segment_pages: u32) -> usize {
    let quarters = (4 * age) >> segment_pages.ilog2();
    match quarters.checked_ilog2() {
        // From 4 quarters on, the two bits after the leading one give the quarter.
        Some(octave @ 2..) => {
            ((4 * (octave - 2)) as usize + (quarters >> (octave - 2) & 3) as usize).min(AGES - 1)
        }
        _ => 0,
    }
}

impl VictimPolicy for Hazard {
    fn sealed(&mut self, segment: SegmentId, table: &SegmentTable) {
        let stream = usize::from(table.stream(segment).0);
        while self.streams.len() <= stream {
            self.streams.push(Stream::new(self.segments.clone()));
        }
        self.streams[stream].index.push(segment, table.valid(segment), table.sealed_at(segment));
    }

    #[inline]
    fn invalidated(&mut self, segment: SegmentId, table: &SegmentTable) {
        // The stream exists, since sealing its first segment created it.
        let stream = &mut self.streams[usize::from(table.stream(segment).0)];
        stream.index.lowered(segment, table.valid(segment));
        stream.deaths[age(table.now() - table.sealed_at(segment), table.segment_pages())] += 1.0;
    }

    fn pick(&mut self, table: &SegmentTable) -> Option<SegmentId> {
        let now = table.now();
        if now >= self.looks_at {
            self.look(table);
        }
        let segment_pages = table.segment_pages();
        let mut best: Option<(f64, usize, SegmentId)> = None;
        // Searches the stream of the last pick first: a good score narrows the search in the others.
        let streams = self.streams.len();
        for at in (0..streams).map(|step| (self.last + step) % streams) {
            let stream = &self.streams[at];
            // Returns a bound on the score of all segments sealed between two times: the score of the oldest,
            // with the fewest valid pages and the lowest rate of these ages.
            let score = |oldest: u64, youngest: u64, valid: u32| {
                let oldest_age = age(now - oldest, segment_pages);
                let patience = if youngest == oldest {
                    stream.patience[0][oldest_age]
                } else {
                    stream.most_patience(age(now - youngest, segment_pages), oldest_age)
                };
                (now - oldest + 1) as f64 * self.benefit[valid as usize] * patience
            };
            // Gives ties to the lowest stream.
            let known = best.map(|(score, of, _)| if at < of { score.next_down() } else { score });
            if let Some((score, segment)) = stream.index.best_within(known, score) {
                best = Some((score, at, segment));
            }
        }
        let (_, at, segment) = best?;
        self.last = at;
        self.streams[at].index.remove(segment);
        Some(segment)
    }

    fn remove(&mut self, segment: SegmentId, table: &SegmentTable) {
        self.streams[usize::from(table.stream(segment).0)].index.remove(segment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: among segments that begin full and whose pages die at one rate, the victims of this score cost
    /// least. The cost of all pages is found here by trying every time of collection.
    #[test]
    fn the_score_has_the_least_cost_of_copies_and_space() {
        for (rate, price) in [(1e-6, 1e-3), (1e-4, 1e-3), (1e-3, 1e-2), (2e-3, 1e-3), (5e-3, 1e-3)] {
            // A segment is collected at the age `time`, when the share `valid` of its pages is copied.
            let cost = |time: f64| {
                let valid = (-rate * time).exp();
                let mean = (1.0 - valid) / (rate * time);
                (valid / time + price) / mean
            };
            let times = (1..200_000).map(|step| 0.5 * f64::from(step));
            let best = times.min_by(|one, other| cost(*one).total_cmp(&cost(*other))).unwrap();
            let valid = (-rate * best).exp();
            let pages = 1 << 24;
            let score = benefit((valid * f64::from(pages)) as u32, pages) / rate;
            assert!((score * price - 1.0).abs() < 0.01, "{rate}, {price}: {best}, {score}");
        }
        assert_eq!((benefit(0, 8), benefit(8, 8)), (f64::INFINITY, 0.0));
    }

    /// The rule: the patience of a range of ages is the greatest of any age in it.
    #[test]
    fn the_patience_of_a_range_is_that_of_its_most_patient_age() {
        let mut stream = Stream::new(0..4);
        let mut prng = fulgurite_base::Prng::new(3, "patience");
        stream.deaths.iter_mut().for_each(|deaths| *deaths = 100.0 * prng.unit_f64());
        stream.exposure.iter_mut().for_each(|exposure| *exposure = 1e6 * prng.unit_f64());
        stream.learn(16);
        for youngest in 0..AGES {
            for oldest in youngest..AGES {
                let most = stream.patience[0][youngest..=oldest].iter().copied().fold(0.0, f64::max);
                assert_eq!(stream.most_patience(youngest, oldest), most, "{youngest} to {oldest}");
            }
        }
    }

    /// The rule: ages up to a quarter more than a segment's worth of writes come first. Each following
    /// quarter of an octave has its own number, up to the last.
    #[test]
    fn ages_are_classed_by_quarters_of_octaves() {
        for segment_pages in [16, 20] {
            let quarters = [16, 20, 24, 28, 32, 40, 48, 56, 64];
            for (number, bounds) in quarters.windows(2).enumerate() {
                for time in bounds[0]..bounds[1] {
                    assert_eq!(age(time, segment_pages), number, "{time}");
                }
            }
            assert!((0..16).all(|time| age(time, segment_pages) == 0));
            assert_eq!(age((1 << 24) - 1, segment_pages), AGES - 1);
            assert_eq!(age(1 << 40, segment_pages), AGES - 1);
        }
    }
}
