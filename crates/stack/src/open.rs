//! Opens the devices of a stack, in the state in which measurements start.
//!
//! Preconditioning a drive takes most of the time of a short run. So a preconditioned translation layer is
//! kept and cloned for each run with the same description.

use crate::device::{AnyDrive, DriveConfig, Engine, FileConfig, LayerConfig, MEM_QUEUE_DEPTH, Observed};
use crate::memo::Memo;
use crate::progress::step;
use crate::{Stack, StackError, Unit};
use fulgurite_base::{Nanos, Spec, SpecError, units};
use fulgurite_device::{Caps, MemDevice, ZoneCaps};
use fulgurite_files::obstacle;
use fulgurite_ftl::precondition::Precondition;
use fulgurite_ftl::{CountingSink, Ftl};
use fulgurite_log::{Below, LogConfig, LogDevice};
use fulgurite_ssd::{SimDrive, SsdConfig, Zones};
use fulgurite_uring::{OpenError, PsyncDevice};
use std::path::Path;
use std::sync::Arc;

/// A function that takes a device of any type.
pub trait DeviceUser {
    /// The result of the function.
    type Output;
    /// Calls the function with `device`.
    fn with<D: Observed + 'static>(self, device: D) -> Self::Output;
}

/// Boxes a device of any type.
pub(crate) struct Boxed;

impl DeviceUser for Boxed {
    type Output = AnyDrive;

    fn with<D: Observed + 'static>(self, device: D) -> AnyDrive {
        Box::new(device)
    }
}

/// Returns the error for a file or block device at `path`. The error names the argument.
fn refused_file(path: &Path, error: &OpenError) -> StackError {
    if let OpenError::Io { error, .. } = error {
        return StackError::request(format!(
            "device file:{} cannot be opened: {}; accepted: a file or a block device",
            path.display(),
            obstacle(path, error)
        ));
    }
    let (path, error) = (path.display().to_string(), error.to_string());
    // Most of these errors begin with the path already, so do not repeat it.
    StackError::request(match error.strip_prefix(&path) {
        Some(error) => format!("device file:{path}{error}"),
        None => format!("device file:{path}: {error}"),
    })
}

const NO_DRIVE: &str = "device none is no drive; only pool works without a drive, to count misses; accepted: a \
    preset, file:PATH, mem";

impl Stack {
    /// Returns the number of pages of the layer, or of the device if there is no layer.
    pub fn pages(&self) -> u64 {
        let pages = self.device.pages();
        match &self.layer {
            // A layer that cannot work counts as 0 pages here, because `check_storage` refuses it.
            Some(layer) => {
                layer.log.ftl(pages, self.device.page_bytes()).map_or(0, |ftl| u64::from(ftl.logical_pages))
            }
            None => pages,
        }
    }

    /// Returns the properties of the device and of its layer that are known before the device is opened. A
    /// real drive reports more properties when it is open.
    pub(crate) fn caps(&self) -> Caps {
        let device = match self.device.simulated() {
            Some(config) => config.caps(true),
            None => Caps::plain(self.device.page_bytes(), self.device.pages(), self.device.queue_depth()),
        };
        let share_pages = self.layer.as_ref().map_or(device.share_pages, |_| LogConfig::SHARE_PAGES);
        Caps { pages: self.pages(), share_pages, ..device }
    }

    /// Returns the number of device pages in a page of `page_bytes`.
    pub(crate) fn device_pages_per(&self, page_bytes: u32) -> Result<u32, StackError> {
        let unit = self.device.page_bytes();
        if page_bytes == 0 || !page_bytes.is_multiple_of(unit) || page_bytes / unit > 256 {
            return Err(StackError::request(format!(
                "--page {page_bytes}B does not suit {}, whose pages have {unit} bytes; accepted: 1 to 256 whole \
                    pages",
                self.device.label
            )));
        }
        Ok(page_bytes / unit)
    }

    /// Returns the number of pages that the device needs so that `pages` are usable: more than that if there is
    /// a layer above it, which needs spare space.
    pub(crate) fn pages_below(&self, pages: u64) -> u64 {
        let page_bytes = self.device.page_bytes();
        self.layer.as_ref().map_or(pages, |layer| layer.log.pages_below(pages, page_bytes))
    }

