//! The layout of the drive, and the superblock, which describes the layout.
//!
//! Superblock A begins at byte 0, superblock B at byte 65,536. The areas from byte 131,072 on are counted in
//! pages of the store: first the log, then the double-write area, then groups of data pages. The first page
//! of each group is the map of used pages of the group.
//!
//! Superblocks are written to A and B alternately, so one of the two is always intact. The one with the
//! higher generation is valid. Its bytes are as follows, with little-endian numbers:
//!
//! | bytes | field |
//! |---|---|
//! | 0–16 | `fulgurite store\n` |
//! | 16–20 | CRC-32C of the 128 bytes, with zeros here |
//! | 20–24 | format: [`FORMAT`], or an older one |
//! | 24–28 | bytes in a page |
//! | 28–32 | bytes in a block of the log |
//! | 32–40 | generation |
//! | 40–48 | pages of the store |
//! | 48–56 | pages of the log |
//! | 56–64 | pages of the double-write area |
//! | 64–72 | redo point: recovery begins at this LSN |
//! | 72–80 | end of the log when this was written; everything before it is durable |
//! | 80–84 | CRC of the log's last block before that end |
//! | 84 | 1 if the store was closed and the log ends there |
//! | 85 | 1 if pages are out of place |
//! | 86 | out of place: the base-2 logarithm of the unit's bytes; before format 4: 0, a unit is a block of the log |
//! | 88–96 | the next number of a large value |
//! | 96–112 | the store's identity |
//! | 112–116 | out of place: segments |
//! | 116–120 | out of place: units in a segment |
//! | 120–128 | out of place: the last commit of the map when this was written |
//!
//! If pages are out of place, data pages have the same numbers as in place, and the map of pages translates
//! the numbers to addresses. The double-write area is then followed by two halves of the map's area and by
//! the segments. The map's area is counted in *blocks*, which have the size of a block of the log. A half of
//! the map's area consists of a head, one block of addresses for every [`addresses_in_a_block`] units of
//! pages, the journal, and a second copy of the head. Segments are counted in *units* and begin at a multiple
//! of their own length. A block has one unit or several.

use crate::format::page::{Salt, array, get_u32, get_u64, set};
use crate::{Error, Lsn};
use fulgurite_base::PageId;
use fulgurite_device::Caps;

/// The format that this version writes into the superblock.
pub(crate) const FORMAT: u32 = 8;
/// The last format without deltas, parts of transactions of several shards, and index entries with runs of zeros.
const WITHOUT_DELTAS: u32 = 7;
/// The last format whose catalogue has no entries of dropped tables.
const WITHOUT_DROPS: u32 = 6;
/// The only format in which a store may have sorted runs. A store that has sorted runs is refused.
pub(crate) const WITH_RUNS: u32 = 5;
/// The last format before the one with sorted runs.
const BEFORE_RUNS: u32 = 4;
/// The last format in which a unit is always a block of the log.
const WITHOUT_UNITS: u32 = 3;
/// The last format whose log does not record which pages were written (kind 7 of a structure change).
const WITHOUT_STORED: u32 = 2;
/// The last format in which the checksum of a record or page does not cover its address. Pages in place are
/// read alike in all formats. Copies in the double-write area may be bound to their addresses or not.
const UNBOUND: u32 = 1;
const MAGIC: &[u8; 16] = b"fulgurite store\n";
/// The byte addresses of the two superblocks. The distance between them is the largest page size, so that
/// both are found before the page size is known.
pub const PLACES: [u64; 2] = [0, 65_536];

/// Whether these bytes, read from one of the [`PLACES`], belong to a store of any format. Commands use this
/// function to avoid overwriting a store by mistake.
pub fn is_store(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}
/// The sizes of a store, which its superblock records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreShape {
    /// The size of a page in bytes.
    pub page_bytes: u32,
    /// The size of the log area in bytes.
    pub log_bytes: u64,
    /// The number of bytes of the drive that the store needs.
    pub bytes: u64,
    /// Whether pages are out of place.
    pub is_out_of_place: bool,
    /// The least memory in bytes that the map of pages out of place requires; 0 if pages are in place.
    pub map_memory: u64,
}

