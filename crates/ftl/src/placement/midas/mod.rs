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
//! `as=program` does what the authors' program does where it differs from the paper: a choice is adopted if it
//! promises no more than the write amplification measured in the epoch before; only more valid pages than
//! predicted count as irregular; hot pages of GN are those below 0.7 of its mean lifetime.
//!
//! *Ambiguities.* Neither says what becomes of segments when groups change: segments of GN stay GN's, those of
//! groups that are no more become GN's. A drive that collects 64 segments in a row without a host write, and not
//! even half a segment of garbage by it, gives up all sizes; the program does after 25 with any garbage, which
//! ends changes of large groups half way. A group is compared with its prediction over stretches in which it and
//! those before it had their sizes. 4 bytes for each sampled page and 2 bits for every page.

mod config;
mod configure;
mod hot;
mod lifetimes;
pub mod model;

pub use config::{Definition, GroupSizes, MidasConfig};
pub use configure::{Configuration, Space};

use super::runaway::Runaway;
use super::{ConfiguredPlacement, DriveShape, PlacementPolicy, WriteContext};
use crate::victim::VictimConfig;
use crate::{SegmentId, SegmentTable};
use fulgurite_base::StreamId;
use hot::HotFilter;
use lifetimes::Sampler;
use model::{LastGroup, Lifetimes};

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
    collected: Vec<Collected>,
    since: u64,
    copied: u64,
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
        let buckets = config.epoch.of(u64::from(drive.logical_pages)).div_ceil(u64::from(bucket));
        Midas {
            config: *config,
            drive: drive.clone(),
            filter: HotFilter::new(drive.logical_pages),
            sampler: Sampler::new(drive.logical_pages, config.sample, bucket, buckets as usize),
            lifetimes: None,
            configuration: None,
            sizes: Vec::new(),
            first_unsized: HOT,
            last: UNSIZED,
            started: false,
            epoch_ends: u64::MAX,
            check_at: u64::MAX,
            collected: vec![Collected::default(); usize::from(GROUPS) + 1],
            since: 0,
            copied: 0,
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

    fn epoch(&self) -> u64 {
        self.config.epoch.of(u64::from(self.drive.logical_pages)).max(1)
    }

    /// Every three tenths of an epoch, and at its end.
    #[cold]
    fn look(&mut self, segments: &SegmentTable) {
        let now = segments.now();
        if now >= self.epoch_ends {
            self.epoch_ends = now + self.epoch();
            self.end_epoch(segments);
        } else if self.config.irregular {
            self.look_for_irregularity(segments);
        }
        self.check_at = (now + 3 * self.epoch() / 10).min(self.epoch_ends);
    }

    fn end_epoch(&mut self, segments: &SegmentTable) {
        let Some(new) = self.sampler.take() else { return };
        let difference = self.lifetimes.as_ref().map_or(1.0, |old| old.difference(&new));
        let is_sized = self.configuration.is_some() && self.sizes.len() == usize::from(self.last);
        if difference <= self.config.update.as_f64() && is_sized {
            self.note(segments, Why::Unchanged(difference));
            return;
        }
        let chosen = self.space(segments).select(&new);
        self.lifetimes = Some(new);
        let Some(chosen) = chosen.filter(|_| self.config.groups == GroupSizes::Adapt) else { return };
        let measured = self.waf(segments);
        if self.config.follows == Definition::Program && chosen.prediction.waf > measured {
            return self.note(segments, Why::NoGain(chosen.prediction.waf, measured));
        }
        self.adopt(chosen);
        self.note(segments, Why::Lifetimes(difference));
    }

    /// What a configuration is chosen for, now.
    fn space(&self, segments: &SegmentTable) -> Space {
        let MidasConfig { gain, stop, hot, .. } = self.config;
        let hot_now = self.sizes.first().filter(|size| **size > 0);
        let of_hot = self.collected[usize::from(HOT)];
        let measured_hot = hot_now.filter(|_| of_hot.segments >= MEASURED).map(|size| {
            let traffic = of_hot.written as f64 / (segments.now() - self.since) as f64;
            (*size, traffic, self.valid_share(of_hot))
        });
        Space {
            segments: self.drive.segments - self.drive.reserve,
            segment_pages: self.drive.segment_pages,
            valid: segments.valid_pages() as f64,
            last: match self.drive.victim {
                VictimConfig::Fifo(_) => LastGroup::Fifo,
                _ => LastGroup::Greedy { segment_pages: self.drive.segment_pages },
            },
            hot_class: if self.config.follows == Definition::Program { 0.7 } else { 1.0 },
            hot,
            measured_hot,
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
        (self.first_unsized, self.last, self.filled) = (last, last, 0);
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
        let off = (1..self.filled.min(filled_before)).find_map(|group| {
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

    fn waf(&self, segments: &SegmentTable) -> f64 {
        1.0 + self.copied as f64 / (segments.now() - self.since).max(1) as f64
    }

    fn note(&mut self, segments: &SegmentTable, why: Why) {
        let measured = self.collected.iter().take(usize::from(self.last) + 1);
        let measured = measured.map(|group| (group.segments >= MEASURED).then(|| self.valid_share(*group)));
        self.events.push(Event {
            at: segments.now(),
            why,
            waf: self.waf(segments),
            measured: measured.collect(),
            configuration: self.configuration.clone(),
            unsized_from: self.first_unsized,
        });
        self.collected.fill(Collected::default());
        (self.since, self.copied) = (segments.now(), 0);
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
        self.collected[usize::from(to.0)].written += 1;
        if context.copied {
            let group = context.segment.map_or(0, |segment| segments.stream(segment).0);
            self.filter.copied(context.lpn, group);
            self.copied += 1;
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
        self.collected[usize::from(to.0)].written += lpns.len() as u64;
        self.copied += lpns.len() as u64;
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
            (self.started, self.since) = (true, now);
            self.sampler.start(now);
            self.epoch_ends = now + self.epoch();
            self.check_at = self.epoch_ends;
        }
        let stream = segments.stream(victim).0;
        for collected in [&mut self.collected, &mut self.window] {
            collected[usize::from(stream)].segments += 1;
            collected[usize::from(stream)].valid += u64::from(segments.valid(victim));
        }
        if stream == HOT {
            self.filter.collected(now - segments.opened_at(victim));
        }
        if self.runaway.picked(victim, segments) && self.first_unsized > HOT {
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
