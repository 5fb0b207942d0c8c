//! 2R-Greedy victim selection: the emptiest segments of one region, in rounds.
//!
//! "2R: Efficiently Isolating Cold Pages in Flash Storages" (Kang et al., PVLDB 13, 2020) as the program of
//! "SSD-iq: Uncovering the Hidden Side of SSD Performance" (Haas et al., PVLDB 18, 2025) has it. The *cold*
//! region has the segments that copies filled, the *normal* region has all others. A round takes the emptiest
//! segments of one region until their invalid pages fill a segment. It takes them from the region with the
//! emptiest segment, of equals from the cold one; but a region whose invalid pages do not fill a segment is
//! passed over.
//!
//! *Difference.* The program knows which blocks it has filled with copies. Here a segment is cold if it was
//! sealed between a pick and the next host write. A pick takes O(1), amortised. The placement is `2r`.

use super::greedy::Greedy;
use super::per_segment::PerSegment;
use super::policy::VictimPolicy;
use crate::{SegmentId, SegmentTable};
use fulgurite_base::NoOptions;
use std::ops::Range;

/// The sealed segments of a region.
#[derive(Clone, Debug)]
struct Region {
    emptiest: Greedy,
    /// The invalid pages of all segments.
    invalid: u64,
}

/// The regions, and the state of the round.
#[derive(Clone, Debug)]
pub(crate) struct TwoRGreedy {
    segment_pages: u32,
    /// The normal region and the cold region.
    regions: [Region; 2],
    region_of: PerSegment<u8>,
    /// The region of this round's victims.
    from: usize,
    /// The invalid pages of this round's victims.
    invalid: u32,
    /// The time of the last pick.
    picked_at: Option<u64>,
}

impl TwoRGreedy {
    pub(super) fn start(_: &NoOptions, segments: Range<u32>, segment_pages: u32) -> TwoRGreedy {
        let region =
            Region { emptiest: Greedy::start(&NoOptions, segments.clone(), segment_pages), invalid: 0 };
        TwoRGreedy {
            segment_pages,
            regions: [region.clone(), region],
            region_of: PerSegment::filled(segments, 0),
            from: 0,
            invalid: segment_pages,
            picked_at: None,
        }
    }

    /// Returns the region for the next round.
    fn choose(&mut self) -> usize {
        let fills = self.regions.each_ref().map(|region| region.invalid >= u64::from(self.segment_pages));
        match fills {
            [_, false] => 0,
            [false, true] => 1,
            [true, true] => {
                let [normal, cold] = &mut self.regions;
                usize::from(normal.emptiest.least() >= cold.emptiest.least())
            }
        }
    }

    fn forget(&mut self, segment: SegmentId, table: &SegmentTable) {
        let region = &mut self.regions[usize::from(self.region_of[segment])];
        region.invalid -= u64::from(self.segment_pages - table.valid(segment));
    }
}

impl VictimPolicy for TwoRGreedy {
    fn sealed(&mut self, segment: SegmentId, table: &SegmentTable) {
        let at = usize::from(self.picked_at == Some(table.now()));
        self.region_of[segment] = at as u8;
        self.regions[at].invalid += u64::from(self.segment_pages - table.valid(segment));
        self.regions[at].emptiest.sealed(segment, table);
    }

    #[inline]
    fn invalidated(&mut self, segment: SegmentId, table: &SegmentTable) {
        let region = &mut self.regions[usize::from(self.region_of[segment])];
        region.invalid += 1;
        region.emptiest.invalidated(segment, table);
    }

    fn pick(&mut self, table: &SegmentTable) -> Option<SegmentId> {
        if self.invalid >= self.segment_pages {
            self.invalid = 0;
            self.from = self.choose();
        }
        // Takes from the other region if this one has no segment left.
        let from = self.from;
        let picked = self.regions[from].emptiest.pick(table);
        let picked = picked.or_else(|| self.regions[1 - from].emptiest.pick(table))?;
        self.forget(picked, table);
        self.invalid += self.segment_pages - table.valid(picked);
        self.picked_at = Some(table.now());
        Some(picked)
    }

