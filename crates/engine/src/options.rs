//! What a user can choose.

use crate::Error;
#[cfg(feature = "planted")]
use crate::planted::Planted;
use fulgurite_base::option::{Form, SHARE, SIZE};
use fulgurite_base::units::{humane_size, whole_size};
use fulgurite_base::{Choice, Declared, Nanos, NoOptions, Opt, Share, config_enum, opt};
use fulgurite_device::Caps;
use fulgurite_ftl::placement::PlacementConfig;
use fulgurite_ftl::victim::VictimConfig;
use fulgurite_pool::{PrefetchConfig, ReplacementConfig, WriteBack};

/// When a commit returns, and what it promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The commit is on the drive and flushed, and a flush was begun for it at once. It survives everything that the
    /// drive survives.
    Flush,
    /// The same promise. Where the last flush took several commits, this one waits until as many have come, and for
    /// [`Options::group_window`] at most, so that they share a flush. Who is alone does not wait.
    Group,
    /// The commit is in order and visible, and returns at once. It is written and flushed within
    /// [`Options::relaxed_window`], or with the next commit that waits. A crash may lose it; what is lost is always the
    /// end of the history: no commit survives one that came before it.
    Relaxed,
}

impl Choice for Durability {
    const NAMES: &'static [(&'static str, Durability)] =
        &[("flush", Durability::Flush), ("group", Durability::Group), ("relaxed", Durability::Relaxed)];
}

/// What protects a page whose write a power cut interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TornPages {
    /// What costs least of those below that protect: `atomic`, else `share`, else `double-write`.
    Auto,
    /// Pages are written to an area of their own and flushed, then to their places.
    DoubleWrite,
    /// Pages are written to that area once; the drive then makes their places the same, without copying: each page with one
    /// command, and as many together as the drive takes.
    Share,
    /// The drive never tears the write of a page.
    Atomic,
    /// Nothing. A torn page is noticed, and lost.
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
    /// The protection on a drive; never weaker than asked for. Fails where the drive cannot give it.
    pub fn resolve(self, caps: &Caps, page_bytes: u32) -> Result<TornPages, Error> {
        let refuse = |text: &str| Err(Error::Options(text.to_owned()));
        let is_atomic = caps.atomic_bytes >= page_bytes;
        // A page in two commands could be torn between them.
        let shares = caps.share_pages >= (page_bytes / caps.page_bytes).max(1);
        match self {
            TornPages::Auto if is_atomic => Ok(TornPages::Atomic),
            TornPages::Auto if shares => Ok(TornPages::Share),
            TornPages::Auto => Ok(TornPages::DoubleWrite),
            TornPages::Atomic if !is_atomic => refuse(
                "torn pages: the drive does not write pages of this size untorn; accepted: auto, double-write, none, or share where the drive shares",
            ),
            TornPages::Share if caps.share_pages == 0 => {
                refuse("torn pages: the drive cannot share; accepted: auto, double-write, none")
            }
            TornPages::Share if !shares => refuse(
                "torn pages: the drive does not share a page of this size with one command; accepted: auto, double-write, none",
            ),
            chosen => Ok(chosen),
        }
    }
}

/// How pages are compressed that lie out of place. Each page says how it was, so this may differ from one opening to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compress {
    /// As they are.
    None,
    /// By LZ4, which finds what stands in a page twice. Quick in both directions.
    Lz4,
    /// By zstd, which also gives frequent bytes short codes: smaller, and several times slower.
    Zstd,
}

impl Choice for Compress {
    const NAMES: &'static [(&'static str, Compress)] =
        &[("none", Compress::None), ("lz4", Compress::Lz4), ("zstd", Compress::Zstd)];
}

impl Compress {
    /// The number in front of a page that was compressed so.
    pub(crate) fn code(self) -> u32 {
        match self {
            Compress::None => 255,
            Compress::Lz4 => 0,
            Compress::Zstd => 1,
        }
    }
}

/// How pages lie out of place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfPlaceConfig {
    /// The share of the segments that pages leave free, for collection. Fixed when the store is made.
    pub spare: Share,
    /// Bytes in a unit, in which pages lie: a power of two from 512, at most a page and a block of the log. Fixed when the store
    /// is made. The map takes 13 bytes of memory for each unit of the drive. Where none is named it has 1 KiB, or more where the
    /// map would take more than 32 MiB otherwise.
    pub unit_bytes: Option<u64>,
    /// How pages are compressed.
    pub compress: Compress,
    /// Which pages are written together.
    pub placement: PlacementConfig,
    /// Which segment is collected.
    pub victim: VictimConfig,
}

