//! MiDAS: groups in a chain whose number and sizes follow from how long pages live.
//!
//! "MIDAS: Minimizing Write Amplification in Log-Structured Systems through Adaptive Group Number and Size
//! Configuration" (Oh et al., FAST 2024). The host's writes enter HOT where `hot` says so, else G1; what is still
//! valid when its segment leaves Gi moves to G(i+1), out of HOT to G1, and in GN it stays. All groups but GN have
//! a size in segments and give their oldest segment when they exceed it; GN is collected by the victim policy.
//!
//! Lifetimes are measured (`lifetimes`) over an epoch of 4 logical capacities of host writes. At its end, where
//! they differ from those in force by more than 5 %, sizes are chosen anew (`configure`) by the least write
//! amplification that the closed form ([`model`]) predicts. Before the first choice, and from the first group on
//! whose share of valid pages is off the prediction by more than a tenth (an irregular pattern), groups have no
//! sizes: as in MiDA they share their space and one victim policy, until the next choice.
//!
//! Where this differs from the paper, because the plain model errs and its choices then cost more than they gain:
//!
//! - HOT does not get all writes whose page dies soon, and not all of its pages die in it. The share that it gets
//!   and what comes out of it are measured, without sizes too, and go into the model. So does what GN copies beside
//!   what was predicted.
//! - A choice is adopted only if it promises less than what was had. If the write amplification in the last part of
//!   an epoch is worse than what was had, the next choice with what was learned, or what was had, takes its place:
//!   at once where it is worse by a tenth, else at the epoch's end. At most three choices under the same lifetimes.
//!   `judge=no` leaves both out.
//! - Groups get their sizes one after the other, each when the one before is full. If all had theirs at once, GN
//!   alone would have to give the space that growing groups take, and could have no garbage left.
//! - Pages in segments of GN of which none died in a whole capacity of writes are no part of GN's space.
//! - All sizes, HOT's among them, are tuned together, up and down.
//!
//! `as=program` does what the authors' program does where it differs from the paper: a choice is adopted if it
//! promises no more than the write amplification measured in the epoch before; only more valid pages than
//! predicted count as irregular; hot pages of GN are those below 0.7 of its mean lifetime.
//!
//! *Ambiguities.* Neither says what becomes of segments when groups change: segments of GN stay GN's, those of
//! groups that are no more become GN's. A drive that collects 64 segments in a row without a host write, and not
//! even half a segment of garbage by it, gives up all sizes; the program does after 25 with any garbage, which
//! ends changes of large groups half way. A group is compared with its prediction over stretches in which it and
//! those before it had their sizes, GN where all had. 4 bytes for each watched page and 2 bits for every page.

mod config;
mod configure;
mod hot;
mod lifetimes;
pub mod model;
mod short;
#[cfg(test)]
mod tests;

pub use config::{Definition, GroupSizes, MidasConfig};
pub use configure::{Configuration, Space};

use super::runaway::Runaway;
use super::{ConfiguredPlacement, DriveShape, PlacementPolicy, WriteContext};
use crate::victim::VictimConfig;
use crate::{SegmentId, SegmentTable};
use fulgurite_base::StreamId;
use hot::HotFilter;
use lifetimes::Sampler;
use model::{LastGroup, Learned, Lifetimes};

/// HOT's stream; G1 and the others follow.
const HOT: u16 = 0;
/// Most groups besides HOT.
const GROUPS: u16 = 16;
/// Groups of MiDA, before sizes are chosen.
const UNSIZED: u16 = 8;
/// Collections in a row without a host write after which it is judged whether they make room.
const RUNAWAY: u32 = 64;
/// Segments of a group that must have been collected for its share of valid pages to count as measured.
const MEASURED: u32 = 16;
/// Choices under the same lifetimes: each takes an epoch to be judged, and the model learns less from each.
const CHOICES: u32 = 3;
/// The least of what a prediction is multiplied by after it was held against what was measured; the most is 8.
const LEARNED_AT_LEAST: f64 = 0.125;

/// Lifetimes below so many page writes are measured on every page, or below the 512th part of an epoch: sixteen
/// bursts, and a table that stays in the processor's cache.
const SHORT_AT_MOST: u64 = 8_192;

/// What a group has given up since it was last looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Segments collected.
    pub segments: u32,
    /// Valid pages in them.
    pub valid: u64,
    /// Pages written to the group.
    pub written: u64,
}

