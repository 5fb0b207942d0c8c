//! DOGI: placement by a small network that learns how long pages live.
//!
//! "DOGI: Data Placement with Oracle-Guided Insights for Log-Structured Systems" (Kim et al., FAST 2026, "the
//! paper" in this folder), and the authors' program where the paper leaves something out.
//!
//! - **Host pages** (4.2). A page is hot if it was last written less than μ page writes ago. This time is
//!   estimated from the ages of the segments that held the page, in one byte. μ moves by one step while that
//!   lowers the write amplification of a window. For other pages the [network](network) predicts one of ten
//!   categories of lifetimes, from six features.
//! - **Groups** (4.3). Each category has twice the upper bound of the one before. Neighbouring categories share a
//!   [group](groups), as many as suits the accuracy of the predictions.
//! - **Copies** (4.4). A page that was never overwritten goes to the frozen group. The first copy of another page
//!   goes by the mean remaining lifetime of its category, a later copy to the next group.
//! - **Victims** (4.1). The oldest segment of the first group whose time has run out; otherwise the victim policy
//!   picks in the last group and the frozen one. The paper's policy is `greedy`, the program's cost-benefit.
//!
//! Until the first training, and if fewer than a tenth of the predictions are right, there are a hot and a cold
//! group for host pages, two further groups for copies by age, and the frozen group.
//!
//! *Differences.* All times are the same shares of the logical pages as in the paper, whose drive has 33.5 M:
//! the step of μ, 65 K page writes, is 1/512. A training uses at most a sixteenth of the logical pages as samples,
//! so that it is quick on small drives. The first sample follows the first victim, since a drive that fills has no
//! lifetimes yet; the program waits for two capacities. The samples of one period are used at the end of the next,
//! so that most of their pages have died; a page that has not counts with its age. If no segment has expired and
//! the other groups have no invalid page, the program stops; here a group with a bound gives a segment up. The
//! program allows four groups, of which the last one has the categories above the sixth; the paper allows ten.
//!
//! A decision takes one evaluation of the network, some 1.5 K multiplications; a training takes 10 evaluations a
//! sample, forth and back. A page takes 3 bytes, a chunk of 512 pages 4, a sample 56.

mod network;
mod groups;
mod samples;

use super::expired::expired;
use super::policy::{DriveShape, PlacementPolicy, WriteContext};
use crate::{SegmentId, SegmentTable};
use fulgurite_base::option::{COUNT, SHARE};
use fulgurite_base::units::Share;
use fulgurite_base::{Declared, Opt, Prng, StreamId, opt, prefetch};
use groups::{Bounds, Groups, Hot, Record, Space};
use network::{CATEGORIES, Example, FEATURES, Network};
use samples::{Sample, Samples};
use std::sync::atomic::{AtomicU64, Ordering};

/// The options of DOGI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DogiConfig {
    /// The page writes from one training to the next, as a share of the logical pages.
    pub retrain: Share,
    /// The most samples of a training.
    pub samples: u32,
}

impl Default for DogiConfig {
    fn default() -> DogiConfig {
        DogiConfig { retrain: Share::percent(78), samples: 300_000 }
    }
}

impl Declared for DogiConfig {
    const OPTIONS: &'static [Opt<DogiConfig>] = &[
        opt!("retrain", retrain, SHARE, Share::percent(1) => Share::percent(100_000),
            "page writes between trainings, as a share of the logical pages"),
        opt!("samples", samples, COUNT, 100 => 1 << 24, "the most samples of a training"),
    ];
}

const HOT: u16 = 0;
const FROZEN: u16 = CATEGORIES as u16 + 1;
/// The last group for copies by age, if there is no network.
const OLDEST: u16 = 3;

/// The number of steps of μ in the logical pages, and the first μ in steps: 65 K and 200 K of 33.5 M.
const STEPS: u64 = 512;
const FIRST_MU: u8 = 3;
/// The windows of μ, of frequencies and of the frozen filter: 10 M, 40 M and 200 M of 33.5 M page writes.
const MU_WINDOW: Share = Share::percent(30);
const FREQUENCY_WINDOW: Share = Share::percent(119);
const FROZEN_WINDOW: Share = Share::percent(596);
/// A change of the write amplification that moves μ.
const SEEN: f64 = 0.05;
/// One sample in so many is not used for training, but for the log of predictions.
const LOGGED: usize = 10;
/// The least number of samples of a training.
const ENOUGH: usize = 100;
/// The least share of right predictions.
const LEAST_RIGHT: f64 = 0.1;
/// The number of pages in a chunk: 2 MiB.
const CHUNK: u32 = 512;