impl Default for OutOfPlaceConfig {
    fn default() -> OutOfPlaceConfig {
        OutOfPlaceConfig {
            spare: Share::percent(15),
            unit_bytes: None,
            compress: Compress::Lz4,
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
        opt!("spare", spare, SHARE, Share::percent(5) => Share::percent(75), "share of the segments that pages leave free"),
        opt!(
            "unit",
            unit_bytes,
            SIZE_OR_AUTO,
            "what a compressed page is rounded up to, 13 bytes of memory for each; auto: 1KiB, more on large drives"
        ),
        opt!("compress", compress, Form::<Compress>::choice("none|lz4|zstd"), "how pages are compressed"),
        opt!("placement", placement, PlacementConfig::FORM, "which pages are written together"),
        opt!("victim", victim, VictimConfig::FORM, "which segment is collected"),
    ];
}

config_enum! {
    /// Where pages are written. Fixed when the store is made.
    ///
    /// *In place*: each page at its own number, protected by [`TornPages`]. *Out of place*: each write at a new place, which a map
    /// tells; no page is written twice and none is torn, pages are compressed and packed, and segments are collected.
    pub enum PlaceConfig: "place";
    "in-place" InPlace(NoOptions) "each page at its own number"
    "out-of-place" OutOfPlace(OutOfPlaceConfig) "each write at a new place, in segments that are collected"
    "auto" Auto(OutOfPlaceConfig) "out of place where pages in place would be written twice, else in place"
}

impl PlaceConfig {
    /// Whether pages lie out of place on a drive.
    pub fn is_out(&self, caps: &Caps, page_bytes: u32) -> bool {
        match self {
            PlaceConfig::InPlace(_) => false,
            PlaceConfig::OutOfPlace(_) => true,
            PlaceConfig::Auto(_) => TornPages::Auto.resolve(caps, page_bytes) == Ok(TornPages::DoubleWrite),
        }
    }

    /// How pages lie that are out of place. A store that was made so may be opened by who says nothing of it.
    pub(crate) fn out_of_place(&self) -> OutOfPlaceConfig {
        match self {
            PlaceConfig::InPlace(_) => OutOfPlaceConfig::default(),
            PlaceConfig::OutOfPlace(config) | PlaceConfig::Auto(config) => config.clone(),
        }
    }
}

/// How a store is made and opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes in a page: a power of two from 4 KiB to 64 KiB, at least the drive's. Fixed when the store is made.
    pub page_bytes: u32,
    /// Memory in bytes for everything that grows: frames, the log's buffers, old versions, locks.
    pub memory_bytes: u64,
    /// Bytes of the log's area on the drive. Fixed when the store is made.
    pub log_bytes: u64,
    /// Where pages are written. Fixed when the store is made.
    pub place: PlaceConfig,
    /// What protects pages in place.
    pub torn_pages: TornPages,
    /// What a commit promises that says nothing else.
    pub durability: Durability,
    /// Which frame leaves the pool.
    pub replacement: ReplacementConfig,
    /// What is written when a frame is needed; `None` for what fits the protection and the memory: ACE+RAW with a batch
    /// that the double-write area takes with one flush, fewer pages in a small pool.
    pub write_back: Option<WriteBack>,
    /// What is read beside a missed page.
    pub prefetch: PrefetchConfig,
    /// Leaves that scans read at once, as far as they need so many: best as many reads as the drive does at once (k_r). A
    /// single scan may have a degree of its own.
    pub degree: u32,
    /// Per cent of the memory for pages that records by themselves may have instead, at most: those that were read, and those that were
    /// written and are not merged into their pages yet. The store looks how much of that spares the drive more than pages would. 0 to 90. A store with little memory has none, whatever this says: it keeps
    /// 32 frames first.
    pub records: u8,
    /// How long a `group` commit waits for others at most.
    pub group_window: Nanos,
    /// How old a `relaxed` commit becomes before it is written, at most.
    pub relaxed_window: Nanos,
    /// Read every page back that was written before the log of its changes is given up, and what protects pages in place before it is
    /// relied on. Costs a read for each page written, and another for its copy.
    /// Without it, a write that the drive acknowledges and never does, or does elsewhere, is noticed only where the page is
    /// read soon after; later it leaves an old page that looks whole.
    pub verify_writes: bool,
    /// A bug for the crash simulation to find.
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
            #[cfg(feature = "planted")]
            planted: None,
        }
    }
}

/// Leaves that scans read at once where nothing is known of the drive: enough for most drives, and a window of 128 KiB.
const DEGREE: u32 = 32;

