//! Fulgurite's own placement, by the remaining lifetime of similar pages.
//!
//! A single interval between writes says little about a page's write rate: intervals of one rate differ by a
//! factor of four. So each page keeps an average of its intervals, in two bytes. They hold the logarithm of
//! the average in eighths of an octave (7 bits); the number of intervals in the average (0 to 7); whether the
//! last interval was sixteen times shorter than the average before it (1 bit); and the time of the last
//! write, in quarters of a logical capacity (5 bits; the age of the segment resolves the wrap-around). The
//! average of an unknown page is one capacity, which is the average over all pages. A new interval has a
//! weight of 1 / (n + 2), where n is the number of intervals, and at least an eighth, so the average follows
//! a change within a few writes. The page's clock is too coarse for short intervals. These are derived from
//! the age of the segment that holds the page.
//!
//! The meaning of the average depends on the workload. For example, if blocks are reused for other files, the
//! average says nothing. So `Experience` counts how long pages with a similar average over a similar number
//! of intervals have lived. A host page or a copy goes to the stream of the time that similar pages of its
//! age have left, in steps of an octave and a half. The remaining times are averaged by the power mean with
//! exponent −0.8, which is close to the harmonic mean. So the result depends mostly on the pages that are
//! overwritten soon. Groups of long-lived pages behave much the same with any contents. More streams would
//! separate lifetimes better and cost more in half-filled segments.
//!
//! That holds if pages of one kind die independently. If blocks are allocated in turn, pages die together
//! that were written together. Then copies must not be mixed with the host's pages, and on uniform traffic
//! every further stream only costs an open segment. So there are several schemes ([`Scheme`]), and the drive
//! uses the one that copies least on a sample of the drive's own pages ([`contest`]).
//!
//! The policy is designed for `hazard` victims. A decision takes O(1). The policy takes 2 bytes a page, the
//! models some 1.3 MB, and it needs no training. The parameters of the lifetimes were chosen with
//! seed 42 at 2,048 segments of 1 MiB on `fio-h`, `varmail`, `alibaba-like`, `exchange-like` and `ycsb-a`, and
//! checked afterwards with other seeds, sizes and workloads. The schemes were chosen with seed 1 on the
//! workloads that docs/validation/own-placement.md names.

mod config;
mod contest;

pub(super) use config::FulguriteConfig;

use super::lifespan::Lifespan;
use super::policy::{
    AnyPlacement, CustomPlacement, DriveShape, Model, ModelConfig, PlacementPolicy, WriteContext,
    copied_one_by_one,
};
use crate::divisor::Divisor;
use crate::mapping::AHEAD;
use crate::{SegmentId, SegmentState, SegmentTable};
use config::{CODES, Choose, GENERATIONS, INTERVALS, Scheme};
use contest::Contest;
use fulgurite_base::{StreamId, prefetch};
use std::sync::Arc;

/// An interval counts as short if it is this many times shorter than the average before it.
const SHORT: u64 = 16;
/// The number of ticks of the pages' clock until it wraps around.
const TICKS: u64 = 32;
/// The number of ticks in one logical capacity of host writes.
const TICKS_IN_CAPACITY: u32 = 4;

/// The collected segments of the first stream over which the scheme by generations averages their lifespan, as
/// in SepBIT.
const COLLECTED: u32 = 16;

/// The record of a page, as packed into two bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    /// The code of the average interval.
    code: u16,
    /// The number of intervals in the average, at most [`INTERVALS`].
    intervals: u16,
    /// The time of the last write, in ticks modulo [`TICKS`].
    tick: u16,
    /// Whether the last interval was much shorter than the average before it.
    short: bool,
}

impl Known {
    #[inline]
    fn unpack(word: u16) -> Known {
        Known { code: word & 127, intervals: word >> 7 & 7, short: word >> 10 & 1 == 1, tick: word >> 11 }
    }

    #[inline]
    fn pack(self) -> u16 {
        self.code | self.intervals << 7 | u16::from(self.short) << 10 | self.tick << 11
    }
}

/// The lifetimes of pages by kind, and the streams that follow from them.
///
/// Pages are of one kind if their averages are in the same half octave and count a similar number of
/// intervals (few, some, many), and if their last intervals were both short or both not. For each kind,
/// writes and deaths (overwrites) are counted by the octave of the lifetime, and both counts decay at the
/// same rate. A write without a death belongs to a page that outlives the counted octaves. The stream at an
/// age follows from the mean remaining time.
#[derive(Clone, Debug)]
struct Experience {
    written: Vec<f64>,
    died: Vec<[f64; AGES]>,
    /// The stream by kind and age. Age 0 is a page just written; the octaves of age follow.
    streams: Vec<[u16; AGES + 1]>,
    /// By age and octave of death, the remaining time to the power of [`POWER`].
    left: Vec<[f64; AGES]>,
}