    fn remove(&mut self, segment: SegmentId, table: &SegmentTable) {
        self.forget(segment, table);
        self.regions[usize::from(self.region_of[segment])].emptiest.remove(segment, table);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_base::{Prng, StreamId};

    const PAGES: u32 = 20;
    const SEGMENTS: u32 = 50;

    /// Fills and seals a segment with so many valid pages.
    fn seal(index: &mut TwoRGreedy, table: &mut SegmentTable, segment: SegmentId, valid: u32) {
        table.open(segment, StreamId(0));
        table.append(segment, valid);
        table.skip(segment, PAGES - valid);
        table.seal(segment);
        index.sealed(segment, table);
    }

    fn erase(table: &mut SegmentTable, segment: SegmentId) {
        table.invalidate_all(segment);
        table.erased(segment);
    }

    /// The rule: a round takes the emptiest segments of one region. The region is the one with the emptiest
    /// segment, of equals the cold one, unless its invalid pages do not fill a segment. A segment is cold if
    /// it was sealed between a pick and the next host write. Every pick is compared with a scan.
    #[test]
    fn rounds_take_the_emptiest_of_a_region() {
        let mut prng = Prng::new(5, "2r-greedy");
        let mut draw = |below: u32| prng.below(u64::from(below)) as u32;
        let mut table = SegmentTable::new(SEGMENTS, PAGES, 1);
        let mut index = TwoRGreedy::start(&NoOptions, 0..SEGMENTS, PAGES);
        let mut free: Vec<u32> = (0..SEGMENTS).collect();
        // The sealed segments, each with whether it is cold.
        let mut sealed: Vec<(SegmentId, bool)> = Vec::new();
        let (mut after_pick, mut invalid, mut from_cold) = (false, PAGES, false);
        let mut rounds = [0; 2];
        for _ in 0..40_000 {
            match draw(10) {
                0 | 1 if !free.is_empty() => {
                    let segment = SegmentId(free.swap_remove(draw(free.len() as u32) as usize));
                    seal(&mut index, &mut table, segment, PAGES - draw(4));
                    sealed.push((segment, after_pick));
                }
                2 => {
                    table.tick();
                    after_pick = false;
                }
                3 if sealed.len() > 20 => {
                    let region = |cold| sealed.iter().filter(move |segment| segment.1 == cold);
                    let least = |cold| region(cold).map(|(segment, _)| table.valid(*segment)).min();
                    let fills = |cold| {
                        region(cold).map(|(segment, _)| PAGES - table.valid(*segment)).sum::<u32>() >= PAGES
                    };
                    if invalid >= PAGES {
                        invalid = 0;
                        from_cold = fills(true) && (!fills(false) || least(true) <= least(false));
                        rounds[usize::from(from_cold)] += 1;
                    }
                    let emptiest = least(from_cold).or(least(!from_cold)).unwrap();
                    let is_empty = least(from_cold).is_none();
                    let picked = index.pick(&table).unwrap();
                    assert_eq!(table.valid(picked), emptiest);
                    let at = sealed.iter().position(|segment| segment.0 == picked).unwrap();
                    assert_eq!(sealed.swap_remove(at).1, from_cold != is_empty);
                    invalid += PAGES - emptiest;
                    after_pick = true;
                    erase(&mut table, picked);
                    free.push(picked.0);
                }
                4 if sealed.len() > 20 && draw(10) == 0 => {
                    let (segment, _) = sealed.swap_remove(draw(sealed.len() as u32) as usize);
                    index.remove(segment, &table);
                    erase(&mut table, segment);
                    free.push(segment.0);
                }
                _ if !sealed.is_empty() => {
                    let (segment, _) = sealed[draw(sealed.len() as u32) as usize];
                    if table.valid(segment) > 1 {
                        table.invalidate(segment);
                        index.invalidated(segment, &table);
                    }
                }
                _ => {}
            }
        }
        assert!(rounds[0] > 100 && rounds[1] > 100, "{rounds:?}");
    }

    /// The rule: the emptiest segment of all is passed over if its region cannot fill a segment.
    #[test]
    fn a_region_with_few_invalid_pages_is_passed_over() {
        let mut table = SegmentTable::new(SEGMENTS, PAGES, 1);
        let mut index = TwoRGreedy::start(&NoOptions, 0..SEGMENTS, PAGES);
        seal(&mut index, &mut table, SegmentId(9), 0);
        assert_eq!(index.pick(&table), Some(SegmentId(9)));
        // The cold region has 19 invalid pages, the normal region 20 in two segments.
        seal(&mut index, &mut table, SegmentId(1), 1);
        table.tick();
        seal(&mut index, &mut table, SegmentId(2), 10);
        seal(&mut index, &mut table, SegmentId(3), 10);
        assert_eq!(index.pick(&table), Some(SegmentId(3)));
        assert_eq!(index.pick(&table), Some(SegmentId(2)));
        // The cold region is the only one left.
        assert_eq!((index.pick(&table), index.pick(&table)), (Some(SegmentId(1)), None));
    }
}