    /// Makes the device large enough for `pages`, if it is a file without a given size.
    pub(crate) fn make_room_for(&mut self, pages: u64) {
        let below = self.pages_below(pages);
        if let DriveConfig::File(file) = &mut self.device.drive {
            file.make_room_for(below);
        }
    }

    /// Whether the device reports the erase counts of its blocks.
    pub(crate) fn tells_erase_counts(&self) -> bool {
        self.device.simulated().is_some_and(|config| !config.in_place)
    }

    /// Returns the text of the device and the layer in the identity of a run.
    pub(crate) fn canonical_storage(&self) -> String {
        match &self.layer {
            Some(layer) => format!("{} below {}", self.device.canonical(), layer.log.canonical()),
            // Without a pool, the addresses of a trace are mapped to the size of the drive, so the identity
            // includes the size.
            None if self.pool.is_none() && self.engine.is_none() && self.device.is_real() => {
                format!("{} of {} pages", self.device.canonical(), self.device.pages())
            }
            None => self.device.canonical(),
        }
    }

    /// Refuses a drive that cannot be opened and a layer that cannot work, before anything runs.
    pub(crate) fn check_storage(&self) -> Result<(), StackError> {
        match &self.device.drive {
            DriveConfig::File(file) => {
                fulgurite_uring::check(&file.path, &file.uring_options(Some(file.pages())))
                    .map_err(|error| refused_file(&file.path, &error))?;
                file.check_store()?;
            }
            DriveConfig::None => return Err(StackError::request(NO_DRIVE)),
            DriveConfig::Simulated { config, .. } => config.validate()?,
            DriveConfig::Translation(_) | DriveConfig::Mem(_) => {}
        }
        match &self.layer {
            Some(layer) => self.check_layer(layer),
            None if self.engine.is_some() || self.pool.is_some() => self.refuse_bare_zones(),
            None => Ok(()),
        }
    }

    /// Returns the zones of the drive below; `None` if it has none.
    fn zones(&self) -> Option<ZoneCaps> {
        self.device.simulated()?.caps(true).zones
    }

    /// Refuses a zoned drive without a layer, for what writes pages in any order.
    pub(crate) fn refuse_bare_zones(&self) -> Result<(), StackError> {
        if self.zones().is_none() || self.layer.is_some() {
            return Ok(());
        }
        Err(StackError::request(format!(
            "{} has zones, which are written in order, and pages are written in any order; accepted: a layer, like \
             --layer log:segment=SIZE with the size of a zone",
            self.device.label
        )))
    }

    /// Returns why a layer does not suit the zones of a drive; `None` if it suits them.
    fn unsuited_to_zones(&self, log: &LogConfig) -> Option<String> {
        let ZoneCaps { zone_pages, conventional_pages, active } = self.zones()?;
        let zone_bytes = u64::from(zone_pages) * u64::from(self.device.page_bytes());
        let streams = log.collect.placement.streams();
        if log.segment_bytes != zone_bytes {
            return Some(format!(
                "segment={} is not the size of a zone; accepted: segment={}",
                units::format_size(log.segment_bytes),
                units::format_size(zone_bytes)
            ));
        }
        if !conventional_pages.is_multiple_of(zone_pages) {
            return Some(
                "the conventional part is not a number of zones; accepted: conventional=0".to_owned(),
            );
        }
        if streams > active {
            return Some(format!(
                "placement={} writes {streams} segments at once, and the drive has active_zones={active}; accepted: \
                 active_zones={streams} or more",
                log.collect.placement
            ));
        }
        (!log.trim).then(|| "trim=no never resets a zone; accepted: trim=yes".to_owned())
    }

