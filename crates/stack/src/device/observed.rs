//! Observes a device during a run: its counters, checks, timeline and wear.

use fulgurite_base::{Lpn, Nanos};
use fulgurite_device::{Arena, Caps, Command, Completion, Device, FdpLog, MemDevice, QueueFull, Zone};
use fulgurite_log::{LogCounters, LogDevice};
use fulgurite_pool::{PoolCounters, PooledDevice};
use fulgurite_ssd::{DriveCounters, DriveState, Image, Served, SimDrive, SsdConfig, Timeline};
use fulgurite_uring::{OverlayDevice, PsyncDevice};
use std::sync::Arc;

/// The wear of a drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wear {
    /// The smallest number of erases of a segment.
    pub least: u32,
    /// The mean number of erases of a segment.
    pub mean: f64,
    /// The largest number of erases of a segment.
    pub most: u32,
    /// The memory of the drive's mapping table in bytes.
    pub mapping_bytes: u64,
    /// The wear that the drive endures; `None` if it does not wear out.
    pub endurance: Option<Endurance>,
}

/// The wear that a drive endures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Endurance {
    /// The number of pages that can be programmed before the flash is worn out.
    pub flash_pages: f64,
    /// The ratio of the capacity on the label to the simulated one; `None` if the label is not known.
    pub label_scale: Option<f64>,
    /// The bytes that the maker rates the drive for; `None` if they or the label are not known.
    pub rated_bytes: Option<f64>,
}

/// A device with counters, checks and a timeline.
pub trait Observed: Device {
    /// Returns the counters of the drive; `None` if it has none.
    fn observe(&self) -> Option<DriveCounters> {
        None
    }
    /// Returns the state of the simulated drive now; `None` for other devices.
    fn look(&self) -> Option<DriveState> {
        None
    }
    /// Returns the counters of a layer above the drive; `None` if there is no layer.
    fn observe_layer(&self) -> Option<LogCounters> {
        None
    }
    /// Returns the counters of a pool before the drive; `None` if there is no pool.
    fn observe_pool(&self) -> Option<PoolCounters> {
        None
    }
    /// Returns the number of dirty pages in a pool before the drive; 0 if there is no pool.
    fn dirty_pages(&self) -> u64 {
        0
    }
    /// Empties the memory before the drive, which has lost power. No command is in flight.
    fn lose_power(&mut self) {}
    /// Checks the invariants of an idle drive. A deep check takes time in proportion to the size of the
    /// drive.
    fn verify(&self, _deep: bool) -> Result<(), String> {
        Ok(())
    }
    /// Writes back a pool, and lets the drive program its whole buffer, so that its counters include all writes that
    /// it has received.
    fn settle(&mut self) {}
    /// Lets all operations in the drive complete.
    fn drain_events(&mut self) {}
    /// Starts to record the waits of requests, if the drive supports it.
    fn keep_served(&mut self) {}
    /// Moves to `_served` the records of the requests that have completed since the last call.
    fn take_served(&mut self, _served: &mut Vec<Served>) {}
    /// Starts to record a timeline of at most `spans` spans, if the drive supports it.
    fn record_timeline(&mut self, _spans: usize) {}
    /// Returns the recorded timeline; `None` if none was recorded.
    fn timeline(&self) -> Option<&Timeline> {
        None
    }
    /// Returns the wear of the drive; `None` if it has none.
    fn wear(&self) -> Option<Wear> {
        None
    }
    /// Returns the memory in bytes of the mapping table of a layer above the drive; `None` if there is no
    /// layer.
    fn layer_mapping_bytes(&self) -> Option<u64> {
        None
    }
    /// Returns the contents of the idle drive; `None` if it is not simulated, or has a layer above it.
    fn image(&self) -> Option<Image> {
        None
    }
}

impl Observed for SimDrive {
    fn observe(&self) -> Option<DriveCounters> {
        Some(self.counters())
    }

    fn look(&self) -> Option<DriveState> {
        Some(SimDrive::look(self))
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

    fn wear(&self) -> Option<Wear> {
        let ftl = self.ftl()?;
        let (least, mean, most) = ftl.segments().wear();
        Some(Wear {
            least,
            mean,
            most,
            mapping_bytes: ftl.mapping().bytes() as u64,
            endurance: endurance(self.config()),
        })
    }
}

/// Returns the wear that a drive of this configuration endures.
fn endurance(config: &SsdConfig) -> Option<Endurance> {
    // An endurance of zero means that the drive does not wear out.
    (config.endurance > 0).then(|| {
        let simulated = config.logical_pages() as f64 * f64::from(config.page_bytes);
        Endurance {
            flash_pages: config.physical_pages() as f64 * f64::from(config.endurance),
            label_scale: (config.nominal > 0).then(|| config.nominal as f64 / simulated),
            rated_bytes: (config.nominal > 0 && config.rated > 0).then_some(config.rated as f64),
        }
    })
}

impl Observed for MemDevice {}
impl Observed for PsyncDevice {}
impl Observed for OverlayDevice {}

#[cfg(target_os = "linux")]
impl Observed for fulgurite_uring::UringDevice {}

/// A device of any type. The code above devices is compiled twice: for simulated drives, where speed matters,
/// and for this type.
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