/// The number of kinds of pages: half octaves of the average; few, some or many intervals; the last interval
/// short or not.
const KINDS: usize = 32 * 3 * 2;
/// The number of octaves of age. The first octave is less than a segment's worth of writes, and each
/// following one doubles.
const AGES: usize = 18;
/// The weight of the prior distribution of each kind, in pages.
const BELIEF: f64 = 32.0;
/// The decay factor of all counts at each tick. The half-life is two capacities.
const KEPT: f64 = 0.917;
/// The exponent of the power mean of the remaining times. It is close to the harmonic mean, so groups differ
/// by how many of their pages are overwritten soon; the other pages hardly count.
const POWER: f64 = -0.8;
/// The number of octaves by which this power mean of a memoryless interval is below its arithmetic mean: log2
/// Γ(1 + p) / p, where p is [`POWER`].
const MEMORYLESS: f64 = 2.7484;

#[inline]
fn kind(known: Known) -> usize {
    let seen = match known.intervals {
        0 | 1 => 0,
        2..=5 => 1,
        _ => 2,
    };
    (usize::from(known.code / 4) * 3 + seen) * 2 + usize::from(known.short)
}

impl Experience {
    /// Creates the prior distribution: pages are memoryless.
    fn new(config: FulguriteConfig, capacity: f64) -> Experience {
        let mut experience = Experience {
            written: vec![BELIEF; KINDS],
            died: vec![[0.0; AGES]; KINDS],
            streams: vec![[0; AGES + 1]; KINDS],
            left: (0..=AGES).map(left).collect(),
        };
        for (kind, died) in experience.died.iter_mut().enumerate() {
            // The middle of the half octave, in units of a segment's worth of writes.
            let mean = libm::exp2((kind / 6) as f64 / 2.0 + 0.25);
            let alive = |time: f64| libm::exp(-time / mean);
            for (age, died) in died.iter_mut().enumerate() {
                let (from, to) = bounds(age);
                *died = BELIEF * (alive(from) - alive(to));
            }
        }
        experience.learn(config, capacity);
        experience
    }

    /// Updates the streams from the counts, and lets the counts decay. `capacity` is in segments' worth of
    /// writes.
    fn learn(&mut self, config: FulguriteConfig, capacity: f64) {
        // Pages that outlive all counted octaves are assumed to have 16 capacities left.
        let never = libm::pow(16.0 * capacity, POWER);
        for kind in 0..KINDS {
            let died = &self.died[kind];
            let beyond = (self.written[kind] - died.iter().sum::<f64>()).max(0.0);
            for age in 0..=AGES {
                let (mut weight, mut sum) = (beyond, beyond * never);
                for (octave, died) in died.iter().enumerate().skip(age.saturating_sub(1)) {
                    // Half of the deaths in the page's own octave are already past.
                    let died = if octave + 1 == age { 0.5 * died } else { *died };
                    weight += died;
                    sum += died * self.left[age][octave];
                }
                let expected =
                    if weight > 0.0 { libm::log2(sum / weight) / POWER + MEMORYLESS } else { 16.0 };
                let code = (8.0 * expected).clamp(0.0, f64::from(CODES - 1)) as u16;
                self.streams[kind][age] = (code / config.step).min(config.streams - 1);
            }
            self.written[kind] *= KEPT;
            self.died[kind].iter_mut().for_each(|died| *died *= KEPT);
        }
    }
}

/// Returns, by octave of death, the remaining time of a page of this age, to the power of [`POWER`]. Age 0 is
/// a page just written.
fn left(age: usize) -> [f64; AGES] {
    let middle = |octave| f64::midpoint(bounds(octave).0, bounds(octave).1);
    let now = if age == 0 { 0.0 } else { middle(age - 1) };
    std::array::from_fn(|octave| {
        let (from, to) = bounds(octave);
        // Half of the page's own octave is left. Earlier octaves are past and never read.
        let left = if octave < age { 0.25 * (to - from) } else { middle(octave) - now };
        libm::pow(left, POWER)
    })
}

/// Returns the start and the end of an octave of age, in segments' worth of writes.
fn bounds(age: usize) -> (f64, f64) {
    let end = libm::exp2(age as f64);
    (if age == 0 { 0.0 } else { end / 2.0 }, end)
}

