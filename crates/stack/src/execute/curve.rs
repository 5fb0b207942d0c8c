//! Executes a run of `pool --curve`: the miss ratio for each of many sizes of the pool.
//!
//! LRU needs one pass over all requests ([`StackDistances`]). For other policies each size is simulated by a small
//! pool over a sample of the pages ([`Sample`]), or, if all pages were asked for, all sizes are simulated side by
//! side.

use super::columns::set_cost;
use super::counting::Served;
use super::pool::{PoolRun, check_counters};
use crate::run::{Sampling, Sizes};
use crate::{Column, Progress, Row, StackError, memory};
use fulgurite_base::Portion;
use fulgurite_pool::{MissCounter, ReplacementConfig, Sample, SampleRequests, StackDistances, WriteBack};
use std::time::{Duration, Instant};

/// The quantile of Student's t distribution that a value of either sign exceeds in 5 of 100 cases, for the spread
/// of the parts of a sample.
const STUDENT: f64 = 2.365;
const _: () = assert!(Sample::PARTS == 8, "the quantile is that of seven degrees of freedom");

/// The least number of frames of a pool that serves a part of a sample.
const FRAMES_OF_PART: u32 = 4;

/// A point of the curve.
struct Point {
    frames: u64,
    misses: Misses,
}

enum Misses {
    /// The misses of all requests.
    Counted(u64),
    /// The estimated miss ratio, and half the width of its interval.
    Estimated { ratio: f64, error: f64 },
}