    fn fdp_log(&self) -> Option<FdpLog> {
        (**self).fdp_log()
    }

    fn zone(&self, lpn: Lpn) -> Option<Zone> {
        (**self).zone(lpn)
    }

    fn register(&mut self, arena: &Arc<Arena>) {
        (**self).register(arena);
    }

    fn next_event(&self) -> Option<Nanos> {
        (**self).next_event()
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        // Check here for a cancelled run, because loading a benchmark's data and filling a layer report no
        // progress for seconds.
        crate::progress::check_stopped();
        (**self).wait(deadline, completions);
    }
}

impl Observed for AnyDrive {
    fn observe(&self) -> Option<DriveCounters> {
        (**self).observe()
    }

    fn look(&self) -> Option<DriveState> {
        (**self).look()
    }

    fn observe_layer(&self) -> Option<LogCounters> {
        (**self).observe_layer()
    }

    fn observe_pool(&self) -> Option<PoolCounters> {
        (**self).observe_pool()
    }

    fn dirty_pages(&self) -> u64 {
        (**self).dirty_pages()
    }

    fn lose_power(&mut self) {
        (**self).lose_power();
    }

    fn verify(&self, deep: bool) -> Result<(), String> {
        (**self).verify(deep)
    }

    fn settle(&mut self) {
        (**self).settle();
    }

    fn drain_events(&mut self) {
        (**self).drain_events();
    }

    fn keep_served(&mut self) {
        (**self).keep_served();
    }

    fn take_served(&mut self, served: &mut Vec<Served>) {
        (**self).take_served(served);
    }

    fn record_timeline(&mut self, spans: usize) {
        (**self).record_timeline(spans);
    }

    fn timeline(&self) -> Option<&Timeline> {
        (**self).timeline()
    }

    fn wear(&self) -> Option<Wear> {
        (**self).wear()
    }

    fn layer_mapping_bytes(&self) -> Option<u64> {
        (**self).layer_mapping_bytes()
    }

    fn image(&self) -> Option<Image> {
        (**self).image()
    }
}

impl Observed for LogDevice<AnyDrive> {
    fn observe(&self) -> Option<DriveCounters> {
        self.below().observe()
    }

    fn look(&self) -> Option<DriveState> {
        self.below().look()
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

    fn wear(&self) -> Option<Wear> {
        self.below().wear()
    }

    fn layer_mapping_bytes(&self) -> Option<u64> {
        Some(self.ftl().mapping().bytes() as u64)
    }
}

impl Observed for PooledDevice<AnyDrive> {
    fn observe(&self) -> Option<DriveCounters> {
        self.with_below(|below| below.observe())
    }

    fn look(&self) -> Option<DriveState> {
        self.with_below(|below| below.look())
    }

    fn observe_layer(&self) -> Option<LogCounters> {
        self.with_below(|below| below.observe_layer())
    }

    fn observe_pool(&self) -> Option<PoolCounters> {
        Some(self.counters())
    }

    fn dirty_pages(&self) -> u64 {
        self.pool().dirty_pages()
    }

    fn lose_power(&mut self) {
        self.lose();
    }

    fn verify(&self, deep: bool) -> Result<(), String> {
        self.with_below(|below| below.verify(deep))?;
        let (layer, drive) = (self.observe_layer(), self.observe());
        let received = layer.map(|layer| layer.host_pages).or(drive.map(|drive| drive.host_pages_written));
        let counters = self.pool().counters();
        let written = counters.pages_written + counters.pages_flushed;
        // A batch that has failed may have written some of its pages.
        match received.filter(|received| *received != written && self.pool().failed_writes() == 0) {
            Some(received) => Err(format!(
                "conservation is broken: the pool wrote {written} pages, the drive received {received}"
            )),
            None => Ok(()),
        }
    }

    fn settle(&mut self) {
        // Pages that a worn out drive does not accept stay dirty. Its clients have got the error of their flush.
        let _ = self.write_back();
        self.with_below(|below| below.settle());
    }

    fn drain_events(&mut self) {
        self.with_below(|below| below.drain_events());
    }

    fn keep_served(&mut self) {
        self.with_below(|below| below.keep_served());
    }

    fn take_served(&mut self, served: &mut Vec<Served>) {
        self.with_below(|below| below.take_served(served));
    }

    fn wear(&self) -> Option<Wear> {
        self.with_below(|below| below.wear())
    }

    fn layer_mapping_bytes(&self) -> Option<u64> {
        self.with_below(|below| below.layer_mapping_bytes())
    }
}
