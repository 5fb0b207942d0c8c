//! Devices by name: presets with changes, real drives, the ideal drive `mem`, and none at all.
//!
//! Preconditioning a drive takes most of a short run, so preconditioned FTLs are kept and cloned:
//! the same description always starts from the same state.

use crate::error::StudyError;
use crate::memo::Memo;
use crate::table::Row;
use fulgurite_base::{Nanos, Spec, SpecError, units};
use fulgurite_device::{Device, FaultDevice, MemDevice};
use fulgurite_ssd::placement::Placement;
use fulgurite_ssd::preset::{self, Preset, Target};
use fulgurite_ssd::schedule::Schedule;
use fulgurite_ssd::{DriveCounters, Ftl, PARAMS, Served, SimDrive, SsdConfig, Timeline};
use fulgurite_uring::PsyncDevice;
use std::path::PathBuf;
use std::sync::Arc;

/// A device as described, before it is made.
#[derive(Clone, Debug)]
pub struct DeviceDescription {
    /// As it was typed.
    pub name: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    None,
    File(RealDrive),
    Mem { pages: u64, page_bytes: u32 },
    Sim { preset: &'static str, config: Box<SsdConfig> },
}

/// A file or block device.
#[derive(Clone, Debug)]
struct RealDrive {
    path: PathBuf,
    options: fulgurite_uring::Options,
    /// Through system calls, one after the other, in place of io_uring.
    psync: bool,
}

/// The size of a new file where nothing asks for another.
const NEW_FILE_BYTES: u64 = 1 << 30;

impl RealDrive {
    /// Parses what follows `file:`: a path and options.
    fn parse(text: &str) -> Result<RealDrive, StudyError> {
        let (path, options) = text.split_once(',').unwrap_or((text, ""));
        if path.is_empty() {
            return Err(StudyError::request(
                "device file: has no path; write file:PATH, file:PATH,size=1GiB",
            ));
        }
        let separator = if options.is_empty() { "" } else { ":" };
        let mut spec = Spec::parse(&format!("file{separator}{options}"))?;
        let defaults = fulgurite_uring::Options::default();
        let page = spec.take_with("page", units::parse_size)?.unwrap_or(u64::from(defaults.page_bytes));
        let page_bytes = u32::try_from(page).unwrap_or(u32::MAX);
        let size = spec.take_with("size", units::parse_size)?;
        let queue_depth = spec.take::<u32>("queue_depth")?.unwrap_or(defaults.queue_depth);
        let poll = spec.take_with("poll", units::parse_yes_no)?.unwrap_or(false);
        let psync = spec.take_with("engine", |engine| match engine {
            "uring" => Ok(false),
            "psync" => Ok(true),
            _ => Err(SpecError::unknown("value", engine, &["uring", "psync"])),
        })?;
        spec.finish()?;
        let pages = size.map(|size| size / page.max(1));
        let options = fulgurite_uring::Options { page_bytes, pages, queue_depth, poll, ..defaults };
        Ok(RealDrive { path: PathBuf::from(path), options, psync: psync.unwrap_or(false) })
    }

    /// Pages that the drive has, or will have.
    fn pages(&self) -> u64 {
        let known = fulgurite_uring::check(&self.path, &self.options).ok();
        known.unwrap_or(NEW_FILE_BYTES / u64::from(self.options.page_bytes.max(1)))
    }

    /// The same with a size, where a new file has none.
    fn sized(&self) -> fulgurite_uring::Options {
        fulgurite_uring::Options { pages: Some(self.pages()), ..self.options.clone() }
    }

