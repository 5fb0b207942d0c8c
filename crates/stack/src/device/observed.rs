//! The view of a run on its device, beside commands: counters, checks, timelines and wear.

use fulgurite_base::{Lpn, Nanos};
use fulgurite_device::{Arena, Caps, Command, Completion, Device, MemDevice, QueueFull};
use fulgurite_log::{LogCounters, LogDevice};
use fulgurite_ssd::{DriveCounters, Image, Served, SimDrive, Timeline};
use fulgurite_uring::{OverlayDevice, PsyncDevice};
use std::sync::Arc;

/// How worn a drive is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wear {
    /// The fewest erases of a segment.
    pub least: u32,
    /// The mean.
    pub mean: f64,
    /// The most.
    pub most: u32,
    /// Bytes of memory that the drive holds for its map.
    pub mapping_bytes: u64,
    /// What it will bear, where it wears out at all.
    pub lifetime: Option<Lifetime>,
}

/// What a drive bears until it is worn out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lifetime {
    /// Bytes that the host can write.
    pub bytes_written: f64,
    /// How often the host can fill the drive in a day, for five years.
    pub drive_writes_per_day: f64,
    /// Years at the pace of the run.
    pub years_at_this_rate: f64,
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
    /// Lets the drive program all that is in its buffer, so that its counters tell of all that it was given.
    fn settle(&mut self) {}
    /// Lets everything that is under way in the drive come to its end.
    fn drain_events(&mut self) {}
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
    /// How worn the drive is and how long it will live at the pace of a run of this length, where it can tell.
    fn wear(&self, _elapsed: Nanos) -> Option<Wear> {
        None
    }
    /// Bytes of memory that a layer above the drive holds for its map, where there is one.
    fn layer_mapping_bytes(&self) -> Option<u64> {
        None
    }
    /// What the idle drive holds, where it is simulated and nothing stands above it.
    fn image(&self) -> Option<Image> {
        None
    }
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

    fn drain_events(&mut self) {
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

    fn image(&self) -> Option<Image> {
        SimDrive::image(self)
    }

    fn wear(&self, elapsed: Nanos) -> Option<Wear> {
        let ftl = self.ftl()?;
        let (least, mean, most) = ftl.segments().wear();
        Some(Wear {
            least,
            mean,
            most,
            mapping_bytes: ftl.mapping().bytes() as u64,
            lifetime: lifetime(self, elapsed),
        })
    }
}

/// What `drive` bears until its segments are worn out, at the write amplification that it has had.
fn lifetime(drive: &SimDrive, elapsed: Nanos) -> Option<Lifetime> {
    let (counters, config) = (drive.counters(), drive.config());
    // An endurance of zero stands for a drive that does not wear out.
    let endurance = f64::from(config.endurance);
    if counters.flash_pages_programmed == 0 || endurance == 0.0 {
        return None;
    }
    let page_bytes = f64::from(config.page_bytes);
    let waf = counters.flash_pages_programmed as f64 / counters.host_pages_written as f64;
    let bytes_written = config.physical_pages() as f64 * page_bytes * endurance / waf;
    let capacity = config.logical_pages() as f64 * page_bytes;
    let rate = counters.host_pages_written as f64 * page_bytes / elapsed.as_secs_f64();
    Some(Lifetime {
        bytes_written,
        drive_writes_per_day: bytes_written / capacity / (5.0 * 365.0),
        years_at_this_rate: bytes_written / rate / (365.0 * 86_400.0),
    })
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

impl Observed for OverlayDevice {
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

/// Any drive below a layer: one type, so that the code above a layer is compiled once.
pub type AnyDrive = Box<dyn Observed>;

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

    fn register(&mut self, arena: &Arc<Arena>) {
        (**self).register(arena);
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        // Loading a benchmark's data and filling a layer report no progress for seconds.
        crate::progress::check_stopped();
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
        self.below_mut().settle();
    }

    fn drain_events(&mut self) {
        LogDevice::drain_events(self);
        self.below_mut().drain_events();
    }

    fn record_timeline(&mut self, spans: usize) {
        self.below_mut().record_timeline(spans);
    }

    fn timeline(&self) -> Option<&Timeline> {
        self.below().timeline()
    }

    fn wear(&self, elapsed: Nanos) -> Option<Wear> {
        let wear = self.below().wear(elapsed)?;
        let counters = self.counters();
        // The drive bears what the layer writes, copies and all; a lifetime is counted in the host's pages.
        let own = counters.host_pages as f64 / counters.pages_written().max(1) as f64;
        let smaller = self.below().caps().pages as f64 / self.caps().pages as f64;
        let lifetime = wear.lifetime.map(|below| Lifetime {
            bytes_written: below.bytes_written * own,
            drive_writes_per_day: below.drive_writes_per_day * (own * smaller),
            ..below
        });
        Some(Wear { lifetime, ..wear })
    }

    fn layer_mapping_bytes(&self) -> Option<u64> {
        Some(self.ftl().mapping().bytes() as u64)
    }
}
