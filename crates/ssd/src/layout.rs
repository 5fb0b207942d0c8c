//! The layout of the flash: the order in which consecutive pages of a segment are spread over the dies,
//! planes and channels.
//!
//! A segment is one erase block of every plane of a unit of collection. A *row* has the pages that one program
//! of a die writes: those of a flash page in each plane, and of all flash pages of a word line if they are
//! programmed together. Consecutive pages fill a flash page, then the planes of the die, then the word line,
//! then the row of the next channel of the unit, then of the next die on the channels, then the next row.
//! Consecutive units are on consecutive channels.

use crate::SsdConfig;
use fulgurite_base::Ppn;
use fulgurite_ftl::{Divisor, SegmentId};

/// The place of a physical page: a die, and a row of pages that the die can serve together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) die: u32,
    /// The index over the whole drive, segment by segment, of the erase block. If rows have several pages of a
    /// plane, each position in the rows counts as an erase block of its own.
    pub(crate) block: u32,
    /// The index of the row inside the erase block.
    pub(crate) page: u32,
    /// The number of the row. It is equal for two pages exactly if one operation can serve both.
    pub(crate) row: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    segment: Divisor,
    /// The number of pages that all dies of a unit program together.
    stripe: Divisor,
    /// The number of pages that one die programs together.
    row: Divisor,
    /// The number of segments of a unit.
    unit: Divisor,
    units: u32,
    /// The difference between the numbers of two consecutive dies of a unit.
    stride: Divisor,
    /// The number of dies of a unit.
    dies: u32,
    channels: Divisor,
    /// The number of rows of an erase block.
    rows: u32,
}

impl Layout {
    pub(crate) fn new(config: &SsdConfig) -> Layout {
        Layout {
            segment: Divisor::new(config.pages_per_segment()),
            stripe: Divisor::new(config.stripe_pages()),
            row: Divisor::new(config.row_pages()),
            unit: Divisor::new(config.segments().max(1)),
            units: config.units(),
            // If units are planes, several units share a die, and each unit has one die.
            stride: Divisor::new(config.units().min(config.dies_in_all())),
            dies: config.stripe_pages() / config.row_pages(),
            channels: Divisor::new(config.channels),
            rows: config.rows(),
        }
    }

    #[inline]
    pub(crate) fn place(&self, ppn: Ppn) -> Place {
        let (segment, offset) = self.segment.divide(ppn.0);
        let (row, lane) = self.stripe.divide(offset);
        let (part, _) = self.row.divide(lane);
        Place {
            die: if self.units == 1 { part } else { self.die_of(self.unit.divide(segment).0, part) },
            block: segment * self.stripe.divisor() + lane,
            page: row,
            // A row has a different number on every die, so equal row numbers mean equal dies too.
            row: (segment * self.rows + row) * self.dies + part,
        }
    }

    /// Returns the page at this place; this is the inverse of [`Layout::place`].
    pub(crate) fn page_at(&self, block: u32, page: u32) -> Ppn {
        let (segment, lane) = self.stripe.divide(block);
        Ppn(segment * self.segment.divisor() + page * self.stripe.divisor() + lane)
    }

    /// Returns the segment of an erase block.
    #[inline]
    pub(crate) fn segment_of_block(&self, block: u32) -> SegmentId {
        SegmentId(self.stripe.divide(block).0)
    }

    /// Returns the unit of an erase block.
    #[inline]
    pub(crate) fn unit_of_block(&self, block: u32) -> usize {
        match self.units {
            1 => 0,
            _ => self.unit.divide(self.stripe.divide(block).0).0 as usize,
        }
    }

    /// Returns the number of pages before an erase block's page in its row.
    #[inline]
    pub(crate) fn in_row(&self, block: u32) -> u32 {
        self.row.divide(block).1
    }

    /// Returns the die with the number `part` in a unit.
    #[inline]
    pub(crate) fn die_of(&self, unit: u32, part: u32) -> u32 {
        match self.units {
            1 => part,
            _ => self.stride.divide(unit).1 + part * self.stride.divisor(),
        }
    }

    /// Returns the number of `die` in its unit.
    #[inline]
    pub(crate) fn part(&self, die: u32) -> u32 {
        self.stride.divide(die).0
    }

    /// Returns the number of dies of a unit.
    pub(crate) fn dies_of_unit(&self) -> u32 {
        self.dies
    }

    /// Returns whether units share dies, because each unit is a plane.
    #[inline]
    pub(crate) fn shares_dies(&self) -> bool {
        self.units > self.stride.divisor()
    }

    /// Returns the first unit with a part of `die`. It is the only such unit, except where units share dies.
    #[inline]
    pub(crate) fn unit_of_die(&self, die: u32) -> usize {
        self.stride.divide(die).1 as usize
    }

    /// Returns the units with a part of `die`: one unit, or the units that are the die's planes.
    pub(crate) fn units_of_die(&self, die: u32) -> impl Iterator<Item = usize> + use<> {
        let stride = self.stride.divisor();
        (self.unit_of_die(die)..self.units as usize).step_by(stride as usize)
    }

    #[inline]
    pub(crate) fn channel(&self, die: u32) -> usize {
        self.channels.divide(die).1 as usize
    }

    pub(crate) fn blocks_of_segment(&self, segment: u32) -> std::ops::Range<u32> {
        let stripe = self.stripe.divisor();
        segment * stripe..(segment + 1) * stripe
    }

    pub(crate) fn pages_of_segment(&self, segment: u32) -> std::ops::Range<u32> {
        let pages = self.segment.divisor();
        segment * pages..(segment + 1) * pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;

    #[test]
    fn consecutive_pages_visit_planes_then_channels_then_dies() {
        let config = SsdConfig {
            channels: 2,
            chips: 1,
            dies: 2,
            planes: 2,
            blocks: 4,
            pages: 3,
            ..preset::reference_e()
        };
        let layout = Layout::new(&config);
        let dies: Vec<u32> = (0..9).map(|ppn| layout.place(Ppn(ppn)).die).collect();
        assert_eq!(dies, [0, 0, 1, 1, 2, 2, 3, 3, 0]);
        assert_eq!([0, 1, 2, 3].map(|die| layout.channel(die)), [0, 1, 0, 1]);
        assert_eq!(layout.place(Ppn(0)).row, layout.place(Ppn(1)).row);
        assert_ne!(layout.place(Ppn(0)).row, layout.place(Ppn(8)).row);
        // Every erase block of a segment is visited in page order.
        let mut next = [0; 4 * 8];
        for ppn in 0..4 * 24 {
            let place = layout.place(Ppn(ppn));
            assert_eq!(place.page, next[place.block as usize]);
            assert_eq!(layout.page_at(place.block, place.page), Ppn(ppn));
            next[place.block as usize] += 1;
        }
        assert!(next.iter().all(|&pages| pages == 3));
        assert_eq!((layout.blocks_of_segment(1), layout.pages_of_segment(1)), (8..16, 24..48));
    }
}
