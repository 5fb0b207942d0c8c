//! Every parameter of the simulated drive, as one table: its name on the command line, what it
//! does, how it is read and printed. A preset fills it; `preset:key=value` changes it in place.

use crate::schedule::Schedule;
use crate::victim::VictimPolicy;
use fulgurite_base::spec::FromOption;
use fulgurite_base::{Nanos, Share, Spec, SpecError, units};

/// What happens to a drive before the first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precondition {
    /// Nothing: the drive is empty.
    None,
    /// Every logical page is written once, in order.
    Fill,
    /// Filled, then overwritten at random until write amplification settles.
    Steady,
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
    /// Bytes of acknowledged writes that may wait for the flash.
    pub write_buffer: u64,
    /// Commands in flight at once.
    pub queue_depth: u32,
    /// Free segments below which garbage is collected.
    pub gc_reserve: u32,
    /// Which segment is collected.
    pub victim: VictimPolicy,
    /// When it is collected, and what may overtake.
    pub schedule: Schedule,
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
        "acknowledged writes that may wait for flash"
    ),
    param!("queue_depth", queue_depth, count, "commands in flight at once"),
    param!("gc_reserve", gc_reserve, count, "free segments below which garbage is collected"),
    param!(
        "victim",
        victim,
        VictimPolicy::from_name,
        |victim: &VictimPolicy| victim.name().to_owned(),
        "which segment is collected"
    ),
    param!(
        "schedule",
        schedule,
        Schedule::from_name,
        |schedule: &Schedule| schedule.name().to_owned(),
        "when it is collected, what may overtake"
    ),
    param!(
        "in_place",
        in_place,
        parse_yes_no,
        |yes: &bool| if *yes { "yes" } else { "no" }.to_owned(),
        "a medium overwritten in place: no garbage"
    ),
    param!(
        "precondition",
        precondition,
        parse_precondition,
        |state: &Precondition| state.name().to_owned(),
        "state at the start: none, fill or steady"
    ),
];

impl SsdConfig {
    /// This configuration with the options of `spec` applied, checked for sense.
    pub fn with_options(mut self, mut spec: Spec) -> Result<SsdConfig, SpecError> {
        for param in PARAMS {
            (param.take)(&mut self, &mut spec)?;
        }
        spec.finish()?;
        self.validate()?;
        Ok(self)
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

    /// Physical pages.
    pub fn physical_pages(&self) -> u64 {
        u64::from(self.pages_per_segment()) * u64::from(self.blocks)
    }

    /// Logical pages: physical / (1 + OP).
    pub fn logical_pages(&self) -> u64 {
        let ppm = u64::from(Share::ONE.ppm());
        (u128::from(self.physical_pages()) * u128::from(ppm) / u128::from(ppm + u64::from(self.op.ppm())))
            as u64
    }

    /// Pages of acknowledged writes that may wait for the flash.
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
        let ftl = self.ftl();
        ftl.validate().map_err(|error| {
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
    pub fn ftl(&self) -> crate::FtlConfig {
        crate::FtlConfig {
            logical_pages: u32::try_from(self.logical_pages()).unwrap_or(u32::MAX),
            segments: self.blocks,
            segment_pages: self.pages_per_segment(),
            row_pages: self.planes,
            reserve: self.gc_reserve,
            victim: self.victim,
            placement: crate::placement::Placement::None,
            schedule: self.schedule,
        }
    }
}

/// A die programs at most this many pages together.
pub(crate) const MAX_PLANES: usize = 8;

impl Precondition {
    fn name(self) -> &'static str {
        match self {
            Precondition::None => "none",
            Precondition::Fill => "fill",
            Precondition::Steady => "steady",
        }
    }
}

fn parse_precondition(text: &str) -> Result<Precondition, SpecError> {
    [Precondition::None, Precondition::Fill, Precondition::Steady]
        .into_iter()
        .find(|state| state.name() == text)
        .ok_or_else(|| SpecError::unknown("precondition", text, &["none", "fill", "steady"]))
}

fn parse_yes_no(text: &str) -> Result<bool, SpecError> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(SpecError::new(format!("`{text}` is neither yes nor no"))),
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