/// Fulgurite's placement policy at work: a record of each page, and the experience with all pages.
#[derive(Clone, Debug)]
pub struct Fulgurite {
    config: FulguriteConfig,
    experience: Experience,
    pages: Vec<u16>,
    /// The number of page writes in a tick; `ticks` is the number of ticks so far. The experience is
    /// evaluated at each tick.
    tick: Divisor,
    ticks: u64,
    next_tick: u64,
    /// The binary logarithm of the interval of code 0, which is a power of two; `intervals` has the interval
    /// of every code.
    least: u32,
    intervals: Vec<u64>,
    /// The divisor of each inverse weight, the first of which is 1.
    weights: [Divisor; INTERVALS as usize + 3],
    /// The scheme in use. `config` has its number of streams.
    scheme: Scheme,
    contest: Option<Contest>,
    /// Whether the scheme has changed since the segments were last told.
    regroups: bool,
    /// The mean lifespan of collected segments of stream 0.
    lifespan: Lifespan,
    /// The host write that was placed last, until it is written.
    placed: Option<Placed>,
}

/// A host write of a page in a segment, with the record before and after, and the octave of the age that ends.
#[derive(Clone, Copy, Debug)]
struct Placed {
    lpn: u32,
    segment: SegmentId,
    before: Known,
    after: Known,
    octave: usize,
}

impl Fulgurite {
    pub(super) fn streams(config: &FulguriteConfig) -> u16 {
        config.streams()
    }

    pub(super) fn start(config: &FulguriteConfig, drive: &DriveShape) -> Fulgurite {
        // Makes the first octave at least 8 page writes long, since an octave has eight steps.
        let least = drive.segment_pages.max(8).ilog2();
        let interval = |code: u64| (8 + code % 8) << (u64::from(least) - 3 + code / 8);
        let octave = (drive.logical_pages >> least).max(1).ilog2() as u16;
        let contest = (config.scheme == Choose::Measured).then(|| Contest::new(*config, drive));
        Fulgurite {
            config: *config,
            experience: Experience::new(*config, f64::from(drive.logical_pages) / f64::from(1u32 << least)),
            pages: vec![
                Known { code: octave * 8, intervals: 0, tick: 0, short: false }.pack();
                drive.logical_pages as usize
            ],
            tick: Divisor::new((drive.logical_pages / TICKS_IN_CAPACITY).max(1)),
            ticks: 0,
            next_tick: 0,
            least,
            intervals: (0..u64::from(CODES)).map(interval).collect(),
            weights: std::array::from_fn(|weight| Divisor::new(weight.max(1) as u32)),
            scheme: config.only(),
            contest,
            regroups: false,
            lifespan: Lifespan::new(COLLECTED),
            placed: None,
        }
    }

    /// Returns the number of segments' worth of writes in one logical capacity.
    fn capacity(&self) -> f64 {
        self.pages.len() as f64 / f64::from(1u32 << self.least)
    }

    /// Returns the code of the largest interval that is at most `interval`.
    #[inline]
    fn code(&self, interval: u64) -> u16 {
        let Some(octave) = (interval >> self.least).checked_ilog2() else { return 0 };
        let eighth = (interval >> (octave + self.least - 3)) - 8;
        ((u64::from(octave) * 8 + eighth.min(7)) as u16).min(CODES - 1)
    }

    /// Returns the number of page writes since the host wrote a page that is in `segment`.
    #[inline]
    fn age(&self, known: Known, segment: SegmentId, segments: &SegmentTable) -> u64 {
        let end = match segments.state(segment) {
            SegmentState::Open => segments.now(),
            _ => segments.sealed_at(segment),
        };
        let sealed_for = segments.now() - end;
        // Resolves the wrap-around: no page was older than three quarters of the clock's period when it was
        // written to this segment.
        let least = self.tick.quotient(sealed_for);
        let ticks = least + (self.ticks.wrapping_sub(u64::from(known.tick) + least)) % TICKS;
        if ticks >= 2 {
            return ticks * u64::from(self.tick.divisor());
        }
        segments.now() - u64::midpoint(segments.opened_at(segment), end)
    }

    /// Returns the record of a page in `segment`, and the age of the page.
    #[inline]
    fn known(&self, lpn: u32, segment: SegmentId, segments: &SegmentTable) -> (Known, u64) {
        let known = Known::unpack(self.pages[lpn as usize]);
        (known, self.age(known, segment, segments))
    }

    /// Returns what a host write of a page in `segment` changes.
    #[inline]
    fn end_of(&self, lpn: u32, segment: SegmentId, segments: &SegmentTable) -> Placed {
        let (before, age) = self.known(lpn, segment, segments);
        let after = self.after_write(before, age, segments.now());
        Placed { lpn, segment, before, after, octave: self.octave(age) }
    }

