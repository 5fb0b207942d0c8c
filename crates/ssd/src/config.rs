//! Declares every parameter of the simulated drive in one table: its name on the command line, its meaning,
//! its bounds and its notation. A preset sets all parameters; `preset:key=value` changes one of them.

use crate::zones::Zones;
use fulgurite_base::option::{COUNT, COUNT_16, MICROS, SHARE, SIZE, YES_NO, parse_choice};
use fulgurite_base::{
    Choice, Declared, Form, Isolation, Nanos, Opt, PlacementId, Prng, Share, Spec, SpecError, opt, units,
};
use fulgurite_device::{Caps, FdpCaps, ZoneCaps};
use fulgurite_ftl::placement::{PlacementConfig, STREAMS_AT_MOST};
use fulgurite_ftl::precondition::Precondition;
use fulgurite_ftl::schedule::Suspend;
use fulgurite_ftl::{Collect, FtlConfig, Stripe, WearLeveling, collect_opt};

/// The kind of write cache: when a write is acknowledged, and whether it survives a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteCache {
    /// A write is acknowledged from the buffer, which survives a power cut. A flush need not wait for the
    /// flash.
    Protected,
    /// A write is acknowledged from the buffer, and lost in a power cut unless it was flushed.
    Volatile,
    /// A write is acknowledged when it is programmed.
    Off,
}

/// The unit of allocation and garbage collection. A segment has one erase block of each plane of its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GcUnit {
    /// The whole drive is one unit, so all dies collect at once.
    Drive,
    /// Each channel is a unit.
    Channel,
    /// Each chip is a unit.
    Chip,
    /// Each die is a unit.
    Die,
    /// Each plane is a unit. The planes of a die then have different pages to program, so the die serves them
    /// one at a time.
    Plane,
}

/// The configuration of a simulated drive. Times are in virtual nanoseconds, sizes in bytes or pages as
/// named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SsdConfig {
    /// The number of channels. Each transfers one page at a time.
    pub channels: u32,
    /// The number of chips on a channel.
    pub chips: u32,
    /// The number of dies in a chip. Each performs one flash operation at a time.
    pub dies: u32,
    /// The number of planes in a die. The planes of a die can be programmed together.
    pub planes: u32,
    /// The number of erase blocks in a plane.
    pub blocks: u32,
    /// The number of flash pages in an erase block.
    pub pages: u32,
    /// The number of bytes in a page of the drive, which is the unit of mapping.
    pub page_bytes: u32,
    /// The number of bytes in a flash page, which holds one or more pages of the drive; 0 for one page.
    pub flash_page_bytes: u32,
    /// The number of flash pages that share a word line, one for each bit of a cell.
    pub cell_bits: u32,
    /// Whether all flash pages of a word line are programmed together.
    pub one_shot: bool,
    /// Over-provisioning ρ: (physical pages − logical pages) / logical pages.
    pub op: Share,
    /// The number of rows of an erase block of which one holds the parity of the others; 0 without parity.
    pub parity: u32,
    /// The mean time to read a flash page from the array into the page register.
    pub read: Nanos,
    /// The difference between flash pages of a word line: the first takes this share of `read` less, the last
    /// this share more.
    pub read_spread: Share,
    /// The mean time to program from the page register into the flash array, for all planes of a die at once.
    pub program: Nanos,
    /// The difference between flash pages of a word line, as for `read_spread`.
    pub program_spread: Share,
    /// The time to erase one block in every plane of a die.
    pub erase: Nanos,
    /// The time to transfer one page between a die and the controller, over the channel.
    pub transfer: Nanos,
    /// The serial time of a read per command: reads pass this stage one after the other.
    pub read_command: Nanos,
    /// The serial time of a read per page.
    pub read_page: Nanos,
    /// The delay of a read that overlaps with other commands: host, driver, interrupt.
    pub read_latency: Nanos,
    /// The serial time of a write per command: writes pass this stage one after the other.
    pub write_command: Nanos,
    /// The serial time of a write per page.
    pub write_page: Nanos,
    /// The delay of a write that overlaps with other commands.
    pub write_latency: Nanos,
    /// The size of the write buffer in bytes. Writes wait in the buffer for the flash.
    pub write_buffer: u64,
    /// The kind of write cache: when a write is acknowledged, and whether it survives a power cut.
    pub write_cache: WriteCache,
    /// The queue depth: the most commands in flight.
    pub queue_depth: u32,
    /// The most commands that the firmware works on at once; the others wait in the drive, in order. 0 for all.
    pub slots: u32,
    /// The most pages of one share command; 0 if the drive has no share command.
    pub share_pages: u32,
    /// The policies and thresholds of garbage collection.
    pub collect: Collect,
    /// Whether collection of the next victim begins while the previous victim is being erased.
    pub gc_overlap: bool,
    /// The number of bytes in a zone; 0 for a drive without zones.
    pub zones: u64,
    /// The most zones that may be begun and not full at once.
    pub active_zones: u16,
    /// The number of bytes before the first zone, which may be written in any order.
    pub conventional: u64,
    /// The unit of collection. Each unit has its own thresholds.
    pub gc_unit: GcUnit,
    /// How writes are spread over the units.
    pub stripe: Stripe,
    /// The time without a command after which the drive counts as idle.
    pub gc_idle: Nanos,
    /// The time that it takes to suspend a program or an erase.
    pub suspend: Nanos,
    /// The time that it takes to resume a program or an erase, before it goes on.
    pub resume: Nanos,
    /// The most suspensions of one operation, after which it runs to its end.
    pub suspensions: u32,
    /// The number of times, evenly spread over a program, at which it can be suspended; 0 for any time.
    pub suspend_points: u32,
    /// How erases are spread over the segments.
    pub wear_leveling: WearLeveling,
    /// With static wear leveling, the most erases by which a segment may be behind the most erased segment.
    pub wear_gap: u32,
    /// The number of erases after which a segment is retired, within a tenth; 0 for unlimited endurance.
    pub endurance: u32,
    /// The capacity on the drive's label in bytes, for its lifetime; 0 if the label is not known. Presets
    /// simulate a smaller drive, so that a run takes seconds.
    pub nominal: u64,
    /// The bytes that the maker rates the drive for (TBW) under the label's capacity; 0 if no rating is known.
    pub rated: u64,
    /// The share of erase blocks that are bad from the factory.
    pub bad_blocks: Share,
    /// The power of a plane that reads a page from the array, in milliwatts.
    pub read_mw: u32,
    /// The power of a plane that programs a page, in milliwatts.
    pub program_mw: u32,
    /// The power of a plane that erases a block, in milliwatts.
    pub erase_mw: u32,
    /// The power of a page transfer on the channel, in milliwatts.
    pub transfer_mw: u32,
    /// Whether the medium is overwritten in place (3D XPoint), without translation, garbage collection or
    /// erases.
    pub in_place: bool,
    /// The state of the drive before the first request.
    pub precondition: Precondition,
}

