//! Fulgurite's own: by the interval to be expected until the page is written again.
//!
//! For a page that is written at a steady rate nothing of the past matters but the rate, and one interval says
//! little of it: intervals of one rate differ by a factor of four. So each page keeps a mean of its intervals, in two
//! bytes: the mean's logarithm in eighths (7 bits), how many intervals it stands for (0 to 7) and when it was last
//! written, in eighths of a logical capacity (6 bits). A page that nothing is known of has a mean of one capacity,
//! which is the mean over all pages. A new interval moves the mean by a share of 1 / (n + 2), an eighth at least, so
//! that it follows a change within a few writes. Short intervals are finer than that clock: they are read
//! off the age of the segment in which the page lies.
//!
//! A page that is copied has also shown that it lives for its age: its mean is then taken as m + age / (n + 1),
//! as Bayes' rule has it for a page seen n times. The stream is the logarithm of the expected interval, counted from
//! a segment's worth of writes, in steps of an octave and a half: pages of one stream are written again within a
//! factor of three of each other, be they the host's or copies. More streams would tell rates apart better and
//! cost more in half-filled segments. Made for `cost-benefit` victims. O(1), 2 bytes a page, nothing learnt
//! beforehand. Chosen on Zipf traffic of exponents 0.8 and 1 with seed 42.

use super::{PlacementPolicy, Shape, WriteContext, take_streams};
use crate::ftl::{SegmentId, SegmentState, SegmentTable};
use fulgurite_base::{Spec, SpecError, prefetch};
use fulgurite_device::StreamId;
use std::fmt;

/// Eighths of an octave that a mean can take.
const CODES: u16 = 128;
/// Most intervals that a mean stands for.
const INTERVALS: u16 = 7;
/// Ticks of the pages' clock until it starts again.
const TICKS: u64 = 64;
/// Ticks in a logical capacity of host writes.
const TICKS_IN_CAPACITY: u64 = 8;

/// The options of Fulgurite's policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Streams: the last one takes all longer intervals.
    pub streams: u16,
    /// Eighths of an octave in a stream.
    pub step: u16,
    /// The least weight of a new interval is 1 / this; at most 9, since a page counts no more intervals.
    pub memory: u16,
}

impl Options {
    pub(super) fn from_spec(spec: &mut Spec) -> Result<Options, SpecError> {
        let streams = take_streams(spec, "streams", 11, 2)?;
        let mut small = |key, default: u16, most: u16| {
            let value = spec.take::<u32>(key)?.unwrap_or(u32::from(default));
            u16::try_from(value).ok().filter(|value| (1..=most).contains(value)).ok_or_else(|| {
                SpecError::new(format!("{key}={value} of fulgurite is out of range; accepted: 1 to {most}"))
            })
        };
        Ok(Options { streams, step: small("step", 12, CODES)?, memory: small("memory", 8, INTERVALS + 2)? })
    }

    pub(super) fn streams(&self) -> u16 {
        self.streams
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "streams={},step={},memory={}", self.streams, self.step, self.memory)
    }
}

/// What is known of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    /// The mean interval, by its code.
    code: u16,
    /// Intervals that it stands for, at most [`INTERVALS`].
    intervals: u16,
    /// When the page was last written, in ticks modulo [`TICKS`].
    tick: u16,
}

impl Known {
    #[inline]
    fn unpack(word: u16) -> Known {
        Known { code: word & 127, intervals: word >> 7 & 7, tick: word >> 10 }
    }

    #[inline]
    fn pack(self) -> u16 {
        self.code | self.intervals << 7 | self.tick << 10
    }
}

/// The pages' intervals.
#[derive(Clone, Debug)]
pub struct Fulgurite {
    options: Options,
    pages: Vec<u16>,
    /// Page writes in a tick.
    tick: u64,
    /// The interval of code 0, and of every code.
    least: u64,
    intervals: Vec<u64>,
}

impl Fulgurite {
    pub(super) fn new(options: Options, shape: &Shape) -> Fulgurite {
        let least = u64::from(shape.segment_pages).max(8);
        let interval = |code: u64| (least << (code / 8)) + (least << (code / 8)) * (code % 8) / 8;
        let octave = (u64::from(shape.logical_pages) / least).max(1).ilog2() as u16;
        Fulgurite {
            options,
            pages: vec![
                Known { code: octave * 8, intervals: 0, tick: 0 }.pack();
                shape.logical_pages as usize
            ],
            tick: (u64::from(shape.logical_pages) / TICKS_IN_CAPACITY).max(1),
            least,
            intervals: (0..u64::from(CODES)).map(interval).collect(),
        }
    }