    fn with<U: DeviceUser>(&self, user: U) -> Result<U::Output, StudyError> {
        let options = self.sized();
        if self.psync {
            return Ok(user.with(PsyncDevice::open(&self.path, &options).map_err(StudyError::run)?));
        }
        #[cfg(target_os = "linux")]
        {
            let device = fulgurite_uring::UringDevice::open(&self.path, &options).map_err(StudyError::run)?;
            Ok(user.with(device))
        }
        #[cfg(not(target_os = "linux"))]
        Err(StudyError::request("engine uring needs Linux; accepted here: engine=psync"))
    }
}

/// A device that a run can observe besides using it.
pub trait Observed: Device {
    /// What the drive has done; `None` where it does not count.
    fn observe(&self) -> Option<DriveCounters>;
    /// Checks the drive's own laws, once it is idle; `deep` costs time in proportion to the drive.
    fn verify(&self, deep: bool) -> Result<(), String>;
    /// Lets whatever is under way in the drive come to its end.
    fn settle(&mut self) {}
    /// Starts to keep what requests waited for, where the drive can tell.
    fn keep_served(&mut self) {}
    /// Moves what was kept of the requests that have completed since to `served`.
    fn take_served(&mut self, _served: &mut Vec<Served>) {}
    /// Starts to record a timeline of at most `spans` spans, where the drive can.
    fn record_timeline(&mut self, _spans: usize) {}
    /// The timeline recorded.
    fn timeline(&self) -> Option<&Timeline> {
        None
    }
    /// Sets the columns about wear and lifetime, for a run of this length.
    fn describe_wear(&self, _row: &mut Row, _elapsed: Nanos) {}
}

impl Observed for SimDrive {
    fn observe(&self) -> Option<DriveCounters> {
        Some(self.counters())
    }

    fn verify(&self, deep: bool) -> Result<(), String> {
        SimDrive::verify(self, deep).map_err(|error| error.to_string())
    }

    fn settle(&mut self) {
        SimDrive::settle(self);
    }

    fn keep_served(&mut self) {
        SimDrive::keep_served(self);
    }

    fn take_served(&mut self, served: &mut Vec<Served>) {
        SimDrive::take_served(self, served);
    }

    fn record_timeline(&mut self, spans: usize) {
        SimDrive::record_timeline(self, spans);
    }

    fn timeline(&self) -> Option<&Timeline> {
        SimDrive::timeline(self)
    }

    fn describe_wear(&self, row: &mut Row, elapsed: Nanos) {
        let Some(ftl) = self.ftl() else { return };
        let (least, mean, most) = ftl.segments().wear();
        row.set("wear_min", least);
        row.set("wear_mean", mean);
        row.set("wear_max", most);
        row.set("mapping_bytes", ftl.mapping().bytes() as u64);
        let (counters, endurance) = (self.counters(), f64::from(self.config().endurance));
        if counters.flash_pages_programmed > 0 && endurance > 0.0 {
            let page_bytes = f64::from(self.config().page_bytes);
            let waf = counters.flash_pages_programmed as f64 / counters.host_pages_written as f64;
            let written = self.config().physical_pages() as f64 * page_bytes * endurance / waf;
            row.set("lifetime_bytes_written", written);
            let capacity = self.config().logical_pages() as f64 * page_bytes;
            row.set("lifetime_dwpd_5y", written / capacity / (5.0 * 365.0));
            let rate = counters.host_pages_written as f64 * page_bytes / elapsed.as_secs_f64();
            row.set("lifetime_years_at_this_rate", written / rate / (365.0 * 86_400.0));
        }
    }
}

impl Observed for MemDevice {
    fn observe(&self) -> Option<DriveCounters> {
        None
    }

    fn verify(&self, _: bool) -> Result<(), String> {
        Ok(())
    }
}

impl Observed for PsyncDevice {
    fn observe(&self) -> Option<DriveCounters> {
        None
    }

    fn verify(&self, _: bool) -> Result<(), String> {
        Ok(())
    }
}

#[cfg(target_os = "linux")]
impl Observed for fulgurite_uring::UringDevice {
    fn observe(&self) -> Option<DriveCounters> {
        None
    }

    fn verify(&self, _: bool) -> Result<(), String> {
        Ok(())
    }
}

impl<D: Observed> Observed for FaultDevice<D> {
    fn observe(&self) -> Option<DriveCounters> {
        self.inner().observe()
    }