/// The form of the capacity on a label, which counts in powers of ten: `960GB`.
const LABEL: Form<u64> = Form {
    written: "SIZE",
    parse: units::parse_size,
    show: |bytes| match bytes / 1_000_000_000 {
        gigabytes if gigabytes > 0 && bytes.is_multiple_of(1_000_000_000) => format!("{gigabytes}GB"),
        _ => units::format_size(*bytes),
    },
};

/// The form of the page size, which is a power of two.
const PAGE_SIZE: Form<u32> =
    Form { written: "SIZE", parse: parse_page_bytes, show: |bytes| units::format_size(u64::from(*bytes)) };

/// The form of the size of a flash page: `page` is the size of a page.
const FLASH_PAGE_SIZE: Form<u32> = Form {
    written: "SIZE",
    parse: |text| if text == "page" { Ok(0) } else { parse_page_bytes(text) },
    show: |bytes| if *bytes == 0 { "page".to_owned() } else { units::format_size(u64::from(*bytes)) },
};

impl Declared for SsdConfig {
    const OPTIONS: &'static [Opt<SsdConfig>] = &[
        opt!("channels", channels, COUNT, 1 => 1024, "channels, each transferring one page at a time"),
        opt!("chips", chips, COUNT, 1 => 1024, "chips on a channel"),
        opt!("dies", dies, COUNT, 1 => 1024, "dies in a chip, each doing one flash operation at a time"),
        opt!("planes", planes, COUNT, 1 => MAX_PLANES, "planes in a die, programmed together"),
        opt!("blocks", blocks, COUNT, 1 => 1 << 24, "erase blocks in a plane"),
        opt!("pages", pages, COUNT, 1 => u32::from(u16::MAX), "flash pages in an erase block"),
        opt!("page", page_bytes, PAGE_SIZE, "page size, the unit of mapping"),
        opt!(
            "flash_page",
            flash_page_bytes,
            FLASH_PAGE_SIZE,
            "size of a flash page, which holds several pages"
        ),
        opt!("cell_bits", cell_bits, COUNT, 1 => 5, "flash pages that share a word line: 3 for TLC"),
        opt!("one_shot", one_shot, YES_NO, "program all flash pages of a word line in one operation"),
        opt!("parity", parity, COUNT, 0 => 1024, "of so many rows one holds the parity of the others; 0: none"),
        opt!("op", op, SHARE, "over-provisioning: (physical - logical) / logical"),
        opt!("read_us", read, MICROS, "array read time, the mean over the flash pages of a word line"),
        opt!("read_spread", read_spread, SHARE, Share::ZERO => Share::percent(95),
            "how much faster the first flash page of a word line is read, and how much slower the last"),
        opt!("program_us", program, MICROS, "program time, all planes of a die at once"),
        opt!("program_spread", program_spread, SHARE, Share::ZERO => Share::percent(95),
            "how much faster the first flash page of a word line is programmed, and how much slower the last"),
        opt!("erase_us", erase, MICROS, "erase time, all planes of a die at once"),
        opt!("transfer_us", transfer, MICROS, "channel time of a page"),
        opt!("read_command_us", read_command, MICROS, "serial cost of a read, per command"),
        opt!("read_page_us", read_page, MICROS, "serial cost of a read, per page"),
        opt!("read_latency_us", read_latency, MICROS, "overlapping cost of a read (host, interrupt)"),
        opt!("write_command_us", write_command, MICROS, "serial cost of a write, per command"),
        opt!("write_page_us", write_page, MICROS, "serial cost of a write, per page"),
        opt!("write_latency_us", write_latency, MICROS, "overlapping cost of a write (host, interrupt)"),
        opt!("write_buffer", write_buffer, SIZE, "writes that may wait for the flash"),
        opt!(
            "write_cache",
            write_cache,
            Form::<WriteCache>::choice("protected|volatile|off"),
            "protected, volatile (lost in a power cut) or off"
        ),
        opt!("queue_depth", queue_depth, COUNT, 1 => 1 << 20, "commands in flight at once"),
        opt!("slots", slots, COUNT, 0 => 1 << 20, "commands that the firmware works on at once; 0: all in flight"),
        opt!("share_pages", share_pages, COUNT, 0 => 1 << 20, "pages that one SHARE may have; 0: no SHARE"),
        opt!(
            "gc_unit",
            gc_unit,
            Form::<GcUnit>::choice("drive|channel|chip|die|plane"),
            "unit of allocation and collection, each with its own thresholds"
        ),
        opt!(
            "stripe",
            stripe,
            Form::<Stripe>::choice("round-robin|least-loaded|address"),
            "how writes are spread over the units of gc_unit"
        ),
        opt!("gc_overlap", gc_overlap, YES_NO, "collect the next victim while the last one is being erased"),
        collect_opt!(reserve, collect),
        collect_opt!(hard, collect),
        collect_opt!(background, collect),
        opt!("gc_idle_us", gc_idle, MICROS, "time without a command after which the drive is idle"),
        collect_opt!(urgent, collect),
        opt!("suspend_us", suspend, MICROS, "cost of suspending a program or an erase"),
        opt!("resume_us", resume, MICROS, "cost of resuming a program or an erase"),
        opt!("suspensions", suspensions, COUNT, 1 => 255, "most suspensions of one program or erase"),
        opt!("suspend_points", suspend_points, COUNT, 0 => 64, "times at which a program can be suspended; 0: any"),
        collect_opt!(victim, collect),
        collect_opt!(schedule, collect),
        collect_opt!(placement, collect),
        STREAMS,
        FDP,
        RU,
        opt!(
            "zones",
            zones,
            SIZE,
            "size of a zone, a number of segments, written in order and reset as a whole; 0: none"
        ),
        opt!("active_zones", active_zones, COUNT_16, 1 => STREAMS_AT_MOST - 1,
            "zones that may be begun and not full at once"),
        opt!("conventional", conventional, SIZE, "space before the first zone, written in any order"),
        opt!(
            "wear_leveling",
            wear_leveling,
            Form::<WearLeveling>::choice("none|dynamic|static"),
            "none, dynamic or static"
        ),
        opt!("wear_gap", wear_gap, COUNT, "most erases that a segment may be behind (wear_leveling=static)"),
        opt!("endurance", endurance, COUNT, "erases that a segment endures, within a tenth; 0: unlimited"),
        opt!("nominal", nominal, LABEL, "capacity on the label, whose lifetime is reported; 0: not known"),
        opt!("rated", rated, LABEL, "bytes that the maker's warranty covers (TBW); 0: not known"),
        opt!("bad_blocks", bad_blocks, SHARE, Share::ZERO => Share::percent(50),
            "share of erase blocks that are bad from the factory"),
        opt!("read_mw", read_mw, COUNT, "power of a plane that reads, in mW"),
        opt!("program_mw", program_mw, COUNT, "power of a plane that programs, in mW"),
        opt!("erase_mw", erase_mw, COUNT, "power of a plane that erases, in mW"),
        opt!("transfer_mw", transfer_mw, COUNT, "power of a page on the channel, in mW"),
        opt!("in_place", in_place, YES_NO, "a medium overwritten in place: no garbage"),
        opt!(
            "precondition",
            precondition,
            Form::<Precondition>::choice("none|fill|steady|sprandom"),
            "state at the start: none, fill, steady, or near steady by one pass (sprandom)"
        ),
    ];
}

