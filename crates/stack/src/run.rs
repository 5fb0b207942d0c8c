//! Describes a run as a value: the stack, the load, the measurements, and the seed of all randomness.
//!
//! Each command corresponds to a form of a run: `pool` has a pool, `gc` a translation layer as its device,
//! `replay` a device alone, `profile` a load of its own, `bench` a storage engine, `serve` a device and the load of
//! other programs. All runs of a grid are
//! checked before the first is executed; see [`Run::check`].

use crate::device::{DeviceConfig, DriveConfig, LayerConfig, TranslationConfig};
use crate::pattern::Pattern;
use crate::workload::{AddressMap, Bound, View, Workload};
use crate::{Command, StackError};
use fulgurite_base::{Lpn, Nanos, Portion};
use fulgurite_bench::{BenchmarkConfig, Extent};
use fulgurite_device::Caps;
use fulgurite_engine::sharded::pages_of_shard;
use fulgurite_engine::{Durability, Options, PlaceConfig, TornPages};
use fulgurite_ftl::Collect;
use fulgurite_pool::{PoolConfig, PrefetchConfig, ReplacementConfig, WriteBack, WriteBackConfig};
use std::path::PathBuf;

/// A description of one run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The stack that the run is executed on.
    pub stack: Stack,
    /// The load that the run puts on the stack.
    pub load: Load,
    /// The measurements that the run makes.
    pub measure: Measure,
    /// The seed of all randomness.
    pub seed: u64,
}

/// A stack of stages, from the top down.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The storage engine, which has a pool of its own; `None` if there is none.
    pub engine: Option<EngineStage>,
    /// The buffer pool without an engine; `None` if there is none.
    pub pool: Option<PoolStage>,
    /// The log-structured layer above the device; `None` if there is none.
    pub layer: Option<LayerConfig>,
    /// The device at the bottom of the stack.
    pub device: DeviceConfig,
}

/// The policies of a buffer pool, without its write-back policy.
#[derive(Clone, Debug)]
pub struct Policies {
    /// The replacement policy, which chooses the frame to evict.
    pub replacement: ReplacementConfig,
    /// The prefetch policy, which chooses the pages to read in addition to a missed page.
    pub prefetch: PrefetchConfig,
}

/// A write-back policy with its parameters.
#[derive(Clone, Debug)]
pub struct ChosenWriteBack {
    /// The policy as the user asked for it.
    pub policy: WriteBackConfig,
    /// The parameters of the policy on this device. Parameters that were not given were measured.
    pub batches: WriteBack,
}

/// The name that stands for the store's own choice of write-back policy, in tables and on the command line.
pub(crate) const STORES_OWN: &str = "store";

/// A buffer pool in a stack.
#[derive(Clone, Debug)]
pub struct PoolStage {
    /// The replacement and prefetch policies of the pool.
    pub policies: Policies,
    /// The write-back policy of the pool.
    pub write_back: ChosenWriteBack,
    /// The number of frames of the pool.
    pub frames: u32,
    /// The size of a page in bytes.
    pub page_bytes: u32,
    /// The CPU time that a request costs, on the core of its user.
    pub cpu_per_request: Nanos,
    /// The number of simulated cores, at least one. User `u` is on core `u % cores`.
    pub cores: u32,
}

/// A storage engine in a stack.
#[derive(Clone, Debug)]
pub struct EngineStage {
    /// The replacement and prefetch policies of the engine's pool.
    pub policies: Policies,
    /// The write-back policy of the engine's pool; `None` for the store's own choice.
    pub write_back: Option<ChosenWriteBack>,
    /// The size of a page in bytes.
    pub page_bytes: u32,
    /// Bytes of memory for the pool, the record cache and the map of pages.
    pub memory_bytes: u64,
    /// Bytes of the area that the log occupies on the device.
    pub log_bytes: u64,
    /// The largest share of the memory for the record cache, in per cent.
    pub records: u8,
    /// Whether pages are written in place or out of place.
    pub place: PlaceConfig,
    /// The protection from torn writes of pages that are written in place.
    pub torn_pages: TornPages,
    /// The durability that a commit guarantees.
    pub durability: Durability,
    /// The CPU time that a call of the store costs, on the core of its shard.
    pub cpu_per_op: Nanos,
    /// The number of shards of the store, at least one. They share memory, log and drive equally.
    pub shards: u32,
    /// The number of simulated cores, from one to the number of shards. Shard `s` is on core `s % cores`.
    pub cores: u32,
    /// Whether the run uses the data that an earlier run left in the file.
    pub reuse: bool,
}

