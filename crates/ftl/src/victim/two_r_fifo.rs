//! 2R-FIFO victim selection: a hand goes over the older segments in the order of sealing and takes those that
//! are empty enough.
//!
//! "2R: Efficiently Isolating Cold Pages in Flash Storages" (Kang et al., PVLDB 13, 2020) as the program of
//! "SSD-iq: Uncovering the Hidden Side of SSD Performance" (Haas et al., PVLDB 18, 2025) has it. Victims come
//! in rounds: a round ends when the invalid pages of its victims fill a segment. The hand takes a segment if
//! its share of valid pages is below `valid`. It passes over the others, which so get a second chance. When it
//! has passed the share `depth` of all segments, it returns to the oldest segment, and the bound rises by five
//! points until the round ends. The hand keeps its place between rounds.
//!
//! *Differences.* The first round of the program has a bound of 50 %. A victim leaves the list when it is
//! picked, not when its round ends. A pick takes O(log n). The placement is `2r`.

use super::per_segment::PerSegment;
use super::policy::VictimPolicy;
use crate::{SegmentId, SegmentTable};
use fulgurite_base::option::SHARE;
use fulgurite_base::{Declared, Opt, Share, opt};
use std::ops::Range;

/// The options of 2R-FIFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwoRFifoConfig {
    /// The share of valid pages below which the hand takes a segment, at the start of a round.
    pub valid: Share,
    /// The share of all segments, the oldest first, that the hand goes over before it returns.
    pub depth: Share,
}

impl Default for TwoRFifoConfig {
    fn default() -> TwoRFifoConfig {
        TwoRFifoConfig { valid: Share::percent(70), depth: Share::percent(70) }
    }
}

impl Declared for TwoRFifoConfig {
    const OPTIONS: &'static [Opt<TwoRFifoConfig>] = &[
        opt!("valid", valid, SHARE, Share::from_ppm(1) => Share::ONE, "valid pages below which it takes a segment"),
        opt!("depth", depth, SHARE, Share::from_ppm(1) => Share::ONE, "segments, the oldest first, that it goes over"),
    ];
}

/// The rise of the bound each time the hand returns.
const RISE: Share = Share::percent(5);

/// The list with its hand, and the state of the round.
#[derive(Clone, Debug)]
pub(crate) struct TwoRFifo {
    config: TwoRFifoConfig,
    segment_pages: u32,
    list: List,
    /// The slot that the hand looks at next.
    hand: usize,
    /// The number of segments that the hand has passed since it was at the oldest.
    passed: u32,
    /// The number of segments after which the hand returns, in this round.
    limit: u32,
    /// The share of valid pages below which the hand takes a segment now, in millionths. It may exceed 100 %.
    bound: u32,
    /// The invalid pages of this round's victims.
    invalid: u32,
}

impl TwoRFifo {
    pub(super) fn start(config: &TwoRFifoConfig, segments: Range<u32>, segment_pages: u32) -> TwoRFifo {
        TwoRFifo {
            config: *config,
            segment_pages,
            list: List::new(segments),
            hand: 0,
            passed: 0,
            limit: 0,
            bound: 0,
            invalid: segment_pages,
        }
    }

    fn begin_round(&mut self) {
        self.invalid = 0;
        self.bound = self.config.valid.ppm();
        self.limit = (self.config.depth.as_f64() * f64::from(self.list.len())) as u32;
        if self.list.before(self.hand) == self.list.len() {
            (self.hand, self.passed) = (0, 0);
        }
    }
}

impl VictimPolicy for TwoRFifo {
    fn sealed(&mut self, segment: SegmentId, table: &SegmentTable) {
        if self.list.is_full() {
            // Slots are numbered again, so the hand's slot is the number of segments before it.
            self.hand = self.list.before(self.hand) as usize;
            self.list.compact();
        }
        self.list.push(segment, table.valid(segment));
    }

    #[inline]
    fn invalidated(&mut self, segment: SegmentId, table: &SegmentTable) {
        self.list.lower(segment, table.valid(segment));
    }

    fn pick(&mut self, table: &SegmentTable) -> Option<SegmentId> {
        if self.list.len() == 0 {
            return None;
        }
        if self.invalid >= self.segment_pages {
            self.begin_round();
        }
        loop {
            // Takes any segment once the bound is above 100 %.
            let below = (u64::from(self.bound) * u64::from(self.segment_pages)).div_ceil(1_000_000);
            let below = below.min(u64::from(self.segment_pages) + 1) as u32;
            let found = self.list.first_below(self.hand, below);
            let steps = found.map(|slot| self.list.before(slot) - self.list.before(self.hand));
            if let (Some(slot), Some(steps)) = (found, steps)
                && (steps == 0 || self.passed + steps < self.limit)
            {
                self.hand = slot + 1;
                self.passed += steps + 1;
                if self.passed >= self.limit {
                    (self.hand, self.passed) = (0, 0);
                    self.bound += RISE.ppm();
                }
                let segment = self.list.segment(slot);
                self.list.remove(segment);
                self.invalid += self.segment_pages - table.valid(segment);
                return Some(segment);
            }
            (self.hand, self.passed) = (0, 0);
            self.bound += RISE.ppm();
        }
    }