impl PoolRun<'_> {
    /// Executes the run and returns a row for each size.
    pub(super) fn curve(&self, sizes: Sizes, progress: &Progress) -> Result<Vec<Row>, StackError> {
        let start = Instant::now();
        let (served, points, divisor) = match sizes.sampling {
            Sampling::Exact if self.stage.policies.replacement.is_lru() => self.distances(sizes, progress)?,
            Sampling::Exact => self.side_by_side(sizes, progress)?,
            Sampling::Pages(divisor) => self.sampled(sizes, Some(divisor), progress)?,
            Sampling::Fitted => self.sampled(sizes, None, progress)?,
        };
        let described = self.known(&served, |known| known.described())?;
        let row = |point: Point| {
            let mut row = described.clone();
            row.set(Column::Frames, point.frames);
            row.set_some(Column::Sample, Some(1.0 / f64::from(divisor)).filter(|_| divisor > 1));
            match point.misses {
                Misses::Counted(misses) => {
                    row.set(Column::Hits, served.ops - misses);
                    row.set(Column::Misses, misses);
                    row.set(Column::MissRatio, misses as f64 / served.ops as f64);
                }
                Misses::Estimated { ratio, error } => {
                    row.set(Column::MissRatio, ratio);
                    row.set(Column::MissRatioError, error);
                }
            }
            if let Some(altered) = &served.altered {
                altered.set(&mut row, &self.requested.workload.label, false);
            }
            set_cost(&mut row, start, Duration::ZERO, served.ops);
            row
        };
        Ok(points.into_iter().map(row).collect())
    }

    /// Counts the misses of LRU from the distances of all requests.
    fn distances(&self, sizes: Sizes, progress: &Progress) -> Result<(Served, Vec<Point>, u32), StackError> {
        let mut distances = StackDistances::default();
        let mut room = Room::new();
        let served = self.serve(progress, |slice| {
            distances.request_all(slice);
            room.check(distances.bytes())
        })?;
        let frames = spread(largest(sizes.largest, distances.distinct_pages()));
        let misses = distances.misses(&frames);
        let counted = |(frames, misses)| Point { frames, misses: Misses::Counted(misses) };
        Ok((served, frames.into_iter().zip(misses).map(counted).collect(), 1))
    }

    /// Counts the misses of all sizes at once.
    fn side_by_side(
        &self,
        sizes: Sizes,
        progress: &Progress,
    ) -> Result<(Served, Vec<Point>, u32), StackError> {
        let config = &self.stage.policies.replacement;
        let future = if config.needs_future() { Some(self.future()?) } else { None };
        let frames = spread(largest(sizes.largest, self.requested.pages));
        let mut counters = Vec::new();
        for frames in &frames {
            let frames = *frames as u32;
            let mut replacement = config.start(frames)?;
            if let Some(future) = &future {
                replacement.foresee(future);
            }
            counters.push(MissCounter::new(frames, replacement, WriteBack::SINGLE));
        }
        let served = self.serve(progress, |slice| {
            counters.iter_mut().for_each(|counter| counter.request_all(slice));
            Ok(())
        })?;
        let mut points = Vec::new();
        for (frames, counter) in frames.into_iter().zip(counters) {
            let counters = counter.counters();
            check_counters(&counters, served.ops)?;
            points.push(Point { frames, misses: Misses::Counted(counters.misses) });
        }
        Ok((served, points, 1))
    }

    /// Estimates the miss ratios from the requests for one page in `divisor`.
    fn sampled(
        &self,
        sizes: Sizes,
        divisor: Option<u32>,
        progress: &Progress,
    ) -> Result<(Served, Vec<Point>, u32), StackError> {
        let config = &self.stage.policies.replacement;
        let mut sample = Sample::new(divisor, self.run.seed);
        let mut room = Room::new();
        let served = self.serve(progress, |slice| {
            sample.add(slice);
            room.check(sample.bytes())
        })?;
        let divisor = sample.divisor();
        let whole = sample.whole(config.needs_future());
        let pages = sample.distinct_pages();
        let most = match sizes.largest {
            Portion::Count(frames) => (frames / u64::from(divisor)).min(pages),
            share => share.of(pages),
        };
        if divisor == 1 {
            // The sample has all requests, so the misses are exact.
            let mut points = Vec::new();
            for frames in spread(most.max(1)) {
                let misses = Misses::Counted(whole.misses(config, frames as u32)?);
                points.push(Point { frames, misses });
            }
            return Ok((served, points, 1));
        }
        // Each part is served by an equal part of the frames.
        let unit = u64::from(Sample::PARTS * FRAMES_OF_PART);
        let mut frames: Vec<u64> =
            spread(most.max(1)).into_iter().map(|frames| frames / unit * unit).collect();
        frames.dedup();
        frames.retain(|frames| *frames > 0);
        if frames.is_empty() {
            return Err(StackError::request(format!(
                "--sample 1/{divisor} leaves {pages} pages, and pools of {most} frames for them, which are too small; \
                    accepted: a larger share of the pages, more --frames, or --sample 1"
            )));
        }
        let parts = sample.parts(config.needs_future());
        drop(sample);
        let estimate = Estimate { whole, parts, config, divisor, ops: served.ops };
        let (mut ratios, mut errors, last) = (Vec::new(), Vec::new(), frames.len() - 1);
        for (at, frames) in frames.iter().enumerate() {
            let ratio = estimate.ratio(*frames as u32)?;
            ratios.push(ratio);
            // The error changes little from one size to the next, and the parts together take as long as the whole
            // sample.
            let is_measured = at % 2 == 0 || at == last;
            errors.push(if is_measured { Some(estimate.error(*frames as u32, ratio)?) } else { None });
        }
        let error = |at: usize| {
            let around = errors[at.saturating_sub(1)..(at + 2).min(errors.len())].iter().flatten();
            errors[at].unwrap_or_else(|| around.copied().fold(0.0, f64::max))
        };
        let point = |(at, frames): (usize, &u64)| Point {
            frames: frames * u64::from(divisor),
            misses: Misses::Estimated { ratio: ratios[at].min(1.0), error: error(at) },
        };
        let points = frames.iter().enumerate().map(point).collect();
        Ok((served, points, divisor))
    }
}

/// The requests of a sample and of its parts.
struct Estimate<'a> {
    whole: SampleRequests,
    parts: Vec<SampleRequests>,
    config: &'a ReplacementConfig,
    divisor: u32,
    /// The number of all requests, in the sample or not.
    ops: u64,
}

