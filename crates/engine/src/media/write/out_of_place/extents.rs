//! Extents: the blocks that one command reads or writes, and the units in these blocks.
//!
//! Units may be smaller than a block. A command then covers all blocks that contain requested units. A write
//! fills the other units in these blocks with arbitrary data that is never read. A read ignores the other
//! units.

use crate::bytes;
use crate::format::layout::Layout;
use fulgurite_device::{Arena, Buffer};

/// A sequence of units that are contiguous both on the drive and in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub address: u32,
    /// The index of the first unit in the caller's memory.
    pub at: usize,
    pub units: u32,
}

/// A sequence of blocks that are contiguous on the drive, and the requested units in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// The address of the first block, in units.
    pub address: u32,
    /// The number of units in the blocks.
    pub units: u32,
    /// The requested units, in the order of their addresses.
    pub parts: Vec<Part>,
}

impl Extent {
    /// Returns the only part if it covers the blocks completely, so that the drive can access the caller's
    /// memory directly.
    pub(super) fn whole(&self) -> Option<&Part> {
        self.parts.first().filter(|part| part.units == self.units)
    }

    /// Returns the bytes of the blocks for a write: a part of `bytes` if that covers the blocks completely,
    /// else a copy.
    pub(super) fn gather(&self, bytes: &Buffer, unit_bytes: usize) -> Buffer {
        self.memory(bytes, unit_bytes, |blocks, part| bytes::look(part, |part| bytes::fill(blocks, part)))
    }

    /// Returns the buffer for a read of the blocks: a part of `bytes` if the blocks are requested completely,
    /// else a new buffer for [`Extent::scatter`].
    pub(super) fn target(&self, bytes: &Buffer, unit_bytes: usize) -> Buffer {
        self.memory(bytes, unit_bytes, |_, _| ())
    }

    /// Copies the requested units from blocks that were read to `bytes`.
    pub(super) fn scatter(&self, blocks: &Buffer, bytes: &Buffer, unit_bytes: usize) {
        if self.whole().is_none() {
            let copy = |part: &Part| {
                let from = self.part(blocks, part, unit_bytes);
                bytes::look(&from, |from| bytes::fill(&in_memory(bytes, part, unit_bytes), from));
            };
            self.parts.iter().for_each(copy);
        }
    }

    /// Returns the bytes of a part within the blocks.
    pub(super) fn part(&self, blocks: &Buffer, part: &Part, unit_bytes: usize) -> Buffer {
        blocks.part((part.address - self.address) as usize * unit_bytes, part.units as usize * unit_bytes)
    }

    fn memory(&self, bytes: &Buffer, unit_bytes: usize, each: impl Fn(&Buffer, &Buffer)) -> Buffer {
        if let Some(part) = self.whole() {
            return in_memory(bytes, part, unit_bytes);
        }
        let len = self.units as usize * unit_bytes;
        let blocks = Arena::new(len).buffer(0, len);
        for part in &self.parts {
            each(&self.part(&blocks, part, unit_bytes), &in_memory(bytes, part, unit_bytes));
        }
        blocks
    }
}

/// Returns the bytes of a part within the caller's memory.
fn in_memory(bytes: &Buffer, part: &Part, unit_bytes: usize) -> Buffer {
    bytes.part(part.at * unit_bytes, part.units as usize * unit_bytes)
}

