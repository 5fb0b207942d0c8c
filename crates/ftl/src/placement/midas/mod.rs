//! MiDAS: placement by a chain of groups, whose number and sizes follow from the lifetimes of pages.
//!
//! "MIDAS: Minimizing Write Amplification in Log-Structured Systems through Adaptive Group Number and Size
//! Configuration" (Oh et al., FAST 2024; "the paper" in this module). Host writes of hot pages enter the
//! group HOT (`hot`), all others the group G1. Pages that are still valid when their segment leaves Gi move
//! to G(i+1); from HOT they move to G1, and in the last group GN they stay. All groups but GN have a size in
//! segments and give up their oldest segment when they exceed the size. GN is collected by the victim policy.
//!
//! Lifetimes are measured (`lifetimes`) over an epoch of 4 logical capacities of host writes. If they have
//! changed by more than 5 % at its end, new sizes are chosen (`configure`): those for which the closed form
//! ([`model`]) predicts the least write amplification. Groups have no sizes before the first choice. Groups
//! also lose their sizes, from the first group on whose share of valid pages deviates from the prediction by
//! more than a tenth (an irregular pattern). As in MiDA, groups without sizes share their space and one
//! victim policy, until the next choice.
//!
//! This implementation differs from the paper, because the errors of the plain model would make some choices
//! cost more than they gain:
//!
//! - HOT does not get all writes to short-lived pages, and not all of its pages are overwritten in it. The
//!   share that it gets, and the share still valid when its segments are collected, are measured, even
//!   without sizes, and corrected in the model. The difference between GN's measured and predicted copies is
//!   corrected too.
//! - A choice is adopted only if its prediction is better than the measured write amplification. If the last
//!   part of an epoch is worse than the groups before, the groups are replaced by the next choice of the
//!   corrected model, or by the previous groups: at once if they are worse by a tenth, else at the epoch's
//!   end. There are at most three choices under the same lifetimes. `judge=no` disables both.
//! - Groups get their sizes one after the other, each when the group before is full. If all had their sizes
//!   at once, GN alone would have to provide the space for growing groups, and could run out of invalid
//!   pages.
//! - Pages in segments of GN without any overwritten page in a whole capacity of writes do not count as part
//!   of GN's space.
//! - All sizes are tuned together, up and down, HOT's included.
//!
//! `as=program` follows the authors' program where it differs from the paper: a choice is adopted if its
//! prediction is no worse than the write amplification measured in the epoch before; only more valid pages
//! than predicted count as irregular; hot pages of GN are those below 0.7 of its mean lifetime.
//!
//! *Ambiguities.* The paper and the program do not say what happens to segments when groups change. Here
//! segments of GN stay in GN, and those of removed groups move to GN. All sizes are given up if 64 segments
//! in a row are collected without a host write and together gain less than half a segment. The program gives
//! up after 25 collections with any invalid page, which interrupts changes of large groups. A group is
//! compared with its prediction over stretches in which it and all groups before it had their sizes; GN is
//! compared when all had. The policy takes 4 bytes for each watched page and 2 bits for every page.

mod config;
mod hot;
pub mod model;
mod configure;
mod event;
mod judge;
mod short;
mod lifetimes;
#[cfg(test)]
mod tests;

pub use config::{Definition, GroupSizes, MidasConfig};
pub use configure::{Configuration, Space};
pub use event::{Event, Why};

use super::policy::{DriveShape, PlacementPolicy, WriteContext};
use super::runaway::Runaway;
use crate::{SegmentId, SegmentTable};
use config::{GROUPS, HOT};
use event::{Best, Collected, MEASURED, Stretch};
use fulgurite_base::StreamId;
use hot::HotFilter;
use lifetimes::Sampler;
use model::{Learned, Lifetimes};

/// The number of groups before sizes are chosen, as in MiDA.
const UNSIZED: u16 = 8;
/// The number of collections in a row without a host write after which their gain is evaluated.
const RUNAWAY: u32 = 64;
/// The bound in page writes below which lifetimes are measured on every page, if it is less than 1/512 of an
/// epoch. This allows sixteen bursts, and the table stays in the processor's cache.
const SHORT_AT_MOST: u64 = 8_192;