/// Something that is due after every so many page writes.
#[derive(Clone, Copy, Debug)]
struct Every {
    writes: u64,
    next: u64,
}

impl Every {
    fn new(share: Share, logical: u32) -> Every {
        let writes = share.of(logical.into()).max(1);
        Every { writes, next: writes }
    }

    fn is_due(&mut self, now: u64) -> bool {
        let is_due = now >= self.next;
        self.next += if is_due { self.writes } else { 0 };
        is_due
    }
}

/// The state of a page. The category is 0 for a hot page, and otherwise one more than the network's.
#[derive(Clone, Copy, Debug, Default)]
struct Page {
    /// The time that the page has spent in segments that were collected, in steps.
    interval: u8,
    /// A bit for each window in which the page was written, the highest for the current one.
    recent: u8,
    state: u8,
}

impl Page {
    const CATEGORY: u8 = 0x0f;
    /// The page was copied since the host wrote it.
    const COPIED: u8 = 0x10;
    /// The host has overwritten the page since the frozen filter was cleared.
    const UPDATED: u8 = 0x20;
    /// The page is a sample, or was one at its last write.
    const SAMPLED: u8 = 0x40;

    fn is(self, flag: u8) -> bool {
        self.state & flag != 0
    }
}

/// The pages that were written in a window of μ.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    host: u64,
    copies: u64,
}

/// The pages since the last training.
#[derive(Clone, Copy, Debug, Default)]
struct Period {
    /// The pages that the host wrote, and the hot ones of them.
    host: u64,
    hot: u64,
    /// The pages of collected hot segments, and those of them that were still valid.
    collected: u64,
    survived: u64,
}

/// The last prediction. A page is predicted before it is written, and the prediction is recorded after.
#[derive(Debug, Default)]
struct Memo(AtomicU64);

impl Clone for Memo {
    fn clone(&self) -> Memo {
        Memo(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }
}

impl Memo {
    fn key(lpn: u32, now: u64) -> u64 {
        u64::from(lpn) << 32 | (now << 8 & 0xffff_ff00)
    }

    fn set(&self, lpn: u32, now: u64, category: u8) {
        self.0.store(Memo::key(lpn, now) | u64::from(category), Ordering::Relaxed);
    }

    fn get(&self, lpn: u32, now: u64) -> Option<u8> {
        let memo = self.0.load(Ordering::Relaxed);
        (memo & !0xff == Memo::key(lpn, now)).then_some(memo as u8)
    }
}

/// DOGI at work.
#[derive(Clone, Debug)]
pub struct Dogi {
    drive: DriveShape,
    /// The upper bounds of the categories, in page writes.
    bounds: Bounds,
    pages: Vec<Page>,
    /// The number of writes to each chunk.
    chunks: Vec<u32>,
    /// The page that the host wrote last, and the time after it.
    previous: u32,
    now: u64,
    /// The time between changes of μ, shifts of the frequencies, clearing of the frozen filter, and trainings.
    every_mu: Every,
    every_frequency: Every,
    every_filter: Every,
    every_training: Every,
    /// One step of intervals in page writes.
    step: u64,
    /// μ in steps, and whether its last change was up.
    mu: u8,
    grew: bool,
    /// The write amplification of the last window of μ.
    waf: Option<f64>,
    window: Window,
    /// Whether collection has begun.
    collects: bool,
    samples: Samples,
    period: Period,
    network: Option<(Network, Groups)>,
    regroup: bool,
    prng: Prng,
    memo: Memo,
}

impl Dogi {
    pub(super) fn streams(_: &DogiConfig) -> u16 {
        FROZEN + 1
    }

    pub(super) fn start(config: &DogiConfig, drive: &DriveShape) -> Dogi {
        let logical = drive.logical_pages;
        Dogi {
            drive: drive.clone(),
            // The upper bound of the first category is 1 % of the logical pages.
            bounds: std::array::from_fn(|category| (u64::from(logical) << category) / 100),
            pages: vec![Page::default(); logical as usize],
            chunks: vec![0; logical.div_ceil(CHUNK) as usize],
            previous: 0,
            now: 0,
            every_mu: Every::new(MU_WINDOW, logical),
            every_frequency: Every::new(FREQUENCY_WINDOW, logical),
            every_filter: Every::new(FROZEN_WINDOW, logical),
            every_training: Every::new(config.retrain, logical),
            step: (u64::from(logical) / STEPS).max(1),
            mu: FIRST_MU,
            grew: false,
            waf: None,
            window: Window::default(),
            collects: false,
            samples: Samples::new(config.samples.min((logical / 16).max(ENOUGH as u32)) as usize),
            period: Period::default(),
            network: None,
            regroup: false,
            prng: Prng::new(0, "dogi"),
            memo: Memo::default(),
        }
    }

