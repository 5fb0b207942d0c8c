//! How large the parts of a new store are, and the memory that the map of its pages takes.

use crate::format::layout::{
    FORMAT, LEAST_UNIT, Layout, Segmentation, Superblock, block_bytes, double_write_pages, map_bytes,
};
use crate::options::{Options, OutOfPlaceConfig, TornPages};
use crate::{Error, Lsn};
use fulgurite_base::Share;
use fulgurite_base::units::{humane_size, whole_size};
use fulgurite_device::Caps;
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ftl::{Collect, FtlConfig};

/// The smallest unit where none was asked for, and the memory that the map then takes at most, where larger units can do.
const USUAL_UNIT: u32 = 1024;
const USUAL_MAP: u64 = 32 << 20;
/// Segments below which garbage is collected, and those that only collection may use.
const RESERVE: (u32, u32) = (4, 2);
/// Data pages that a store has at least.
const LEAST_PAGES: u64 = 64;
/// The longest segment.
const LONGEST_SEGMENT: u64 = 4 << 20;
/// Parts of the drive that a segment is, where that makes it shorter.
const SEGMENTS: u64 = 256;

impl Superblock {
    /// The superblock of a new store that takes a whole drive. Fails where the drive is too small for it.
    pub fn of_new(caps: &Caps, options: &Options, identity: u128) -> Result<Superblock, Error> {
        let page_bytes = options.page_bytes;
        let pages = caps.pages.saturating_mul(caps.page_bytes.into()) / u64::from(page_bytes);
        let mut superblock = Superblock {
            format: FORMAT,
            generation: 2,
            page_bytes,
            block_bytes: block_bytes(caps),
            pages,
            log_pages: options.log_bytes / u64::from(page_bytes),
            double_write_pages: double_write_pages(pages),
            redo: Lsn(0),
            log_end: Lsn(0),
            log_crc: identity as u32,
            clean: true,
            next_large: 1,
            identity,
            out_of_place: None,
        };
        if options.place.is_out(caps, page_bytes) {
            let bytes = |pages: u64| pages.saturating_mul(caps.page_bytes.into());
            let (drive, erased) = (bytes(caps.pages), bytes(u64::from(caps.erase_pages)));
            superblock = fit(superblock, drive, erased, options)?;
        }
        let least = superblock.data_start().0 + LEAST_PAGES;
        if superblock.pages < least {
            return Err(Error::Options(format!(
                "{} is too little, since a store with a log of {} needs {}; accepted: at least that, or a smaller log",
                humane_size(superblock.pages.saturating_mul(u64::from(page_bytes))),
                humane_size(options.log_bytes),
                humane_size(whole_size(least.saturating_mul(u64::from(page_bytes))))
            )));
        }
        Ok(superblock)
    }
}

impl Options {
    /// The options of a store whose superblock this is: the map of pages out of place takes its memory first. Refuses what
    /// contradicts pages out of place.
    pub(crate) fn with_map(&self, superblock: &Superblock) -> Result<Options, Error> {
        let Some(layout) = superblock.layout() else { return Ok(self.clone()) };
        if self.torn_pages != TornPages::Auto {
            return Err(Error::Options(
                "torn pages: pages out of place are protected by that alone; accepted: auto".to_owned(),
            ));
        }
        let (map, needed) = (map_bytes(&layout), superblock.map_memory());
        if needed > self.memory_bytes {
            return Err(Error::MapMemory { needed, given: self.memory_bytes });
        }
        Ok(Options { memory_bytes: self.memory_bytes - map, ..self.clone() })
    }

    /// The least memory, for the map of its pages, of a store that is made with these options on a drive with these capabilities,
    /// in bytes: the map may have half. 0 where pages lie in place. Fails as [`Options::check`] does, and where the drive is too
    /// small for the store.
    pub fn map_memory(&self, caps: &Caps) -> Result<u64, Error> {
        self.check(caps)?;
        Ok(Superblock::of_new(caps, self, 0)?.map_memory())
    }
}

impl Layout {
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
        let Segmentation { segments, segment_units, .. } = self.shape;
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
        let shape = Segmentation { segments, segment_units, unit_bytes, commit: 0 };
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
