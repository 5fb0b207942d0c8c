//! Estimates the memory and the time that one run needs. The constants are the bytes of tables that grow with
//! a run.

use super::seconds::{self, Seconds};
use crate::Stack;
use crate::device::{DeviceConfig, DriveConfig};
use crate::run::{
    Arrivals, Benchmarked, EngineStage, Load, PoolStage, Requested, Rows, Run, Sampling, Sizes,
};
use fulgurite_ftl::placement::PlacementConfig;

/// Bytes for each frame of a pool, in addition to the bytes of its page.
const FRAME_BYTES: u64 = 64;
/// Bytes for each physical page of a translation layer: one entry in each of two maps, and a bit.
const MAPPED_BYTES: u64 = 9;
/// Bytes that a placement policy keeps for each logical page.
const PLACED_BYTES: u64 = 5;
/// Bytes for each page write that a policy that looks ahead knows beforehand.
const FORESEEN_BYTES: u64 = 8;
/// Bytes for each request that a replacement policy knows beforehand.
const AHEAD_BYTES: u64 = 8;
/// Bytes for each page of a curve of LRU in one pass.
const DISTANCE_BYTES: u64 = 88;
/// Bytes for each request of a sample, which is there once in the whole and once in a part.
const SAMPLED_BYTES: u64 = 12;
/// Bytes of a result row in a table.
pub(super) const ROW_BYTES: u64 = 3 << 10;

/// The estimated memory and time of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    /// Bytes of memory that only this run needs.
    pub own_bytes: u64,
    /// The predicted wall-clock time of the run on one core, without shared work.
    pub seconds: Seconds,
    /// The needs that the run shares with other runs. Each has a key, bytes of memory, and wall-clock time.
    pub shared: Vec<(String, u64, Seconds)>,
}

impl Run {
    /// Returns the estimated needs of the run.
    pub fn needs(&self) -> Needs {
        let mut needs = Needs { seconds: seconds::RUN, ..self.stack.needs(self.seed) };
        if let Some(seconds) = self.asks() {
            let key = format!("measuring {} {}", self.stack.canonical_storage(), self.seed);
            needs.shared.push((key, 0, seconds));
        }
        match (&self.load, &self.stack) {
            (Load::Characterisation { .. }, stack) => needs.seconds += stack.profiled(),
            (Load::Benchmark(asked), Stack { engine: Some(stage), .. }) => {
                needs.add_bench(self, asked, stage)
            }
            // A server ends when it is stopped, so the estimate is the time until it is ready.
            (Load::Benchmark(_) | Load::Served, _) => {}
            (Load::Requests(requested), stack @ Stack { pool: Some(pool), .. }) => {
                needs.add_pool(requested, pool, &stack.device);
                needs.add_bytes(self.looked_at(requested, pool));
                needs.seconds += seconds::pooled(requested, pool, stack) * seconds::passes(self, pool);
            }
            (Load::Requests(requested), _) if self.translation().is_some() => needs.add_gc(self, requested),
            (Load::Requests(requested), stack) => {
                let served = seconds::timed(requested, stack);
                needs.seconds += served.at_least(self.arriving().unwrap_or(0.0));
            }
        }
        needs
    }

    /// Returns the bytes that a curve of misses takes, and a policy that needs the future.
    fn looked_at(&self, requested: &Requested, pool: &PoolStage) -> u64 {
        let (ops, replacement) = (requested.known_ops(), &pool.policies.replacement);
        let sampling = match self.measure.rows {
            Rows::Sizes(sizes) => Some(sizes.sampling),
            _ => None,
        };
        match sampling {
            None | Some(Sampling::Exact) if replacement.needs_future() => ops.saturating_mul(AHEAD_BYTES),
            None => 0,
            Some(Sampling::Exact) if replacement.is_lru() => {
                requested.pages.min(ops).saturating_mul(DISTANCE_BYTES)
            }
            Some(Sampling::Exact) => u64::from(pool.frames) * FRAME_BYTES * Sizes::COUNT / 2,
            Some(Sampling::Pages(divisor)) => (ops / u64::from(divisor)).saturating_mul(SAMPLED_BYTES),
            Some(Sampling::Fitted) => {
                ops.min(1 << 20).max(ops / 16).min(1 << 24).saturating_mul(SAMPLED_BYTES)
            }
        }
    }

