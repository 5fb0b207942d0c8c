//! The options of a store, and the division of its memory among pages, records, log buffers and old versions.

use crate::Error;
#[cfg(feature = "planted")]
use crate::planted::Planted;
use fulgurite_base::option::{COUNT, Form, SHARE, SIZE};
use fulgurite_base::units::{humane_size, whole_size};
use fulgurite_base::{Choice, Declared, Nanos, NoOptions, Opt, Share, config_enum, opt};
use fulgurite_device::Caps;
use fulgurite_ftl::placement::PlacementConfig;
use fulgurite_ftl::victim::VictimConfig;
use fulgurite_pool::{PrefetchConfig, ReplacementConfig, WriteBack};

/// The guarantee of a commit at the time when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The commit returns after the log is flushed up to it. The flush starts at once. The commit survives
    /// everything that the drive survives.
    Flush,
    /// The same guarantee as [`Durability::Flush`], with group commit. If the last flush covered several
    /// commits, this one waits until as many have arrived, and for [`Options::group_window`] at most, so that
    /// they share a flush. A lone commit does not wait.
    Group,
    /// The commit is ordered and visible, and returns at once. Its log record is written and flushed within
    /// [`Options::relaxed_window`], or with the next commit that waits for a flush. A crash may lose the
    /// commit together with all commits after it: the commits that survive are always a prefix of the
    /// history.
    Relaxed,
}

impl Choice for Durability {
    const NAMES: &'static [(&'static str, Durability)] =
        &[("flush", Durability::Flush), ("group", Durability::Group), ("relaxed", Durability::Relaxed)];
}

/// The protection of pages against torn writes, which are writes that a power cut interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TornPages {
    /// The cheapest protection that the drive supports. This is `atomic`, else `share`, else `double-write`.
    Auto,
    /// Pages are written to the double-write area and flushed, then written at their home locations.
    DoubleWrite,
    /// Pages are written to the double-write area once. Then the drive remaps their home locations to these
    /// copies without copying data. One command remaps as many pages as the drive supports, and never only a
    /// part of a page.
    Share,
    /// No protection is needed, because the drive never tears the write of a page.
    Atomic,
    /// Pages are not protected. A torn page is detected, and its contents are lost.
    None,
}

impl Choice for TornPages {
    const NAMES: &'static [(&'static str, TornPages)] = &[
        ("auto", TornPages::Auto),
        ("double-write", TornPages::DoubleWrite),
        ("share", TornPages::Share),
        ("atomic", TornPages::Atomic),
        ("none", TornPages::None),
    ];
}

impl TornPages {
    /// Resolves `Auto` to a protection that the drive supports. Fails if the drive does not support the
    /// requested one.
    pub fn resolve(self, caps: &Caps, page_bytes: u32) -> Result<TornPages, Error> {
        let refuse = |text: &str| Err(Error::Options(text.to_owned()));
        let is_atomic = caps.atomic_bytes >= page_bytes;
        // A power cut between two share commands could tear a page that takes both.
        let shares = caps.share_pages >= (page_bytes / caps.page_bytes).max(1);
        match self {
            TornPages::Auto if is_atomic => Ok(TornPages::Atomic),
            TornPages::Auto if shares => Ok(TornPages::Share),
            TornPages::Auto => Ok(TornPages::DoubleWrite),
            TornPages::Atomic if !is_atomic => refuse(
                "torn pages: the drive does not write pages of this size atomically; \
                 accepted: auto, double-write, none, or share if the drive shares",
            ),
            TornPages::Share if caps.share_pages == 0 => {
                refuse("torn pages: the drive cannot share; accepted: auto, double-write, none")
            }
            TornPages::Share if !shares => refuse(
                "torn pages: the drive does not share a page of this size with one command; \
                 accepted: auto, double-write, none",
            ),
            chosen => Ok(chosen),
        }
    }
}