/// Why groups changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// Lifetimes were measured, and differ from those in force by so much.
    Lifetimes(f64),
    /// This group's share of valid pages is not the predicted one: (group, predicted, measured).
    Irregular(u16, f64, f64),
    /// Collection made no room.
    Runaway,
    /// Lifetimes were measured, and nothing was changed: they differ by so little.
    Unchanged(f64),
    /// What the model promises is more than what was measured: (promised, measured).
    NoGain(f64, f64),
    /// Lifetimes are as they were, but the model with what was learned of its errors promises less than was
    /// measured: (promised, measured).
    Learned(f64, f64),
    /// These groups do worse than those before, which are taken again: (had, measured).
    Worse(f64, f64),
}

/// What happened to the groups, for people and studies.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// In host page writes.
    pub at: u64,
    /// Why.
    pub why: Why,
    /// The measured write amplification since the event before.
    pub waf: f64,
    /// Measured valid shares at collection since the event before, HOT first; where enough was collected.
    pub measured: Vec<Option<f64>>,
    /// The configuration from now on; `None`: no sizes from group [`Event::unsized_from`] on.
    pub configuration: Option<Configuration>,
    /// The first group without a size of its own.
    pub unsized_from: u16,
}

/// What a part of an epoch has shown.
#[derive(Clone, Debug)]
struct Stretch {
    /// When it began, in host page writes.
    since: u64,
    /// Pages copied, and by group what was collected.
    copied: u64,
    collected: Vec<Collected>,
}

impl Stretch {
    fn new(since: u64) -> Stretch {
        Stretch { since, copied: 0, collected: vec![Collected::default(); usize::from(GROUPS) + 1] }
    }

    /// What came after `earlier`, a part of this.
    fn after(&self, earlier: &Stretch) -> Stretch {
        let collected = self.collected.iter().zip(&earlier.collected).map(|(all, early)| Collected {
            segments: all.segments - early.segments,
            valid: all.valid - early.valid,
            written: all.written - early.written,
        });
        Stretch { since: earlier.since, copied: self.copied - earlier.copied, collected: collected.collect() }
    }

    fn waf(&self, now: u64) -> f64 {
        1.0 + self.copied as f64 / (now - self.since).max(1) as f64
    }
}

/// Groups that were had under the lifetimes in force, and their write amplification.
#[derive(Clone, Debug)]
struct Had {
    waf: f64,
    configuration: Option<Configuration>,
    unsized_from: u16,
}

/// MiDAS at work.
#[derive(Clone, Debug)]
pub struct Midas {
    config: MidasConfig,
    drive: DriveShape,
    filter: HotFilter,
    sampler: Sampler,
    lifetimes: Option<Lifetimes>,
    configuration: Option<Configuration>,
    /// Sizes by stream, HOT first; none from `first_unsized` on.
    sizes: Vec<u32>,
    first_unsized: u16,
    /// The last group.
    last: u16,
    /// Whether measuring has begun: with the first collection, when the drive is full.
    started: bool,
    epoch_ends: u64,
    check_at: u64,
    /// Since the event before, and what of it was before the second part of the epoch began.
    stretch: Stretch,
    early: Stretch,
    /// Under the lifetimes in force: the best groups that were had, what was learned of the model's errors, and
    /// whether to look for better groups no more, after how many choices.
    had: Option<Had>,
    learned: Learned,
    settled: bool,
    choices: u32,
    /// Looks in this epoch, and what of the stretch was before the last one.
    looks: u32,
    looked: Stretch,
    runaway: Runaway,
    /// What was collected since the last look, and how many groups had their sizes then.
    window: Vec<Collected>,
    filled: u16,
    regroup: Option<Vec<StreamId>>,
    events: Vec<Event>,
}

impl ConfiguredPlacement for Midas {
    type Config = MidasConfig;

    fn streams(_: &MidasConfig) -> u16 {
        GROUPS + 1
    }