impl Estimate<'_> {
    /// Returns the estimated miss ratio of requests for one page in `divisor`, for a pool of `frames` frames.
    fn of(&self, requests: &SampleRequests, frames: u32, divisor: u32) -> Result<f64, StackError> {
        let misses = requests.misses(self.config, frames)?;
        Ok(misses as f64 * f64::from(divisor) / self.ops as f64)
    }

    /// Estimates the miss ratio with `frames` frames for the whole sample.
    fn ratio(&self, frames: u32) -> Result<f64, StackError> {
        self.of(&self.whole, frames, self.divisor)
    }

    /// Estimates the error of `ratio`: half the width of the interval that has the exact one in 95 of 100 cases.
    fn error(&self, frames: u32, ratio: f64) -> Result<f64, StackError> {
        let count = f64::from(Sample::PARTS);
        let mut of_parts = Vec::new();
        for part in &self.parts {
            of_parts.push(self.of(part, frames / Sample::PARTS, self.divisor * Sample::PARTS)?);
        }
        let mean = of_parts.iter().sum::<f64>() / count;
        let variance = of_parts.iter().map(|part| (part - mean).powi(2)).sum::<f64>() / (count - 1.0);
        // A sample of many of the pages differs less from all of them than two samples from each other.
        let rest = 1.0 - 1.0 / f64::from(self.divisor);
        let spread = STUDENT * (variance / count * rest).sqrt();
        // Smaller pools may miss more or less than large ones. The pools of the parts are smaller than those of the
        // whole sample, so the difference tells how much that matters.
        Ok(spread + (mean - ratio).abs())
    }
}

/// Returns the largest size for a workload of `pages` pages. More frames would not be used.
fn largest(asked: Portion, pages: u64) -> u64 {
    asked.of(pages).min(pages).max(1)
}

/// Returns up to 64 sizes, evenly spread up to `largest`, which ascend.
fn spread(largest: u64) -> Vec<u64> {
    let size = |at: u64| (u128::from(largest) * u128::from(at)).div_ceil(u128::from(Sizes::COUNT)) as u64;
    let mut sizes: Vec<u64> = (1..=Sizes::COUNT).map(size).collect();
    sizes.dedup();
    sizes
}

/// The memory that the tables of a curve may take. They grow with the pages of a trace, whose number is not known
/// before.
struct Room {
    /// The bytes at the next check.
    next: u64,
}

impl Room {
    fn new() -> Room {
        Room { next: 1 << 26 }
    }

    /// Refuses to go on if tables of `bytes` bytes could not double.
    fn check(&mut self, bytes: u64) -> Result<(), StackError> {
        if bytes < self.next {
            return Ok(());
        }
        self.next = bytes + bytes / 8;
        memory::check("--curve over so many pages", bytes).map_err(|error| {
            StackError::request(format!("{error}, by --ops or a smaller --sample, like 1/64"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: sizes ascend up to the largest one, and each is there once.
    #[test]
    fn sizes_are_spread_evenly() {
        assert_eq!(spread(1), [1]);
        assert_eq!(spread(5), [1, 2, 3, 4, 5]);
        assert_eq!(spread(64), (1..=64).collect::<Vec<_>>());
        let sizes = spread(1_000);
        assert_eq!((sizes.len(), sizes[0], sizes[1], sizes[63]), (64, 16, 32, 1_000));
    }

    /// The rule: a curve never has more frames than pages, and at least one.
    #[test]
    fn the_largest_size_is_within_the_pages() {
        for (asked, pages, expected) in [
            (Portion::ALL, 7, 7),
            (Portion::Count(9), 7, 7),
            (Portion::Count(3), 7, 3),
            (Portion::percent(1), 7, 1),
        ] {
            assert_eq!(largest(asked, pages), expected, "{asked} of {pages}");
        }
    }
}