    /// Returns the record of a page after a host write that ends `interval`.
    #[inline]
    fn after_write(&self, known: Known, interval: u64, now: u64) -> Known {
        let weight = u64::from(known.intervals + 2).min(u64::from(self.config.memory));
        let mean = self.intervals[usize::from(known.code)];
        let short = SHORT * interval < mean;
        let mean = self.weights[weight as usize].quotient(mean * (weight - 1) + interval);
        // Rounds up or down pseudo-randomly, so that small steps are not lost.
        let dither = mean * ((now.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) % 1024) / (1024 * 8);
        let intervals = (known.intervals + 1).min(INTERVALS);
        Known { code: self.code(mean + dither), intervals, tick: self.now(), short }
    }

    /// Returns the current tick, modulo the period of the time stamps that pages keep. A tick is a
    /// quarter of the logical capacity in host writes.
    fn now(&self) -> u16 {
        (self.ticks % TICKS) as u16
    }

    /// Returns the stream of the time that the page has left.
    #[inline]
    fn by_lifetime(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        // Places an unmapped page among those that live longest.
        let Some(segment) = context.segment else { return StreamId(self.config.streams - 1) };
        let (known, age) = self.known(context.lpn, segment, segments);
        let (kind, age) = if context.copied {
            (kind(known), 1 + self.octave(age))
        } else {
            (kind(self.after_write(known, age, segments.now())), 0)
        };
        StreamId(self.experience.streams[kind][age])
    }

    /// Returns the stream of a page by its last interval, or by the generation of a copy.
    #[inline]
    fn by_generation(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        let Some(segment) = context.segment else { return StreamId(1) };
        if context.copied {
            return StreamId((segments.stream(segment).0.max(1) + 1).min(GENERATIONS - 1));
        }
        let (_, age) = self.known(context.lpn, segment, segments);
        StreamId(u16::from(age >= self.lifespan.mean()))
    }

    /// Changes the scheme if another one copies less on the sample.
    fn judge(&mut self) {
        let Some(config) = self.contest.as_mut().and_then(Contest::judge) else { return };
        (self.config, self.scheme, self.regroups) = (config, config.only(), true);
        // Stream 0 had other pages, so its lifespans do not count.
        self.lifespan = Lifespan::new(COLLECTED);
    }

    /// Returns the corrected time of a page of this age that is copied, if the page falls more than three quarters
    /// of the clock's period behind. With it the page's age stays unambiguous.
    #[inline]
    fn corrected(&self, age: u64) -> Option<u16> {
        let most = TICKS - TICKS / 4;
        (self.tick.quotient(age) > most).then(|| (self.ticks.wrapping_sub(most) % TICKS) as u16)
    }

    /// Returns the octave of an age.
    #[inline]
    fn octave(&self, age: u64) -> usize {
        (age >> self.least).checked_ilog2().map_or(0, |octave| octave as usize + 1).min(AGES - 1)
    }
}

impl PlacementPolicy for Fulgurite {
    #[inline]
    fn stream(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        match self.scheme {
            Scheme::Lifetimes => self.by_lifetime(context, segments),
            Scheme::Generations => self.by_generation(context, segments),
            Scheme::Copies => StreamId(u16::from(context.copied)),
            Scheme::One => StreamId(0),
        }
    }

    #[inline]
    fn place(&mut self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        let (Scheme::Lifetimes, Some(segment)) = (self.scheme, context.segment) else {
            return self.stream(context, segments);
        };
        let placed = self.end_of(context.lpn, segment, segments);
        self.placed = Some(placed);
        StreamId(self.experience.streams[kind(placed.after)][0])
    }

    #[inline]
    fn written(&mut self, context: &WriteContext, _: StreamId, segments: &SegmentTable) {
        let now = segments.now();
        if !context.copied {
            let known = if let Some(segment) = context.segment {
                // The page may have moved since it was placed.
                let placed = self
                    .placed
                    .take()
                    .filter(|placed| (placed.lpn, placed.segment) == (context.lpn, segment));
                let placed = placed.unwrap_or_else(|| self.end_of(context.lpn, segment, segments));
                self.experience.died[kind(placed.before)][placed.octave] += 1.0;
                placed.after
            } else {
                Known { tick: self.now(), ..Known::unpack(self.pages[context.lpn as usize]) }
            };
            self.experience.written[kind(known)] += 1.0;
            self.pages[context.lpn as usize] = known.pack();
            if now >= self.next_tick {
                self.ticks = self.tick.quotient(now);
                self.next_tick = (self.ticks + 1) * u64::from(self.tick.divisor());
                self.judge();
                // Other schemes never read the experience, unless the scheme may change.
                if self.scheme == Scheme::Lifetimes || self.contest.is_some() {
                    let capacity = self.capacity();
                    self.experience.learn(self.config, capacity);
                }
            }
            if let Some(contest) = &mut self.contest {
                contest.write(context.lpn);
            }
            return;
        }
        let Some(segment) = context.segment else { return };
        let (known, age) = self.known(context.lpn, segment, segments);
        if let Some(tick) = self.corrected(age) {
            self.pages[context.lpn as usize] = Known { tick, ..known }.pack();
        }
    }