    fn start(config: &MidasConfig, drive: &DriveShape) -> Midas {
        let bucket = if config.bucket == 0 { (drive.segment_pages / 4).max(1) } else { config.bucket };
        // Lifetimes up to an epoch are told from never.
        let epoch = config.epoch.of(u64::from(drive.logical_pages));
        let buckets = epoch.div_ceil(u64::from(bucket));
        Midas {
            config: *config,
            drive: drive.clone(),
            filter: HotFilter::new(drive.logical_pages),
            sampler: Sampler::new(
                drive.logical_pages,
                config.watch.of(u64::from(drive.logical_pages)),
                bucket,
                buckets as usize,
                if config.short { SHORT_AT_MOST.min(epoch / 512) } else { 0 },
            ),
            lifetimes: None,
            configuration: None,
            sizes: Vec::new(),
            first_unsized: HOT,
            last: UNSIZED,
            started: false,
            epoch_ends: u64::MAX,
            check_at: u64::MAX,
            stretch: Stretch::new(0),
            early: Stretch::new(0),
            had: None,
            learned: Learned::NOTHING,
            settled: false,
            choices: 0,
            looks: 0,
            looked: Stretch::new(0),
            runaway: Runaway::new(RUNAWAY),
            window: vec![Collected::default(); usize::from(GROUPS) + 1],
            filled: 0,
            regroup: None,
            events: Vec::new(),
        }
    }
}

impl Midas {
    /// What happened to the groups so far.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Sizes in segments of the groups that have one, HOT first.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// How long pages live, by the last measurement that changed the groups; the first is at the end of an epoch.
    pub fn lifetimes(&self) -> Option<&Lifetimes> {
        self.lifetimes.as_ref()
    }

    fn epoch(&self) -> u64 {
        self.config.epoch.of(u64::from(self.drive.logical_pages)).max(1)
    }

    /// Every three tenths of an epoch, and at its end.
    #[cold]
    fn look(&mut self, segments: &SegmentTable) {
        let now = segments.now();
        self.looks += 1;
        if self.looks == 2 {
            // Groups are judged by what comes now: before, they had to reach their sizes.
            self.early = Stretch { since: now, ..self.stretch.clone() };
        }
        if now >= self.epoch_ends {
            self.epoch_ends = now + self.epoch();
            self.looks = 0;
            self.end_epoch(segments);
        } else if !self.gave_up_at_once(segments) && self.config.irregular {
            self.look_for_irregularity(segments);
        }
        self.looked = Stretch { since: now, ..self.stretch.clone() };
        self.check_at = (now + 3 * self.epoch() / 10).min(self.epoch_ends);
    }

    /// Takes the groups again that were had before, where those in force do far worse even before the epoch's end.
    /// The first stretch of an epoch does not count: groups change their sizes in it.
    fn gave_up_at_once(&mut self, segments: &SegmentTable) -> bool {
        // After an event the stretch is younger than the look, and too short to judge.
        if !self.config.judge || self.settled || self.looks < 2 || self.stretch.since > self.looked.since {
            return false;
        }
        let recent = self.stretch.after(&self.looked);
        let measured = recent.waf(segments.now());
        let most = 1.0 + self.config.error.as_f64();
        let is_worse = self.is_chosen() && self.had.as_ref().is_some_and(|had| measured > most * had.waf);
        if is_worse {
            self.learn(&recent, segments);
            self.replace_worse(segments, measured);
        }
        is_worse
    }

    fn end_epoch(&mut self, segments: &SegmentTable) {
        let Some(new) = self.sampler.take() else { return };
        let difference = self.lifetimes.as_ref().map_or(1.0, |old| old.difference(&new));
        let is_new = self.lifetimes.is_none() || difference > self.config.update.as_f64();
        let is_sized = self.is_sized();
        if is_new {
            // What was had and learned under other lifetimes says nothing.
            (self.had, self.learned, self.settled, self.choices) = (None, Learned::NOTHING, false, 0);
        }
        if is_new || !is_sized {
            self.lifetimes = Some(new);
        }
        if self.config.groups == GroupSizes::Fixed {
            return;
        }
        let recent = self.stretch.after(&self.early);
        let measured = recent.waf(segments.now());
        let is_long = segments.now() - recent.since >= 3 * self.epoch() / 10;
        if self.config.judge && is_long && !self.settled {
            self.learn(&recent, segments);
            let gain = 1.0 + self.config.gain.as_f64();
            if self.is_chosen() && self.had.as_ref().is_some_and(|had| measured > gain * had.waf) {
                return self.replace_worse(segments, measured);
            }
            let (configuration, unsized_from) = (self.configuration.clone(), self.sizes.len() as u16);
            self.had = Some(Had { waf: measured, configuration, unsized_from });
        }
        let is_done = if self.config.judge { self.settled } else { is_sized };
        if is_done && !is_new {
            return self.note(segments, Why::Unchanged(difference));
        }
        let Some(chosen) = self.choose(segments) else { return };
        let promised = chosen.prediction.waf;
        let is_first = is_new || !is_sized;
        if !is_first && promised > measured * (1.0 - self.config.gain.as_f64()) {
            return self.note(segments, Why::Unchanged(difference));
        }
        // The program compares with the whole stretch.
        let had = if self.config.judge { measured } else { self.stretch.waf(segments.now()) };
        if (self.config.judge || self.config.follows == Definition::Program) && promised > had {
            return self.note(segments, Why::NoGain(promised, had));
        }
        self.adopt(chosen);
        let why = if is_first { Why::Lifetimes(difference) } else { Why::Learned(promised, measured) };
        self.note(segments, why);
    }

