//! Devices by name: presets with changes, real drives, the ideal drive `mem`, and none at all; and the layer above.
//!
//! Preconditioning a drive takes most of a short run, so preconditioned FTLs are kept and cloned:
//! the same description always starts from the same state.

use crate::error::StudyError;
use crate::memo::Memo;
use crate::table::Row;
use fulgurite_base::{Declared, Lpn, Nanos, Spec, SpecError, units};
use fulgurite_device::{Arena, Caps, Command, Completion, Device, FaultDevice, MemDevice, QueueFull};
use fulgurite_ftl::placement::PlacementConfig;
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ftl::victim::VictimConfig;
use fulgurite_ftl::{CountingSink, Ftl};
use fulgurite_log::{Below, LogConfig, LogCounters, LogDevice};
use fulgurite_ssd::preset::{self, Preset, Target};
use fulgurite_ssd::{DriveCounters, Served, SimDrive, SsdConfig, Timeline};
use fulgurite_uring::PsyncDevice;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// A device as described, before it is made.
#[derive(Clone, Debug)]
pub struct DeviceDescription {
    /// As it was typed.
    pub name: String,
    kind: Kind,
    layer: Option<Layer>,
}

/// A log-structured layer above the drive.
#[derive(Clone, Debug)]
struct Layer {
    /// As it was typed.
    name: String,
    config: Box<LogConfig>,
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
    /// What a layer above the drive has done, where there is one.
    fn observe_layer(&self) -> Option<LogCounters> {
        None
    }
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
        SimDrive::drain_events(self);
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

/// The drive below a layer, whatever it is: one type, so that whatever uses layers is compiled once.
type AnyDrive = Box<dyn Observed>;

impl Device for AnyDrive {
    fn caps(&self) -> &Caps {
        (**self).caps()
    }

    fn now(&self) -> Nanos {
        (**self).now()
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        (**self).submit(command)
    }

    fn erases(&self, lpn: Lpn) -> Option<u64> {
        (**self).erases(lpn)
    }

    fn register(&mut self, arena: &Rc<Arena>) {
        (**self).register(arena);
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        (**self).wait(deadline, completions);
    }
}

impl Observed for LogDevice<AnyDrive> {
    fn observe(&self) -> Option<DriveCounters> {
        self.below().observe()
    }

    fn observe_layer(&self) -> Option<LogCounters> {
        Some(self.counters())
    }

    fn verify(&self, deep: bool) -> Result<(), String> {
        LogDevice::verify(self, deep).map_err(|error| error.to_string())?;
        self.below().verify(deep)?;
        match (self.is_idle(), self.below().observe()) {
            (true, Some(drive)) if drive.host_pages_written != self.pages_written() => Err(format!(
                "conservation is broken: the layer wrote {} pages, the drive below received {}",
                self.pages_written(),
                drive.host_pages_written
            )),
            _ => Ok(()),
        }
    }

    fn settle(&mut self) {
        LogDevice::drain_events(self);
        self.below_mut().settle();
    }

    fn record_timeline(&mut self, spans: usize) {
        self.below_mut().record_timeline(spans);
    }

    fn timeline(&self) -> Option<&Timeline> {
        self.below().timeline()
    }

    fn describe_wear(&self, row: &mut Row, elapsed: Nanos) {
        self.below().describe_wear(row, elapsed);
        let counters = self.counters();
        // What the drive bears is written by the layer, copies and all; a lifetime is counted in the host's pages.
        let own = counters.host_pages as f64 / counters.pages_written().max(1) as f64;
        let smaller = self.below().caps().pages as f64 / self.caps().pages as f64;
        for (column, factor) in [("lifetime_bytes_written", own), ("lifetime_dwpd_5y", own * smaller)] {
            row.set_some(column, row.number(column).map(|value| value * factor));
        }
        row.set("layer_mapping_bytes", self.ftl().mapping().bytes() as u64);
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
            return Ok(DeviceDescription { name: text.to_owned(), kind, layer: None });
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
        Ok(DeviceDescription { name: text.to_owned(), kind, layer: None })
    }

    /// The same drive below the layer that `name` describes, or none.
    pub fn with_layer(mut self, name: &str) -> Result<DeviceDescription, StudyError> {
        let spec = Spec::parse(name)?;
        self.layer = match spec.name() {
            NONE => spec.finish().map(|()| None)?,
            LOG => Some(Layer { name: name.to_owned(), config: Box::new(LogConfig::from_spec(spec)?) }),
            unknown => return Err(SpecError::unknown("layer", unknown, &[NONE, LOG]).into()),
        };
        Ok(self)
    }

    /// The same with another schedule of collection, of the layer if there is one.
    pub fn with_schedule(self, name: &str) -> Result<DeviceDescription, StudyError> {
        let schedule = Schedule::from_name(name)?;
        self.collecting_with(
            "--schedule",
            name,
            |drive| drive.collect.schedule = schedule,
            |layer| layer.collect.schedule = schedule,
        )
    }

