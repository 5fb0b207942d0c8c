//! Where the map and the segments of a store with pages out of place lie.
//!
//! Behind the double-write area, in the place of data pages: two halves of the map's area, counted in blocks of the log's
//! size, then the segments, counted in *units* and beginning at a multiple of their own length. A half has a head, one block of
//! places for every [`places_in_a_block`] units of pages, the journal, and the head once more. A block has one unit or several.

use crate::layout::Superblock;
use crate::{Error, Options, OutOfPlaceConfig};
use fulgurite_base::{PageId, Share};
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ftl::{Collect, FtlConfig};

/// Bytes of a block of the map before its entries.
pub const BLOCK_HEADER: usize = 40;
/// The smallest unit. A power cut tears no less.
pub const LEAST_UNIT: u32 = 512;
/// The smallest unit where none was asked for, and the memory that the map then takes at most, where larger units can do.
const USUAL_UNIT: u32 = 1024;
const USUAL_MAP: u64 = 32 << 20;
/// The fewest blocks of a journal.
const LEAST_JOURNAL: u64 = 16;
/// Segments below which garbage is collected, and those that only collection may use.
const RESERVE: (u32, u32) = (4, 2);
/// The longest segment.
const LONGEST_SEGMENT: u64 = 4 << 20;
/// Parts of the drive that a segment is, where that makes it shorter.
const SEGMENTS: u64 = 256;

/// What the superblock says of pages out of place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Segments.
    pub segments: u32,
    /// Units in a segment; a power of two.
    pub segment_units: u32,
    /// Bytes in a unit; a power of two, a block at most.
    pub unit_bytes: u32,
    /// The last commit of the map when the superblock was written.
    pub commit: u64,
}

/// Places of the map in a block.
pub fn places_in_a_block(block_bytes: u32) -> u64 {
    (u64::from(block_bytes) - BLOCK_HEADER as u64) / 4
}

/// Changes of the map in a block.
pub fn changes_in_a_block(block_bytes: u32) -> u64 {
    (u64::from(block_bytes) - BLOCK_HEADER as u64) / 8
}

/// Where everything lies, from the beginning of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes in a block of the log and of the map: what is written at once.
    pub block_bytes: u32,
    /// Bytes in a unit.
    pub unit_bytes: u32,
    /// Units in a page.
    pub page_units: u32,
    /// Units that the pages of the store have.
    pub units: u64,
    /// The first data page.
    pub data: PageId,
    /// Where the map's area begins, in blocks.
    pub map: u64,
    /// Blocks with the places of all units.
    pub snapshot: u64,
    /// Blocks of the journal in a half.
    pub journal: u64,
    /// Where the first segment begins, in units.
    pub first: u64,
    /// How many segments there are, and how long they are.
    pub shape: Shape,
}

impl Layout {
    /// A layout with segments like these at the beginning of the drive, for tests of what looks at nothing else.
    #[cfg(test)]
    pub fn of_shape(shape: Shape, block_bytes: u32) -> Layout {
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

    /// The layout of a store whose superblock says so.
    pub fn new(superblock: &Superblock, shape: Shape) -> Layout {
        let Superblock { page_bytes, block_bytes, pages, .. } = *superblock;
        // What makes no sense must not overflow before [`Layout::fault`] refuses it.
        let unit_bytes = shape.unit_bytes.max(LEAST_UNIT);
        let page_units = page_bytes / unit_bytes;
        let data = superblock.data_start();
        let units = pages.saturating_sub(data.0) * u64::from(page_units);
        let map = data.0 * u64::from(page_bytes) / u64::from(block_bytes.max(1));
        let snapshot = units.div_ceil(places_in_a_block(block_bytes));
        let journal = snapshot.max(LEAST_JOURNAL);
        let area = 2 * (2 + snapshot + journal);
        let block_units = u64::from(block_bytes / unit_bytes);
        let first = ((map + area) * block_units).next_multiple_of(u64::from(shape.segment_units.max(1)));
        Layout { block_bytes, unit_bytes, page_units, units, data, map, snapshot, journal, first, shape }
    }

    /// Units in a block.
    pub fn block_units(&self) -> u32 {
        self.block_bytes / self.unit_bytes
    }

    /// Where a unit of the segments lies, in bytes.
    pub fn byte(&self, place: u32) -> u64 {
        (self.first + u64::from(place)) * u64::from(self.unit_bytes)
    }

    /// The first unit of a data page.
    pub fn first_unit(&self, page: PageId) -> Option<u64> {
        Some(page.0.checked_sub(self.data.0)? * u64::from(self.page_units))
    }

    /// Units that the segments have.
    pub fn physical(&self) -> u64 {
        u64::from(self.shape.segments) * u64::from(self.shape.segment_units)
    }

    /// Where the last segment ends, in bytes.
    pub fn end(&self) -> u64 {
        (self.first + self.physical()) * u64::from(self.unit_bytes)
    }

    /// Blocks of a half of the map's area.
    pub fn half(&self) -> u64 {
        2 + self.snapshot + self.journal
    }

    /// What makes no sense in it, if anything does.
    pub fn fault(&self) -> Option<&'static str> {
        let Shape { segments, segment_units, unit_bytes, .. } = self.shape;
        let is_sound = unit_bytes.is_power_of_two()
            && (LEAST_UNIT..=self.block_bytes).contains(&unit_bytes)
            && self.page_units.is_power_of_two()
            && segment_units.is_power_of_two()
            && segment_units >= self.page_units.max(self.block_units())
            && segments > 0
            && self.physical() < u64::from(u32::MAX)
            && self.units < self.physical();
        (!is_sound).then_some("the superblock's segments make no sense")
    }