    /// The sizes that promise most, with what was learned.
    fn choose(&mut self, segments: &SegmentTable) -> Option<Configuration> {
        self.choices += 1;
        self.settled = self.choices >= CHOICES;
        self.space(segments).select(self.lifetimes.as_ref()?)
    }

    /// These groups do worse than those that were had. They are replaced by the next choice, where it promises less
    /// than was had now that the model's errors are known, or else by those that were had.
    fn replace_worse(&mut self, segments: &SegmentTable, measured: f64) {
        let Some(had) = self.had.as_ref().map(|had| had.waf) else { return };
        let most = had * (1.0 - self.config.gain.as_f64());
        let next = if self.choices < CHOICES { self.choose(segments) } else { None };
        if let Some(next) = next.filter(|next| next.prediction.waf < most) {
            let promised = next.prediction.waf;
            self.adopt(next);
            return self.note(segments, Why::Learned(promised, measured));
        }
        self.go_back(segments, measured);
    }

    /// Whether all groups but GN have a size.
    fn is_sized(&self) -> bool {
        self.configuration.is_some() && self.sizes.len() == usize::from(self.last)
    }

    /// Whether any group has a size. Groups without are not the model's, and drift with the load.
    fn is_chosen(&self) -> bool {
        !self.sizes.is_empty()
    }

    /// Groups get their sizes one after the other, each when the one before is full. While a group grows, nothing
    /// comes out of it, and all free space must come from those behind it: if they kept to their sizes too, GN alone
    /// would have to give it, and the garbage in the others would be out of reach.
    fn size_the_next(&mut self, segments: &SegmentTable) {
        let growing = self.first_unsized;
        let has_next = growing > HOT && usize::from(growing) < self.sizes.len();
        let is_full = |group: u16| segments.in_stream(StreamId(group)) >= self.sizes[usize::from(group)];
        if has_next && is_full(growing - 1) {
            self.first_unsized += 1;
            self.regroup = Some((0..=GROUPS).map(StreamId).collect());
        }
    }

    /// Takes the groups again that were had before these.
    fn go_back(&mut self, segments: &SegmentTable, measured: f64) {
        let Some(Had { waf, configuration, unsized_from }) = self.had.clone() else { return };
        self.settled = true;
        let why = Why::Worse(waf, measured);
        match configuration.filter(|_| unsized_from > HOT) {
            None => self.give_up_sizes(segments, HOT, why),
            Some(configuration) => {
                let sized = configuration.sized.len() as u16 + 1;
                self.adopt(configuration);
                if unsized_from < sized {
                    self.give_up_sizes(segments, unsized_from, why);
                } else {
                    self.note(segments, why);
                }
            }
        }
    }

    /// Learns how far the model is off: HOT's part of it from HOT at any size, the last group's from groups that had
    /// their sizes.
    fn learn(&mut self, recent: &Stretch, segments: &SegmentTable) {
        let Some(lifetimes) = &self.lifetimes else { return };
        let of_hot = recent.collected[usize::from(HOT)];
        let traffic = of_hot.written as f64 / (segments.now() - recent.since) as f64;
        let hot = segments.in_stream(StreamId(HOT));
        if of_hot.segments >= MEASURED && hot > 0 {
            let pages = f64::from(hot) * f64::from(self.drive.segment_pages);
            // All writes whose page lives for less than HOT keeps its pages.
            self.learned.hot_residence = pages / traffic;
            let all = 1.0 - lifetimes.survival(self.learned.hot_residence);
            self.learned.hot_valid = self.valid_share(of_hot);
            self.learned.hot_traffic = (traffic / all.max(traffic)).clamp(LEARNED_AT_LEAST, 1.0);
        } else if self.sizes.first() != Some(&0) {
            // The filter finds next to nothing that is hot, so no group need be kept for it.
            self.learned.hot_traffic = 0.0;
        }
        let Some(configuration) = self.configuration.as_ref().filter(|_| self.is_sized()) else { return };
        let prediction = &configuration.prediction;
        let of_last = recent.collected[usize::from(self.last)];
        if let Some(predicted) = prediction.valid.last().filter(|_| of_last.segments >= MEASURED) {
            let measured = self.valid_share(of_last).min(0.999);
            let off = (measured / (1.0 - measured)) / (predicted / (1.0 - predicted)).max(1e-6);
            let last = prediction.learned.last * off;
            self.learned.last = last.clamp(LEARNED_AT_LEAST, 1.0 / LEARNED_AT_LEAST);
        }
    }