    /// The same with another placement policy, of the layer if there is one.
    pub fn with_placement(self, name: &str) -> Result<DeviceDescription, StudyError> {
        let placement = PlacementConfig::from_spec(Spec::parse(name)?)?;
        self.collecting_with(
            "--placement",
            name,
            |drive| drive.collect.placement = placement.clone(),
            |layer| layer.collect.placement = placement.clone(),
        )
    }

    /// The same with another victim policy, of the layer if there is one.
    pub fn with_victim(self, name: &str) -> Result<DeviceDescription, StudyError> {
        let victim = VictimConfig::from_spec(Spec::parse(name)?)?;
        self.collecting_with(
            "--victim",
            name,
            |drive| drive.collect.victim = victim.clone(),
            |layer| layer.collect.victim = victim.clone(),
        )
    }

    /// The same with a change to how garbage is collected: in the layer where there is one, for it decides
    /// where pages go; else in the drive.
    fn collecting_with(
        mut self,
        flag: &str,
        name: &str,
        change: impl FnOnce(&mut SsdConfig),
        change_layer: impl FnOnce(&mut LogConfig),
    ) -> Result<DeviceDescription, StudyError> {
        if let Some(layer) = &mut self.layer {
            change_layer(&mut layer.config);
            return Ok(self);
        }
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
        let layer =
            self.layer.as_ref().map_or_else(String::new, |layer| format!(" below {:?}", layer.config));
        self.canonical_drive() + &layer
    }