impl StoreShape {
    /// Reads the sizes from a superblock, which is at one of the [`PLACES`]. `None` if the bytes are no superblock that
    /// this version reads.
    pub fn read(bytes: &[u8]) -> Option<StoreShape> {
        let superblock = Superblock::decode(bytes.first_chunk::<SUPERBLOCK>()?).ok()?;
        Some(StoreShape {
            page_bytes: superblock.page_bytes,
            log_bytes: superblock.log_pages * u64::from(superblock.page_bytes),
            bytes: superblock.bytes(),
            is_out_of_place: superblock.out_of_place.is_some(),
            map_memory: superblock.map_memory(),
        })
    }
}

/// The byte address at which the log begins.
pub(crate) const HEAD: u64 = 131_072;
pub(crate) const SUPERBLOCK: usize = 128;
/// Returns the number of pages of the double-write area of a store with so many pages. Two batches of 64
/// pages allow one batch to be written while the other is flushed. A large store has room for four batches,
/// because with two, pages are written more slowly than four threads change them.
pub(crate) fn double_write_pages(pages: u64) -> u64 {
    if pages < 1 << 16 { 128 } else { 256 }
}

/// Returns the size in bytes of a block of the log, and of a superblock with its padding. It is at least the
/// page size of the drive, because the drive writes no less.
pub(crate) fn block_bytes(caps: &Caps) -> u32 {
    caps.page_bytes.max(4096)
}

/// A limit in bytes above the size of every drive and log.
const MOST_BYTES: u64 = 1 << 60;

/// The size of the header of a block of the map, in bytes.
pub(crate) const BLOCK_HEADER: usize = 40;
/// The smallest unit in bytes, because this is the smallest write that a power cut does not tear.
pub(crate) const LEAST_UNIT: u32 = 512;
/// The fewest blocks in the journal of the map.
const LEAST_JOURNAL: u64 = 16;
/// The fields of the superblock that describe the segments for pages out of place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segmentation {
    /// The number of segments.
    pub segments: u32,
    /// The number of units in a segment; a power of two.
    pub segment_units: u32,
    /// The size of a unit in bytes: a power of two, at most the size of a block.
    pub unit_bytes: u32,
    /// The number of the last commit of the map when the superblock was written.
    pub commit: u64,
}

/// Returns the number of addresses in a block of the map.
pub(crate) fn addresses_in_a_block(block_bytes: u32) -> u64 {
    (u64::from(block_bytes) - BLOCK_HEADER as u64) / 4
}

/// Returns the number of changes in a block of the map's journal.
pub(crate) fn changes_in_a_block(block_bytes: u32) -> u64 {
    (u64::from(block_bytes) - BLOCK_HEADER as u64) / 8
}

/// The addresses and sizes of the areas of a store with pages out of place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The size of a block in bytes. Blocks are the granularity of writes to the log and the map.
    pub block_bytes: u32,
    pub unit_bytes: u32,
    pub page_units: u32,
    /// The number of units of all data pages.
    pub units: u64,
    /// The number of the first data page.
    pub data: PageId,
    /// The number of the first block of the map's area, counted from the start of the drive.
    pub map: u64,
    /// The number of blocks of a snapshot of the map, which has the addresses of all units.
    pub snapshot: u64,
    /// The number of blocks of the journal in each half of the map's area.
    pub journal: u64,
    /// The number of the first unit of the first segment, counted from the start of the drive.
    pub first: u64,
    /// The number and the size of the segments.
    pub shape: Segmentation,
}

impl Layout {
    /// Creates a layout whose segments start at address 0, for tests that use no other area.
    #[cfg(test)]
    pub(crate) fn of_shape(shape: Segmentation, block_bytes: u32) -> Layout {
        let (unit_bytes, data) = (shape.unit_bytes, PageId(0));
        Layout {
            block_bytes,
            unit_bytes,
            page_units: 1,
            units: 0,
            data,
            map: 0,
            snapshot: 0,
            journal: 0,
            first: 0,
            shape,
        }
    }