    /// Returns the estimated time since the last write of a page, in steps.
    #[inline]
    fn interval(&self, lpn: u32, segment: Option<SegmentId>, segments: &SegmentTable) -> u8 {
        let Some(segment) = segment else { return u8::MAX };
        let age = (segments.now() - segments.opened_at(segment)) / self.step;
        let age = u64::from(self.pages[lpn as usize].interval) + age;
        age.min(u64::from(u8::MAX)) as u8
    }

    fn features(&self, lpn: u32, interval: u8) -> [f32; FEATURES] {
        let recent = self.pages[lpn as usize].recent;
        let frequency = self.chunks[(lpn / CHUNK) as usize];
        [
            lpn as f32,
            self.previous as f32,
            f32::from(interval),
            f32::from(recent),
            recent.count_ones() as f32,
            frequency as f32,
        ]
    }

    /// Returns the category of a host page: 0 for a hot page, and 1 without a network.
    #[inline]
    fn category(&self, context: &WriteContext, segments: &SegmentTable) -> u8 {
        if let Some(category) = self.memo.get(context.lpn, segments.now()) {
            return category;
        }
        let interval = self.interval(context.lpn, context.segment, segments);
        let category = match &self.network {
            _ if interval < self.mu => 0,
            None => 1,
            Some((network, _)) => 1 + network.category(&self.features(context.lpn, interval)) as u8,
        };
        self.memo.set(context.lpn, segments.now(), category);
        category
    }

    /// Returns the group of a copy out of the group `from`.
    fn group_of_copy(&self, lpn: u32, from: u16) -> u16 {
        let page = self.pages[lpn as usize];
        let last = self.last_group();
        if !page.is(Page::UPDATED) {
            return FROZEN;
        }
        match (&self.network, page.state & Page::CATEGORY) {
            (Some((_, groups)), category @ 1..) if !page.is(Page::COPIED) => {
                groups.copies_to[usize::from(category) - 1]
            }
            _ => (from + 1).min(last),
        }
    }

    fn last_group(&self) -> u16 {
        self.network.as_ref().map_or(OLDEST, |(_, groups)| groups.count())
    }

    /// Returns the age at which a segment of a group is collected; `None` for the last group and the frozen one.
    fn bound(&self, group: u16) -> Option<u64> {
        if group == HOT {
            return Some(u64::from(self.mu) * self.step);
        }
        let (_, groups) = self.network.as_ref()?;
        groups.bounds.get(usize::from(group) - 1).copied()
    }

    /// Records that a page has died, if its lifetime is observed.
    #[inline]
    fn died(&mut self, lpn: u32) {
        if self.pages[lpn as usize].is(Page::SAMPLED) {
            self.samples.died(lpn, self.now);
        }
    }

    /// Trains a network on the samples of the last period, and chooses the groups.
    fn train(&mut self, segments: &SegmentTable) {
        let aged = self.samples.end_period();
        let period = std::mem::take(&mut self.period);
        if aged.len() < ENOUGH {
            return;
        }
        let life = |sample: &Sample| sample.life(self.now);
        let category = |life: u64| self.bounds.iter().take_while(|bound| life > **bound).count();
        let examples: Vec<Example> =
            aged.iter().map(|sample| (sample.features, category(life(sample)))).collect();
        let is_logged = |at: usize| at.is_multiple_of(LOGGED);
        let used: Vec<Example> =
            examples.iter().enumerate().filter(|(at, _)| !is_logged(*at)).map(|(_, used)| *used).collect();
        let network = Network::trained(&used, &mut self.prng);
        let logged = aged.iter().step_by(LOGGED);
        let log: Vec<Record> =
            logged.map(|sample| (network.category(&sample.features), life(sample))).collect();
        let right = log.iter().filter(|(predicted, life)| *predicted == category(*life)).count();
        let segment = f64::from(self.drive.segment_pages);
        let hot = Hot {
            share: period.hot as f64 / period.host.max(1) as f64,
            survive: period.survived as f64 / period.collected.max(1) as f64,
            pages: f64::from(segments.in_stream(StreamId(HOT))) * segment,
        };
        let space = Space {
            valid: segments.valid_pages() as f64,
            usable: f64::from(self.drive.segments - self.drive.reserve) * segment,
            segment,
        };
        let groups = Groups::best(&log, &self.bounds, hot, space);
        let is_right = right as f64 >= LEAST_RIGHT * log.len() as f64;
        self.network = groups.filter(|_| is_right).map(|groups| (network, groups));
        self.regroup = true;
    }

