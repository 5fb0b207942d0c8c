//! Every parameter of the simulated drive, as one table: its name on the command line, what it
//! does, how it is read and printed. A preset fills it; `preset:key=value` changes it in place.

use fulgurite_base::spec::FromOption;
use fulgurite_base::{Nanos, Prng, Share, Spec, SpecError, option, units};
use fulgurite_ftl::placement::Placement;
use fulgurite_ftl::precondition::Precondition;
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ftl::victim::VictimPolicy;
use fulgurite_ftl::{FtlConfig, WearLeveling};

/// What becomes of a write that the drive has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteCache {
    /// It is acknowledged from the buffer, which a power cut does not empty.
    Protected,
    /// It is acknowledged from the buffer, and lost in a power cut unless it was flushed.
    Volatile,
    /// It is acknowledged when it is programmed.
    Off,
}

/// A simulated drive as data. Times are in virtual nanoseconds, sizes in bytes or pages as named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SsdConfig {
    /// Channels, each moving one page at a time.
    pub channels: u32,
    /// Chips on a channel.
    pub chips: u32,
    /// Dies in a chip, each doing one flash operation at a time.
    pub dies: u32,
    /// Planes in a die, which can be programmed together.
    pub planes: u32,
    /// Erase blocks in a plane.
    pub blocks: u32,
    /// Pages in an erase block.
    pub pages: u32,
    /// Bytes in a page, the unit of mapping.
    pub page_bytes: u32,
    /// Over-provisioning: (physical − logical) / logical.
    pub op: Share,
    /// Flash array to page register.
    pub read: Nanos,
    /// Page register to flash array, all planes of a die at once.
    pub program: Nanos,
    /// Erase of one block in every plane of a die.
    pub erase: Nanos,
    /// One page between a die and the controller, over the channel.
    pub transfer: Nanos,
    /// The serial part of a read, per command.
    pub read_command: Nanos,
    /// The serial part of a read, per page.
    pub read_page: Nanos,
    /// The part of a read that overlaps with others: host, driver, interrupt.
    pub read_latency: Nanos,
    /// The serial part of a write, per command.
    pub write_command: Nanos,
    /// The serial part of a write, per page.
    pub write_page: Nanos,
    /// The part of a write that overlaps with others.
    pub write_latency: Nanos,
    /// Bytes of writes that may wait for the flash.
    pub write_buffer: u64,
    /// Whether they are acknowledged before they are programmed, and survive a power cut.
    pub write_cache: WriteCache,
    /// Commands in flight at once.
    pub queue_depth: u32,
    /// The soft threshold: free segments below which garbage is collected.
    pub gc_reserve: u32,
    /// The hard threshold: free segments that are collection's own.
    pub gc_hard: u32,
    /// Free segments up to which an idle drive collects; zero: it does not.
    pub gc_background: u32,
    /// How long without a command makes a drive idle.
    pub gc_idle: Nanos,
    /// How long a write waits for collection before everything else does too.
    pub urgent: Nanos,
    /// What suspending a program or an erase costs.
    pub suspend: Nanos,
    /// Which segment is collected.
    pub victim: VictimPolicy,
    /// When it is collected, and what may overtake.
    pub schedule: Schedule,
    /// Streams of writes that are kept apart by the host's hints.
    pub streams: u32,
    /// Which stream a page goes to, where that is not the host's choice.
    pub placement: Placement,
    /// How erases are spread over the segments.
    pub wear_leveling: WearLeveling,
    /// How far a segment may fall behind in erases where leveling is static.
    pub wear_gap: u32,
    /// Erases that a segment bears before it is retired, within a tenth.
    pub endurance: u32,
    /// Erase blocks that are bad from the factory.
    pub bad_blocks: Share,
    /// Power while a page is read from the array, in milliwatts.
    pub read_mw: u32,
    /// Power while a page is programmed.
    pub program_mw: u32,
    /// Power while a block is erased.
    pub erase_mw: u32,
    /// Power while a page is on the channel.
    pub transfer_mw: u32,
    /// A medium that is overwritten in place (3D XPoint): no translation, no garbage, no erase.
    pub in_place: bool,
    /// The state at the start.
    pub precondition: Precondition,
}

/// One parameter of [`SsdConfig`] as users see it.
pub struct Param {
    /// Its key in `preset:key=value`.
    pub key: &'static str,
    /// What it is.
    pub about: &'static str,
    take: fn(&mut SsdConfig, &mut Spec) -> Result<(), SpecError>,
    show: fn(&SsdConfig) -> String,
}

