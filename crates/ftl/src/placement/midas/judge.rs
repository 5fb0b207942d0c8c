//! Evaluates the groups of MiDAS after each part of an epoch, and replaces them if they have too much write
//! amplification. HOT is the group of hot pages, and GN the last group.

use super::Midas;
use super::config::{Definition, GROUPS, GroupSizes, HOT, MidasConfig};
use super::configure::{Configuration, Space};
use super::event::{Best, Collected, MEASURED, Stretch, Why};
use super::model::{LastGroup, Learned};
use crate::victim::VictimConfig;
use crate::{SegmentId, SegmentTable};
use fulgurite_base::StreamId;

/// The most choices under the same lifetimes. Each choice takes an epoch to evaluate, and the model learns
/// less from each.
const CHOICES: u32 = 3;
/// The least correction factor that is learned for a prediction; the largest is its inverse, 8.
const LEARNED_AT_LEAST: f64 = 0.125;

impl Midas {
    /// Evaluates the groups. Called every three tenths of an epoch, and at its end.
    #[cold]
    pub(super) fn look(&mut self, segments: &SegmentTable) {
        let now = segments.now();
        self.looks += 1;
        if self.looks == 2 {
            // Starts the evaluation now: groups needed the first part of the epoch to reach their sizes.
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

    /// Returns to the previous groups even before the epoch's end if the current groups are far worse. The
    /// first stretch of an epoch does not count, because groups change their sizes in it.
    pub(super) fn gave_up_at_once(&mut self, segments: &SegmentTable) -> bool {
        // A change of the groups begins a new stretch of measurements. If the stretch is younger than the last
        // evaluation, it is too short to evaluate.
        if !self.config.judge || self.settled || self.looks < 2 || self.stretch.since > self.looked.since {
            return false;
        }
        let recent = self.stretch.after(&self.looked);
        let measured = recent.waf(segments.now());
        let most = 1.0 + self.config.error.as_f64();
        let is_worse = self.is_chosen() && self.best.as_ref().is_some_and(|had| measured > most * had.waf);
        if is_worse {
            self.learn(&recent, segments);
            self.replace_worse(segments, measured);
        }
        is_worse
    }

    pub(super) fn end_epoch(&mut self, segments: &SegmentTable) {
        let Some(new) = self.sampler.take() else { return };
        let difference = self.lifetimes.as_ref().map_or(1.0, |old| old.difference(&new));
        let is_new = self.lifetimes.is_none() || difference > self.config.update.as_f64();
        let is_sized = self.is_sized();
        if is_new {
            // Forgets the results under other lifetimes, which do not apply.
            (self.best, self.learned, self.settled, self.choices) = (None, Learned::NOTHING, false, 0);
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
            if self.is_chosen() && self.best.as_ref().is_some_and(|had| measured > gain * had.waf) {
                return self.replace_worse(segments, measured);
            }
            let (configuration, unsized_from) = (self.configuration.clone(), self.sizes.len() as u16);
            self.best = Some(Best { waf: measured, configuration, unsized_from });
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
        // Without `judge`, the choice is compared with the whole stretch, as in the authors' program.
        let had = if self.config.judge { measured } else { self.stretch.waf(segments.now()) };
        if (self.config.judge || self.config.follows == Definition::Program) && promised > had {
            return self.note(segments, Why::NoGain(promised, had));
        }
        self.adopt(chosen);
        let why = if is_first { Why::Lifetimes(difference) } else { Why::Learned(promised, measured) };
        self.note(segments, why);
    }

    /// Chooses the sizes with the best prediction, with the learned corrections.
    pub(super) fn choose(&mut self, segments: &SegmentTable) -> Option<Configuration> {
        self.choices += 1;
        self.settled = self.choices >= CHOICES;
        self.space(segments).select(self.lifetimes.as_ref()?)
    }

    /// Replaces groups that are worse than the previous groups. The next choice replaces them if its
    /// corrected prediction is better than the previous groups were. Otherwise the previous groups replace
    /// them.
    pub(super) fn replace_worse(&mut self, segments: &SegmentTable, measured: f64) {
        let Some(had) = self.best.as_ref().map(|had| had.waf) else { return };
        let most = had * (1.0 - self.config.gain.as_f64());
        let next = if self.choices < CHOICES { self.choose(segments) } else { None };
        if let Some(next) = next.filter(|next| next.prediction.waf < most) {
            let promised = next.prediction.waf;
            self.adopt(next);
            return self.note(segments, Why::Learned(promised, measured));
        }
        self.go_back(segments, measured);
    }

    /// Returns whether all groups but GN have a size.
    pub(super) fn is_sized(&self) -> bool {
        self.configuration.is_some() && self.sizes.len() == usize::from(self.last)
    }

    /// Returns whether any group has a size. The model does not describe groups without sizes, which drift
    /// with the load.
    pub(super) fn is_chosen(&self) -> bool {
        !self.sizes.is_empty()
    }

    /// Returns to the previous groups.
    pub(super) fn go_back(&mut self, segments: &SegmentTable, measured: f64) {
        let Some(Best { waf, configuration, unsized_from }) = self.best.clone() else { return };
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

    /// Learns the model's errors: for HOT at any size, for GN only if all groups had their sizes.
    pub(super) fn learn(&mut self, recent: &Stretch, segments: &SegmentTable) {
        let Some(lifetimes) = &self.lifetimes else { return };
        let of_hot = recent.collected[usize::from(HOT)];
        let traffic = of_hot.written as f64 / (segments.now() - recent.since) as f64;
        let hot = segments.in_stream(StreamId(HOT));
        if of_hot.segments >= MEASURED && hot > 0 {
            let pages = f64::from(hot) * f64::from(self.drive.segment_pages);
            // Compares HOT's share of writes with that of all pages with lifetimes below HOT's residence.
            self.learned.hot_residence = pages / traffic;
            let all = 1.0 - lifetimes.survival(self.learned.hot_residence);
            self.learned.hot_valid = self.valid_share(of_hot);
            self.learned.hot_traffic = (traffic / all.max(traffic)).clamp(LEARNED_AT_LEAST, 1.0);
        } else if self.sizes.first() != Some(&0) {
            // The filter finds almost no hot pages, so HOT is not needed.
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

    /// Returns the number of valid pages in segments of GN without an overwritten page in the last logical
    /// capacity of writes.
    pub(super) fn still_pages(&self, segments: &SegmentTable) -> f64 {
        let long_ago = segments.now().saturating_sub(u64::from(self.drive.logical_pages));
        let is_still = |segment: &SegmentId| {
            segments.valid(*segment) == self.drive.segment_pages
                && segments.stream(*segment).0 >= self.first_unsized.max(1)
                && segments.sealed_at(*segment) <= long_ago
        };
        let still = (0..segments.len()).map(SegmentId).filter(is_still).count();
        still as f64 * f64::from(self.drive.segment_pages)
    }

    /// Returns the current space and limits for a configuration.
    pub(super) fn space(&self, segments: &SegmentTable) -> Space {
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

    /// Finds the first group whose valid share deviates from the prediction. This group and all groups after
    /// it give up their sizes.
    pub(super) fn look_for_irregularity(&mut self, segments: &SegmentTable) {
        let filled_before = self.filled;
        let is_full = |group: &u16| segments.in_stream(StreamId(*group)) >= self.sizes[usize::from(*group)];
        self.filled = (0..self.first_unsized).take_while(is_full).count() as u16;
        // Restarts the window at every call, even if no group is evaluated.
        let window = self.window.clone();
        self.window.fill(Collected::default());
        let Some(configuration) = &self.configuration else { return };
        let error = self.config.error.as_f64();
        // Evaluates a group only if it and all groups before it were full throughout the window.
        let filled = self.filled.min(filled_before);
        // GN has no size to reach, since it has the rest of the space.
        let judged = filled + u16::from(filled == self.last);
        let off = (1..judged).find_map(|group| {
            let collected = window[usize::from(group)];
            // HOT has no prediction, so the first prediction is that of G1.
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
}
