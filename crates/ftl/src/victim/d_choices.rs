//! Random and d-choices victim selection: the emptiest of d sealed segments drawn at random; with d = 1, any
//! segment.
//!
//! "Stochastic modeling of large-scale solid-state storage systems" (Li, Lee, Lui, SIGMETRICS 2013) finds
//! that ten choices come close to greedy. Draws are with replacement. A pick takes O(d), so `d` is bounded.

use super::per_segment::PerSegment;
use super::policy::VictimPolicy;
use crate::{SegmentId, SegmentTable};
use fulgurite_base::option::COUNT;
use fulgurite_base::{Declared, NoOptions, Opt, Prng, opt};
use std::ops::Range;

/// The most draws. More draws find no emptier segment on any drive, and a pick would take long.
const CHOICES_AT_MOST: u32 = 1 << 16;

/// The options of d-choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DChoicesConfig {
    /// The number of segments drawn.
    pub choices: u32,
}

impl Default for DChoicesConfig {
    fn default() -> DChoicesConfig {
        DChoicesConfig { choices: 10 }
    }
}

impl Declared for DChoicesConfig {
    const OPTIONS: &'static [Opt<DChoicesConfig>] =
        &[opt!("d", choices, COUNT, 1 => CHOICES_AT_MOST, "segments drawn")];
}

/// The sealed segments in no order. With `ONE`, a single segment is drawn, and there are no options.
#[derive(Clone, Debug)]
pub(crate) struct Choices<const ONE: bool> {
    choices: u32,
    sealed: Vec<SegmentId>,
    place_of: PerSegment<u32>,
    prng: Prng,
}

/// The policy that picks any segment.
pub(crate) type Random = Choices<true>;
/// The policy that picks the emptiest of several segments drawn at random.
pub(crate) type DChoices = Choices<false>;

impl Random {
    pub(super) fn start(_: &NoOptions, segments: Range<u32>, _: u32) -> Random {
        Choices::new(1, segments)
    }
}

impl DChoices {
    pub(super) fn start(config: &DChoicesConfig, segments: Range<u32>, _: u32) -> DChoices {
        Choices::new(config.choices, segments)
    }
}

impl<const ONE: bool> Choices<ONE> {
    fn new(choices: u32, segments: Range<u32>) -> Choices<ONE> {
        // Gives each unit its own seed, so that units draw independently. The number of choices has 32 bits,
        // so the seeds differ.
        let prng = Prng::new(u64::from(choices) | u64::from(segments.start) << 32, "victim segments");
        Choices { choices, sealed: Vec::new(), place_of: PerSegment::filled(segments, 0), prng }
    }

    fn take(&mut self, place: usize) -> SegmentId {
        let segment = self.sealed.swap_remove(place);
        // Records the new position of the last segment, which has moved to the freed position.
        if let Some(moved) = self.sealed.get(place) {
            self.place_of[*moved] = place as u32;
        }
        segment
    }
}

impl<const ONE: bool> VictimPolicy for Choices<ONE> {
    fn sealed(&mut self, segment: SegmentId, _: &SegmentTable) {
        self.place_of[segment] = self.sealed.len() as u32;
        self.sealed.push(segment);
    }

    #[inline]
    fn invalidated(&mut self, _: SegmentId, _: &SegmentTable) {}

    fn pick(&mut self, table: &SegmentTable) -> Option<SegmentId> {
        if self.sealed.is_empty() {
            return None;
        }
        let drawn = (0..self.choices).map(|_| self.prng.below(self.sealed.len() as u64) as usize);
        let place = drawn.min_by_key(|place| table.valid(self.sealed[*place]))?;
        Some(self.take(place))
    }

    fn remove(&mut self, segment: SegmentId, _: &SegmentTable) {
        self.take(self.place_of[segment] as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_base::StreamId;

    /// The rule: units draw independently of each other, and the draws of each unit are stable.
    #[test]
    fn units_draw_independently() {
        let draws = |first: u32| -> Vec<u32> {
            let mut table = SegmentTable::new(100, 16, 1);
            let mut index = Random::start(&NoOptions, first..first + 50, 16);
            for segment in (first..first + 50).map(SegmentId) {
                table.open(segment, StreamId(0));
                table.seal(segment);
                index.sealed(segment, &table);
            }
            std::iter::from_fn(|| index.pick(&table)).map(|segment| segment.0 - first).collect()
        };
        assert_eq!(draws(0), draws(0));
        assert_ne!(draws(0), draws(50));
    }
}