    /// Calculates the layout for a superblock.
    pub(crate) fn new(superblock: &Superblock, shape: Segmentation) -> Layout {
        let Superblock { page_bytes, block_bytes, pages, .. } = *superblock;
        // Sizes are clamped, because invalid ones must not cause an overflow before [`Layout::fault`] refuses
        // them.
        let unit_bytes = shape.unit_bytes.max(LEAST_UNIT);
        let page_units = page_bytes / unit_bytes;
        let data = superblock.data_start();
        let units = pages.saturating_sub(data.0) * u64::from(page_units);
        let map = data.0 * u64::from(page_bytes) / u64::from(block_bytes.max(1));
        let snapshot = units.div_ceil(addresses_in_a_block(block_bytes));
        let journal = snapshot.max(LEAST_JOURNAL);
        let area = 2 * (2 + snapshot + journal);
        let block_units = u64::from(block_bytes / unit_bytes);
        let first = ((map + area) * block_units).next_multiple_of(u64::from(shape.segment_units.max(1)));
        Layout { block_bytes, unit_bytes, page_units, units, data, map, snapshot, journal, first, shape }
    }

    /// Returns the number of units in a block.
    pub(crate) fn block_units(&self) -> u32 {
        self.block_bytes / self.unit_bytes
    }

    /// Returns the byte address of a unit. Units are counted from the first segment.
    pub(crate) fn byte(&self, address: u32) -> u64 {
        (self.first + u64::from(address)) * u64::from(self.unit_bytes)
    }

    /// Returns the index of the first unit of a data page, or `None` if the page is before the data pages.
    pub(crate) fn first_unit(&self, page: PageId) -> Option<u64> {
        Some(page.0.checked_sub(self.data.0)? * u64::from(self.page_units))
    }

    /// Returns the number of units of all segments.
    pub(crate) fn physical(&self) -> u64 {
        u64::from(self.shape.segments) * u64::from(self.shape.segment_units)
    }

    /// Returns the byte address of the end of the last segment.
    pub(crate) fn end(&self) -> u64 {
        (self.first + self.physical()) * u64::from(self.unit_bytes)
    }

    /// Returns the number of blocks of one half of the map's area.
    pub(crate) fn half(&self) -> u64 {
        2 + self.snapshot + self.journal
    }

    /// Returns the first fault of the layout, or `None` if it is valid.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let Segmentation { segments, segment_units, unit_bytes, .. } = self.shape;
        let is_sound = unit_bytes.is_power_of_two()
            && (LEAST_UNIT..=self.block_bytes).contains(&unit_bytes)
            && self.page_units.is_power_of_two()
            && segment_units.is_power_of_two()
            && segment_units >= self.page_units.max(self.block_units())
            && segments > 0
            && self.physical() < u64::from(u32::MAX)
            && self.units < self.physical();
        (!is_sound).then_some("the superblock's segments are invalid")
    }
}

/// Returns the memory in bytes for the maps of a layout.
pub(crate) fn map_bytes(layout: &Layout) -> u64 {
    // The store and the translation layer each have 4 bytes for each unit of pages. In addition, both
    // together have 4⅛ bytes for each unit of the segments.
    8 * layout.units + 4 * layout.physical() + layout.physical() / 8 + 48 * u64::from(layout.shape.segments)
}

/// The memory in bytes for what a store that makes deltas knows about the leaf in a page.
pub(crate) const LEAF_BYTES: u64 = 16;

/// Returns the memory in bytes for what a store that makes deltas knows about leaves.
pub(crate) fn leaf_table_bytes(layout: &Layout) -> u64 {
    layout.units / u64::from(layout.page_units) * LEAF_BYTES
}

/// The contents of a superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    /// The format of the store. It is the format of this version, or an older one that this version can read.
    pub format: u32,
    /// The number of superblocks that were written to this store.
    pub generation: u64,
    pub page_bytes: u32,
    /// The size of a block of the log in bytes.
    pub block_bytes: u32,
    pub pages: u64,
    pub log_pages: u64,
    pub double_write_pages: u64,
    /// The redo point: the LSN at which recovery begins.
    pub redo: Lsn,
    /// The end of the log when the superblock was written. The log is durable up to there.
    pub log_end: Lsn,
    /// The CRC of the last block of the log before `log_end`.
    pub log_crc: u32,
    /// Whether the store was closed, and nothing was written since then.
    pub clean: bool,
    /// The number that the next large value gets.
    pub next_large: u64,
    /// A number that distinguishes this store from others, and from earlier stores on the same drive.
    pub identity: u128,
    /// The segments of a store with pages out of place; `None` if pages are in place.
    pub out_of_place: Option<Segmentation>,
}