impl Param {
    /// The parameter's value in `config`, as it would be typed.
    pub fn show(&self, config: &SsdConfig) -> String {
        (self.show)(config)
    }
}

macro_rules! param {
    ($key:literal, $field:ident, $parse:expr, $show:expr, $about:literal) => {
        Param {
            key: $key,
            about: $about,
            take: |config, spec| {
                if let Some(value) = spec.take_with($key, $parse)? {
                    config.$field = value;
                }
                Ok(())
            },
            show: |config| ($show)(&config.$field),
        }
    };
    ($key:literal, $field:ident, count, $about:literal) => {
        param!($key, $field, u32::from_option, u32::to_string, $about)
    };
    ($key:literal, $field:ident, micros, $about:literal) => {
        param!($key, $field, units::parse_micros, |time: &Nanos| units::format_micros(*time), $about)
    };
}

/// All parameters, in the order in which they are listed.
pub const PARAMS: &[Param] = &[
    param!("channels", channels, count, "channels, each moving one page at a time"),
    param!("chips", chips, count, "chips on a channel"),
    param!("dies", dies, count, "dies in a chip, each doing one flash operation at a time"),
    param!("planes", planes, count, "planes in a die, programmed together"),
    param!("blocks", blocks, count, "erase blocks in a plane"),
    param!("pages", pages, count, "pages in an erase block"),
    param!(
        "page",
        page_bytes,
        parse_page_bytes,
        |bytes: &u32| units::format_size(u64::from(*bytes)),
        "page size, the unit of mapping"
    ),
    param!(
        "op",
        op,
        units::parse_share,
        Share::to_string,
        "over-provisioning: (physical - logical) / logical"
    ),
    param!("read_us", read, micros, "array read time"),
    param!("program_us", program, micros, "program time, all planes of a die at once"),
    param!("erase_us", erase, micros, "erase time, all planes of a die at once"),
    param!("transfer_us", transfer, micros, "channel time of a page"),
    param!("read_command_us", read_command, micros, "serial cost of a read, per command"),
    param!("read_page_us", read_page, micros, "serial cost of a read, per page"),
    param!("read_latency_us", read_latency, micros, "overlapping cost of a read (host, interrupt)"),
    param!("write_command_us", write_command, micros, "serial cost of a write, per command"),
    param!("write_page_us", write_page, micros, "serial cost of a write, per page"),
    param!("write_latency_us", write_latency, micros, "overlapping cost of a write (host, interrupt)"),
    param!(
        "write_buffer",
        write_buffer,
        units::parse_size,
        |bytes: &u64| units::format_size(*bytes),
        "writes that may wait for the flash"
    ),
    param!(
        "write_cache",
        write_cache,
        WriteCache::from_name,
        |cache: &WriteCache| cache.name().to_owned(),
        "protected, volatile (lost in a power cut) or off"
    ),
    param!("queue_depth", queue_depth, count, "commands in flight at once"),
    param!("gc_reserve", gc_reserve, count, "soft threshold: free segments below which garbage is collected"),
    param!("gc_hard", gc_hard, count, "hard threshold: free segments that only collection may use"),
    param!(
        "gc_background",
        gc_background,
        count,
        "free segments up to which an idle drive collects; 0: none"
    ),
    param!("gc_idle_us", gc_idle, micros, "time without a command that makes a drive idle"),
    param!("urgent_us", urgent, micros, "time a write waits before collection goes first"),
    param!("suspend_us", suspend, micros, "cost of suspending a program or an erase (schedule preemptive)"),
    param!(
        "victim",
        victim,
        |name: &str| VictimPolicy::from_spec(Spec::parse(name)?),
        VictimPolicy::to_string,
        "which segment is collected"
    ),
    param!(
        "schedule",
        schedule,
        Schedule::from_name,
        Schedule::to_string,
        "when it is collected, what may overtake"
    ),
    param!("streams", streams, count, "streams of writes kept apart by the host's hints"),
    param!(
        "placement",
        placement,
        |name: &str| Placement::from_spec(Spec::parse(name)?),
        Placement::to_string,
        "which stream (append point) a page goes to; not with streams"
    ),
    param!(
        "wear_leveling",
        wear_leveling,
        WearLeveling::from_name,
        |leveling: &WearLeveling| leveling.name().to_owned(),
        "none, dynamic or static"
    ),
    param!("wear_gap", wear_gap, count, "erases that a segment may fall behind (wear_leveling=static)"),
    param!("endurance", endurance, count, "erases that a segment bears, within a tenth; 0: any number"),
    param!(
        "bad_blocks",
        bad_blocks,
        units::parse_share,
        Share::to_string,
        "share of erase blocks that are bad from the factory"
    ),
    param!("read_mw", read_mw, count, "power of a plane that reads, in mW"),
    param!("program_mw", program_mw, count, "power of a plane that programs, in mW"),
    param!("erase_mw", erase_mw, count, "power of a plane that erases, in mW"),
    param!("transfer_mw", transfer_mw, count, "power of a page on the channel, in mW"),
    param!(
        "in_place",
        in_place,
        units::parse_yes_no,
        |yes: &bool| if *yes { "yes" } else { "no" }.to_owned(),
        "a medium overwritten in place: no garbage"
    ),
    param!(
        "precondition",
        precondition,
        option::parse_choice::<Precondition>,
        |state: &Precondition| option::name_of(*state).to_owned(),
        "state at the start: none, fill or steady"
    ),
];