/// The load of a stack.
#[derive(Clone, Debug)]
pub enum Load {
    /// The transactions of a benchmark.
    Benchmark(Benchmarked),
    /// The requests of a workload.
    Requests(Requested),
    /// The requests of a suite of measurements, which characterise the device.
    Characterisation {
        /// The size of a request in bytes.
        page_bytes: u32,
        /// The suite of measurements.
        suite: Suite,
    },
    /// The requests of other programs, to which a server gives the device; see [`Served`](crate::serve::Served).
    Served,
}

/// The requests of a workload, and the way in which they arrive.
#[derive(Clone, Debug)]
pub struct Requested {
    /// The workload that gives the requests.
    pub workload: Workload,
    /// The number of pages that a generator addresses if there is a pool above the device. A trace has its
    /// own number.
    pub pages: u64,
    /// The mapping of a trace's addresses to a device without a pool.
    pub addresses: AddressMap,
    /// The arrival of the requests.
    pub arrivals: Arrivals,
    /// The number of requests to single pages that are skipped at the beginning.
    pub skip: u64,
    /// The number of requests to execute; `u64::MAX` means all of a trace of unknown length.
    pub ops: u64,
}

impl Requested {
    /// Returns the number of requests; 0 if it is not known yet.
    pub(crate) fn known_ops(&self) -> u64 {
        if self.ops == u64::MAX { 0 } else { self.ops }
    }
}

/// A benchmark, its users and its length.
#[derive(Clone, Debug)]
pub struct Benchmarked {
    /// The label of the benchmark in tables, which is the text that the user typed.
    pub label: String,
    /// The benchmark, at its scale.
    pub benchmark: BenchmarkConfig,
    /// The scale of the benchmark, in multiples of the default data; `None` if an option gives the size.
    pub scale: Option<u64>,
    /// The number of users, each with one transaction at a time.
    pub users: u32,
    /// The length of the measured part of the run.
    pub stop: Extent,
    /// The length of the warm-up.
    pub warm_up: Extent,
}

/// The arrival of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// A closed loop of users, each with one request outstanding.
    Closed {
        /// The number of users.
        users: u32,
    },
    /// An open loop at the workload's arrival times, divided by the speed.
    Times {
        /// The speed; 1 keeps the original times.
        speed: f64,
    },
    /// An open loop at a given rate. The workload's times are scaled; a workload without times has even gaps.
    Rate {
        /// The number of requests per second.
        requests_s: f64,
    },
}

/// A suite of measurements of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Suite {
    /// alpha, k_r and k_w.
    Concurrency,
    /// The latency of a probe beside a load of random writes.
    Latency(LatencySuite),
    /// The steady throughput and write amplification under these patterns of writes.
    Steady(Vec<Pattern>),
}

/// The parameters of the suite `latency`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencySuite {
    /// The offered rate in requests per second; `None` for a series of rates around the drive's own maximum.
    pub rate: Option<u64>,
    /// The length of the measured part for each rate, in the device's time.
    pub time: Nanos,
}

/// The measurements of a run and their output files.
#[derive(Clone, Debug, Default)]
pub struct Measure {
    /// The subject of each result row.
    pub rows: Rows,
    /// The file for the drive's timeline; `None` for no timeline.
    pub timeline: Option<PathBuf>,
    /// The file for the request log, with a line per request; `None` for no log.
    pub requests: Option<PathBuf>,
    /// Whether the workload is repeated until the run is steady.
    pub until_steady: bool,
    /// Whether the timeline and the request log may replace any existing file.
    pub force: bool,
}

/// The subject of each result row of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rows {
    /// The whole run.
    #[default]
    Run,
    /// The whole run, with an explanation of the placement policy's changes to its groups of segments.
    Explained,
    /// An interval of this many page writes.
    PageIntervals(u64),
    /// An interval of this length of time.
    TimeIntervals(Nanos),
    /// A group of segments.
    Groups,
    /// A type of transaction.
    Types,
    /// A type of transaction in an interval of this length.
    TypeIntervals(Nanos),
    /// A number of users that was measured, for the curve of throughput.
    Curve,
    /// A size of the pool, for the curve of misses.
    Sizes(Sizes),
}