/// The compression of pages out of place. Each page records its own compression, so the option may change
/// from one opening of the store to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compress {
    /// Pages are not compressed.
    None,
    /// LZ4 removes repetitions. It is fast in both directions.
    Lz4,
    /// zstd also gives frequent bytes short codes. Its output is smaller, and it is several times slower.
    Zstd,
}

impl Choice for Compress {
    const NAMES: &'static [(&'static str, Compress)] =
        &[("none", Compress::None), ("lz4", Compress::Lz4), ("zstd", Compress::Zstd)];
}

impl Compress {
    /// Returns the code of the compression in the header of a page.
    pub(crate) fn code(self) -> u32 {
        match self {
            Compress::None => 255,
            Compress::Lz4 => 0,
            Compress::Zstd => 1,
        }
    }
}

/// The options of a store with pages out of place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfPlaceConfig {
    /// The share of all segments that is left free for garbage collection. Fixed when the store is created.
    pub spare: Share,
    /// The size in bytes of a unit, the granularity in which space for pages is allocated. It is a power of
    /// two from 512, at most the size of a page and at most the size of a block of the log. Fixed when the
    /// store is created. The map takes 13 bytes of memory for each unit of the drive. `None` means 1 KiB, or
    /// more if the map would take more than 32 MiB.
    pub unit_bytes: Option<u64>,
    /// The compression of pages.
    pub compress: Compress,
    /// The largest number of deltas of a page. A merge of a few records into a leaf that is not in memory then
    /// writes one unit, and reads nothing. Deltas take the units that compression saves, so the page must be
    /// compressed. The table of leaves takes 16 bytes of memory for each page. 0 means no deltas. The option may
    /// change from one opening of the store to the next.
    pub deltas: u32,
    /// The placement policy, which decides which pages are written together.
    pub placement: PlacementConfig,
    /// The victim policy, which decides which segment is collected.
    pub victim: VictimConfig,
}

impl Default for OutOfPlaceConfig {
    fn default() -> OutOfPlaceConfig {
        OutOfPlaceConfig {
            spare: Share::percent(15),
            unit_bytes: None,
            compress: Compress::Lz4,
            deltas: 0,
            placement: PlacementConfig::ONE_STREAM,
            victim: VictimConfig::GREEDY,
        }
    }
}

const SIZE_OR_AUTO: Form<Option<u64>> = Form {
    written: "SIZE|auto",
    parse: |text| if text == "auto" { Ok(None) } else { (SIZE.parse)(text).map(Some) },
    show: |size| size.as_ref().map_or_else(|| "auto".to_owned(), SIZE.show),
};

impl Declared for OutOfPlaceConfig {
    const OPTIONS: &'static [Opt<OutOfPlaceConfig>] = &[
        opt!(
            "spare",
            spare,
            SHARE,
            Share::percent(5) => Share::percent(75),
            "share of the segments that is kept free for garbage collection"
        ),
        opt!(
            "unit",
            unit_bytes,
            SIZE_OR_AUTO,
            "granularity of allocation, takes 13 bytes of memory for each; auto: 1KiB, more on large drives"
        ),
        opt!("compress", compress, Form::<Compress>::choice("none|lz4|zstd"), "how pages are compressed"),
        opt!(
            "deltas",
            deltas,
            COUNT,
            0 => 127,
            "the most deltas of a page: merges of a few records write a unit each and read nothing; 0: none"
        ),
        opt!("placement", placement, PlacementConfig::FORM, "which pages are written together"),
        opt!("victim", victim, VictimConfig::FORM, "which segment is collected"),
    ];
}

config_enum! {
    /// Whether pages are written in place or out of place. Fixed when the store is created.
    ///
    /// *In place*: each page has a fixed address, its home location, and is protected by [`TornPages`]. *Out
    /// of place*: each write of a page goes to a new address, which a map records. No page is written twice
    /// and none is torn. Pages are compressed and packed, and segments are garbage collected.
    pub enum PlaceConfig: "place";
    "in-place" InPlace(NoOptions) "each page at a fixed address"
    "out-of-place" OutOfPlace(OutOfPlaceConfig) "each write at a new address, in segments that are garbage collected"
    "auto" Auto(OutOfPlaceConfig) "out of place if pages in place would be written twice, else in place"
}