impl SsdConfig {
    /// This configuration with the options of `spec` applied, checked for sense.
    pub fn with_options(mut self, mut spec: Spec) -> Result<SsdConfig, SpecError> {
        let given: Vec<&str> = PARAMS.iter().map(|param| param.key).filter(|key| spec.has(key)).collect();
        for param in PARAMS {
            (param.take)(&mut self, &mut spec)?;
        }
        spec.finish()?;
        self.validate()?;
        self.refuse_without_effect(&given)?;
        Ok(self)
    }

    /// Refuses options that change nothing beside the others.
    fn refuse_without_effect(&self, given: &[&str]) -> Result<(), SpecError> {
        let refuse = |keys: &[&str], why: &str| match given.iter().find(|key| keys.contains(key)) {
            Some(key) => Err(SpecError::new(format!("{key} changes nothing {why}; leave it out"))),
            None => Ok(()),
        };
        if self.in_place {
            refuse(IN_PLACE_IGNORES, "with in_place=yes, a medium without garbage")?;
        }
        if !self.schedule.has_hard_threshold() {
            refuse(&["gc_hard", "urgent_us"], "with schedule=non-preemptive, which knows no hard threshold")?;
        }
        if !self.schedule.suspends() {
            refuse(&["suspend_us"], "unless schedule=preemptive")?;
        }
        if self.wear_leveling != WearLeveling::Static {
            refuse(&["wear_gap"], "unless wear_leveling=static")?;
        }
        if self.gc_background == 0 {
            refuse(&["gc_idle_us"], "without gc_background")?;
        }
        Ok(())
    }

    /// Every parameter with its value, for the identity of a run.
    pub fn canonical(&self) -> String {
        let params = PARAMS.iter().map(|param| format!("{}={}", param.key, param.show(self)));
        params.collect::<Vec<_>>().join(",")
    }

    /// Dies of the drive.
    pub fn dies_in_all(&self) -> u32 {
        self.channels * self.chips * self.dies
    }

    /// Planes of the drive: the erase blocks in a segment.
    pub fn planes_in_all(&self) -> u32 {
        self.dies_in_all() * self.planes
    }

    /// Pages in a segment: one erase block of every plane.
    pub fn pages_per_segment(&self) -> u32 {
        self.planes_in_all() * self.pages
    }

    /// Segments: as many as the plane with the most bad blocks has good ones. A drive's bad blocks
    /// are always the same.
    pub fn segments(&self) -> u32 {
        if self.bad_blocks == Share::percent(0) {
            return self.blocks;
        }
        let mut prng = Prng::new(0, "bad blocks");
        let good = |_| (0..self.blocks).filter(|_| !prng.chance(self.bad_blocks)).count() as u32;
        (0..self.planes_in_all()).map(good).min().unwrap_or(0)
    }

    /// Physical pages, bad ones included.
    pub fn physical_pages(&self) -> u64 {
        u64::from(self.pages_per_segment()) * u64::from(self.blocks)
    }

    /// Logical pages: physical / (1 + OP).
    pub fn logical_pages(&self) -> u64 {
        self.op.on_top_within(self.physical_pages())
    }

    /// Pages of writes that may wait for the flash.
    pub fn write_buffer_pages(&self) -> u32 {
        u32::try_from(self.write_buffer / u64::from(self.page_bytes)).unwrap_or(u32::MAX)
    }