    /// The translation layer over the segments.
    pub fn ftl(&self, options: &Options) -> Result<FtlConfig, Error> {
        let (reserve, hard) = RESERVE;
        let OutOfPlaceConfig { placement, victim, .. } = options.place.out_of_place();
        let collect =
            Collect { placement, victim, schedule: Schedule::PACED, reserve, hard, ..Collect::PLAIN };
        if collect.placement.needs_future() {
            return Err(Error::Options(format!(
                "placement {} must know all writes beforehand, and a store does not; accepted: any other",
                collect.placement
            )));
        }
        let Shape { segments, segment_units, .. } = self.shape;
        // A quarter of a segment may be behind before writes wait: a batch then mostly goes through at once.
        let stripe_pages = segment_units.div_ceil(64);
        let plain = FtlConfig::plain(self.units as u32, segments, segment_units);
        let config = FtlConfig { collect, stripe_pages, ..plain };
        config.validate().map_err(|error| Error::Options(format!("pages out of place: {error}")))?;
        Ok(config)
    }
}

/// Gives a new store on a drive of `drive_bytes` as many segments as fit, and as many pages as leave
/// the spare share of them free. The drive erases `erased_bytes` at once, or does not say: 0.
///
/// A segment that is as long as what the drive erases leaves it nothing to copy: the pages of an erase unit then die
/// together. Shorter ones share an erase unit, and the drive copies what is left of the others.
pub fn fit(
    superblock: Superblock,
    drive_bytes: u64,
    erased_bytes: u64,
    options: &Options,
) -> Result<Superblock, Error> {
    let OutOfPlaceConfig { spare, placement, unit_bytes, .. } = options.place.out_of_place();
    let (page_bytes, block_bytes) = (superblock.page_bytes, superblock.block_bytes);
    let unit_bytes = match unit_bytes {
        Some(asked) => fitting_unit(asked, page_bytes, block_bytes)?,
        None => usual_unit(drive_bytes, page_bytes.min(block_bytes)),
    };
    let unit = u64::from(unit_bytes);
    let (page_units, drive_units, erased) =
        (u64::from(page_bytes) / unit, drive_bytes / unit, erased_bytes / unit);
    let least = 4 * page_units.max(u64::from(block_bytes) / unit);
    let full = u64::from((Share::ONE.ppm() - spare.ppm().min(Share::ONE.ppm())) / 1_000);
    // Segments that hold no pages at all times.
    let kept = u64::from(RESERVE.0) + u64::from(placement.streams()) + 1;
    let usual = (drive_units / SEGMENTS).clamp(least, (LONGEST_SEGMENT / unit).max(least));
    // The largest power of two that is not more.
    let usual = 1 << usual.ilog2();
    let erased = erased.next_power_of_two();
    // Long segments must not cost more room than was to stay free anyway.
    let is_room = kept * erased <= drive_units / 1_000 * (1_000 - full);
    let segment_units = if is_room { erased.max(usual) } else { usual };
    let with = |segments: u64| {
        let units =
            (segments * segment_units * full / 1_000).min(segments.saturating_sub(kept) * segment_units);
        let (segments, segment_units) = (segments as u32, segment_units as u32);
        let shape = Shape { segments, segment_units, unit_bytes, commit: 0 };
        Superblock {
            pages: superblock.data_start().0 + units / page_units,
            out_of_place: Some(shape),
            ..superblock.clone()
        }
    };
    // The map takes a little, which depends on how many there are.
    let room = drive_units.saturating_sub(superblock.data_start().0 * page_units) / segment_units;
    let most = (room.min(u64::from(u32::MAX) / segment_units - 1)).min(u64::from(u32::MAX));
    let fits = |segments: &u64| {
        let superblock = with(*segments);
        superblock.layout().is_some_and(|layout| layout.fault().is_none() && layout.end() <= drive_bytes)
    };
    let segments = (1..=most).rev().find(fits);
    let made = segments.map(with).filter(|made| made.pages > made.data_start().0 + 3);
    made.ok_or_else(|| {
        Error::Options(format!(
            "the drive has {} blocks of {block_bytes} bytes, too few for pages out of place; accepted: a larger drive, or pages in place",
            drive_bytes / u64::from(block_bytes)
        ))
    })
}

/// The unit where none was asked for: the smallest from 1 KiB to `most` bytes whose map takes no more than its usual share of memory.
fn usual_unit(drive_bytes: u64, most: u32) -> u32 {
    let map = |unit: &u32| 13 * (drive_bytes / u64::from(*unit));
    let mut units = (USUAL_UNIT.ilog2()..most.ilog2()).map(|power| 1 << power);
    units.find(|unit| map(unit) <= USUAL_MAP).unwrap_or(most)
}

/// The unit that was asked for, if pages can lie in such units. A drive that writes nothing smaller may have larger blocks than
/// pages; units are then no larger than a page.
fn fitting_unit(asked: u64, page_bytes: u32, block_bytes: u32) -> Result<u32, Error> {
    let most = u64::from(page_bytes.min(block_bytes));
    if asked.is_power_of_two() && (u64::from(LEAST_UNIT)..=most).contains(&asked) {
        return Ok(asked as u32);
    }
    Err(Error::Options(format!(
        "units of {asked} bytes: pages of {page_bytes} bytes cannot lie in them on this drive; accepted: a power of two from {LEAST_UNIT} to {most}"
    )))
}