    /// The code of the greatest interval that is no more than this one.
    #[inline]
    fn code(&self, interval: u64) -> u16 {
        let Some(octave) = (interval / self.least).checked_ilog2() else { return 0 };
        let eighth = (interval >> octave) * 8 / self.least - 8;
        ((u64::from(octave) * 8 + eighth.min(7)) as u16).min(CODES - 1)
    }

    /// Page writes since the host wrote a page that lies in `segment`.
    #[inline]
    fn age(&self, known: Known, segment: SegmentId, segments: &SegmentTable) -> u64 {
        let ticks = (segments.now() / self.tick).wrapping_sub(u64::from(known.tick)) % TICKS;
        if ticks >= 2 {
            return ticks * self.tick;
        }
        let end = match segments.state(segment) {
            SegmentState::Open => segments.now(),
            _ => segments.sealed_at(segment),
        };
        segments.now() - u64::midpoint(segments.opened_at(segment), end)
    }

    /// What is known of a page once the host has written it.
    #[inline]
    fn after_write(&self, context: &WriteContext, segments: &SegmentTable) -> Known {
        let known = Known::unpack(self.pages[context.lpn as usize]);
        let tick = (segments.now() / self.tick % TICKS) as u16;
        let Some(segment) = context.segment else { return Known { tick, ..known } };
        let interval = self.age(known, segment, segments);
        let weight = u64::from(known.intervals + 2).min(u64::from(self.options.memory));
        let mean = self.intervals[usize::from(known.code)];
        let mean = (mean * (weight - 1) + interval) / weight;
        // Rounded up or down by chance, or small steps would be lost.
        let dither = mean * ((segments.now().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) % 1024) / (1024 * 8);
        Known { code: self.code(mean + dither), intervals: (known.intervals + 1).min(INTERVALS), tick }
    }

    #[inline]
    fn stream_of(&self, code: u16) -> StreamId {
        StreamId((code / self.options.step).min(self.options.streams - 1))
    }
}

impl PlacementPolicy for Fulgurite {
    #[inline]
    fn stream(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        let Some(segment) = context.segment else { return StreamId(self.options.streams - 1) };
        if !context.copied {
            return self.stream_of(self.after_write(context, segments).code);
        }
        let known = Known::unpack(self.pages[context.lpn as usize]);
        let age = self.age(known, segment, segments);
        let mean = self.intervals[usize::from(known.code)];
        self.stream_of(self.code(mean + age / u64::from(known.intervals + 1)))
    }

    #[inline]
    fn written(&mut self, context: &WriteContext, _: StreamId, segments: &SegmentTable) {
        if !context.copied {
            self.pages[context.lpn as usize] = self.after_write(context, segments).pack();
            return;
        }
        // The clock must not start again for pages that are never written.
        let known = Known::unpack(self.pages[context.lpn as usize]);
        let now = segments.now() / self.tick;
        if now.wrapping_sub(u64::from(known.tick)) % TICKS > TICKS - TICKS / 4 {
            let tick = (now.wrapping_sub(TICKS - TICKS / 4) % TICKS) as u16;
            self.pages[context.lpn as usize] = Known { tick, ..known }.pack();
        }
    }

    #[inline]
    fn prefetch(&self, lpn: u32) {
        prefetch(&self.pages, lpn as usize);
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.pages[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> Fulgurite {
        let options = Options { streams: 11, step: 12, memory: 8 };
        let shape = Shape { logical_pages: 1 << 20, segments: 1_100, segment_pages: 1 << 10, reserve: 2 };
        Fulgurite::new(options, &shape)
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
    fn what_is_known_fits_into_two_bytes() {
        for word in 0..=u16::MAX {
            assert_eq!(Known::unpack(word).pack(), word);
        }
    }

    #[test]
    fn a_page_unknown_is_expected_after_one_capacity() {
        let policy = policy();
        let known = Known::unpack(policy.pages[7]);
        assert_eq!((known.intervals, policy.intervals[usize::from(known.code)]), (0, 1 << 20));
    }
}
