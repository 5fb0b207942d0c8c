//! An index of sealed segments in the order of their age, with the fewest valid pages over ranges of ages. It
//! finds the best segment by any score that grows with age and falls with valid pages, without a scan of all
//! segments.
//!
//! A sealed segment takes the next slot. A tree of fan-out 16 over the slots holds in each node the least
//! valid count below it. The score of a node is bounded by the score of its oldest slot with its least valid
//! count. So a search skips nodes that cannot beat the best segment found so far. An invalidation changes a
//! node only if it lowers the node's minimum, which is rare.

use super::per_segment::PerSegment;
use crate::SegmentId;
use std::ops::Range;

const FAN: usize = 16;
const EMPTY: u32 = u32::MAX;

/// An index of sealed segments by age; see the module.
#[derive(Clone, Debug)]
pub(super) struct ByAge {
    /// The segment in each slot; only valid if the slot in `levels[0]` is not [`EMPTY`].
    segments: Vec<u32>,
    /// The seal time of each slot, even if the slot is empty. The times never decrease.
    sealed_at: Vec<u64>,
    /// The valid pages by slot, then the minimum over 16 slots, over 256, and so on.
    levels: Vec<Vec<u32>>,
    /// By level, the seal time of the first slot of each node. The times are contiguous because every search
    /// scans the upper levels.
    oldest: Vec<Vec<u64>>,
    slot_of: PerSegment<u32>,
    live: u32,
}

impl ByAge {
    pub(crate) fn new(segments: Range<u32>) -> ByAge {
        ByAge {
            segments: Vec::new(),
            sealed_at: Vec::new(),
            levels: empty(FAN),
            oldest: vec![Vec::new()],
            slot_of: PerSegment::filled(segments, 0),
            live: 0,
        }
    }

    /// Inserts the youngest segment.
    pub(crate) fn push(&mut self, segment: SegmentId, valid: u32, now: u64) {
        if self.segments.len() == self.levels[0].len() {
            self.compact();
        }
        let slot = self.segments.len();
        self.segments.push(segment.0);
        self.sealed_at.push(now);
        self.begin_nodes(slot, now);
        self.slot_of[segment] = slot as u32;
        self.live += 1;
        self.lower(slot, valid);
    }

    /// Stores the seal time for all nodes that begin with this slot.
    fn begin_nodes(&mut self, slot: usize, sealed_at: u64) {
        let mut first = slot;
        for oldest in &mut self.oldest[1..] {
            if !first.is_multiple_of(FAN) {
                return;
            }
            first /= FAN;
            oldest.push(sealed_at);
        }
    }

    /// Decreases the valid count of a segment.
    #[inline]
    pub(crate) fn lowered(&mut self, segment: SegmentId, valid: u32) {
        self.lower(self.slot_of[segment] as usize, valid);
    }

    #[inline]
    fn lower(&mut self, slot: usize, valid: u32) {
        self.levels[0][slot] = valid;
        let mut at = slot;
        for level in &mut self.levels[1..] {
            at /= FAN;
            // Ends the climb, since the nodes above hold no larger minimum.
            if level[at] <= valid {
                return;
            }
            level[at] = valid;
        }
    }

    /// Removes a segment.
    pub(crate) fn remove(&mut self, segment: SegmentId) {
        let mut at = self.slot_of[segment] as usize;
        self.levels[0][at] = EMPTY;
        self.live -= 1;
        for above in 1..self.levels.len() {
            at /= FAN;
            let least = children(&self.levels[above - 1], at).iter().copied().min().unwrap_or(EMPTY);
            // Stops at an unchanged minimum, which leaves every node above it unchanged.
            if std::mem::replace(&mut self.levels[above][at], least) == least {
                return;
            }
        }
    }