/// The option `streams=N`, another notation for `placement=hints:streams=N`. It sets the placement and has no
/// value of its own, so that a drive has one canonical text.
const STREAMS: Opt<SsdConfig> = Opt {
    key: "streams",
    about: "streams of writes separated by the host's hints: short for placement=hints:streams=N",
    written: COUNT_16.written,
    bounds: || Some(("1".to_owned(), STREAMS_AT_MOST.to_string())),
    set: |config, text| {
        let streams = COUNT_16.parse_within(text, &1, &STREAMS_AT_MOST)?;
        let placement = &mut config.collect.placement;
        if streams > 1 && *placement != PlacementConfig::ONE_STREAM {
            return Err(SpecError::new(format!(
                "{streams} streams do not go with placement={placement}, which chooses streams itself; \
                 accepted: one of them"
            )));
        }
        if streams > 1 {
            *placement = PlacementConfig::by_hints(streams);
        }
        Ok(())
    },
    show: |_| "1".to_owned(),
};

/// The option `fdp=handles:N`, another notation for `placement=fdp:handles=N`, or with
/// `fdp=handles:N:persistently` for persistently isolated handles.
const FDP: Opt<SsdConfig> = Opt {
    key: "fdp",
    about: "flexible data placement with so many reclaim-unit handles, initially or (handles:8:persistently) \
            persistently isolated: short for placement=fdp",
    written: "handles:N",
    bounds: || Some(("handles:1".to_owned(), format!("handles:{}", PlacementId::HANDLES_AT_MOST))),
    set: |config, text| {
        if text == "none" {
            return Ok(());
        }
        let mut parts = text.split(':');
        let (Some("handles"), Some(handles), isolation, None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(SpecError::new(format!(
                "`{text}` is not a kind of handles; accepted: handles:8, handles:8:initially or handles:8:persistently"
            )));
        };
        let handles = COUNT_16.parse_within(handles, &1, &PlacementId::HANDLES_AT_MOST)?;
        let isolation = match isolation {
            Some(name) => parse_choice(name)?,
            None => Isolation::Initially,
        };
        let placement = &mut config.collect.placement;
        if *placement != PlacementConfig::ONE_STREAM {
            return Err(SpecError::new(format!(
                "fdp={text} does not go with placement={placement}, which chooses streams itself; accepted: one of \
                 them"
            )));
        }
        *placement = PlacementConfig::by_handles(handles, isolation);
        Ok(())
    },
    show: |_| "none".to_owned(),
};