impl PlaceConfig {
    /// Whether a new store on a drive with these capabilities writes its pages out of place.
    pub fn is_out(&self, caps: &Caps, page_bytes: u32) -> bool {
        match self {
            PlaceConfig::InPlace(_) => false,
            PlaceConfig::OutOfPlace(_) => true,
            PlaceConfig::Auto(_) => TornPages::Auto.resolve(caps, page_bytes) == Ok(TornPages::DoubleWrite),
        }
    }

    /// Returns the options of pages out of place. Returns the defaults if the configuration says *in place*,
    /// because a store out of place can be opened without repeating its options.
    pub(crate) fn out_of_place(&self) -> OutOfPlaceConfig {
        match self {
            PlaceConfig::InPlace(_) => OutOfPlaceConfig::default(),
            PlaceConfig::OutOfPlace(config) | PlaceConfig::Auto(config) => config.clone(),
        }
    }
}

/// The options with which a store is created and opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// The size of a page in bytes: a power of two from 4 KiB to 64 KiB, and a multiple of the drive's page
    /// size. Fixed when the store is created.
    pub page_bytes: u32,
    /// The memory in bytes for everything that grows with the data: frames, log buffers, old versions and
    /// locks.
    pub memory_bytes: u64,
    /// The size of the log area on the drive in bytes. Fixed when the store is created.
    pub log_bytes: u64,
    /// Whether pages are written in place or out of place. Fixed when the store is created.
    pub place: PlaceConfig,
    /// The protection of pages in place against torn writes.
    pub torn_pages: TornPages,
    /// The durability of a commit that requests no other one.
    pub durability: Durability,
    /// The replacement policy of the buffer pool.
    pub replacement: ReplacementConfig,
    /// The write-back policy of the buffer pool. `None` means ACE+RAW with a batch that the double-write area
    /// takes with one flush, or a smaller batch if the pool is small.
    pub write_back: Option<WriteBack>,
    /// The prefetch policy of the buffer pool.
    pub prefetch: PrefetchConfig,
    /// The largest number of leaves that a scan reads concurrently. The best value is the number of reads
    /// that the drive serves concurrently (k_r). A scan may override it.
    pub degree: u32,
    /// The largest share of page memory, in per cent from 0 to 90, that the record cache may take. The cache
    /// holds records that were read, and pending records, which are written but not yet merged into their
    /// leaves. The store sizes the cache by whether records or pages save more I/O. A small store has no
    /// record cache, because 32 frames are reserved for pages.
    pub records: u8,
    /// The longest time that a `group` commit waits for other commits to share its flush.
    pub group_window: Nanos,
    /// The longest time before the log record of a `relaxed` commit is written.
    pub relaxed_window: Nanos,
    /// Whether the store reads back every written page before it releases the log of the page's changes, and
    /// every double-write copy before it relies on the copy. This costs a read for each page and another for
    /// its copy. Without it, a write that the drive acknowledges but loses or misdirects is detected only if
    /// the page is read soon after the write. Later, the old contents of the page look valid.
    pub verify_writes: bool,
    /// Whether a store with pages in place is extended when it is opened on a drive that has become larger. Otherwise
    /// it leaves the new room alone. A store with pages out of place cannot be extended, and is refused.
    pub grow: bool,
    /// Whether the store refuses every write of its user with [`Error::ReadOnly`]. Recovery after a crash writes
    /// nevertheless, so the drive must take writes.
    pub read_only: bool,
    /// The fault that is injected for the crash simulation to detect; `None` for a correct store.
    #[cfg(feature = "planted")]
    pub planted: Option<Planted>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            page_bytes: 4096,
            memory_bytes: 64 << 20,
            log_bytes: 64 << 20,
            place: PlaceConfig::InPlace(NoOptions),
            torn_pages: TornPages::Auto,
            durability: Durability::Group,
            replacement: ReplacementConfig::Lru(NoOptions),
            write_back: None,
            prefetch: PrefetchConfig::None(NoOptions),
            degree: DEGREE,
            records: RECORDS,
            group_window: Nanos::from_micros(100),
            relaxed_window: Nanos::from_micros(10_000),
            verify_writes: false,
            grow: false,
            read_only: false,
            #[cfg(feature = "planted")]
            planted: None,
        }
    }
}