    /// Moves the occupied slots together. At least as many slots are free afterwards, so this is rare.
    fn compact(&mut self) {
        let slots = self.levels[0].len().max(2 * self.live as usize);
        let old = std::mem::replace(&mut self.levels, empty(slots));
        let mut kept = 0;
        for (slot, valid) in old[0].iter().enumerate().take(self.segments.len()) {
            if *valid != EMPTY {
                // Keeps the order of slots, since searches order segments by slot.
                self.segments[kept] = self.segments[slot];
                self.sealed_at[kept] = self.sealed_at[slot];
                self.levels[0][kept] = *valid;
                self.slot_of[SegmentId(self.segments[kept])] = kept as u32;
                kept += 1;
            }
        }
        self.segments.truncate(kept);
        self.sealed_at.truncate(kept);
        self.oldest = vec![Vec::new(); self.levels.len()];
        for slot in 0..kept {
            self.begin_nodes(slot, self.sealed_at[slot]);
        }
        for above in 1..self.levels.len() {
            let (below, level) = self.levels.split_at_mut(above);
            for (at, least) in level[0].iter_mut().enumerate() {
                *least = children(&below[above - 1], at).iter().copied().min().unwrap_or(EMPTY);
            }
        }
    }

    /// Returns the segment with the highest `score(sealed at, valid pages)`; of equals the oldest. The score
    /// must not fall as a segment gets older or emptier.
    pub(crate) fn best(&self, score: impl Fn(u64, u32) -> f64) -> Option<SegmentId> {
        self.best_within(None, |oldest, _, valid| score(oldest, valid)).map(|(_, segment)| segment)
    }

    /// Returns the best segment and its score, for a score that may fall as a segment gets older.
    /// `bound(oldest, youngest, valid)` is at least the score of every segment that was sealed between these
    /// times and has at least `valid` pages; if the times are equal, it is the score. Only segments with a
    /// score above `known` are returned.
    pub(crate) fn best_within(
        &self,
        known: Option<f64>,
        bound: impl Fn(u64, u64, u32) -> f64,
    ) -> Option<(f64, SegmentId)> {
        let top = self.levels.len() - 1;
        if self.live == 0 {
            return None;
        }
        let last = self.sealed_at[self.sealed_at.len() - 1];
        let bound = |level: usize, at: usize, least: u32| {
            if level == 0 {
                return bound(self.sealed_at[at], self.sealed_at[at], least);
            }
            let oldest = &self.oldest[level];
            // The next node is no older than the youngest slot of this node.
            bound(oldest[at], oldest.get(at + 1).copied().unwrap_or(last), least)
        };
        let mut found = match known {
            Some(known) => (known, None),
            None => self.good(&bound),
        };
        self.search(top, 0..self.levels[top].len(), &bound, &mut found);
        Some((found.0, SegmentId(self.segments[found.1?])))
    }

    /// Returns a good segment to start a search with: the segment at the end of the path of best bounds.
    fn good(&self, bound: &impl Fn(usize, usize, u32) -> f64) -> (f64, Option<usize>) {
        let top = self.levels.len() - 1;
        let (mut node, mut found) = (0, (f64::NEG_INFINITY, None));
        for level in (0..=top).rev() {
            let nodes =
                if level == top { &self.levels[top][..] } else { children(&self.levels[level], node) };
            let first = if level == top { 0 } else { node * FAN };
            found = (f64::NEG_INFINITY, None);
            for (at, least) in nodes.iter().enumerate().filter(|(_, least)| **least != EMPTY) {
                let bound = bound(level, first + at, *least);
                if found.1.is_none() || bound > found.0 {
                    found = (bound, Some(first + at));
                }
            }
            node = found.1.unwrap_or(0);
        }
        found
    }