    /// Valid pages in segments of GN of which none has died in a whole logical capacity of writes.
    fn still_pages(&self, segments: &SegmentTable) -> f64 {
        let long_ago = segments.now().saturating_sub(u64::from(self.drive.logical_pages));
        let is_still = |segment: &SegmentId| {
            segments.valid(*segment) == self.drive.segment_pages
                && segments.stream(*segment).0 >= self.first_unsized.max(1)
                && segments.sealed_at(*segment) <= long_ago
        };
        let still = (0..segments.len()).map(SegmentId).filter(is_still).count();
        still as f64 * f64::from(self.drive.segment_pages)
    }

    /// What a configuration is chosen for, now.
    fn space(&self, segments: &SegmentTable) -> Space {
        let MidasConfig { gain, stop, hot, .. } = self.config;
        Space {
            segments: self.drive.segments - self.drive.reserve,
            segment_pages: self.drive.segment_pages,
            valid: segments.valid_pages() as f64,
            still: self.still_pages(segments),
            learned: self.learned,
            last: match self.drive.victim {
                VictimConfig::Fifo(_) => LastGroup::Fifo,
                _ => LastGroup::Greedy { segment_pages: self.drive.segment_pages },
            },
            hot_class: if self.config.follows == Definition::Program { 0.7 } else { 1.0 },
            hot,
            groups: usize::from(GROUPS),
            gain: gain.as_f64(),
            stop,
        }
    }

    fn adopt(&mut self, chosen: Configuration) {
        let last = chosen.sized.len() as u16 + 1;
        let (old_first, old_last) = (self.first_unsized.max(1), self.last);
        // Segments of groups that had no size of their own are GN's, but for those young enough to stay.
        let to = |stream: u16| {
            if stream == HOT {
                HOT
            } else if stream >= last || stream >= old_first && stream == old_last {
                last
            } else {
                stream
            }
        };
        self.regroup = Some((0..=GROUPS).map(|stream| StreamId(to(stream))).collect());
        self.sizes = std::iter::once(chosen.hot).chain(chosen.sized.iter().copied()).collect();
        // HOT and G1 have their sizes from now on, the others as those before them have reached theirs.
        (self.first_unsized, self.last, self.filled) = (last.min(2), last, 0);
        self.configuration = Some(chosen);
    }

    /// The first group whose pages live otherwise than predicted, and all after it, give up their sizes.
    fn look_for_irregularity(&mut self, segments: &SegmentTable) {
        let filled_before = self.filled;
        let is_full = |group: &u16| segments.in_stream(StreamId(*group)) >= self.sizes[usize::from(*group)];
        self.filled = (0..self.first_unsized).take_while(is_full).count() as u16;
        // The window starts again at every look, even where no group is judged.
        let window = self.window.clone();
        self.window.fill(Collected::default());
        let Some(configuration) = &self.configuration else { return };
        let error = self.config.error.as_f64();
        // A group is judged where it and those before it were full throughout the window.
        let filled = self.filled.min(filled_before);
        // GN has no size to reach: it has what the others leave.
        let judged = filled + u16::from(filled == self.last);
        let off = (1..judged).find_map(|group| {
            let collected = window[usize::from(group)];
            // HOT has no prediction, so the first one is that of G1.
            let predicted = configuration.prediction.valid[usize::from(group) - 1];
            let measured = self.valid_share(collected);
            let off = if self.config.follows == Definition::Program {
                measured - predicted
            } else {
                (measured - predicted).abs()
            };
            (collected.segments >= MEASURED && off > error).then_some((group, predicted, measured))
        });
        if let Some((group, predicted, measured)) = off {
            self.give_up_sizes(segments, group, Why::Irregular(group, predicted, measured));
        }
    }

    fn give_up_sizes(&mut self, segments: &SegmentTable, from: u16, why: Why) {
        self.first_unsized = from;
        self.sizes.truncate(usize::from(from));
        self.last = self.last.max((from + UNSIZED).min(GROUPS));
        // Nothing changes its group, but queues become one.
        self.regroup = Some((0..=GROUPS).map(StreamId).collect());
        self.note(segments, why);
    }