    fn canonical_drive(&self) -> String {
        match &self.kind {
            Kind::None => NONE.to_owned(),
            Kind::File(drive) => format!("{} {:?} psync={}", self.name, drive.options, drive.psync),
            Kind::Mem { pages, page_bytes } => format!("mem:pages={pages},page={page_bytes}B"),
            Kind::Sim { config, .. } => {
                let options: Vec<String> = SsdConfig::OPTIONS
                    .iter()
                    .map(|param| format!("{}={}", param.key, (param.show)(config)))
                    .collect();
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
        let page_bytes = self.page_bytes();
        let pages = self.layer.as_ref().map_or(pages, |layer| layer.config.pages_below(pages, page_bytes));
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
                .map_err(|error| StudyError::request(error.to_string()))?,
            Kind::None => return Err(StudyError::request(NO_DRIVE)),
            Kind::Mem { .. } | Kind::Sim { .. } => {}
        }
        let Some(layer) = &self.layer else { return Ok(()) };
        let refused = |error: SpecError| {
            StudyError::request(format!("--layer {} above {}: {error}", layer.name, self.name))
        };
        layer.config.ftl(self.pages_of_drive(), self.page_bytes()).map_err(refused)?;
        let given = Spec::parse(&layer.name)?;
        let idle = ["gc_hard", "urgent_us"].into_iter().find(|key| given.has(key));
        if let (Some(key), false) = (idle, layer.config.collect.schedule.has_hard_threshold()) {
            return Err(refused(SpecError::new(format!(
                "{key} changes nothing with schedule non-preemptive, which knows no hard threshold; leave it out"
            ))));
        }
        if !layer.config.fill && self.simulated().is_some() {
            return Err(refused(SpecError::new(
                "fill=no is for drives that are not simulated; accepted here: precondition=none, fill or steady of the drive",
            )));
        }
        Ok(())
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

    /// Pages that the host sees.
    pub fn pages(&self) -> u64 {
        let pages = self.pages_of_drive();
        match &self.layer {
            // A layer that cannot work is refused by `check`.
            Some(layer) => {
                layer.config.ftl(pages, self.page_bytes()).map_or(0, |ftl| u64::from(ftl.logical_pages))
            }
            None => pages,
        }
    }

    /// The layer above the drive as it was typed, where there is one.
    pub fn layer(&self) -> Option<&str> {
        self.layer.as_ref().map(|layer| layer.name.as_str())
    }

    /// Placement and victims where garbage is collected for the host's pages: in the layer, or in a simulated
    /// drive.
    pub fn placement(&self) -> Option<(String, String)> {
        let drive = || {
            self.simulated().map(|config| (config.collect.placement.clone(), config.collect.victim.clone()))
        };
        let layer = self
            .layer
            .as_ref()
            .map(|layer| (layer.config.collect.placement.clone(), layer.config.collect.victim.clone()));
        layer.or_else(drive).map(|(placement, victim)| (placement.to_string(), victim.to_string()))
    }

    /// The schedule there.
    pub fn schedule(&self) -> Option<String> {
        let layer = self.layer.as_ref().map(|layer| layer.config.collect.schedule);
        layer
            .or_else(|| self.simulated().map(|config| config.collect.schedule))
            .map(|schedule| schedule.to_string())
    }

    /// Pages of the drive, whatever is above it.
    fn pages_of_drive(&self) -> u64 {
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
            Kind::Sim { preset, .. } if *preset == self.name && self.layer.is_none() => {
                preset::by_name(preset).ok()
            }
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
        let Some(layer) = &self.layer else {
            return self.with_drive(user, |config| {
                Ok(preconditioned(config, request_pages, seed)?.as_ref().clone())
            });
        };
        let mut ftl = None;
        let ready = self.with_drive(Boxed, |config| {
            let (below, above) = &*preconditioned_layer(&layer.config, config, request_pages, seed)?;
            ftl = Some(above.clone());
            Ok(below.clone())
        })?;
        if let Some(ftl) = ftl {
            return Ok(user.with(LogDevice::with_ftl(ready, (*layer.config).clone(), ftl)));
        }
        let mut device = LogDevice::new(ready, (*layer.config).clone())?;
        if layer.config.fill {
            device.fill().map_err(StudyError::run)?;
        }
        Ok(user.with(device))
    }

    /// Makes the drive, which `precondition` prepares where it is simulated.
    fn with_drive<U: DeviceUser>(
        &self,
        user: U,
        precondition: impl FnOnce(&SsdConfig) -> Result<Option<Ftl>, StudyError>,
    ) -> Result<U::Output, StudyError> {
        match &self.kind {
            Kind::None => Err(StudyError::request(NO_DRIVE)),
            Kind::File(drive) => drive.with(user),
            Kind::Mem { pages, page_bytes } => {
                Ok(user.with(MemDevice::new(*pages, *page_bytes, MEM_QUEUE_DEPTH, Nanos::ZERO)))
            }
            Kind::Sim { config, .. } => {
                let ftl = precondition(config)?;
                Ok(user.with(SimDrive::with_ftl((**config).clone(), ftl, false)))
            }
        }
    }
}

/// Puts a device of whatever type into a box.
struct Boxed;

impl DeviceUser for Boxed {
    type Output = AnyDrive;

    fn with<D: Observed + 'static>(self, device: D) -> AnyDrive {
        Box::new(device)
    }
}

const MEM_QUEUE_DEPTH: u32 = 1 << 16;

/// The ideal drive's name.
pub const MEM: &str = "mem";

/// The name of no drive, and of no layer.
pub const NONE: &str = "none";

/// The log-structured layer's name.
pub const LOG: &str = "log";

const NO_DRIVE: &str =
    "device none is no drive: only pool can do without, to count misses; accepted: a preset, file:PATH, mem";

/// Every device name.
pub fn names() -> Vec<&'static str> {
    preset::registry().names().chain([MEM, NONE]).collect()
}

type Preconditioned = Result<Arc<Option<Ftl>>, SpecError>;

fn preconditioned(config: &SsdConfig, request_pages: u32, seed: u64) -> Preconditioned {
    static KEPT: Memo<Preconditioned> = Memo::new();
    let key = format!("{config:?} {request_pages} {seed}");
    KEPT.get(key, || SimDrive::preconditioned(config, request_pages, seed).map(Arc::new))
}

type Layers = Result<Arc<(Option<Ftl>, Ftl)>, SpecError>;

fn preconditioned_layer(layer: &LogConfig, config: &SsdConfig, request_pages: u32, seed: u64) -> Layers {
    static KEPT: Memo<Layers> = Memo::new();
    let key = format!("{layer:?} {config:?} {request_pages} {seed}");
    KEPT.get(key, || write_layer(layer, config, request_pages, seed).map(Arc::new))
}

/// The translation layers of a simulated drive and of a layer above it, brought where the drive's `precondition` says
/// by writes to the layer.
fn write_layer(
    layer: &LogConfig,
    config: &SsdConfig,
    request_pages: u32,
    seed: u64,
) -> Result<(Option<Ftl>, Ftl), SpecError> {
    let shape = layer.ftl(config.logical_pages(), config.page_bytes)?;
    let streams = config.collect.placement.hints();
    let write = |below: &mut dyn FnMut(Below)| {
        layer.preconditioned(shape.clone(), config.precondition, request_pages, seed, streams, below)
    };
    let mut written = None;
    let below = SimDrive::written_before(config, |ftl| {
        let mut sink = CountingSink::default();
        written = Some(write(&mut |operation| match operation {
            Below::Write { first, pages, stream } => ftl.write(first, pages, stream, &mut sink),
            Below::Trim { first, pages } => (first..first + pages).for_each(|page| ftl.trim(page)),
        }));
    })?;
    // A medium that is overwritten in place has no translation layer that could have seen anything.
    let above = written.unwrap_or_else(|| write(&mut |_| {}))?;
    Ok((below, above))
}