    /// Returns all segments with their seal times.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SegmentId, u64)> {
        let slots = self.segments.iter().zip(&self.sealed_at).zip(&self.levels[0]);
        slots
            .filter(|(_, valid)| **valid != EMPTY)
            .map(|((segment, sealed_at), _)| (SegmentId(*segment), *sealed_at))
    }

    fn search(
        &self,
        level: usize,
        nodes: std::ops::Range<usize>,
        bound: &impl Fn(usize, usize, u32) -> f64,
        found: &mut (f64, Option<usize>),
    ) {
        for at in nodes {
            let least = self.levels[level][at];
            if least == EMPTY {
                continue;
            }
            let bounded = bound(level, at, least);
            // Breaks ties by age, and between streams by the order of the search.
            let is_older = || found.1.is_some_and(|slot| at * FAN.pow(level as u32) <= slot);
            if bounded < found.0 || bounded == found.0 && !is_older() {
                continue;
            }
            if level == 0 {
                *found = (bounded, Some(at));
            } else {
                let end = ((at + 1) * FAN).min(self.levels[level - 1].len());
                self.search(level - 1, at * FAN..end, bound, found);
            }
        }
    }
}

/// Returns the levels over `slots` empty slots.
fn empty(slots: usize) -> Vec<Vec<u32>> {
    let mut levels = vec![vec![EMPTY; slots]];
    while levels[levels.len() - 1].len() > FAN {
        let len = levels[levels.len() - 1].len().div_ceil(FAN);
        levels.push(vec![EMPTY; len]);
    }
    levels
}