    fn copied_each(
        &mut self,
        lpns: &[u32],
        victim: SegmentId,
        segments: &SegmentTable,
        streams: &mut Vec<StreamId>,
    ) {
        if self.scheme != Scheme::Lifetimes {
            return copied_one_by_one(self, lpns, victim, segments, streams);
        }
        // All pages of a victim with the same time stamp have the same age.
        let ages = std::array::from_fn::<_, { TICKS as usize }, _>(|tick| {
            let known = Known { code: 0, intervals: 0, tick: tick as u16, short: false };
            let age = self.age(known, victim, segments);
            (1 + self.octave(age), self.corrected(age))
        });
        for (at, lpn) in lpns.iter().enumerate() {
            if let Some(ahead) = lpns.get(at + AHEAD) {
                prefetch(&self.pages, *ahead as usize);
            }
            let page = &mut self.pages[*lpn as usize];
            let known = Known::unpack(*page);
            let (octave, corrected) = ages[usize::from(known.tick)];
            if let Some(tick) = corrected {
                *page = Known { tick, ..known }.pack();
            }
            streams.push(StreamId(self.experience.streams[kind(known)][octave]));
        }
    }

    fn trimmed(&mut self, lpn: u32) {
        if let Some(contest) = &mut self.contest {
            contest.trim(lpn);
        }
    }

    fn take_regrouping(&mut self) -> Option<Vec<StreamId>> {
        // Seals the open segments of streams that the scheme does not use; they would hold garbage for ever.
        let (most, used) = (self.contest.as_ref()?.streams(), self.config.streams());
        let groups = (0..most).map(|stream| StreamId(stream.min(used - 1)));
        std::mem::take(&mut self.regroups).then(|| groups.collect())
    }

    fn picked(&mut self, victim: SegmentId, segments: &SegmentTable) {
        if self.scheme == Scheme::Generations {
            self.lifespan.picked(victim, segments);
        }
    }

    fn models(&self) -> Vec<ModelConfig> {
        self.contest.as_ref().map_or_else(Vec::new, |contest| contest.models(|scheme| Arc::new(Only(scheme))))
    }

    fn receive(&mut self, models: Vec<Option<Box<dyn Model>>>) {
        let Some(contest) = &mut self.contest else { return };
        contest.receive(models);
        (self.config, self.scheme) = (contest.best(), contest.best().only());
        self.experience = Experience::new(self.config, self.capacity());
    }

    #[inline]
    fn prefetch(&self, lpn: u32) {
        prefetch(&self.pages, lpn as usize);
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.pages[..]) + self.contest.as_ref().map_or(0, Contest::bytes)
    }
}

/// One scheme as a policy of a model.
#[derive(Debug)]
struct Only(FulguriteConfig);

impl CustomPlacement for Only {
    fn name(&self) -> &str {
        "fulgurite"
    }

    fn streams(&self) -> u16 {
        self.0.streams()
    }