/// The option `ru=SIZE`, another notation for `pages` and `blocks`: erase blocks of so many pages that a segment,
/// which is a reclaim unit, has this size, and about as much flash as before.
const RU: Opt<SsdConfig> = Opt {
    key: "ru",
    about: "size of a reclaim unit, a segment: sets pages and blocks, and keeps the size of the flash",
    written: SIZE.written,
    bounds: || None,
    set: |config, text| {
        if text == "none" {
            return Ok(());
        }
        let bytes = units::parse_size(text)?;
        let row = u64::from(config.stripe_pages()) * u64::from(config.page_bytes);
        let before = u64::from(config.pages) * u64::from(config.blocks);
        let bits = u64::from(config.programmed_bits());
        let pages = bytes / row * bits;
        let blocks = before.checked_div(pages).unwrap_or(0);
        let most = before.min(u64::from(u16::MAX)) / bits;
        if !bytes.is_multiple_of(row) || pages / bits > most || blocks == 0 {
            return Err(SpecError::new(format!(
                "a reclaim unit of {text} does not fit this flash; accepted: a multiple of {} up to {}",
                units::format_size(row),
                units::format_size(row * most),
            )));
        }
        (config.pages, config.blocks) = (pages as u32, blocks as u32);
        Ok(())
    },
    show: |_| "none".to_owned(),
};

impl SsdConfig {
    /// Applies the options of `spec` to this configuration and validates the result.
    pub fn changed_by(self, mut spec: Spec) -> Result<SsdConfig, SpecError> {
        let keys = Self::OPTIONS.iter().map(|option| option.key);
        let given: Vec<&str> = keys.filter(|key| spec.has(key)).collect();
        let config = self.with_options(&mut spec)?;
        spec.finish()?;
        config.validate()?;
        config.refuse_without_effect(&given)?;
        Ok(config)
    }