/// MiDAS at work.
#[derive(Clone, Debug)]
pub struct Midas {
    config: MidasConfig,
    drive: DriveShape,
    filter: HotFilter,
    sampler: Sampler,
    lifetimes: Option<Lifetimes>,
    configuration: Option<Configuration>,
    /// The sizes by stream, HOT first; groups from `first_unsized` on have none.
    sizes: Vec<u32>,
    first_unsized: u16,
    /// The number of the last group, GN.
    last: u16,
    /// Whether measuring has begun. It begins at the first collection, when the drive is full.
    started: bool,
    epoch_ends: u64,
    check_at: u64,
    /// The measurements since the last event; `early` are those before the second part of the epoch began.
    stretch: Stretch,
    early: Stretch,
    /// Under the current lifetimes: `best` are the best groups so far, `learned` the learned errors of the
    /// model, `settled` tells whether the search for better groups has ended, and `choices` is the number of
    /// choices.
    best: Option<Best>,
    learned: Learned,
    settled: bool,
    choices: u32,
    /// The number of evaluations in this epoch; `looked` is the stretch up to the last one.
    looks: u32,
    looked: Stretch,
    runaway: Runaway,
    /// The collections of each group since the last evaluation; `filled` is the number of groups that had
    /// their sizes then.
    window: Vec<Collected>,
    filled: u16,
    regroup: Option<Vec<StreamId>>,
    events: Vec<Event>,
}

impl Midas {
    pub(super) fn streams(_: &MidasConfig) -> u16 {
        GROUPS + 1
    }

    pub(super) fn start(config: &MidasConfig, drive: &DriveShape) -> Midas {
        let bucket = if config.bucket == 0 { (drive.segment_pages / 4).max(1) } else { config.bucket };
        // Distinguishes lifetimes up to an epoch from infinite lifetimes.
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
            best: None,
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

    /// Returns the changes of the groups so far.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns the sizes in segments of the groups that have one, HOT first.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// Returns the lifetimes by the last measurement that changed the groups; `None` before the end of the
    /// first epoch.
    pub fn lifetimes(&self) -> Option<&Lifetimes> {
        self.lifetimes.as_ref()
    }

    fn epoch(&self) -> u64 {
        self.config.epoch.of(u64::from(self.drive.logical_pages)).max(1)
    }

    /// Lets the next group have its size when the group before is full. While a group grows, none of its
    /// segments is collected, so all free space must come from the groups behind it. If these groups kept to
    /// their sizes too, only GN could provide the space, and the invalid pages in the other groups would be
    /// out of reach.
    fn size_the_next(&mut self, segments: &SegmentTable) {
        let growing = self.first_unsized;
        let has_next = growing > HOT && usize::from(growing) < self.sizes.len();
        let is_full = |group: u16| segments.in_stream(StreamId(group)) >= self.sizes[usize::from(group)];
        if has_next && is_full(growing - 1) {
            self.first_unsized += 1;
            self.regroup = Some((0..=GROUPS).map(StreamId).collect());
        }
    }

    fn adopt(&mut self, chosen: Configuration) {
        let last = chosen.sized.len() as u16 + 1;
        let (old_first, old_last) = (self.first_unsized.max(1), self.last);
        // Segments of the previous GN and of removed groups move to GN; all others keep their group.
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
        // HOT and G1 have their sizes from now on; each other group gets its size when the groups before it
        // have reached theirs.
        (self.first_unsized, self.last, self.filled) = (last.min(2), last, 0);
        self.configuration = Some(chosen);
    }

    fn give_up_sizes(&mut self, segments: &SegmentTable, from: u16, why: Why) {
        self.first_unsized = from;
        self.sizes.truncate(usize::from(from));
        self.last = self.last.max((from + UNSIZED).min(GROUPS));
        // Merges the queues; no segment changes its group.
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
            // A copy moves from HOT to G1, from G1 to G2, and so on.
            return self.copies_to(segment, segments).unwrap_or(StreamId(self.last));
        }
        let is_hot = self.config.hot && self.filter.is_hot(context.lpn, segment, segments);
        // A size of zero disables HOT. Without any sizes, HOT is a group like the others.
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
        // The filter only counts copies out of HOT and G1.
        if group <= 1 {
            lpns.iter().for_each(|lpn| self.filter.copied(*lpn, group));
        }
    }

    fn picked(&mut self, victim: SegmentId, segments: &SegmentTable) {
        let now = segments.now();
        if !self.started {
            // Begins to measure, since the drive is full.
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