    fn valid_share(&self, collected: Collected) -> f64 {
        let pages = u64::from(collected.segments) * u64::from(self.drive.segment_pages);
        collected.valid as f64 / pages as f64
    }

    fn note(&mut self, segments: &SegmentTable, why: Why) {
        let measured = self.stretch.collected.iter().take(usize::from(self.last) + 1);
        let measured = measured.map(|group| (group.segments >= MEASURED).then(|| self.valid_share(*group)));
        self.events.push(Event {
            at: segments.now(),
            why,
            waf: self.stretch.waf(segments.now()),
            measured: measured.collect(),
            configuration: self.configuration.clone(),
            unsized_from: self.sizes.len() as u16,
        });
        self.stretch = Stretch::new(segments.now());
        self.early = self.stretch.clone();
    }
}

impl PlacementPolicy for Midas {
    #[inline]
    fn stream(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        let Some(segment) = context.segment else { return StreamId(1) };
        if context.copied {
            // Out of HOT to G1, and on.
            return self.copies_to(segment, segments).unwrap_or(StreamId(self.last));
        }
        let is_hot = self.config.hot && self.filter.is_hot(context.lpn, segment, segments);
        // A size of zero switches HOT off; without any sizes it is a group like the others.
        StreamId(if is_hot && self.sizes.first() != Some(&0) { HOT } else { 1 })
    }

    #[inline]
    fn written(&mut self, context: &WriteContext, to: StreamId, segments: &SegmentTable) {
        self.stretch.collected[usize::from(to.0)].written += 1;
        if context.copied {
            let group = context.segment.map_or(0, |segment| segments.stream(segment).0);
            self.filter.copied(context.lpn, group);
            self.stretch.copied += 1;
            return;
        }
        if let Some(segment) = context.segment {
            self.filter.written(context.lpn, segment, segments);
        }
        self.sampler.written(context.lpn, segments.now());
        if segments.now() >= self.check_at {
            self.look(segments);
        }
    }

    #[inline]
    fn copies_to(&self, victim: SegmentId, segments: &SegmentTable) -> Option<StreamId> {
        Some(StreamId((segments.stream(victim).0 + 1).min(self.last)))
    }

    fn copied(&mut self, lpns: &[u32], victim: SegmentId, to: StreamId, segments: &SegmentTable) {
        self.stretch.collected[usize::from(to.0)].written += lpns.len() as u64;
        self.stretch.copied += lpns.len() as u64;
        let group = segments.stream(victim).0;
        // The filter counts copies out of HOT and G1 alone.
        if group <= 1 {
            lpns.iter().for_each(|lpn| self.filter.copied(*lpn, group));
        }
    }

    fn picked(&mut self, victim: SegmentId, segments: &SegmentTable) {
        let now = segments.now();
        if !self.started {
            // The drive is full: measuring begins.
            self.started = true;
            self.stretch = Stretch::new(now);
            self.early = self.stretch.clone();
            self.sampler.start(now);
            self.epoch_ends = now + self.epoch();
            self.check_at = now + 3 * self.epoch() / 10;
        }
        let stream = segments.stream(victim).0;
        for collected in [&mut self.stretch.collected, &mut self.window] {
            collected[usize::from(stream)].segments += 1;
            collected[usize::from(stream)].valid += u64::from(segments.valid(victim));
        }
        if stream == HOT {
            self.filter.collected(now - segments.opened_at(victim));
        }
        self.size_the_next(segments);
        if self.runaway.picked(victim, segments) && self.first_unsized > HOT {
            self.settled = true;
            self.give_up_sizes(segments, HOT, Why::Runaway);
        }
    }

    #[inline]
    fn queue(&self, stream: StreamId) -> Option<u16> {
        (stream.0 < self.first_unsized).then_some(stream.0)
    }

    fn overfull(&self, segments: &SegmentTable) -> Option<u16> {
        segments.first_above(&self.sizes[..usize::from(self.first_unsized)])
    }

    fn take_regrouping(&mut self) -> Option<Vec<StreamId>> {
        self.regroup.take()
    }

    #[inline]
    fn prefetch(&self, lpn: u32) {
        self.filter.prefetch(lpn);
    }

    fn bytes(&self) -> usize {
        self.filter.bytes() + self.sampler.bytes()
    }
}
