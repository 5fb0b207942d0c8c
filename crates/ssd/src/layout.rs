//! The place of a physical page: the order in which consecutive pages of a segment are spread over the drive.
//!
//! A segment is one erase block of every plane of a unit of collection. Consecutive pages go to the planes of
//! one die first (so that they can be programmed together), then to the next channel of the unit, then to the
//! next die on the channels, then to the next row. Consecutive units are on consecutive channels.

use crate::SsdConfig;
use fulgurite_base::Ppn;
use fulgurite_ftl::{Divisor, SegmentId};

/// The place of a page: a die, and a row of pages that its planes can serve together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) die: u32,
    /// Index of the erase block over the whole drive: segment by segment.
    pub(crate) block: u32,
    /// Page inside the erase block.
    pub(crate) page: u32,
    /// Equal for two pages exactly if one multi-plane operation can serve both.
    pub(crate) row: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    segment: Divisor,
    /// Planes of a unit.
    planes: Divisor,
    /// Planes that operate together.
    die: Divisor,
    /// Segments of a unit.
    unit: Divisor,
    units: u32,
    /// The distance between the numbers of a unit's dies.
    stride: Divisor,
    /// Rows of a segment with one page of each of its blocks.
    rows: u32,
    channels: u32,
    pages_per_block: u32,
}

impl Layout {
    pub(crate) fn new(config: &SsdConfig) -> Layout {
        Layout {
            segment: Divisor::new(config.pages_per_segment()),
            planes: Divisor::new(config.planes_per_unit()),
            die: Divisor::new(config.row_planes()),
            unit: Divisor::new(config.segments().max(1)),
            units: config.units(),
            // If units are planes, several share a die, and each has one die.
            stride: Divisor::new(config.units().min(config.dies_in_all())),
            rows: config.planes_per_unit() / config.row_planes(),
            channels: config.channels,
            pages_per_block: config.pages,
        }
    }

    #[inline]
    pub(crate) fn place(&self, ppn: Ppn) -> Place {
        let (segment, offset) = self.segment.divide(ppn.0);
        let (page, lane) = self.planes.divide(offset);
        let (part, _plane) = self.die.divide(lane);
        Place {
            die: if self.units == 1 { part } else { self.die_of(self.unit.divide(segment).0, part) },
            block: segment * self.planes.divisor() + lane,
            page,
            // A row has a different number on every die, so equal rows mean equal dies too.
            row: (segment * self.pages_per_block + page) * self.rows + part,
        }
    }

    /// The page at this place: the inverse of [`Layout::place`].
    pub(crate) fn page_at(&self, block: u32, page: u32) -> Ppn {
        let (segment, lane) = self.planes.divide(block);
        Ppn(segment * self.segment.divisor() + page * self.planes.divisor() + lane)
    }

    /// The segment of an erase block.
    #[inline]
    pub(crate) fn segment_of_block(&self, block: u32) -> SegmentId {
        SegmentId(self.planes.divide(block).0)
    }

    /// The unit of an erase block.
    #[inline]
    pub(crate) fn unit_of_block(&self, block: u32) -> usize {
        match self.units {
            1 => 0,
            _ => self.unit.divide(self.planes.divide(block).0).0 as usize,
        }
    }

    /// The die with this number in a unit.
    #[inline]
    pub(crate) fn die_of(&self, unit: u32, part: u32) -> u32 {
        match self.units {
            1 => part,
            _ => self.stride.divide(unit).1 + part * self.stride.divisor(),
        }
    }

    /// The number of `die` in its unit.
    #[inline]
    pub(crate) fn part(&self, die: u32) -> u32 {
        self.stride.divide(die).0
    }

    /// Dies of a unit.
    pub(crate) fn dies_of_unit(&self) -> u32 {
        self.rows
    }

    /// Whether units share dies, because they are planes.
    #[inline]
    pub(crate) fn shares_dies(&self) -> bool {
        self.units > self.stride.divisor()
    }

    /// The first unit with a part of `die`; it is the only one, unless units share dies.
    #[inline]
    pub(crate) fn unit_of_die(&self, die: u32) -> usize {
        self.stride.divide(die).1 as usize
    }

    /// The units with a part of `die`: one, or the units that are its planes.
    pub(crate) fn units_of_die(&self, die: u32) -> impl Iterator<Item = usize> + use<> {
        let stride = self.stride.divisor();
        (self.unit_of_die(die)..self.units as usize).step_by(stride as usize)
    }

    #[inline]
    pub(crate) fn channel(&self, die: u32) -> usize {
        (die % self.channels) as usize
    }

    pub(crate) fn blocks_of_segment(&self, segment: u32) -> std::ops::Range<u32> {
        let planes = self.planes.divisor();
        segment * planes..(segment + 1) * planes
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