    fn check_layer(&self, layer: &LayerConfig) -> Result<(), StackError> {
        let refused = |error: SpecError| {
            StackError::request(format!("--layer {} above {}: {error}", layer.label, self.device.label))
        };
        layer.log.ftl(self.device.pages(), self.device.page_bytes()).map_err(refused)?;
        if let Some(why) = self.unsuited_to_zones(&layer.log) {
            return Err(refused(SpecError::new(why)));
        }
        let given = Spec::parse(&layer.label)?;
        let idle = ["gc_hard", "urgent_us"].into_iter().find(|key| given.has(key));
        if let (Some(key), false) = (idle, layer.log.collect.schedule.has_hard_threshold()) {
            return Err(refused(SpecError::new(format!(
                "{key} changes nothing with schedule non-preemptive, which has no hard threshold; leave it out"
            ))));
        }
        // The drive below would get only the layer's one pass, which is no steady state of the drive.
        let is_one_pass = |config: &SsdConfig| config.precondition == Precondition::SpRandom;
        if self.device.simulated().is_some_and(is_one_pass) {
            return Err(refused(SpecError::new(
                "precondition=sprandom prepares the layer in one pass, which leaves the drive below it as after a \
                    fill; accepted here: precondition=none, fill or steady of the drive",
            )));
        }
        if !layer.log.fill && self.device.simulated().is_some() {
            return Err(refused(SpecError::new(
                "fill=no is for drives that are not simulated; accepted here: precondition=none, fill or steady of \
                    the drive",
            )));
        }
        Ok(())
    }

    /// Opens the device, preconditioned with requests of `request_pages`, and passes it to `user`.
    pub fn with_device<U: DeviceUser>(
        &self,
        seed: u64,
        request_pages: u32,
        user: U,
    ) -> Result<U::Output, StackError> {
        let Some(LayerConfig { log, .. }) = &self.layer else {
            return self.with_drive(user, |config| match config.precondition {
                // A new drive is made at once. A copy would take the memory of the whole map.
                Precondition::None => Ok(SimDrive::preconditioned(config, request_pages, seed)?),
                _ => Ok(preconditioned(config, request_pages, seed)?.as_ref().clone()),
            });
        };
        let mut ftl = None;
        // Box the drive below, so that the code above a layer is compiled once.
        let below = self.with_drive(Boxed, |config| {
            let (below, above) = &*preconditioned_layer(log, config, request_pages, seed)?;
            ftl = Some(above.clone());
            Ok(below.clone())
        })?;
        if let Some(ftl) = ftl {
            return Ok(user.with(Boxed.with(LogDevice::with_ftl(below, log.clone(), ftl))));
        }
        let mut device = LogDevice::new(below, log.clone())?;
        if log.fill {
            let _step = step("filling the layer", 0);
            device.fill().map_err(StackError::run)?;
        }
        Ok(user.with(Boxed.with(device)))
    }

    /// Opens the device after other writes than those of its `precondition`, and passes it to `user`. The key
    /// `written` describes what `write` does to the translation layer of a new drive. A device that is not
    /// simulated, or has a layer or no translation layer, keeps its state.
    pub(crate) fn with_written_device<U: DeviceUser>(
        &self,
        seed: u64,
        written: &str,
        write: impl FnOnce(&mut Ftl),
        user: U,
    ) -> Result<U::Output, StackError> {
        if self.layer.is_some() {
            return self.with_device(seed, 1, user);
        }
        self.with_drive(user, |config| {
            let key = format!("{config:?} {written} {seed}");
            let _step = step(format!("writing {written} until the drive is steady"), 0);
            Ok(PRECONDITIONED
                .get(key, || SimDrive::written_before(config, write).map(Arc::new))?
                .as_ref()
                .clone())
        })
    }

    /// Opens the drive; `precondition` prepares a simulated one.
    fn with_drive<U: DeviceUser>(
        &self,
        user: U,
        precondition: impl FnOnce(&SsdConfig) -> Result<Option<Ftl>, StackError>,
    ) -> Result<U::Output, StackError> {
        match &self.device.drive {
            DriveConfig::None | DriveConfig::Translation(_) => Err(StackError::request(NO_DRIVE)),
            DriveConfig::File(file) => with_file(file, user),
            DriveConfig::Mem(mem) => {
                let page_bytes = self.device.page_bytes();
                Ok(user.with(Boxed.with(MemDevice::new(mem.pages, page_bytes, MEM_QUEUE_DEPTH, Nanos::ZERO))))
            }
            DriveConfig::Simulated { config, .. } => {
                let ftl = precondition(config)?;
                // Keep the contents of pages only for an engine, because nothing else reads them back.
                let contents = self.engine.is_some();
                Ok(user.with(SimDrive::with_ftl((**config).clone(), ftl, contents)))
            }
        }
    }
}