/// The default degree of scans: a window of 128 KiB with pages of 4 KiB, enough for most drives.
const DEGREE: u32 = 32;

/// The default share of the record cache, in per cent of the memory for pages.
const RECORDS: u8 = 70;
/// The fewest frames that are reserved for pages if the store has a record cache.
const FRAMES_BESIDE_RECORDS: u64 = 32;
/// The size of the smallest record cache, in pages.
const LEAST_RECORDS: u64 = 16;
/// The largest accepted share of the record cache, in per cent of the memory for pages.
const MOST_RECORDS: u8 = 90;

/// The largest number of pages in one batch of writes. A larger batch is divided.
pub(crate) const BATCH: usize = 64;

/// The default number of concurrent writes of pages.
const WRITES_AT_ONCE: u32 = 16;

/// The memory of a frame in addition to its page, in bytes: the tables of the pool, and the table of dirty
/// pages.
pub(crate) const FRAME_TABLES: u64 = 64;

/// The denominator of the share of the record cache that its tables take. Frames borrowed from the pool are
/// the rest.
pub(crate) const RECORD_TABLES_PART: u64 = 8;

/// Returns the largest number of bytes of frames that a record cache of `most_bytes` borrows.
pub(crate) fn record_frame_bytes(most_bytes: u64) -> u64 {
    most_bytes - most_bytes.div_ceil(RECORD_TABLES_PART)
}

/// The fewest frames with which a store can be opened.
const LEAST_FRAMES: u64 = 16;

impl Options {
    /// Returns the number of frames that are reserved for pages. An eighth of the memory is for old versions
    /// and locks, and an eighth for log buffers and pages being written. The record cache and the frames of
    /// `page_bytes` share the rest. Fails if there are too few frames.
    pub fn frames(&self, page_bytes: u32) -> Result<u32, Error> {
        let bytes = self.memory_bytes - self.memory_bytes / 4 - self.record_bytes(page_bytes);
        let frames = bytes / (u64::from(page_bytes) + FRAME_TABLES);
        if frames < LEAST_FRAMES {
            let least = LEAST_FRAMES * (u64::from(page_bytes) + FRAME_TABLES) * 4 / 3 + 64;
            return Err(Error::Options(format!(
                "{} is too little memory for pages of {}; accepted: from {} on",
                humane_size(self.memory_bytes),
                humane_size(u64::from(page_bytes)),
                humane_size(whole_size(least))
            )));
        }
        Ok(u32::try_from(frames).unwrap_or(u32::MAX / 8))
    }

    /// Returns the number of frames for pages together with those that the record cache may borrow.
    pub(crate) fn all_frames(&self, page_bytes: u32) -> Result<u32, Error> {
        let borrowed =
            record_frame_bytes(self.record_bytes(page_bytes)) / (u64::from(page_bytes) + FRAME_TABLES);
        Ok(self.frames(page_bytes)?.saturating_add(u32::try_from(borrowed).unwrap_or(u32::MAX / 8)))
    }