    fn remove(&mut self, segment: SegmentId, _: &SegmentTable) {
        self.list.remove(segment);
    }
}

/// The valid count of an empty slot.
const EMPTY: u32 = u32::MAX;

/// The sealed segments in the order of sealing. Two complete binary trees over the slots have the least valid
/// count and the number of segments below each node: node 1 is the root, `2 i` and `2 i + 1` are the children
/// of `i`, and the slots are the leaves from `size` on.
#[derive(Clone, Debug)]
struct List {
    size: usize,
    next: usize,
    least: Vec<u32>,
    held: Vec<u32>,
    segments: Vec<u32>,
    slot_of: PerSegment<u32>,
}

impl List {
    /// Creates an empty list with twice as many slots as segments, so that [`List::compact`] is rare.
    fn new(segments: Range<u32>) -> List {
        let size = (2 * segments.len()).next_power_of_two();
        List {
            size,
            next: 0,
            least: vec![EMPTY; 2 * size],
            held: vec![0; 2 * size],
            segments: vec![0; size],
            slot_of: PerSegment::filled(segments, 0),
        }
    }

    fn len(&self) -> u32 {
        self.held[1]
    }

    fn is_full(&self) -> bool {
        self.next == self.size
    }

    fn segment(&self, slot: usize) -> SegmentId {
        SegmentId(self.segments[slot])
    }

    fn push(&mut self, segment: SegmentId, valid: u32) {
        let slot = self.next;
        self.next += 1;
        self.segments[slot] = segment.0;
        self.slot_of[segment] = slot as u32;
        self.lower(segment, valid);
        self.count(slot, |held| held + 1);
    }

    fn remove(&mut self, segment: SegmentId) {
        let slot = self.slot_of[segment] as usize;
        self.count(slot, |held| held - 1);
        let mut node = self.size + slot;
        self.least[node] = EMPTY;
        while node > 1 {
            node /= 2;
            self.least[node] = self.least[2 * node].min(self.least[2 * node + 1]);
        }
    }

    /// Decreases the valid count of a segment.
    #[inline]
    fn lower(&mut self, segment: SegmentId, valid: u32) {
        let mut node = self.size + self.slot_of[segment] as usize;
        self.least[node] = valid;
        while node > 1 && self.least[node / 2] > valid {
            node /= 2;
            self.least[node] = valid;
        }
    }

    fn count(&mut self, slot: usize, change: impl Fn(u32) -> u32) {
        let mut node = self.size + slot;
        while node > 0 {
            self.held[node] = change(self.held[node]);
            node /= 2;
        }
    }

    /// Returns the number of segments in the slots before `slot`.
    fn before(&self, slot: usize) -> u32 {
        if slot == self.size {
            return self.len();
        }
        let (mut node, mut before) = (self.size + slot, 0);
        while node > 1 {
            if node % 2 == 1 {
                before += self.held[node - 1];
            }
            node /= 2;
        }
        before
    }

    /// Returns the first slot from `from` on with fewer than `below` valid pages.
    fn first_below(&self, from: usize, below: u32) -> Option<usize> {
        if from == self.size {
            return None;
        }
        let mut node = self.size + from;
        while self.least[node] >= below {
            // Climbs to the nearest subtree on the right.
            while node % 2 == 1 {
                if node == 1 {
                    return None;
                }
                node /= 2;
            }
            node += 1;
        }
        while node < self.size {
            node *= 2;
            node += usize::from(self.least[node] >= below);
        }
        Some(node - self.size)
    }