    /// Refuses given options that have no effect together with the other options.
    fn refuse_without_effect(&self, given: &[&str]) -> Result<(), SpecError> {
        let refuse = |keys: &[&str], why: &str| match given.iter().find(|key| keys.contains(key)) {
            Some(key) => Err(SpecError::new(format!("{key} changes nothing {why}; leave it out"))),
            None => Ok(()),
        };
        if self.in_place {
            refuse(IN_PLACE_IGNORES, "with in_place=yes, a medium without garbage")?;
        }
        if !self.collect.schedule.has_hard_threshold() {
            refuse(&["gc_hard", "urgent_us"], "with schedule=non-preemptive, which has no hard threshold")?;
        }
        match self.collect.schedule.suspends() {
            Suspend::Nothing => {
                refuse(
                    &["suspend_us", "resume_us", "suspensions", "suspend_points"],
                    "unless the schedule suspends (preemptive, or +suspend)",
                )?;
            }
            Suspend::Erases => {
                refuse(&["suspend_points"], "with +suspend-erases, which suspends no program")?
            }
            Suspend::All => {}
        }
        if self.cell_bits == 1 {
            refuse(
                &["one_shot", "read_spread", "program_spread"],
                "with cell_bits=1, one page on a word line",
            )?;
        }
        if self.one_shot {
            refuse(
                &["program_spread"],
                "with one_shot=yes, which programs all pages of a word line at once",
            )?;
        }
        if self.wear_leveling != WearLeveling::Static {
            refuse(&["wear_gap"], "unless wear_leveling=static")?;
        }
        if self.gc_overlap && self.stripe_pages() == self.row_pages() {
            refuse(&["gc_overlap"], "in units of one die, which cannot do both")?;
        }
        if self.units() == 1 {
            refuse(&["stripe"], "where the drive is collected as one unit")?;
        }
        if self.is_by_address() {
            refuse(
                &["share_pages"],
                "with stripe=address, where a page cannot leave its unit to share another's place",
            )?;
        }
        if self.zones == 0 {
            refuse(&["active_zones", "conventional"], "without zones")?;
        } else {
            refuse(&["share_pages"], "with zones, whose pages are written in order")?;
        }
        if self.collect.background == 0 {
            refuse(&["gc_idle_us"], "without gc_background")?;
        }
        Ok(())
    }

    /// Returns the number of dies of the drive.
    pub(crate) fn dies_in_all(&self) -> u32 {
        self.channels * self.chips * self.dies
    }

    /// Returns the number of planes of the drive.
    pub(crate) fn planes_in_all(&self) -> u32 {
        self.dies_in_all() * self.planes
    }

    /// Returns the number of units of collection.
    pub fn units(&self) -> u32 {
        match self.gc_unit {
            GcUnit::Drive => 1,
            GcUnit::Channel => self.channels,
            GcUnit::Chip => self.channels * self.chips,
            GcUnit::Die => self.dies_in_all(),
            GcUnit::Plane => self.planes_in_all(),
        }
    }

    /// Returns the number of drive pages in a flash page.
    pub(crate) fn pages_per_flash_page(&self) -> u32 {
        (self.flash_page_bytes / self.page_bytes).max(1)
    }

    /// Returns the number of flash pages of a plane that one program writes.
    pub(crate) fn programmed_bits(&self) -> u32 {
        if self.one_shot { self.cell_bits } else { 1 }
    }

    /// Returns the number of planes that one flash operation uses together.
    pub(crate) fn row_planes(&self) -> u32 {
        if self.gc_unit == GcUnit::Plane { 1 } else { self.planes }
    }

    /// Returns the number of drive pages in a row: those that one program of a die writes.
    pub(crate) fn row_pages(&self) -> u32 {
        self.row_planes() * self.pages_per_flash_page() * self.programmed_bits()
    }

    /// Returns whether a row has several pages of a plane.
    pub(crate) fn has_shared_rows(&self) -> bool {
        self.row_pages() > self.row_planes()
    }

    /// Returns the number of rows of an erase block that hold data.
    pub(crate) fn rows(&self) -> u32 {
        let rows = self.pages / self.programmed_bits();
        rows - rows.checked_div(self.parity).unwrap_or(0)
    }

    /// Returns the number of drive pages that all dies of a unit program together.
    pub(crate) fn stripe_pages(&self) -> u32 {
        self.planes_in_all() / self.units() * self.pages_per_flash_page() * self.programmed_bits()
    }

    /// Returns the number of drive pages in a segment, which has one erase block of every plane of a unit.
    pub fn pages_per_segment(&self) -> u32 {
        self.stripe_pages() * self.rows()
    }

    /// Returns the number of segments of a unit: the number of good blocks of the plane with the most bad
    /// blocks. The bad blocks of a configuration are always the same.
    pub fn segments(&self) -> u32 {
        if self.bad_blocks == Share::percent(0) {
            return self.blocks;
        }
        let mut prng = Prng::new(0, "bad blocks");
        let good = |_| (0..self.blocks).filter(|_| !prng.chance(self.bad_blocks)).count() as u32;
        (0..self.planes_in_all()).map(good).min().unwrap_or(0)
    }

