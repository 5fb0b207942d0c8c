//! Random and d-choices: the emptiest of d sealed segments drawn at random; with d = 1, any of them.
//!
//! "Stochastic modeling of large-scale solid-state storage systems" (Li, Lee, Lui, SIGMETRICS 2013): ten choices
//! come close to greedy. Draws are with replacement. O(d).

use super::Victim;
use crate::{SegmentId, SegmentTable};
use fulgurite_base::Prng;

/// Sealed segments in no order.
#[derive(Clone, Debug)]
pub struct Choices {
    choices: u32,
    sealed: Vec<SegmentId>,
    place_of: Vec<u32>,
    prng: Prng,
}

impl Choices {
    pub(super) fn new(choices: u32, segments: u32) -> Choices {
        let prng = Prng::new(u64::from(choices), "victim segments");
        Choices { choices, sealed: Vec::new(), place_of: vec![0; segments as usize], prng }
    }

    fn take(&mut self, place: usize) -> SegmentId {
        let segment = self.sealed.swap_remove(place);
        if let Some(moved) = self.sealed.get(place) {
            self.place_of[moved.0 as usize] = place as u32;
        }
        segment
    }
}

impl Victim for Choices {
    fn sealed(&mut self, segment: SegmentId, _: &SegmentTable) {
        self.place_of[segment.0 as usize] = self.sealed.len() as u32;
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
        self.take(self.place_of[segment.0 as usize] as usize);
    }
}