    fn verify(&self, deep: bool) -> Result<(), String> {
        self.inner().verify(deep)
    }
}

/// What a device is made for: a function over any device.
pub trait DeviceUser {
    /// What it returns.
    type Output;
    /// Uses `device`.
    fn with<D: Observed + 'static>(self, device: D) -> Self::Output;
}

impl DeviceDescription {
    /// The device that `text` names.
    pub fn parse(text: &str) -> Result<DeviceDescription, StudyError> {
        if let Some(drive) = text.strip_prefix("file:") {
            let kind = Kind::File(RealDrive::parse(drive)?);
            return Ok(DeviceDescription { name: text.to_owned(), kind });
        }
        let mut spec = Spec::parse(text)?;
        let kind = if spec.name() == NONE {
            spec.finish()?;
            Kind::None
        } else if spec.name() == MEM {
            let pages = spec.take::<u64>("pages")?.unwrap_or(1 << 32);
            let page_bytes = spec.take_with("page", units::parse_size)?.unwrap_or(512);
            spec.finish()?;
            let page_bytes = u32::try_from(page_bytes).ok().filter(|bytes| bytes.is_power_of_two());
            let page_bytes = page_bytes
                .ok_or_else(|| StudyError::request("page of mem must be a power of two below 4GiB"))?;
            Kind::Mem { pages, page_bytes }
        } else {
            let preset = preset::by_name(spec.name())
                .map_err(|_| SpecError::unknown("device", spec.name(), &names()))?;
            Kind::Sim { preset: preset.name, config: Box::new(preset::configure(spec)?) }
        };
        Ok(DeviceDescription { name: text.to_owned(), kind })
    }

    /// The same drive under another schedule.
    pub fn with_schedule(self, name: &str) -> Result<DeviceDescription, StudyError> {
        let schedule = Schedule::from_name(name)?;
        self.collecting_with("--schedule", name, |config| config.schedule = schedule)
    }

    /// The same drive under another placement policy.
    pub fn with_placement(self, name: &str) -> Result<DeviceDescription, StudyError> {
        let placement = Placement::from_spec(Spec::parse(name)?)?;
        self.collecting_with("--placement", name, |config| config.placement = placement)
    }

    /// The same drive with a change to how it collects garbage, if it does.
    fn collecting_with(
        mut self,
        flag: &str,
        name: &str,
        change: impl FnOnce(&mut SsdConfig),
    ) -> Result<DeviceDescription, StudyError> {
        match &mut self.kind {
            Kind::Sim { config, .. } if !config.in_place => {
                change(config);
                config.validate()?;
                Ok(self)
            }
            _ => Err(StudyError::request(format!(
                "{flag} {name} does not go with {}, which collects no garbage; leave it out",
                self.name
            ))),
        }
    }

    /// The device in full, parameter by parameter: what a run's identity is made of.
    pub fn canonical(&self) -> String {
        match &self.kind {
            Kind::None => NONE.to_owned(),
            Kind::File(drive) => format!("{} {:?} psync={}", self.name, drive.options, drive.psync),
            Kind::Mem { pages, page_bytes } => format!("mem:pages={pages},page={page_bytes}B"),
            Kind::Sim { config, .. } => {
                let options: Vec<String> =
                    PARAMS.iter().map(|param| format!("{}={}", param.key, param.show(config))).collect();
                format!("sim:{}", options.join(","))
            }
        }
    }

    /// Bytes in a device page.
    pub fn page_bytes(&self) -> u32 {
        match &self.kind {
            Kind::None => 512,
            Kind::File(drive) => drive.options.page_bytes,
            Kind::Mem { page_bytes, .. } => *page_bytes,
            Kind::Sim { config, .. } => config.page_bytes,
        }
    }

    /// Whether there is no device at all: misses are counted, and nothing takes time.
    pub fn is_none(&self) -> bool {
        matches!(self.kind, Kind::None)
    }

    /// Whether the device is a real drive: time passes of itself, and runs must not share it.
    pub fn is_real(&self) -> bool {
        matches!(self.kind, Kind::File(_))
    }

    /// The same device, whose contents may go where Fulgurite did not make them.
    pub fn with_destroyed_contents(mut self) -> DeviceDescription {
        if let Kind::File(drive) = &mut self.kind {
            drive.options.destroy_contents = true;
        }
        self
    }