/// Per cent of the memory for pages that records may have where nobody says otherwise.
const RECORDS: u8 = 70;
/// The fewest frames that a store leaves for pages where it has records by themselves.
const FRAMES_BESIDE_RECORDS: u64 = 32;
/// The least memory for records, in pages.
const LEAST_RECORDS: u64 = 16;
/// What records may have at most.
const MOST_RECORDS: u8 = 90;

/// Pages that are written together at most; a larger batch is divided.
pub const BATCH: usize = 64;

/// Pages that are written at once where no write-back policy says how many.
const WRITES_AT_ONCE: u32 = 16;

/// Bytes for a frame beside its page: the pool's tables, and the notes about changed pages.
pub const FRAME_TABLES: u64 = 64;

/// The record cache keeps one byte in so many for its tables. Frames of the pool hold the rest.
pub(crate) const RECORD_TABLES_PART: u64 = 8;

/// Bytes of frames that a record cache of `most_bytes` borrows at most.
pub(crate) fn record_frame_bytes(most_bytes: u64) -> u64 {
    most_bytes - most_bytes.div_ceil(RECORD_TABLES_PART)
}

/// The fewest frames that a store works with.
const LEAST_FRAMES: u64 = 16;

impl Options {
    /// Shares of the memory: an eighth for versions and locks, an eighth for the log's buffers and pages on their
    /// way, the rest for records and for frames of `page_bytes`. Returns how many frames pages have in any case; fails where they are
    /// too few.
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

    /// The same with the frames that records may borrow.
    pub(crate) fn all_frames(&self, page_bytes: u32) -> Result<u32, Error> {
        let borrowed =
            record_frame_bytes(self.record_bytes(page_bytes)) / (u64::from(page_bytes) + FRAME_TABLES);
        Ok(self.frames(page_bytes)?.saturating_add(u32::try_from(borrowed).unwrap_or(u32::MAX / 8)))
    }

    /// Bytes for records by themselves; 0 where they would leave too few frames.
    pub(crate) fn record_bytes(&self, page_bytes: u32) -> u64 {
        let all = self.memory_bytes - self.memory_bytes / 4;
        let beside = FRAMES_BESIDE_RECORDS * (u64::from(page_bytes) + FRAME_TABLES);
        let records = (all / 100 * u64::from(self.records.min(MOST_RECORDS))).min(all.saturating_sub(beside));
        if records < LEAST_RECORDS * u64::from(page_bytes) { 0 } else { records }
    }

    /// How the memory is divided while a store is recovered: frames that may hold pages, and bytes for operations of the log, with
    /// those that they get when they do not all fit and so do not become records.
    /// The fewer stretches the log is divided into, the fewer times each leaf is read and written.
    pub(crate) fn recovery_memory(&self, page_bytes: u32) -> Result<(u32, (u64, u64)), Error> {
        let frames = self.frames(page_bytes)?;
        // What old versions and commits have otherwise: nobody uses the store yet.
        let (spare, records) = (self.memory_bytes / 4, self.record_bytes(page_bytes));
        if u64::from(frames) < 3 * LEAST_FRAMES {
            return Ok((frames, (spare, records)));
        }
        let given = (frames - frames / 3) as u64 * u64::from(page_bytes);
        Ok((frames / 3, (spare + given, records)))
    }

    /// The write-back policy of a pool of `frames`. `is_batched`: pages are written in batches of [`BATCH`], `batches` of them at
    /// once.
    pub(crate) fn write_back(&self, frames: u32, is_batched: bool, batches: u32) -> WriteBack {
        let usual = || {
            // Pages that no flush separates gain nothing from more than a drive writes at once.
            let n_w = if is_batched { BATCH as u32 } else { WRITES_AT_ONCE };
            let n_w = n_w.min(frames / 8).max(1);
            let buffers = (batches * n_w).min(frames / 4).max(2 * n_w);
            WriteBack::ace(n_w).with_buffers(buffers)
        };
        self.write_back.clone().unwrap_or_else(usual)
    }

    /// Pages of a batch that are written to their places at once. A policy that was asked for means what it says.
    pub(crate) fn writes_at_once(&self) -> usize {
        if self.write_back.is_some() { BATCH } else { WRITES_AT_ONCE as usize }
    }

    /// Bytes for old versions.
    pub(crate) fn version_bytes(&self) -> u64 {
        self.memory_bytes / 8
    }

    /// Refuses sizes of pages and log that make no sense, or not on a drive with these capabilities.
    pub fn check(&self, caps: &Caps) -> Result<(), Error> {
        let Options { page_bytes, records, .. } = *self;
        if records > MOST_RECORDS {
            return Err(Error::Options(format!(
                "records cannot have {records} per cent of the memory; accepted: 0 to {MOST_RECORDS}"
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