impl Superblock {
    /// Returns the superblock for a store that was opened, which is not clean. The superblock gets the
    /// current format, unless the store may have sorted runs. A store with sorted runs is refused, and the
    /// version that made it must still be able to open it.
    pub(crate) fn opened(self) -> Superblock {
        let format = if self.format == WITH_RUNS { WITH_RUNS } else { FORMAT };
        Superblock { format, generation: self.generation + 1, clean: false, ..self }
    }

    pub(crate) fn encode(&self) -> [u8; SUPERBLOCK] {
        let mut bytes = [0; SUPERBLOCK];
        set(&mut bytes, 0, MAGIC);
        set(&mut bytes, 20, &self.format.to_le_bytes());
        set(&mut bytes, 24, &self.page_bytes.to_le_bytes());
        set(&mut bytes, 28, &self.block_bytes.to_le_bytes());
        let numbers = [
            self.generation,
            self.pages,
            self.log_pages,
            self.double_write_pages,
            self.redo.0,
            self.log_end.0,
        ];
        for (at, number) in (32..).step_by(8).zip(numbers) {
            set(&mut bytes, at, &number.to_le_bytes());
        }
        set(&mut bytes, 80, &self.log_crc.to_le_bytes());
        bytes[84] = u8::from(self.clean);
        if let Some(Segmentation { segments, segment_units, unit_bytes, commit }) = self.out_of_place {
            bytes[85] = 1;
            bytes[86] = unit_bytes.trailing_zeros() as u8;
            set(&mut bytes, 112, &segments.to_le_bytes());
            set(&mut bytes, 116, &segment_units.to_le_bytes());
            set(&mut bytes, 120, &commit.to_le_bytes());
        }
        set(&mut bytes, 88, &self.next_large.to_le_bytes());
        set(&mut bytes, 96, &self.identity.to_le_bytes());
        let crc = crc32c::crc32c(&bytes);
        set(&mut bytes, 16, &crc.to_le_bytes());
        bytes
    }

