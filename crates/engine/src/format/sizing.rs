//! Calculates the sizes of the areas of a new store, and the memory for the map of pages out of place.

use crate::format::layout::{
    FORMAT, LEAST_UNIT, Layout, Segmentation, Superblock, block_bytes, double_write_pages, leaf_table_bytes,
    map_bytes,
};
use crate::options::{Compress, Options, OutOfPlaceConfig, TornPages};
use crate::{Error, Lsn};
use fulgurite_base::Share;
use fulgurite_base::units::{humane_size, whole_size};
use fulgurite_device::Caps;
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ftl::{Collect, FtlConfig};

/// The smallest default unit in bytes. Larger units are chosen while the map would take more bytes than
/// `USUAL_MAP`.
const USUAL_UNIT: u32 = 1024;
const USUAL_MAP: u64 = 32 << 20;
/// Garbage collection starts if fewer segments are free than the first number. Only garbage collection may
/// allocate the last free segments, whose number is the second one.
const RESERVE: (u32, u32) = (4, 2);
/// The fewest data pages of a store.
const LEAST_PAGES: u64 = 64;
/// The largest default size of a segment, in bytes.
const LONGEST_SEGMENT: u64 = 4 << 20;
/// The default number of segments. A large drive has more, because a segment has at most [`LONGEST_SEGMENT`]
/// bytes.
const SEGMENTS: u64 = 256;

impl Superblock {
    /// Creates the superblock of a new store that uses a whole drive. Fails if the drive is too small.
    pub(crate) fn of_new(caps: &Caps, options: &Options, identity: u128) -> Result<Superblock, Error> {
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
    /// Returns the options for the store of this superblock, with the memory of the map of pages out of place
    /// already subtracted. Fails if the memory is too small for the map, or if the options contradict pages
    /// out of place.
    pub(crate) fn with_map(&self, superblock: &Superblock) -> Result<Options, Error> {
        let Some(layout) = superblock.layout() else { return Ok(self.clone()) };
        if self.torn_pages != TornPages::Auto {
            return Err(Error::Options(
                "torn pages: pages out of place need no other protection; accepted: auto".to_owned(),
            ));
        }
        let OutOfPlaceConfig { compress, deltas, .. } = self.place.out_of_place();
        if deltas > 0 && (layout.page_units == 1 || compress == Compress::None) {
            return Err(Error::Options(format!(
                "deltas={deltas}: deltas take the units that compression saves, and pages have none; \
                 accepted: 0, or compressed pages of several units"
            )));
        }
        let leaves = if deltas > 0 { leaf_table_bytes(&layout) } else { 0 };
        let (map, needed) = (map_bytes(&layout) + leaves, superblock.map_memory() + 2 * leaves);
        if needed > self.memory_bytes {
            return Err(Error::MapMemory { needed, given: self.memory_bytes });
        }
        Ok(Options { memory_bytes: self.memory_bytes - map, ..self.clone() })
    }

    /// Returns the least memory in bytes, because of the map of pages, for a store that is created with these
    /// options on a drive with these capabilities. This is twice the size of the map, or 0 if pages are in
    /// place. Fails like [`Options::check`], and if the drive is too small for the store.
    pub fn map_memory(&self, caps: &Caps) -> Result<u64, Error> {
        self.check(caps)?;
        Ok(Superblock::of_new(caps, self, 0)?.map_memory())
    }
}

impl Layout {
    /// Returns the configuration of the translation layer over the segments.
    pub(crate) fn ftl(&self, options: &Options) -> Result<FtlConfig, Error> {
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
        // Garbage collection may lag behind by a quarter of a segment before writes wait, so that most
        // batches do not wait.
        let stripe_pages = segment_units.div_ceil(64);
        let plain = FtlConfig::plain(self.units as u32, segments, segment_units);
        let config = FtlConfig { collect, stripe_pages, ..plain };
        config.validate().map_err(|error| Error::Options(format!("pages out of place: {error}")))?;
        Ok(config)
    }
}

/// Gives a new store on a drive of `drive_bytes` as many segments as fit, and as many pages as leave the
/// spare share of the segments free. `erased_bytes` is the size of the drive's erase unit, or 0 if it is
/// unknown.
///
/// With a segment as large as the drive's erase unit, all pages of an erase unit become invalid together, so
/// the drive copies nothing. If segments are shorter, several share an erase unit. Before the drive erases
/// the unit, it must copy the valid pages of the other segments.
/// the others.
pub(crate) fn fit(
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
    // These segments never hold pages permanently: the reserve, one open segment for each stream, and one
    // more.
    let kept = u64::from(RESERVE.0) + u64::from(placement.streams()) + 1;
    let usual = (drive_units / SEGMENTS).clamp(least, (LONGEST_SEGMENT / unit).max(least));
    // Rounds down to a power of two.
    let usual = 1 << usual.ilog2();
    let erased = erased.next_power_of_two();
    // Erase units are used as segments only if the segments without pages fit into the spare share.
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
    // The map's area takes space on the drive too, and its size depends on the number of pages.
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
            "the drive has {} blocks of {block_bytes} bytes, too few for pages out of place; \
             accepted: a larger drive, or pages in place",
            drive_bytes / u64::from(block_bytes)
        ))
    })
}

/// Returns the default unit in bytes: the smallest from 1 KiB to `most` bytes whose map takes no more than 32
/// MiB.
fn usual_unit(drive_bytes: u64, most: u32) -> u32 {
    let map = |unit: &u32| 13 * (drive_bytes / u64::from(*unit));
    let mut units = (USUAL_UNIT.ilog2()..most.ilog2()).map(|power| 1 << power);
    units.find(|unit| map(unit) <= USUAL_MAP).unwrap_or(most)
}

/// Returns the requested unit in bytes, or an error if pages cannot be allocated in such units. On a drive
/// with large pages, blocks may be larger than pages of the store. A unit is then at most a page.
fn fitting_unit(asked: u64, page_bytes: u32, block_bytes: u32) -> Result<u32, Error> {
    let most = u64::from(page_bytes.min(block_bytes));
    if asked.is_power_of_two() && (u64::from(LEAST_UNIT)..=most).contains(&asked) {
        return Ok(asked as u32);
    }
    Err(Error::Options(format!(
        "units of {asked} bytes are not possible with pages of {page_bytes} bytes on this drive; \
         accepted: a power of two from {LEAST_UNIT} to {most}"
    )))
}