    /// Refuses what cannot work, naming the parameter and what would do.
    pub fn validate(&self) -> Result<(), SpecError> {
        let counts = [
            ("channels", self.channels, 1024),
            ("chips", self.chips, 1024),
            ("dies", self.dies, 1024),
            ("planes", self.planes, MAX_PLANES as u32),
            ("blocks", self.blocks, 1 << 24),
            ("pages", self.pages, u32::from(u16::MAX)),
            ("queue_depth", self.queue_depth, 1 << 20),
            ("gc_reserve", self.gc_reserve, 1 << 20),
            ("gc_hard", self.gc_hard, 1 << 20),
        ];
        for (key, value, most) in counts {
            if value == 0 || value > most {
                return Err(SpecError::new(format!("{key}={value} is out of range; accepted: 1 to {most}")));
            }
        }
        if u64::from(self.channels) * u64::from(self.chips) * u64::from(self.dies) > 1 << 16 {
            return Err(SpecError::new("channels × chips × dies is over 65536; use fewer dies"));
        }
        let physical = u128::from(self.planes_in_all()) * u128::from(self.pages) * u128::from(self.blocks);
        if physical >= u128::from(u32::MAX) {
            return Err(SpecError::new(format!(
                "the drive has {physical} pages; accepted: fewer than 2^32 (use fewer blocks or larger pages)"
            )));
        }
        if self.write_buffer_pages() < MAX_PLANES as u32 * 2 {
            let least = units::format_size(u64::from(self.page_bytes) * MAX_PLANES as u64 * 2);
            return Err(SpecError::new(format!(
                "write_buffer={} is too small; accepted: at least {least}",
                units::format_size(self.write_buffer)
            )));
        }
        if self.in_place {
            return self.validate_in_place();
        }
        if self.bad_blocks > Share::percent(50) {
            return Err(SpecError::new(format!(
                "bad_blocks={} is out of range; accepted: 0% to 50%",
                self.bad_blocks
            )));
        }
        let by_hints = Placement::with_streams(self.streams)?;
        if self.placement != Placement::NONE && by_hints != Placement::NONE {
            return Err(SpecError::new(format!(
                "streams={} does not go with placement={}, which chooses streams itself; accepted: one of them",
                self.streams, self.placement
            )));
        }
        if self.placement.needs_future() {
            return Err(SpecError::new(format!(
                "placement={} must know all writes beforehand, and a drive does not; accepted in gc alone",
                self.placement
            )));
        }
        self.ftl().validate().map_err(|error| {
            SpecError::new(format!(
                "blocks={} pages={} op={} cannot collect their own garbage: {error}",
                self.blocks, self.pages, self.op
            ))
        })
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

    /// The configuration of the flash translation layer.
    pub fn ftl(&self) -> FtlConfig {
        FtlConfig {
            logical_pages: u32::try_from(self.logical_pages()).unwrap_or(u32::MAX),
            segments: self.segments(),
            segment_pages: self.pages_per_segment(),
            row_pages: self.planes,
            stripe_pages: self.planes_in_all(),
            reserve: self.gc_reserve,
            hard: self.gc_hard,
            background: self.gc_background,
            victim: self.victim,
            placement: match self.placement {
                Placement::None(_) => Placement::with_streams(self.streams).unwrap_or(Placement::NONE),
                placement => placement,
            },
            schedule: self.schedule,
            wear_leveling: self.wear_leveling,
            wear_gap: self.wear_gap,
            endurance: self.endurance,
        }
    }
}

/// What a medium that is overwritten in place has no use for.
const IN_PLACE_IGNORES: &[&str] = &[
    "erase_us",
    "gc_reserve",
    "gc_hard",
    "gc_background",
    "gc_idle_us",
    "urgent_us",
    "suspend_us",
    "victim",
    "schedule",
    "streams",
    "placement",
    "wear_leveling",
    "wear_gap",
    "endurance",
    "bad_blocks",
    "erase_mw",
];

/// A die programs at most this many pages together.
pub(crate) const MAX_PLANES: usize = 8;

impl WriteCache {
    const NAMES: [&str; 3] = ["protected", "volatile", "off"];

    fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    fn from_name(text: &str) -> Result<WriteCache, SpecError> {
        [WriteCache::Protected, WriteCache::Volatile, WriteCache::Off]
            .into_iter()
            .find(|cache| cache.name() == text)
            .ok_or_else(|| SpecError::unknown("write_cache", text, &Self::NAMES))
    }
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