    /// Returns the number of physical pages for data, including those of bad blocks, without parity.
    pub fn physical_pages(&self) -> u64 {
        u64::from(self.planes_in_all() / self.row_planes() * self.row_pages() * self.rows())
            * u64::from(self.blocks)
    }

    /// Returns the number of logical pages: physical pages / (1 + over-provisioning).
    pub fn logical_pages(&self) -> u64 {
        let pages = self.op.on_top_within(self.physical_pages());
        // A zoned drive has whole zones.
        let (page, zone) = (u64::from(self.page_bytes), self.zones / u64::from(self.page_bytes));
        match pages.saturating_sub(self.conventional / page).checked_div(zone) {
            Some(zones) => self.conventional / page + zones * zone,
            None => pages,
        }
    }

    /// Returns the zones of the drive; `None` for a drive without zones.
    pub(crate) fn zone_caps(&self) -> Option<ZoneCaps> {
        let pages = |bytes: u64| u32::try_from(bytes / u64::from(self.page_bytes)).unwrap_or(u32::MAX);
        (self.zones > 0).then(|| ZoneCaps {
            zone_pages: pages(self.zones),
            conventional_pages: pages(self.conventional),
            active: self.active_zones,
        })
    }

    /// Returns the bytes per second of sequential writes to an empty drive: those that its dies program, or
    /// that its channels or its write path transfer, whichever is the least.
    pub fn sequential_bytes_s(&self) -> f64 {
        let row = f64::from(self.row_pages());
        let data = if self.parity == 0 { 1.0 } else { 1.0 - 1.0 / f64::from(self.parity) };
        let row_ns = self.program.0 as f64 + row * self.transfer.0 as f64;
        let dies = f64::from(self.dies_in_all()) * row * data / row_ns;
        let channels = f64::from(self.channels) * data / self.transfer.0 as f64;
        let path = 1.0 / self.write_page.0 as f64;
        dies.min(channels).min(path) * 1e9 * f64::from(self.page_bytes)
    }

    /// Returns the size of the write buffer in pages.
    pub(crate) fn write_buffer_pages(&self) -> u32 {
        u32::try_from(self.write_buffer / u64::from(self.page_bytes)).unwrap_or(u32::MAX)
    }

    /// Returns the capabilities of a drive of this configuration. `contents` says whether the drive keeps the
    /// bytes of its pages.
    pub fn caps(&self, contents: bool) -> Caps {
        Caps {
            page_bytes: self.page_bytes,
            pages: self.logical_pages(),
            queue_depth: self.queue_depth,
            // Limits a command to the write buffer: a write enters the buffer as a whole, so a larger one
            // would wait for ever.
            pages_per_command: self.write_buffer_pages().min(1024),
            // The atomic unit is a page, because a page is programmed, or rolled back by a power cut, as a
            // whole.
            atomic_bytes: self.page_bytes,
            durable_writes: false,
            // Striping by address excludes shares: a shared page stays at its physical page, even if the unit
            // of its address is another one. So the unit that holds the page could become too full.
            share_pages: if self.in_place || self.is_by_address() || self.zones > 0 {
                0
            } else {
                self.share_pages
            },
            // A layer above a zoned drive writes each of its streams to a zone of its own.
            streams: if self.zones > 0 { self.active_zones } else { self.collect.placement.hints() },
            fdp: self.collect.placement.handles().map(|(handles, isolation)| FdpCaps {
                groups: self.units(),
                handles,
                isolation,
                unit_pages: self.pages_per_segment(),
            }),
            zones: self.zone_caps(),
            contents,
            erase_counts: !self.in_place,
            // Sequential writes are striped over the units and fill one segment of each.
            erase_pages: if self.in_place { 0 } else { self.pages_per_segment() * self.units() },
        }
    }

    /// Returns whether there are several units, and a logical page always goes to the same unit.
    pub(crate) fn is_by_address(&self) -> bool {
        self.units() > 1 && self.stripe == Stripe::Address
    }