    /// Returns the largest size of the record cache in bytes, or 0 if the cache would leave too few frames
    /// for pages.
    pub(crate) fn record_bytes(&self, page_bytes: u32) -> u64 {
        let all = self.memory_bytes - self.memory_bytes / 4;
        let beside = FRAMES_BESIDE_RECORDS * (u64::from(page_bytes) + FRAME_TABLES);
        let records = (all / 100 * u64::from(self.records.min(MOST_RECORDS))).min(all.saturating_sub(beside));
        if records < LEAST_RECORDS * u64::from(page_bytes) { 0 } else { records }
    }

    /// Divides the memory for recovery. Returns the number of frames for pages, the bytes for operations that
    /// are read from the log, and further bytes that are used if the operations need more. In the last case
    /// the operations do not become records of the record cache. More memory for operations means fewer
    /// passes over the log, so that each leaf is read and written fewer times.
    pub(crate) fn recovery_memory(&self, page_bytes: u32) -> Result<(u32, (u64, u64)), Error> {
        let frames = self.frames(page_bytes)?;
        // Recovery uses the memory of old versions and commits, because neither exist yet.
        let (spare, records) = (self.memory_bytes / 4, self.record_bytes(page_bytes));
        if u64::from(frames) < 3 * LEAST_FRAMES {
            return Ok((frames, (spare, records)));
        }
        let given = (frames - frames / 3) as u64 * u64::from(page_bytes);
        Ok((frames / 3, (spare + given, records)))
    }

    /// Returns the write-back policy of a pool of `frames`, with up to `batches` batches of writes in
    /// progress. If `is_batched` is true, pages are written in batches of [`BATCH`].
    pub(crate) fn write_back(&self, frames: u32, is_batched: bool, batches: u32) -> WriteBack {
        let usual = || {
            // Without batching, no flush separates the pages, so a batch larger than the drive's concurrency
            // gains nothing.
            let n_w = if is_batched { BATCH as u32 } else { WRITES_AT_ONCE };
            let n_w = n_w.min(frames / 8).max(1);
            let buffers = (batches * n_w).min(frames / 4).max(2 * n_w);
            WriteBack::ace(n_w).with_buffers(buffers)
        };
        self.write_back.clone().unwrap_or_else(usual)
    }

    /// Returns the number of pages of a batch that are written in place concurrently. If the options name a
    /// write-back policy, its batches are written as a whole, up to [`BATCH`] pages at once.
    pub(crate) fn writes_at_once(&self) -> usize {
        if self.write_back.is_some() { BATCH } else { WRITES_AT_ONCE as usize }
    }

    /// Returns the memory for old versions in bytes.
    pub(crate) fn version_bytes(&self) -> u64 {
        self.memory_bytes / 8
    }

    /// Checks the sizes of pages and log by themselves and against the capabilities of the drive.
    pub fn check(&self, caps: &Caps) -> Result<(), Error> {
        let Options { page_bytes, records, .. } = *self;
        if records > MOST_RECORDS {
            return Err(Error::Options(format!(
                "the record cache cannot have {records} per cent of the memory; accepted: 0 to {MOST_RECORDS}"
            )));
        }
        if !page_bytes.is_power_of_two() || !(4096..=65536).contains(&page_bytes) {
            return Err(Error::Options(format!(
                "a page of {} cannot be used; accepted: a power of two from 4 KiB to 64 KiB",
                humane_size(page_bytes.into())
            )));
        }
        if page_bytes % caps.page_bytes != 0 {
            return Err(Error::Options(format!(
                "a page of {} is not a multiple of the drive's page of {}",
                humane_size(page_bytes.into()),
                humane_size(caps.page_bytes.into())
            )));
        }
        if !caps.contents {
            return Err(Error::Options("the drive keeps no contents, so it cannot hold a store".to_owned()));
        }
        if self.log_bytes < 64 * u64::from(page_bytes) {
            return Err(Error::Options(format!(
                "a log of {} is too small; accepted: from {} (64 pages)",
                humane_size(self.log_bytes),
                humane_size(64 * u64::from(page_bytes))
            )));
        }
        Ok(())
    }
}