/// The sizes of the pool for a curve of misses: 64 sizes, evenly spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The largest size.
    pub largest: Portion,
    /// The requests that are served.
    pub sampling: Sampling,
}

/// The requests from which a curve of misses is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// All requests.
    Exact,
    /// The requests for one page in so many.
    Pages(u32),
    /// The requests for one page in a power of two, which follows from the number of pages and requests.
    Fitted,
}

impl Sizes {
    /// The number of sizes.
    pub(crate) const COUNT: u64 = 64;
}

impl Run {
    /// Returns the command that executes this run.
    pub fn command(&self) -> Command {
        match (&self.load, &self.stack) {
            (Load::Characterisation { .. }, _) => Command::Profile,
            (Load::Benchmark(_), _) => Command::Bench,
            (Load::Served, _) => Command::Serve,
            (_, Stack { pool: Some(_), .. }) => Command::Pool,
            (_, Stack { device: DeviceConfig { drive: DriveConfig::Translation(_), .. }, .. }) => Command::Gc,
            _ => Command::Replay,
        }
    }

    /// Returns the requests of the run; `None` if the load is not a workload.
    pub fn requested(&self) -> Option<&Requested> {
        match &self.load {
            Load::Requests(requested) => Some(requested),
            Load::Characterisation { .. } | Load::Benchmark(_) | Load::Served => None,
        }
    }

    /// Returns the benchmark and its engine; `None` if the run has none.
    pub(crate) fn benchmarked(&self) -> Option<(&Benchmarked, &EngineStage)> {
        match (&self.load, &self.stack.engine) {
            (Load::Benchmark(benchmarked), Some(stage)) => Some((benchmarked, stage)),
            _ => None,
        }
    }

    /// Returns the translation layer without a drive; `None` if the run has none.
    pub(crate) fn translation(&self) -> Option<&TranslationConfig> {
        match &self.stack.device.drive {
            DriveConfig::Translation(translation) => Some(translation),
            _ => None,
        }
    }

    /// Returns the page size of the load in bytes.
    pub(crate) fn page_bytes(&self) -> u32 {
        match (&self.load, &self.stack.pool) {
            (Load::Characterisation { page_bytes, .. }, _) => *page_bytes,
            (Load::Benchmark(_), _) if let Some(engine) = &self.stack.engine => engine.page_bytes,
            (_, Some(pool)) => pool.page_bytes,
            (_, None) => self.stack.device.page_bytes(),
        }
    }

    /// Returns the workload with its addresses mapped to pages of this stack.
    pub(crate) fn bind(&self) -> Result<Bound, StackError> {
        let Load::Requests(requested) = &self.load else {
            return Err(StackError::run("only requests of a run's own have a workload"));
        };
        requested.workload.bind(self.stack.view(requested))
    }

    /// Returns the number of pages that the trace spans and the number of pages of the drive, if the trace spans
    /// more than the drive has.
    pub fn span(&self) -> Result<Option<(u64, u64)>, StackError> {
        Ok(self.bind()?.too_wide())
    }

    /// Returns the number of requests; 0 if it is not known.
    pub fn ops(&self) -> u64 {
        match &self.load {
            Load::Characterisation { .. } => PROFILE_OPS,
            Load::Benchmark(Benchmarked { stop: Extent::Ops(ops), .. }) => *ops,
            Load::Benchmark(_) | Load::Served => 0,
            Load::Requests(requested) => requested.known_ops(),
        }
    }

    /// Whether the run uses a real drive, which no other run may use meanwhile.
    pub fn is_real(&self) -> bool {
        self.stack.device.is_real()
    }
}

impl PoolStage {
    /// Returns the configuration of the pool, with its policies as they start.
    pub(crate) fn config(&self) -> Result<PoolConfig, StackError> {
        let replacement = self.policies.replacement.start(self.frames)?;
        let prefetch = self.policies.prefetch.start()?;
        let write_back = self.write_back.batches.clone();
        Ok(PoolConfig { prefetch, ..PoolConfig::new(self.frames, self.page_bytes, replacement, write_back) })
    }
}