    /// Refuses impossible values. The error names the parameter and the accepted values.
    pub fn validate(&self) -> Result<(), SpecError> {
        self.check_bounds()?;
        // Bounds the number of dies first, since other code multiplies these counts in 32 bits.
        if u64::from(self.channels) * u64::from(self.chips) * u64::from(self.dies) > 1 << 16 {
            return Err(SpecError::new("channels × chips × dies is over 65536; use fewer dies"));
        }
        let physical = u128::from(self.planes_in_all())
            * u128::from(self.pages)
            * u128::from(self.blocks)
            * u128::from(self.pages_per_flash_page());
        if physical >= u128::from(u32::MAX) {
            return Err(SpecError::new(format!(
                "the drive has {physical} pages; accepted: fewer than 2^32 (use fewer blocks or larger pages)"
            )));
        }
        self.check_word_lines()?;
        let least_pages = self.row_pages().max(MAX_PLANES) * 2;
        if self.write_buffer_pages() < least_pages {
            let least = units::format_size(u64::from(self.page_bytes) * u64::from(least_pages));
            return Err(SpecError::new(format!(
                "write_buffer={} is too small; accepted: at least {least}",
                units::format_size(self.write_buffer)
            )));
        }
        if self.in_place {
            return self.validate_in_place();
        }
        let placement = &self.collect.placement;
        if placement.needs_future() {
            return Err(SpecError::new(format!(
                "placement={placement} must know all writes beforehand, and a drive does not; accepted in gc alone"
            )));
        }
        self.check_zones()?;
        if placement.handles().is_some() && self.is_by_address() {
            return Err(SpecError::new(
                "stripe=address does not go with fdp, whose host names the reclaim group of a write; accepted: \
                 stripe=round-robin or least-loaded",
            ));
        }
        if placement.handles().is_some() && self.units() > PlacementId::GROUPS_AT_MOST {
            return Err(SpecError::new(format!(
                "{} units of gc_unit are too many reclaim groups for fdp; accepted: at most {}",
                self.units(),
                PlacementId::GROUPS_AT_MOST
            )));
        }
        if self.units() > 1 && !self.is_by_address() && self.write_cache == WriteCache::Volatile {
            return Err(SpecError::new(format!(
                "stripe={} does not go with write_cache=volatile: a power cut would put pages back into units \
                 that have no room for them; accepted: stripe=address, or write_cache=protected or off",
                fulgurite_base::option::name_of(self.stripe)
            )));
        }
        self.ftl().validate().map_err(|error| {
            SpecError::new(format!(
                "blocks={} pages={} op={} cannot collect their own garbage: {error}",
                self.blocks, self.pages, self.op
            ))
        })
    }

    /// Refuses zones that do not fit the flash or the other parameters.
    fn check_zones(&self) -> Result<(), SpecError> {
        let Some(zones) = self.zone_caps() else { return Ok(()) };
        let refuse = |why: String| Err(SpecError::new(why));
        let size = |pages: u64| units::format_size(pages * u64::from(self.page_bytes));
        if self.units() > 1 {
            return refuse("a zone is spread over all dies; accepted with zones: gc_unit=drive".to_owned());
        }
        if self.collect.placement != PlacementConfig::ONE_STREAM {
            return refuse(format!(
                "placement={} does not go with zones, to which the host assigns its writes; accepted: none",
                self.collect.placement
            ));
        }
        if self.write_cache == WriteCache::Volatile {
            return refuse(
                "write_cache=volatile does not go with zones: a power cut would leave gaps in a zone; accepted: \
                 protected or off"
                    .to_owned(),
            );
        }
        let segment = self.pages_per_segment();
        let page_bytes = u64::from(self.page_bytes);
        let is_whole = |pages: u32, bytes: u64| {
            pages.is_multiple_of(segment) && bytes.is_multiple_of(page_bytes) && pages < u32::MAX
        };
        if !is_whole(zones.zone_pages, self.zones) {
            return refuse(format!(
                "zones={} is not a number of segments of this flash; accepted: a multiple of {}",
                units::format_size(self.zones),
                size(u64::from(segment))
            ));
        }
        if !is_whole(zones.conventional_pages, self.conventional) {
            return refuse(format!(
                "conventional={} is not a number of segments of this flash; accepted: a multiple of {}",
                units::format_size(self.conventional),
                size(u64::from(segment))
            ));
        }
        if self.logical_pages() <= u64::from(zones.conventional_pages) {
            return refuse(format!(
                "zones={} and conventional={} leave no zone on this flash; accepted: less than {} together",
                units::format_size(self.zones),
                units::format_size(self.conventional),
                size(self.op.on_top_within(self.physical_pages()))
            ));
        }
        Ok(())
    }