    /// Moves μ after a window.
    fn move_mu(&mut self) {
        let window = std::mem::take(&mut self.window);
        let waf = 1.0 + window.copies as f64 / window.host as f64;
        let change = self.waf.replace(waf).map_or(0.0, |before| waf / before - 1.0);
        if change < -SEEN {
            (self.mu, self.grew) = (self.mu.saturating_add(1).min(u8::MAX - 1), true);
        } else if change > SEEN && std::mem::take(&mut self.grew) {
            self.mu -= 1;
        }
    }

    /// Does what is due after a host write.
    fn tick(&mut self, segments: &SegmentTable) {
        if self.every_frequency.is_due(self.now) {
            self.pages.iter_mut().for_each(|page| page.recent >>= 1);
        }
        if self.every_filter.is_due(self.now) {
            self.pages.iter_mut().for_each(|page| page.state &= !Page::UPDATED);
        }
        if self.every_mu.is_due(self.now) {
            self.move_mu();
        }
        if self.every_training.is_due(self.now) {
            self.train(segments);
        }
    }
}

impl PlacementPolicy for Dogi {
    #[inline]
    fn stream(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        if let (true, Some(victim)) = (context.copied, context.segment) {
            return StreamId(self.group_of_copy(context.lpn, segments.stream(victim).0));
        }
        StreamId(match (self.category(context, segments), &self.network) {
            (0, _) => HOT,
            (_, None) => 1,
            (category, Some((_, groups))) => groups.of[usize::from(category) - 1],
        })
    }

    fn written(&mut self, context: &WriteContext, _: StreamId, segments: &SegmentTable) {
        let lpn = context.lpn as usize;
        if context.copied {
            self.window.copies += 1;
            self.pages[lpn].interval = self.interval(context.lpn, context.segment, segments);
            self.pages[lpn].state |= Page::COPIED;
            return;
        }
        let category = self.category(context, segments);
        self.now = segments.now();
        let features = self.features(context.lpn, self.interval(context.lpn, context.segment, segments));
        self.died(context.lpn);
        let page = &mut self.pages[lpn];
        let updated = if context.segment.is_some() { Page::UPDATED } else { page.state & Page::UPDATED };
        *page = Page { interval: 0, recent: page.recent | 0x80, state: category | updated };
        if category > 0 && self.collects && self.samples.offer(context.lpn, features, self.now) {
            page.state |= Page::SAMPLED;
        }
        let chunk = &mut self.chunks[(context.lpn / CHUNK) as usize];
        *chunk = chunk.saturating_add(1);
        self.previous = context.lpn;
        self.window.host += 1;
        self.period.host += 1;
        self.period.hot += u64::from(category == 0);
        self.now += 1;
        self.tick(segments);
    }

    fn trimmed(&mut self, lpn: u32) {
        self.died(lpn);
    }

    fn picked(&mut self, victim: SegmentId, segments: &SegmentTable) {
        self.collects = true;
        if segments.stream(victim).0 == HOT {
            self.period.collected += u64::from(self.drive.segment_pages);
            self.period.survived += u64::from(segments.valid(victim));
        }
    }

    #[inline]
    fn queue(&self, stream: StreamId) -> Option<u16> {
        self.bound(stream.0).map(|_| stream.0)
    }

    fn overfull(&self, segments: &SegmentTable) -> Option<u16> {
        expired(segments, |group| self.bound(group))
    }

    fn take_regrouping(&mut self) -> Option<Vec<StreamId>> {
        let last = self.last_group();
        let group = |group: u16| StreamId(if group == FROZEN { FROZEN } else { group.min(last) });
        std::mem::take(&mut self.regroup).then(|| (0..=FROZEN).map(group).collect())
    }

    #[inline]
    fn prefetch(&self, lpn: u32) {
        prefetch(&self.pages, lpn as usize);
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.pages[..]) + size_of_val(&self.chunks[..]) + self.samples.bytes()
    }
}

#[cfg(test)]
mod tests;