    /// The same device with room for `pages`, where that is a file and nobody said how large it is.
    pub fn with_room_for(mut self, pages: u64) -> DeviceDescription {
        if let Kind::File(drive) = &mut self.kind
            && drive.options.pages.is_none()
            && fulgurite_uring::check(&drive.path, &drive.options).map_or(true, |has| has < pages)
        {
            drive.options.pages = Some(pages);
        }
        self
    }

    /// Refuses a drive that could not be opened, before anything runs.
    pub fn check(&self) -> Result<(), StudyError> {
        match &self.kind {
            Kind::File(drive) => fulgurite_uring::check(&drive.path, &drive.sized())
                .map(drop)
                .map_err(|error| StudyError::request(error.to_string())),
            Kind::None => Err(StudyError::request(NO_DRIVE)),
            _ => Ok(()),
        }
    }

    /// Whether the device tells how often its erase blocks were erased.
    pub fn tells_erase_counts(&self) -> bool {
        self.simulated().is_some_and(|config| !config.in_place)
    }

    /// Commands that may be in flight at once.
    pub fn queue_depth(&self) -> u32 {
        match &self.kind {
            Kind::None => 0,
            Kind::File(drive) => drive.options.queue_depth,
            Kind::Mem { .. } => MEM_QUEUE_DEPTH,
            Kind::Sim { config, .. } => config.queue_depth,
        }
    }

    /// Pages on the device.
    pub fn pages(&self) -> u64 {
        match &self.kind {
            Kind::None => u64::MAX,
            Kind::File(drive) => drive.pages(),
            Kind::Mem { pages, .. } => *pages,
            Kind::Sim { config, .. } => config.logical_pages(),
        }
    }

    /// The simulated drive's configuration.
    pub fn simulated(&self) -> Option<&SsdConfig> {
        match &self.kind {
            Kind::None | Kind::File(_) | Kind::Mem { .. } => None,
            Kind::Sim { config, .. } => Some(config),
        }
    }

    /// The published figures for requests of `page_bytes`, where the device is a preset unchanged.
    pub fn target(&self, page_bytes: u32) -> Option<Target> {
        let preset = self.unchanged_preset()?;
        preset.targets.iter().copied().find(|target| target.page_bytes == page_bytes)
    }

    /// The preset that the device is, where no option was given.
    pub fn unchanged_preset(&self) -> Option<&'static Preset> {
        match &self.kind {
            Kind::Sim { preset, .. } if *preset == self.name => preset::by_name(preset).ok(),
            _ => None,
        }
    }

    /// Makes the device, preconditioned with requests of `request_pages`, and hands it to `user`.
    pub fn with<U: DeviceUser>(
        &self,
        seed: u64,
        request_pages: u32,
        user: U,
    ) -> Result<U::Output, StudyError> {
        match &self.kind {
            Kind::None => Err(StudyError::request(NO_DRIVE)),
            Kind::File(drive) => drive.with(user),
            Kind::Mem { pages, page_bytes } => {
                Ok(user.with(MemDevice::new(*pages, *page_bytes, MEM_QUEUE_DEPTH, Nanos::ZERO)))
            }
            Kind::Sim { config, .. } => {
                let ftl = preconditioned(config, request_pages, seed)?;
                Ok(user.with(SimDrive::with_ftl((**config).clone(), ftl.as_ref().clone(), false)))
            }
        }
    }
}

const MEM_QUEUE_DEPTH: u32 = 1 << 16;

/// The ideal drive's name.
pub const MEM: &str = "mem";

/// The name of no drive.
pub const NONE: &str = "none";

const NO_DRIVE: &str =
    "device none is no drive: only pool can do without, to count misses; accepted: a preset, file:PATH, mem";

/// Every device name.
pub fn names() -> Vec<&'static str> {
    preset::PRESETS.iter().map(|preset| preset.name).chain([MEM, NONE]).collect()
}

type Preconditioned = Result<Arc<Option<Ftl>>, SpecError>;

fn preconditioned(config: &SsdConfig, request_pages: u32, seed: u64) -> Preconditioned {
    static KEPT: Memo<Preconditioned> = Memo::new();
    let key = format!("{config:?} {request_pages} {seed}");
    KEPT.get(key, || SimDrive::preconditioned(config, request_pages, seed).map(Arc::new))
}