    /// Refuses flash pages and word lines that do not fit each other.
    fn check_word_lines(&self) -> Result<(), SpecError> {
        let refuse = |why: String| Err(SpecError::new(why));
        if self.flash_page_bytes != 0 && self.flash_page_bytes < self.page_bytes {
            return refuse(format!(
                "flash_page={} is smaller than page={}; accepted: page, or a power of two from there on",
                units::format_size(u64::from(self.flash_page_bytes)),
                units::format_size(u64::from(self.page_bytes))
            ));
        }
        if self.one_shot && !self.pages.is_multiple_of(self.cell_bits) {
            return refuse(format!(
                "pages={} does not go with cell_bits={} and one_shot=yes; accepted: a multiple of {}",
                self.pages, self.cell_bits, self.cell_bits
            ));
        }
        if self.parity == 1 {
            return refuse(
                "parity=1 leaves no row for data; accepted: 0 for no parity, or at least 2".to_owned(),
            );
        }
        if self.parity > 0 && self.in_place {
            return refuse("in_place=yes has no parity; accepted: parity=0".to_owned());
        }
        let row = u64::from(self.planes)
            * u64::from(self.pages_per_flash_page())
            * u64::from(self.programmed_bits());
        if row > MAX_ROW_PAGES {
            return refuse(format!(
                "a program writes {row} pages ({} planes, {} pages in a flash page, {} flash pages of a word line); \
                 accepted: at most {MAX_ROW_PAGES}",
                self.planes,
                self.pages_per_flash_page(),
                self.programmed_bits()
            ));
        }
        // A flush would have to pad the rest of a flash page, and the translation layer does not.
        let is_shared = self.has_shared_rows();
        if is_shared && self.write_cache != WriteCache::Protected {
            return refuse(format!(
                "write_cache={} does not go with flash pages or programs of several pages, which must be full \
                 before they are programmed; accepted: write_cache=protected",
                fulgurite_base::option::name_of(self.write_cache)
            ));
        }
        if is_shared && self.in_place {
            return refuse(
                "in_place=yes has no flash pages; accepted: flash_page=page and one_shot=no".to_owned(),
            );
        }
        Ok(())
    }

    fn validate_in_place(&self) -> Result<(), SpecError> {
        if self.planes != 1 {
            return Err(SpecError::new(format!(
                "planes={} does not go with in_place=yes, which has no multi-plane programs; accepted: planes=1",
                self.planes
            )));
        }
        Ok(())
    }

    /// Returns the configuration of the flash translation layer.
    pub fn ftl(&self) -> FtlConfig {
        FtlConfig {
            logical_pages: u32::try_from(self.logical_pages()).unwrap_or(u32::MAX),
            units: self.units(),
            stripe: self.stripe,
            segments: self.units() * self.segments(),
            segment_pages: self.pages_per_segment(),
            row_pages: self.row_pages(),
            stripe_pages: self.stripe_pages(),
            collect: match self.zone_caps() {
                Some(caps) => {
                    let placement = PlacementConfig::by_hints(Zones::streams(&caps));
                    Collect { placement, ..self.collect.clone() }
                }
                None => self.collect.clone(),
            },
            wear_leveling: self.wear_leveling,
            wear_gap: self.wear_gap,
            endurance: self.endurance,
        }
    }
}

/// The options that a medium overwritten in place does not use.
const IN_PLACE_IGNORES: &[&str] = &[
    "share_pages",
    "cell_bits",
    "one_shot",
    "read_spread",
    "program_spread",
    "erase_us",
    "gc_unit",
    "stripe",
    "gc_overlap",
    "gc_reserve",
    "gc_hard",
    "gc_background",
    "gc_idle_us",
    "urgent_us",
    "suspend_us",
    "resume_us",
    "suspensions",
    "suspend_points",
    "victim",
    "schedule",
    "streams",
    "fdp",
    "ru",
    "zones",
    "active_zones",
    "conventional",
    "placement",
    "wear_leveling",
    "wear_gap",
    "endurance",
    "nominal",
    "rated",
    "bad_blocks",
    "erase_mw",
];

/// The most planes of a die.
pub(crate) const MAX_PLANES: u32 = 8;

/// The most pages in a row, which an operation holds as the bits of one word.
const MAX_ROW_PAGES: u64 = 64;

impl Choice for GcUnit {
    const NAMES: &'static [(&'static str, GcUnit)] = &[
        ("drive", GcUnit::Drive),
        ("channel", GcUnit::Channel),
        ("chip", GcUnit::Chip),
        ("die", GcUnit::Die),
        ("plane", GcUnit::Plane),
    ];
}

impl Choice for WriteCache {
    const NAMES: &'static [(&'static str, WriteCache)] =
        &[("protected", WriteCache::Protected), ("volatile", WriteCache::Volatile), ("off", WriteCache::Off)];
}

fn parse_page_bytes(text: &str) -> Result<u32, SpecError> {
    let bytes = units::parse_size(text)?;
    u32::try_from(bytes)
        .ok()
        .filter(|bytes| bytes.is_power_of_two() && (512..=65536).contains(bytes))
        .ok_or_else(|| {
            SpecError::new(format!("{text} is not a page size; accepted: a power of two from 512B to 64KiB"))
        })
}