fn with_file<U: DeviceUser>(file: &FileConfig, user: U) -> Result<U::Output, StackError> {
    let options = file.uring_options(Some(file.pages()));
    // Opening an existing drive is fast and happens before each part of a measurement, so it is no step.
    let making = match file.missing_bytes() {
        0 => None,
        bytes => Some(step(
            format!("making {}: {} to write", file.path.display(), Unit::Bytes.humane(bytes as f64)),
            0,
        )),
    };
    if file.options.engine == Engine::Psync {
        let device = PsyncDevice::open(&file.path, &options).map_err(StackError::run)?;
        drop(making);
        return Ok(user.with(Boxed.with(device)));
    }
    #[cfg(target_os = "linux")]
    {
        let device = fulgurite_uring::UringDevice::open(&file.path, &options).map_err(StackError::run)?;
        drop(making);
        Ok(user.with(Boxed.with(device)))
    }
    #[cfg(not(target_os = "linux"))]
    Err(StackError::request("engine uring needs Linux; accepted here: engine=psync"))
}

type Preconditioned = Result<Arc<Option<Ftl>>, SpecError>;

static PRECONDITIONED: Memo<Preconditioned> = Memo::new();

/// Drops the preconditioned drives that are kept for further runs with the same description.
pub fn forget_drives() {
    PRECONDITIONED.clear();
}

fn preconditioned(config: &SsdConfig, request_pages: u32, seed: u64) -> Preconditioned {
    // The debug text contains every field, so different configurations never share a state.
    let key = format!("{config:?} {request_pages} {seed}");
    let _step = step("preconditioning the drive", 0);
    PRECONDITIONED.get(key, || SimDrive::preconditioned(config, request_pages, seed).map(Arc::new))
}

type PreconditionedLayer = Result<Arc<(Option<Ftl>, Ftl)>, SpecError>;

fn preconditioned_layer(
    layer: &LogConfig,
    config: &SsdConfig,
    request_pages: u32,
    seed: u64,
) -> PreconditionedLayer {
    static KEPT: Memo<PreconditionedLayer> = Memo::new();
    let key = format!("{layer:?} {config:?} {request_pages} {seed}");
    let _step = step("preconditioning the drive and the layer", 0);
    KEPT.get(key, || write_layer(layer, config, request_pages, seed).map(Arc::new))
}

/// Creates the translation layers of a simulated drive and of a layer above it. Writes to the layer bring
/// both to the state that the drive's `precondition` names.
fn write_layer(
    layer: &LogConfig,
    config: &SsdConfig,
    request_pages: u32,
    seed: u64,
) -> Result<(Option<Ftl>, Ftl), SpecError> {
    let shape = layer.ftl(config.logical_pages(), config.page_bytes)?;
    let caps = config.caps(false);
    let streams = caps.streams;
    let write = |below: &mut dyn FnMut(Below)| {
        layer.preconditioned(shape.clone(), config.precondition, request_pages, seed, streams, below)
    };
    let mut written = None;
    let below = SimDrive::written_before(config, |ftl| {
        let mut sink = CountingSink::default();
        let mut zones = caps.zones.map(|caps| Zones::of(caps, ftl, |_| None));
        written = Some(write(&mut |operation| match (operation, &mut zones) {
            (Below::Write { first, pages, stream }, None) => ftl.write(first, pages, stream, &mut sink),
            (Below::Trim { first, pages }, None) => ftl.trim_run(first, pages),
            (Below::Write { first, pages, .. }, Some(zones)) => {
                zones.write_flash(ftl, first, pages, &mut sink).expect("a layer writes zones in order");
            }
            (Below::Trim { first, pages }, Some(zones)) => {
                zones.trim_flash(ftl, first, pages).expect("a layer resets whole zones");
            }
        }));
    })?;
    // A medium that is overwritten in place has no translation layer, so only the layer above it is written
    // to.
    let above = written.unwrap_or_else(|| write(&mut |_| {}))?;
    Ok((below, above))
}