    /// Decodes the superblock at the beginning of a page. Fails for bytes that are no superblock, damaged
    /// ones and unknown formats.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Superblock, Error> {
        let mut copy: [u8; SUPERBLOCK] = array(bytes, 0);
        if copy[..16] != *MAGIC {
            return Err(Error::NotAStore);
        }
        let crc = get_u32(&copy, 16);
        set(&mut copy, 16, &[0; 4]);
        if crc != crc32c::crc32c(&copy) {
            return Err(Error::corrupt(PageId(0), "the superblock's checksum is wrong"));
        }
        let format = get_u32(&copy, 20);
        let is_out_of_place = copy[85] == 1;
        let is_known =
            [FORMAT, WITHOUT_DELTAS, WITHOUT_DROPS, WITH_RUNS, BEFORE_RUNS, WITHOUT_UNITS, WITHOUT_STORED];
        let is_known = is_known.contains(&format);
        if !is_known && (format != UNBOUND || is_out_of_place) {
            return Err(Error::Version { found: format, known: FORMAT });
        }
        let block_bytes = get_u32(&copy, 28);
        let unit_bytes = if format <= WITHOUT_UNITS {
            block_bytes
        } else {
            1u32.checked_shl(copy[86].into()).unwrap_or(0)
        };
        let superblock = Superblock {
            format,
            page_bytes: get_u32(&copy, 24),
            block_bytes,
            generation: get_u64(&copy, 32),
            pages: get_u64(&copy, 40),
            log_pages: get_u64(&copy, 48),
            double_write_pages: get_u64(&copy, 56),
            redo: Lsn(get_u64(&copy, 64)),
            log_end: Lsn(get_u64(&copy, 72)),
            log_crc: get_u32(&copy, 80),
            clean: copy[84] == 1,
            next_large: get_u64(&copy, 88),
            identity: u128::from_le_bytes(array(&copy, 96)),
            out_of_place: is_out_of_place.then(|| Segmentation {
                segments: get_u32(&copy, 112),
                segment_units: get_u32(&copy, 116),
                unit_bytes,
                commit: get_u64(&copy, 120),
            }),
        };
        match superblock.fault() {
            Some(what) => Err(Error::corrupt(PageId(0), what)),
            None => Ok(superblock),
        }
    }

    /// Returns the first fault of a superblock whose checksum is right, or `None`. After this check,
    /// calculations with the numbers of the superblock cannot overflow.
    fn fault(&self) -> Option<&'static str> {
        let Superblock { page_bytes, block_bytes, pages, log_pages, double_write_pages, .. } = *self;
        let sizes = |bytes: u32| bytes.is_power_of_two() && (4096..=1 << 20).contains(&bytes);
        let most = MOST_BYTES / u64::from(page_bytes.max(1));
        if !sizes(page_bytes) || page_bytes > 65_536 || !sizes(block_bytes) {
            return Some("the superblock's sizes of pages and blocks are invalid");
        }
        let log_bytes = log_pages.min(most) * u64::from(page_bytes);
        if pages > most || log_pages > most || !(64..=1 << 16).contains(&double_write_pages) {
            return Some("the superblock's counts of pages are invalid");
        }
        if self.data_start().0 + 3 > pages || log_bytes < 4 * u64::from(block_bytes) {
            return Some("the superblock's areas do not fit into the store");
        }
        if let Some(fault) = self.layout().and_then(|layout| layout.fault()) {
            return Some(fault);
        }
        let log = self.redo <= self.log_end && self.log_end.0 < MOST_BYTES;
        if !log || self.log_end.0 - self.redo.0 > log_bytes || self.generation > MOST_BYTES {
            return Some("the superblock's positions in the log are invalid");
        }
        None
    }

    /// Returns the layout of a store with pages out of place; `None` if pages are in place.
    pub(crate) fn layout(&self) -> Option<Layout> {
        self.out_of_place.map(|shape| Layout::new(self, shape))
    }

    /// Returns the least memory in bytes that the map of the store requires; 0 if the store has no map.
    pub(crate) fn map_memory(&self) -> u64 {
        self.layout().map_or(0, |layout| 2 * map_bytes(&layout))
    }

    /// Returns the number of bytes of the drive that the store needs.
    pub(crate) fn bytes(&self) -> u64 {
        match self.layout() {
            Some(layout) => layout.end(),
            None => self.pages * u64::from(self.page_bytes),
        }
    }

    /// Returns the number of the first page of the log.
    pub(crate) fn log_start(&self) -> PageId {
        PageId(HEAD / u64::from(self.page_bytes))
    }

    /// Returns the number of the first page of the double-write area.
    pub(crate) fn double_write_start(&self) -> PageId {
        PageId(self.log_start().0 + self.log_pages)
    }

    /// Returns the number of the first page of the first group of data pages.
    pub(crate) fn data_start(&self) -> PageId {
        PageId(self.double_write_start().0 + self.double_write_pages)
    }

    /// Returns the salt with which the checksums of this store's pages and log blocks start.
    pub(crate) fn salt(&self) -> Salt {
        Salt(self.identity as u32)
    }

    /// Returns the page of the catalogue's root, which follows the first map of used pages.
    pub(crate) fn catalogue_root(&self) -> PageId {
        PageId(self.data_start().0 + 1)
    }

    /// Returns the page of the root of the tree of large values.
    pub(crate) fn large_root(&self) -> PageId {
        PageId(self.data_start().0 + 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::sound_superblock;

    #[test]
    fn a_superblock_reads_back_and_damage_is_noticed() {
        let superblock = sound_superblock();
        let bytes = superblock.encode();
        assert_eq!(Superblock::decode(&bytes), Ok(superblock));
        for byte in 0..SUPERBLOCK {
            let mut damaged = bytes;
            damaged[byte] ^= 1;
            assert!(Superblock::decode(&damaged).is_err(), "byte {byte}");
        }
    }
}