fn children(level: &[u32], node: usize) -> &[u32] {
    &level[node * FAN..((node + 1) * FAN).min(level.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_base::Prng;

    /// The rule: the index agrees with a full scan, through many seals, invalidations, removals and
    /// compactions.
    #[test]
    fn the_index_finds_the_best_segment() {
        const SEGMENTS: u32 = 300;
        let mut prng = Prng::new(3, "by age");
        let mut index = ByAge::new(0..SEGMENTS);
        let mut model: Vec<(SegmentId, u64, u32)> = Vec::new();
        for now in 0..20_000u64 {
            let idle =
                |model: &[(SegmentId, u64, u32)], segment| model.iter().all(|known| known.0 != segment);
            match prng.below(4) {
                0 => {
                    let segment = SegmentId(prng.below(u64::from(SEGMENTS)) as u32);
                    if idle(&model, segment) {
                        let valid = prng.below(100) as u32;
                        index.push(segment, valid, now / 3);
                        model.push((segment, now / 3, valid));
                    }
                }
                1 | 2 if !model.is_empty() => {
                    let at = prng.below(model.len() as u64) as usize;
                    if model[at].2 > 0 {
                        model[at].2 -= 1;
                        index.lowered(model[at].0, model[at].2);
                    }
                }
                _ => {
                    let score = |sealed_at: u64, valid: u32| {
                        (now - sealed_at + 1) as f64 * f64::from(100 - valid) / f64::from(valid)
                    };
                    let mut best: Option<(f64, usize)> = None;
                    for (at, (_, sealed_at, valid)) in model.iter().enumerate() {
                        let score = score(*sealed_at, *valid);
                        if best.is_none_or(|(known, _)| score > known) {
                            best = Some((score, at));
                        }
                    }
                    assert_eq!(index.best(score), best.map(|(_, at)| model[at].0));
                    // A score that falls with age in some ranges, and its bound between two ages.
                    let rate = |age: u64| [1.0, 0.5, 4.0, 0.7][(age as usize / 500).min(3)];
                    let bound = |oldest: u64, youngest: u64, valid: u32| {
                        let rates = (oldest..=youngest).map(|sealed_at| rate(now - sealed_at));
                        let least = rates.fold(f64::INFINITY, f64::min);
                        score(oldest, valid) / least
                    };
                    let highest =
                        model.iter().map(|(_, sealed_at, valid)| bound(*sealed_at, *sealed_at, *valid));
                    let highest = highest.fold(f64::NEG_INFINITY, f64::max);
                    let found = index.best_within(None, bound);
                    assert_eq!(found.map_or(f64::NEG_INFINITY, |(score, _)| score), highest);
                    if let Some((_, at)) = best.filter(|_| model.len() > 100) {
                        index.remove(model.remove(at).0);
                    }
                }
            }
        }
        assert!(model.len() > 50);
    }

    /// The rule: the index never has more slots than twice the most segments it held, or than one node has.
    #[test]
    fn the_index_has_at_most_twice_its_segments() {
        for held in [5u32, 100] {
            let mut index = ByAge::new(0..held);
            (0..held).for_each(|segment| index.push(SegmentId(segment), 1, 0));
            for turn in 0..20 * held {
                let segment = SegmentId(turn % held);
                index.remove(segment);
                index.push(segment, 1, u64::from(turn));
                assert!(index.levels[0].len() <= FAN.max(2 * held as usize + 2), "{}", index.levels[0].len());
            }
        }
    }

    /// The rule: an index of several levels also finds the best segment by any score, and of equals the
    /// oldest.
    #[test]
    fn an_index_of_several_levels_finds_the_best_segment() {
        const SEGMENTS: u32 = 5_000;
        let mut prng = Prng::new(8, "many");
        let mut index = ByAge::new(0..SEGMENTS);
        let mut model: Vec<(u64, u32, bool)> =
            (0..SEGMENTS).map(|at| (u64::from(at) * 3, 20 + prng.below(80) as u32, true)).collect();
        for (segment, (sealed_at, valid, _)) in (0..).zip(&model) {
            index.push(SegmentId(segment), *valid, *sealed_at);
        }
        // The score makes segments in the second and fourth quarter of all ages wait.
        let quarter = u64::from(SEGMENTS) * 3 / 4;
        let patience = |ages: std::ops::RangeInclusive<u64>| {
            (ages.start() / quarter..=ages.end() / quarter)
                .map(|part| [4.0, 0.1, 3.0, 0.5, 1.0][part as usize])
                .fold(0.0, f64::max)
        };
        let now = u64::from(SEGMENTS) * 3;
        for _ in 0..150 {
            for segment in (0..20).map(|_| prng.below(u64::from(SEGMENTS)) as u32) {
                let (_, valid, is_there) = &mut model[segment as usize];
                if *is_there && *valid > 1 {
                    *valid -= 1;
                    index.lowered(SegmentId(segment), *valid);
                }
            }
            let best = |score: &dyn Fn(u64, u32) -> f64| {
                let mut best = (f64::NEG_INFINITY, None);
                for (segment, (sealed_at, valid, _)) in (0..).zip(&model).filter(|(_, known)| known.2) {
                    if score(*sealed_at, *valid) > best.0 {
                        best = (score(*sealed_at, *valid), Some(SegmentId(segment)));
                    }
                }
                best
            };
            let by_valid = |_: u64, valid: u32| -f64::from(valid);
            assert_eq!(index.best(by_valid), best(&by_valid).1);
            let by_age = |sealed_at: u64, valid: u32| (now - sealed_at) as f64 / f64::from(valid);
            assert_eq!(index.best(by_age), best(&by_age).1);
            // The score is so coarse that many segments are equal, and that bounds exceed the scores below
            // them.
            let coarse =
                |sealed_at: u64, valid: u32| ((now - sealed_at) / 1_000) as f64 - f64::from(valid / 10);
            assert_eq!(index.best(coarse), best(&coarse).1);
            let (score, segment) =
                best(&|sealed_at, valid| patience(now - sealed_at..=now - sealed_at) / f64::from(valid));
            let found = index.best_within(None, |oldest, youngest, valid| {
                patience(now - youngest..=now - oldest) / f64::from(valid)
            });
            assert_eq!(found, segment.map(|segment| (score, segment)));
            let taken = segment.unwrap();
            index.remove(taken);
            model[taken.0 as usize].2 = false;
        }
    }
}