/// Returns the extents for `units`, which are pairs of an index in memory and an address. Each extent has at
/// most `most` units, and none crosses the end of a segment.
pub(super) fn extents(units: impl Iterator<Item = (usize, u32)>, layout: &Layout, most: u32) -> Vec<Extent> {
    let block = layout.block_units();
    let mut units: Vec<(u32, usize)> = units.map(|(at, address)| (address, at)).collect();
    units.sort_unstable();
    let mut extents: Vec<Extent> = Vec::new();
    for (address, at) in units {
        let first = address / block * block;
        let part = Part { address, at, units: 1 };
        let Some(extent) = extents.last_mut() else {
            extents.push(Extent { address: first, units: block, parts: vec![part] });
            continue;
        };
        let last = extent.parts.last_mut().expect("a run has parts");
        let goes_on = last.address + last.units == address && last.at + last.units as usize == at;
        let is_next = extent.address + extent.units == first
            && extent.units + block <= most
            && !first.is_multiple_of(layout.shape.segment_units);
        // If a block is a single unit, an extent must be contiguous in memory too, so that it needs no copy.
        // Larger blocks are copied anyway.
        let joins = first < extent.address + extent.units || is_next && (goes_on || block > 1);
        if !joins {
            extents.push(Extent { address: first, units: block, parts: vec![part] });
            continue;
        }
        if goes_on {
            last.units += 1;
        } else {
            extent.parts.push(part);
        }
        extent.units = first + block - extent.address;
    }
    extents
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::layout::Segmentation;

    /// Creates a layout with blocks of `block` units of 4 bytes, and segments of 16 units.
    fn layout(block: u32) -> Layout {
        let shape = Segmentation { segments: 4, segment_units: 16, unit_bytes: 4, commit: 0 };
        Layout::of_shape(shape, 4 * block)
    }

    fn found(units: &[(usize, u32)], block: u32, most: u32) -> Vec<(u32, u32, usize)> {
        let extents = extents(units.iter().copied(), &layout(block), most);
        extents.iter().map(|extent| (extent.address, extent.units, extent.parts.len())).collect()
    }

    /// An extent consists of whole blocks. Units belong to one extent if they share a block or if their
    /// blocks are consecutive, up to the limit and the segment's end. If blocks are single units, these must
    /// be contiguous in memory too.
    #[test]
    fn contiguous_units_are_one_command() {
        assert_eq!(found(&[(0, 3), (1, 4), (2, 5)], 1, 64), [(3, 3, 1)]);
        assert_eq!(found(&[(0, 3), (2, 4)], 1, 64), [(3, 1, 1), (4, 1, 1)]);
        assert_eq!(found(&[(0, 14), (1, 15), (2, 16)], 1, 64), [(14, 2, 1), (16, 1, 1)]);
        assert_eq!(found(&[(0, 3), (1, 4), (2, 5)], 1, 2), [(3, 2, 1), (5, 1, 1)]);
        // Each block has four units in these cases.
        assert_eq!(found(&[(0, 5)], 4, 64), [(4, 4, 1)]);
        assert_eq!(found(&[(0, 5), (1, 6), (2, 8)], 4, 64), [(4, 8, 2)]);
        assert_eq!(found(&[(0, 8), (1, 5)], 4, 64), [(4, 8, 2)], "in the order of places");
        assert_eq!(found(&[(0, 1), (1, 9)], 4, 64), [(0, 4, 1), (8, 4, 1)]);
        assert_eq!(found(&[(0, 3), (1, 4)], 4, 4), [(0, 4, 1), (4, 4, 1)]);
    }

    /// Scatter, applied to gathered bytes, writes the same bytes to the same part of memory.
    #[test]
    fn scatter_reverses_gather() {
        let bytes = Arena::new(24).buffer(0, 24);
        bytes::fill(&bytes, &(0..24).collect::<Vec<u8>>());
        let units = [(0, 9), (1, 2), (2, 3), (5, 6)];
        let extents = extents(units.into_iter(), &layout(4), 64);
        assert_eq!(extents.len(), 1);
        let blocks = extents[0].gather(&bytes, 4);
        let expected: Vec<u8> = (0..12)
            .flat_map(|address| match units.iter().find(|(_, at)| *at == address) {
                Some((at, _)) => [0, 1, 2, 3].map(|byte| *at as u8 * 4 + byte),
                None => [0; 4],
            })
            .collect();
        bytes::look(&blocks, |blocks| assert_eq!(blocks, expected));
        let back = Arena::new(24).buffer(0, 24);
        extents[0].scatter(&blocks, &back, 4);
        let wanted = |at: usize| units.iter().any(|(unit, _)| *unit == at);
        bytes::look(&back, |back| {
            for (at, unit) in back.chunks(4).enumerate() {
                let before: Vec<u8> = (at * 4..at * 4 + 4).map(|byte| byte as u8).collect();
                assert_eq!(unit, if wanted(at) { &before[..] } else { &[0; 4] }, "unit {at}");
            }
        });
    }

    #[test]
    fn whole_blocks_are_not_copied() {
        let bytes = Arena::new(64).buffer(0, 64);
        let whole = extents((0..8).map(|unit| (unit + 2, unit as u32 + 4)), &layout(4), 64);
        assert_eq!(whole[0].gather(&bytes, 4).as_ptr(), bytes.part(8, 32).as_ptr());
        let part = extents((0..7).map(|unit| (unit, unit as u32 + 4)), &layout(4), 64);
        assert_ne!(part[0].gather(&bytes, 4).as_ptr(), bytes.as_ptr());
    }
}