    fn start(&self, drive: &DriveShape) -> Box<dyn AnyPlacement> {
        Box::new(Fulgurite::start(&self.0, drive))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIMES: Choose = Choose::Only(Scheme::Lifetimes);

    fn policy() -> Fulgurite {
        let victim = crate::victim::VictimConfig::GREEDY;
        let (logical_pages, segments, segment_pages) = (1 << 20, 1_100, 1 << 10);
        let drive = DriveShape { logical_pages, segments, segment_pages, reserve: 2, victim };
        Fulgurite::start(&FulguriteConfig::default(), &drive)
    }

    #[test]
    fn codes_are_intervals_to_an_eighth_of_an_octave() {
        let policy = policy();
        for interval in (0..40_000_000).step_by(997) {
            let code = policy.code(interval);
            let (low, high) =
                (policy.intervals[usize::from(code)], policy.intervals.get(usize::from(code) + 1));
            assert!(
                low <= interval.max(1 << 10) && high.is_none_or(|high| interval < *high),
                "{interval}: {code}"
            );
        }
        assert_eq!((policy.code(0), policy.code(u64::MAX)), (0, CODES - 1));
    }

    #[test]
    fn a_record_fits_into_two_bytes() {
        for word in 0..=u16::MAX {
            assert_eq!(Known::unpack(word).pack(), word);
        }
    }

    #[test]
    fn an_unknown_page_is_expected_after_one_capacity() {
        let policy = policy();
        let known = Known::unpack(policy.pages[7]);
        assert_eq!((known.intervals, policy.intervals[usize::from(known.code)]), (0, 1 << 20));
    }

    /// Returns the power mean of the remaining times of pages of this age, by its definition, in eighths of
    /// octaves of segments' worth of writes. For one kind of page, `died` is the number of deaths in each
    /// octave, and `beyond` the number of pages that outlive all octaves. Half of a page's own octave is
    /// past.
    fn by_definition(died: &[f64; AGES], beyond: f64, age: usize, capacity: f64) -> u16 {
        let ends = |octave: usize| {
            if octave == 0 { (0.0, 1.0) } else { (2f64.powi(octave as i32 - 1), 2f64.powi(octave as i32)) }
        };
        let middle = |octave: usize| (ends(octave).0 + ends(octave).1) / 2.0;
        let mut left = vec![(beyond, 16.0 * capacity)];
        for (octave, died) in died.iter().copied().enumerate() {
            let lasts = ends(octave).1 - ends(octave).0;
            match age {
                0 => left.push((died, middle(octave))),
                _ if octave == age - 1 => left.push((died / 2.0, lasts / 4.0)),
                _ if octave >= age => left.push((died, middle(octave) - middle(age - 1))),
                _ => {}
            }
        }
        let weight: f64 = left.iter().map(|(pages, _)| pages).sum();
        if weight == 0.0 {
            return CODES - 1;
        }
        let mean = (left.iter().map(|(pages, time)| pages * time.powf(POWER)).sum::<f64>() / weight)
            .powf(1.0 / POWER);
        (8.0 * (mean.log2() + MEMORYLESS)).clamp(0.0, f64::from(CODES) - 1.0) as u16
    }

    /// The rule: a page is placed by the power mean of the remaining times of pages of its kind and age. The
    /// prior is a memoryless lifetime with the page's own average, with the weight of 32 pages. All counts
    /// decay at one rate.
    #[test]
    fn streams_follow_from_the_remaining_times() {
        let config = FulguriteConfig { scheme: LIFETIMES, streams: 256, step: 1, memory: 8 };
        for capacity in [3.0, 1_000.0] {
            let mut experience = Experience::new(config, capacity);
            let mut counts: Vec<(f64, [f64; AGES])> = Vec::new();
            for kind in 0..KINDS {
                // Kinds differ by the half octave of the average, by the number of intervals (few, some or
                // many), and by whether the last interval was short.
                let mean = 2f64.powf((kind / 6) as f64 / 2.0 + 0.25);
                let alive = |octaves: usize| {
                    if octaves == 0 { 1.0 } else { (-(2f64.powi(octaves as i32 - 1)) / mean).exp() }
                };
                counts.push((32.0, std::array::from_fn(|octave| 32.0 * (alive(octave) - alive(octave + 1)))));
            }
            for lesson in 0..4 {
                for (kind, (written, died)) in counts.iter_mut().enumerate() {
                    for age in 0..=AGES {
                        let beyond = (*written - died.iter().sum::<f64>()).max(0.0);
                        let (stream, expected) =
                            (experience.streams[kind][age], by_definition(died, beyond, age, capacity));
                        // Two ways to compute a power differ in the last digits, which matter only if almost
                        // no pages are left.
                        let is_nothing = died.iter().skip(age.saturating_sub(1)).sum::<f64>() + beyond < 1e-9;
                        assert!(
                            stream < CODES && (stream.abs_diff(expected) <= 1 || is_nothing),
                            "{kind} at {age} in {lesson}: {stream}, {expected}"
                        );
                    }
                    *written *= 0.917;
                    died.iter_mut().for_each(|died| *died *= 0.917);
                    assert!((experience.written[kind] - *written).abs() < 1e-9);
                    assert!((experience.died[kind][9] - died[9]).abs() < 1e-9);
                    // Counts more pages of the kind, each time with other lifetimes.
                    let octave = (kind + 5 * lesson) % AGES;
                    for (written, died) in [
                        (&mut *written, &mut *died),
                        (&mut experience.written[kind], &mut experience.died[kind]),
                    ] {
                        *written += 90.0;
                        died[octave] += 50.0;
                    }
                }
                experience.learn(config, capacity);
            }
        }
    }

    /// The rule: a page that is older than any page of its kind has become is assumed to outlive all counted
    /// octaves.
    #[test]
    fn a_page_that_outlives_its_kind_goes_last() {
        let mut experience = Experience::new(FulguriteConfig::default(), 100.0);
        experience.written[0] = 10.0;
        experience.died[0] = std::array::from_fn(|octave| if octave == 2 { 10.0 } else { 0.0 });
        experience.learn(FulguriteConfig::default(), 100.0);
        assert_eq!(experience.streams[0][4..], [10; AGES - 3]);
        assert!(experience.streams[0][..4].iter().all(|stream| *stream < 5));
    }

    /// The rule: pages are of one kind by the half octave of their average, by few, some or many intervals,
    /// and by whether the last interval was short.
    #[test]
    fn each_kind_of_page_is_counted_separately() {
        let mut seen = std::collections::BTreeMap::new();
        for word in 0..1 << 11 {
            let known = Known::unpack(word);
            let alike = (known.code / 4, [0, 0, 1, 1, 1, 1, 2, 2][usize::from(known.intervals)], known.short);
            assert_eq!(*seen.entry(kind(known)).or_insert(alike), alike);
            assert_eq!(kind(known) / 6, usize::from(known.code / 4));
        }
        assert_eq!((seen.len(), seen.last_key_value().map(|last| *last.0)), (KINDS, Some(KINDS - 1)));
    }

    /// The rule: ages below a segment's worth of writes come first, then each octave. Greater ages are in the
    /// last octave.
    #[test]
    fn ages_are_classed_by_octaves() {
        let policy = policy();
        let ages = [0, 1_023, 1_024, 2_047, 2_048, 1 << 25, (1 << 26) - 1, 1 << 26, u64::MAX];
        assert_eq!(ages.map(|age| policy.octave(age)), [0, 0, 1, 1, 2, 16, 16, 17, 17]);
    }

    /// Returns a policy with a page of every record, and a table in which segment 3 was sealed `ago` page writes ago
    /// and segment 4 is open.
    fn with_all_records(ago: u64) -> (Fulgurite, SegmentTable) {
        let config = FulguriteConfig { scheme: LIFETIMES, ..FulguriteConfig::default() };
        let victim = crate::victim::VictimConfig::GREEDY;
        let (logical_pages, segments, segment_pages) = (1 << 16, 80, 1 << 10);
        let drive = DriveShape { logical_pages, segments, segment_pages, reserve: 2, victim };
        let mut policy = Fulgurite::start(&config, &drive);
        let mut table = SegmentTable::new(80, 1 << 10, Fulgurite::streams(&config));
        let pass = |policy: &mut Fulgurite, table: &mut SegmentTable, writes: u64| {
            let unmapped = WriteContext { lpn: 0, copied: false, hint: StreamId(0), segment: None };
            for _ in 0..writes {
                policy.written(&unmapped, StreamId(0), table);
                table.tick();
            }
        };
        pass(&mut policy, &mut table, 1 << 20);
        table.open(SegmentId(3), StreamId(2));
        pass(&mut policy, &mut table, 5_000);
        table.seal(SegmentId(3));
        pass(&mut policy, &mut table, ago);
        table.open(SegmentId(4), StreamId(1));
        policy.pages = (0..=u16::MAX).collect();
        (policy, table)
    }

    /// The rule: the copies of a victim go to the streams that its pages get one by one, and leave the same records,
    /// whatever the records are, and some pages get a later time.
    #[test]
    fn copies_of_a_victim_equal_copies_one_by_one() {
        let lpns: Vec<u32> = (0..=u32::from(u16::MAX)).collect();
        for ago in [0, 20_000, 28 * 16_384] {
            let (mut together, table) = with_all_records(ago);
            let mut apart = together.clone();
            let before = together.pages.clone();
            let [mut of_all, mut of_each] = [Vec::new(), Vec::new()];
            together.copied_each(&lpns, SegmentId(3), &table, &mut of_all);
            copied_one_by_one(&mut apart, &lpns, SegmentId(3), &table, &mut of_each);
            assert!(of_all == of_each && together.pages == apart.pages, "{ago}");
            assert!(together.pages != before, "{ago}");
            let streams: std::collections::BTreeSet<_> = of_all.iter().collect();
            assert!(streams.len() > 3, "{streams:?}");
        }
    }

    /// The rule: a host write that was placed beforehand counts like one that was not, also if collection
    /// moved the page in between.
    #[test]
    fn a_placed_write_counts_like_any_other() {
        let (mut placed, table) = with_all_records(20_000);
        let mut plain = placed.clone();
        let at =
            |lpn, segment| WriteContext { lpn, copied: false, hint: StreamId(0), segment: Some(segment) };
        for lpn in (0..=u32::from(u16::MAX)).step_by(7) {
            let (from, to) = (SegmentId(3), SegmentId(if lpn % 2 == 0 { 3 } else { 4 }));
            assert_eq!(placed.place(&at(lpn, from), &table), plain.stream(&at(lpn, from), &table));
            for policy in [&mut placed, &mut plain] {
                policy.written(&at(lpn, to), StreamId(0), &table);
            }
        }
        assert!(placed.pages == plain.pages);
        assert_eq!(placed.experience.died, plain.experience.died);
        assert_eq!(placed.experience.written, plain.experience.written);
    }

    /// The rule: with the scheme by generations, a host page goes to stream 0 if its last interval was shorter
    /// than the mean lifespan of the last 16 collected segments of stream 0, which is infinite at first.
    /// Copies of host pages go to stream 2, and each further copy to the next stream.
    #[test]
    fn generations_are_streams() {
        let config =
            FulguriteConfig { scheme: Choose::Only(Scheme::Generations), ..FulguriteConfig::default() };
        let victim = crate::victim::VictimConfig::GREEDY;
        let (logical_pages, segments, segment_pages) = (1 << 10, 80, 1 << 4);
        let drive = DriveShape { logical_pages, segments, segment_pages, reserve: 2, victim };
        let mut policy = Fulgurite::start(&config, &drive);
        let mut table = SegmentTable::new(80, 16, GENERATIONS);
        let at = |segment, copied| WriteContext { lpn: 5, copied, hint: StreamId(0), segment };
        let placed = |policy: &Fulgurite, table: &SegmentTable, copied| {
            policy.stream(&at(Some(SegmentId(3)), copied), table).0
        };
        assert_eq!(policy.stream(&at(None, false), &table), StreamId(1));
        for (stream, copy) in [(0, 2), (1, 2), (2, 3), (3, 4), (4, 5), (5, 5)] {
            table.open(SegmentId(3), StreamId(stream));
            assert_eq!((placed(&policy, &table, false), placed(&policy, &table, true)), (0, copy));
            table.erased(SegmentId(3));
        }
        // Sixteen segments of stream 0 live for 100 page writes; segments of other streams do not count.
        for _ in 0..16 {
            for stream in [0, 4] {
                table.open(SegmentId(9), StreamId(stream));
                (0..100).for_each(|_| table.tick());
                policy.picked(SegmentId(9), &table);
                table.erased(SegmentId(9));
            }
        }
        assert_eq!(policy.lifespan.mean(), 100);
        for (age, stream) in [(99, 0), (100, 1)] {
            table.open(SegmentId(3), StreamId(1));
            // The first write only lets the policy's clock catch up.
            (0..2).for_each(|_| policy.written(&at(None, false), StreamId(1), &table));
            table.seal(SegmentId(3));
            (0..age).for_each(|_| table.tick());
            assert_eq!(placed(&policy, &table, false), stream, "{age}");
            table.erased(SegmentId(3));
        }
    }

    /// The rule: after a change of the scheme, the segments of streams that it does not use belong to its last
    /// stream, once.
    #[test]
    fn unused_streams_are_given_up() {
        let mut policy = policy();
        assert_eq!(policy.take_regrouping(), None);
        policy.config.scheme = Choose::Only(Scheme::Copies);
        policy.regroups = true;
        let groups: Vec<u16> = policy.take_regrouping().unwrap().iter().map(|group| group.0).collect();
        assert_eq!(groups, [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
        assert_eq!(policy.take_regrouping(), None);
    }

    /// The rule: at first, pages are assumed to live for the capacity of the drive, in segments' worth of
    /// writes.
    #[test]
    fn the_first_streams_follow_from_the_capacity() {
        let config = FulguriteConfig { scheme: LIFETIMES, streams: 256, step: 1, memory: 8 };
        for (logical_pages, segment_pages, capacity) in [(1 << 20, 1 << 10, 1_024.0), (48, 16, 3.0)] {
            let victim = crate::victim::VictimConfig::GREEDY;
            let drive = DriveShape { logical_pages, segments: 1_100, segment_pages, reserve: 2, victim };
            let expected = Experience::new(config, capacity).streams;
            assert!(Fulgurite::start(&config, &drive).experience.streams == expected);
            assert!(Experience::new(config, 2.0 * capacity).streams != expected);
        }
    }
}