impl EngineStage {
    /// Returns the options for each shard of the store of this engine.
    pub(crate) fn options(&self) -> Options {
        Options {
            page_bytes: self.page_bytes,
            memory_bytes: self.memory_bytes / u64::from(self.shards),
            log_bytes: self.shard_log_bytes(),
            records: self.records,
            place: self.place.clone(),
            torn_pages: self.torn_pages,
            durability: self.durability,
            replacement: self.policies.replacement.clone(),
            write_back: self.write_back.as_ref().map(|chosen| chosen.batches.clone()),
            prefetch: self.policies.prefetch.clone(),
            ..Options::default()
        }
    }

    /// Returns the size of the log of each shard in bytes.
    pub(crate) fn shard_log_bytes(&self) -> u64 {
        match self.shards {
            1 => self.log_bytes,
            shards => {
                self.log_bytes / u64::from(shards) / u64::from(self.page_bytes) * u64::from(self.page_bytes)
            }
        }
    }
}

/// An estimate of the number of requests of a characterisation.
pub(crate) const PROFILE_OPS: u64 = 1_000_000;

impl Stack {
    /// Returns the capabilities of each shard's part of the device. Fails if the device is too small.
    pub(crate) fn shard_caps(&self, shards: u32) -> Result<Caps, fulgurite_engine::Error> {
        let caps = self.caps();
        let pages = pages_of_shard(&caps, shards)?;
        Ok(caps.part(Lpn(0), pages).unwrap_or(caps))
    }

    /// Returns the replacement and prefetch policies of the pool, or of the engine's pool.
    pub fn policies(&self) -> Option<&Policies> {
        let of_engine = self.engine.as_ref().map(|engine| &engine.policies);
        of_engine.or(self.pool.as_ref().map(|pool| &pool.policies))
    }

    /// Returns the write-back policy of the pool, or of the engine's pool; `None` without a pool, or if the
    /// store chooses.
    pub fn write_back(&self) -> Option<&ChosenWriteBack> {
        let of_engine = self.engine.as_ref().and_then(|engine| engine.write_back.as_ref());
        of_engine.or(self.pool.as_ref().map(|pool| &pool.write_back))
    }

    /// Returns the meaning of a workload's addresses in this stack.
    fn view(&self, requested: &Requested) -> View {
        match (&self.pool, &self.device.drive) {
            // Without a drive the number of a trace's pages matters only if the number of frames is a share
            // of it. In that case the pages were counted and `requested.pages` is not `u64::MAX`.
            (Some(pool), DriveConfig::None) if requested.pages == u64::MAX => {
                View::Stream { page_bytes: pool.page_bytes }
            }
            (Some(pool), _) => View::Pool { page_bytes: pool.page_bytes, pages: requested.pages },
            (None, DriveConfig::Translation(translation)) => {
                View::Changes { page_bytes: translation.page_bytes, pages: translation.ftl.logical_pages }
            }
            (None, _) => View::Drive {
                page_bytes: self.device.page_bytes(),
                pages: self.pages(),
                map: requested.addresses,
            },
        }
    }

    /// Returns the garbage collection for pages of the host: that of the layer if there is one, else that of
    /// the drive. `None` if the device has none.
    pub fn collect(&self) -> Option<&Collect> {
        match (&self.layer, &self.device.drive) {
            (Some(layer), _) => Some(&layer.log.collect),
            (None, DriveConfig::Simulated { config, .. }) => Some(&config.collect),
            (None, DriveConfig::Translation(translation)) => Some(&translation.ftl.collect),
            _ => None,
        }
    }

    /// Returns the same garbage collection for changes; `None` also for a medium that is overwritten in
    /// place.
    pub fn collect_mut(&mut self) -> Option<&mut Collect> {
        match (&mut self.layer, &mut self.device.drive) {
            (Some(layer), _) => Some(&mut layer.log.collect),
            (None, DriveConfig::Simulated { config, .. }) if !config.in_place => Some(&mut config.collect),
            (None, DriveConfig::Translation(translation)) => Some(&mut translation.ftl.collect),
            _ => None,
        }
    }
}

/// Returns the error for a trace that ends within the skipped requests.
pub(crate) fn passes_over(skip: u64, has: u64) -> StackError {
    StackError::request(format!(
        "--skip {skip} passes over the whole trace, which has {has} page requests; accepted: 0 to {}",
        has.saturating_sub(1)
    ))
}