    /// Returns the seconds until the last request of the run arrives. `None` for a simulated drive, which
    /// does not wait for arrivals in wall-clock time, and for a closed loop.
    fn arriving(&self) -> Option<f64> {
        let Load::Requests(requested) = &self.load else { return None };
        if !self.is_real() {
            return None;
        }
        let ops = requested.known_ops();
        match requested.arrivals {
            Arrivals::Closed { .. } => None,
            Arrivals::Rate { requests_s } => Some(ops.saturating_sub(1) as f64 / requests_s),
            Arrivals::Times { speed } => {
                let last_ns = self.bind().ok()?.last_arrival_ns(ops, self.seed).ok()??;
                Some(last_ns / 1e9 / speed)
            }
        }
    }

    /// Returns the expected seconds of the run on one core, without work that it shares with other runs.
    pub(crate) fn expected_seconds(&self) -> f64 {
        self.needs().seconds.middle()
    }
}

impl Stack {
    /// Returns the needs of the device and the layer.
    fn needs(&self, seed: u64) -> Needs {
        let mut needs = Needs::default();
        if let DriveConfig::Simulated { config, .. } = &self.device.drive {
            let pages = config.physical_pages();
            if config.in_place {
                needs.own_bytes += pages / 4;
            } else {
                // The preconditioned drive is kept for all runs, and each run has a copy of it.
                needs.own_bytes += pages * MAPPED_BYTES;
                let key = format!("{} {seed}", self.canonical_storage());
                needs.shared.push((key, pages * MAPPED_BYTES, self.made()));
            }
        }
        if let DriveConfig::File(file) = &self.device.drive {
            needs.shared.push((file.path.display().to_string(), 0, self.made()));
        }
        if self.layer.is_some() {
            needs.own_bytes = needs.own_bytes.saturating_add(self.pages().saturating_mul(2 * MAPPED_BYTES));
        }
        needs
    }
}

impl Needs {
    fn add_bytes(&mut self, bytes: u64) {
        self.own_bytes = self.own_bytes.saturating_add(bytes);
    }

    fn add_pool(&mut self, requested: &Requested, pool: &PoolStage, device: &DeviceConfig) {
        let (frames, page, ops) = (u64::from(pool.frames), u64::from(pool.page_bytes), requested.known_ops());
        self.add_bytes(frames.saturating_mul(FRAME_BYTES));
        match &device.drive {
            DriveConfig::File(_) => {
                self.add_bytes(frames.saturating_mul(page).saturating_add(requested.pages.saturating_mul(8)));
            }
            DriveConfig::Mem(_) => {
                // A `mem` device allocates bytes only for written pages, and its pool only for used frames.
                let written = requested.pages.min(ops).saturating_mul(page);
                self.add_bytes(frames.min(ops).saturating_mul(page).saturating_add(written));
            }
            _ => {}
        }
    }

    fn add_gc(&mut self, run: &Run, requested: &Requested) {
        let Some(translation) = run.translation() else { return };
        let ftl = &translation.ftl;
        let (logical, ops) = (u64::from(ftl.logical_pages), requested.known_ops());
        self.add_bytes(u64::from(ftl.segments) * u64::from(ftl.segment_pages) * MAPPED_BYTES);
        if ftl.collect.placement != PlacementConfig::ONE_STREAM {
            self.add_bytes(logical * PLACED_BYTES);
        }
        if ftl.collect.placement.needs_future() || run.measure.rows == Rows::Groups {
            self.add_bytes(ops.saturating_add(logical).saturating_mul(FORESEEN_BYTES));
        }
        if let Rows::PageIntervals(length) = run.measure.rows {
            self.add_bytes((ops / length.max(1)).saturating_mul(ROW_BYTES));
        }
        self.seconds += seconds::written(ops.saturating_add(logical), &ftl.collect.placement);
    }

    fn add_bench(&mut self, run: &Run, asked: &Benchmarked, stage: &EngineStage) {
        let data = asked.benchmark.data_bytes();
        let [load, check] = seconds::loaded(&asked.benchmark);
        match &run.stack.device.drive {
            // The contents of the drive after the load are kept for all runs, and each run changes a part of
            // them.
            DriveConfig::Simulated { .. } => {
                let (storage, of) = (run.stack.canonical_storage(), asked.benchmark.data());
                let EngineStage { shards, page_bytes, log_bytes, .. } = stage;
                let key = format!("{storage} {shards} {page_bytes} {log_bytes} {of} {}", run.seed);
                self.shared.push((key, data + data / 2, load));
                self.add_bytes(data);
            }
            DriveConfig::Mem(_) => {
                self.add_bytes(2 * data);
                self.seconds += load;
            }
            _ => self.seconds += load,
        }
        self.add_bytes(stage.memory_bytes.min(2 * data));
        self.seconds += check + seconds::transacted(asked, run.is_real());
    }
}