    /// Moves the segments to the first slots.
    fn compact(&mut self) {
        let least = std::mem::replace(&mut self.least, vec![EMPTY; 2 * self.size]);
        self.held.fill(0);
        self.next = 0;
        for (slot, valid) in least[self.size..].iter().enumerate() {
            if *valid != EMPTY {
                self.push(SegmentId(self.segments[slot]), *valid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_base::{Prng, StreamId};

    const PAGES: u32 = 20;

    /// The policy by its definition: every pick walks over the list.
    struct Walk {
        config: TwoRFifoConfig,
        list: Vec<(SegmentId, u32)>,
        hand: usize,
        passed: usize,
        limit: usize,
        bound: u32,
        invalid: u32,
    }

    impl Walk {
        fn new(config: TwoRFifoConfig) -> Walk {
            Walk { config, list: Vec::new(), hand: 0, passed: 0, limit: 0, bound: 0, invalid: PAGES }
        }

        fn take(&mut self, at: usize) -> SegmentId {
            if at < self.hand {
                self.hand -= 1;
            }
            self.list.remove(at).0
        }

        /// Returns the victim, and how often the hand has returned before it was found.
        fn pick(&mut self) -> (SegmentId, u32) {
            if self.invalid >= PAGES {
                self.invalid = 0;
                self.bound = self.config.valid.ppm() / 10_000;
                self.limit = (self.config.depth.as_f64() * self.list.len() as f64) as usize;
                if self.hand == self.list.len() {
                    (self.hand, self.passed) = (0, 0);
                }
            }
            let mut returns = 0;
            loop {
                if self.hand == self.list.len() {
                    (self.hand, self.passed, self.bound) = (0, 0, self.bound + 5);
                    returns += 1;
                }
                let (_, valid) = self.list[self.hand];
                let taken = (valid * 100 < self.bound * PAGES).then_some(self.hand);
                self.hand += 1;
                self.passed += 1;
                let segment = taken.map(|at| self.take(at));
                if self.passed >= self.limit {
                    (self.hand, self.passed, self.bound) = (0, 0, self.bound + 5);
                    returns += u32::from(segment.is_none());
                }
                if let Some(segment) = segment {
                    return (segment, returns);
                }
            }
        }
    }

    /// The rule: the index takes the segments that a walk over the list takes, through many rounds, returns of
    /// the hand, removals and compactions.
    #[test]
    fn the_index_takes_what_a_walk_takes() {
        const SEGMENTS: u32 = 50;
        let options = [(70, 70), (50, 100), (100, 30)];
        let options = options.map(|(valid, depth)| TwoRFifoConfig {
            valid: Share::percent(valid),
            depth: Share::percent(depth),
        });
        for config in options {
            let mut prng = Prng::new(7, "2r-fifo");
            let mut draw = |below: u32| prng.below(u64::from(below)) as u32;
            let mut table = SegmentTable::new(SEGMENTS, PAGES, 1);
            let (mut index, mut walk) = (TwoRFifo::start(&config, 0..SEGMENTS, PAGES), Walk::new(config));
            let mut free: Vec<u32> = (0..SEGMENTS).collect();
            let (mut picks, mut returns) = (0, 0);
            for _ in 0..40_000 {
                match draw(12) {
                    0 | 1 if !free.is_empty() => {
                        let segment = SegmentId(free.swap_remove(draw(free.len() as u32) as usize));
                        table.open(segment, StreamId(0));
                        table.append(segment, PAGES);
                        (0..draw(8)).for_each(|_| table.invalidate(segment));
                        table.seal(segment);
                        index.sealed(segment, &table);
                        walk.list.push((segment, table.valid(segment)));
                    }
                    2 if walk.list.len() > 5 => {
                        let (segment, returned) = walk.pick();
                        assert_eq!(index.pick(&table), Some(segment), "{config:?}, pick {picks}");
                        walk.invalid += PAGES - table.valid(segment);
                        (picks, returns) = (picks + 1, returns + returned);
                        table.invalidate_all(segment);
                        table.erased(segment);
                        free.push(segment.0);
                    }
                    3 if walk.list.len() > 5 && draw(10) == 0 => {
                        let segment = walk.take(draw(walk.list.len() as u32) as usize);
                        index.remove(segment, &table);
                        table.invalidate_all(segment);
                        table.erased(segment);
                        free.push(segment.0);
                    }
                    _ if !walk.list.is_empty() => {
                        let at = draw(walk.list.len() as u32) as usize;
                        let (segment, valid) = &mut walk.list[at];
                        // Leaves many segments full, so that the hand must return.
                        if *valid > 1 && segment.0 % 3 == 0 {
                            *valid -= 1;
                            table.invalidate(*segment);
                            index.invalidated(*segment, &table);
                        }
                    }
                    _ => {}
                }
            }
            assert!(picks > 1_000 && returns > 10, "{config:?}: {picks} picks, {returns} returns");
        }
    }

    /// The rule: the hand passes over segments that are too full, keeps its place, and comes back to them
    /// with a higher bound. A new round has the first bound again.
    #[test]
    fn a_full_segment_gets_a_second_chance() {
        let mut table = SegmentTable::new(5, PAGES, 1);
        let config = TwoRFifoConfig { depth: Share::ONE, ..TwoRFifoConfig::default() };
        let mut index = TwoRFifo::start(&config, 0..5, PAGES);
        for (segment, valid) in [(0, 16), (1, 9), (2, 14), (3, 13), (4, 9)] {
            table.open(SegmentId(segment), StreamId(0));
            table.append(SegmentId(segment), valid);
            table.seal(SegmentId(segment));
            index.sealed(SegmentId(segment), &table);
        }
        // The first round takes 11 and 7 invalid pages, and 11 more: 70 % are 14 of 20 pages.
        let round = [1, 3, 4].map(|segment| Some(SegmentId(segment)));
        assert_eq!([(); 3].map(|()| index.pick(&table)), round);
        // The second round begins at 70 % and takes the segment of 14 valid pages below 75 %.
        assert_eq!(index.pick(&table), Some(SegmentId(2)));
        // The round goes on, and takes that of 16 valid pages below 85 %.
        assert_eq!((index.pick(&table), index.pick(&table)), (Some(SegmentId(0)), None));
    }
}
