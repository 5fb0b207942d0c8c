//! A run as a value: the stack, the load, what to measure, and the seed of all randomness.
//!
//! Each command is a form of it: `pool` has a pool, `gc` a translation layer as its device, `replay` a device
//! alone, `profile` a load of its own. All runs of a grid are checked before the first is executed; see
//! [`Run::check`].

use crate::device::{DeviceConfig, DriveConfig, LayerConfig, TranslationConfig};
use crate::workload::{AddressMap, Bound, View, Workload};
use crate::{Command, StackError};
use fulgurite_base::Nanos;
use fulgurite_bench::{BenchmarkConfig, Extent};
use fulgurite_engine::{Durability, Options, PlaceConfig, TornPages};
use fulgurite_ftl::Collect;
use fulgurite_pool::{PrefetchConfig, ReplacementConfig, WriteBack, WriteBackConfig};
use std::path::PathBuf;

/// A run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The stack.
    pub stack: Stack,
    /// The load.
    pub load: Load,
    /// The measurements.
    pub measure: Measure,
    /// The seed of all randomness.
    pub seed: u64,
}

/// A stack, from the top down.
#[derive(Clone, Debug)]
pub struct Stack {
    /// A storage engine, which has a pool of its own.
    pub engine: Option<EngineStage>,
    /// A buffer pool.
    pub pool: Option<PoolStage>,
    /// A log-structured layer above the device.
    pub layer: Option<LayerConfig>,
    /// The device.
    pub device: DeviceConfig,
}

/// The policies of a buffer pool, beside its write-back policy.
#[derive(Clone, Debug)]
pub struct Policies {
    /// Which frame to evict.
    pub replacement: ReplacementConfig,
    /// Which pages to read in addition to a missed page.
    pub prefetch: PrefetchConfig,
}

/// A write-back policy with its numbers.
#[derive(Clone, Debug)]
pub struct ChosenWriteBack {
    /// The policy as it was asked for.
    pub policy: WriteBackConfig,
    /// Its numbers on this device. Those that were not given were measured.
    pub batches: WriteBack,
}

/// The name of the store's own choice of write-back policy, in tables and on the command line.
pub(crate) const STORES_OWN: &str = "store";

/// A buffer pool in a stack.
#[derive(Clone, Debug)]
pub struct PoolStage {
    /// Its policies.
    pub policies: Policies,
    /// Its write-back policy.
    pub write_back: ChosenWriteBack,
    /// Frames.
    pub frames: u32,
    /// Bytes in a page.
    pub page_bytes: u32,
    /// CPU time of a request, on the core of its user.
    pub cpu_per_request: Nanos,
    /// Simulated cores, at least one: user `u` is on core `u % cores`.
    pub cores: u32,
}

/// A storage engine in a stack.
#[derive(Clone, Debug)]
pub struct EngineStage {
    /// The policies of its pool.
    pub policies: Policies,
    /// The write-back policy of its pool; `None` for the store's own choice.
    pub write_back: Option<ChosenWriteBack>,
    /// Bytes in a page.
    pub page_bytes: u32,
    /// Bytes of memory for the pool, the records and the map of pages.
    pub memory_bytes: u64,
    /// Bytes of the log's area.
    pub log_bytes: u64,
    /// The largest share of the memory for single records, in per cent.
    pub records: u8,
    /// Whether pages are written in place or out of place.
    pub place: PlaceConfig,
    /// The protection of pages in place from torn writes.
    pub torn_pages: TornPages,
    /// The durability of commits.
    pub durability: Durability,
    /// CPU time of a call of the store, on one core that all users share.
    pub cpu_per_op: Nanos,
    /// Use the data that an earlier run left in the file.
    pub reuse: bool,
}

/// The load of a stack.
#[derive(Clone, Debug)]
pub enum Load {
    /// The transactions of a benchmark.
    Benchmark(Benchmarked),
    /// The requests of a workload.
    Requests(Requested),
    /// Random reads, then random writes, of `page_bytes` by a rising number of users, to measure alpha and k.
    Characterisation {
        /// Bytes of a request.
        page_bytes: u32,
    },
}

/// The requests of a workload.
#[derive(Clone, Debug)]
pub struct Requested {
    /// The workload.
    pub workload: Workload,
    /// The number of a generator's pages if there is a pool above the device; a trace has its own.
    pub pages: u64,
    /// The mapping of a trace's addresses to a device without a pool.
    pub addresses: AddressMap,
    /// Arrival of requests.
    pub arrivals: Arrivals,
    /// Requests to single pages that are skipped at the beginning.
    pub skip: u64,
    /// The number of requests; `u64::MAX` for all of a trace of unknown length.
    pub ops: u64,
}

impl Requested {
    /// The number of requests; 0 if it is not known yet.
    pub(crate) fn known_ops(&self) -> u64 {
        if self.ops == u64::MAX { 0 } else { self.ops }
    }
}

/// A benchmark and its length.
#[derive(Clone, Debug)]
pub struct Benchmarked {
    /// Its label in tables: the text that was typed.
    pub label: String,
    /// The benchmark, at its scale.
    pub benchmark: BenchmarkConfig,
    /// Its scale, in multiples of the default data; `None` if an option gives the size.
    pub scale: Option<u64>,
    /// Users, each with one transaction at a time.
    pub users: u32,
    /// The length of the measured part.
    pub stop: Extent,
    /// The length of the warm-up.
    pub warm_up: Extent,
}

/// The arrival of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// A number of users, each with one request outstanding.
    Closed {
        /// Users.
        users: u32,
    },
    /// An open loop: the workload's times, divided by the speed.
    Times {
        /// The speed, 1 for the original times.
        speed: f64,
    },
    /// An open loop at a rate: the workload's times are scaled, or gaps are even if it has none.
    Rate {
        /// Requests per second.
        requests_s: f64,
    },
}

/// The measurements of a run.
#[derive(Clone, Debug, Default)]
pub struct Measure {
    /// The subject of each row.
    pub rows: Rows,
    /// The file for the drive's timeline.
    pub timeline: Option<PathBuf>,
    /// The file for a line per request.
    pub requests: Option<PathBuf>,
    /// Whether the two may replace any file.
    pub force: bool,
}

/// The subject of each row of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rows {
    /// The whole run.
    #[default]
    Run,
    /// The same, with an explanation of the placement policy's changes to its groups.
    Explained,
    /// An interval of this many page writes.
    PageIntervals(u64),
    /// An interval of this length.
    TimeIntervals(Nanos),
    /// A group of segments.
    Groups,
    /// A type of transaction.
    Types,
    /// A type of transaction in an interval of this length.
    TypeIntervals(Nanos),
    /// A measured number of users.
    Curve,
}

impl Run {
    /// The command of this run.
    pub fn command(&self) -> Command {
        match (&self.load, &self.stack) {
            (Load::Characterisation { .. }, _) => Command::Profile,
            (Load::Benchmark(_), _) => Command::Bench,
            (_, Stack { pool: Some(_), .. }) => Command::Pool,
            (_, Stack { device: DeviceConfig { drive: DriveConfig::Translation(_), .. }, .. }) => Command::Gc,
            _ => Command::Replay,
        }
    }

    /// The requests; `None` for a characterisation and a benchmark.
    pub fn requested(&self) -> Option<&Requested> {
        match &self.load {
            Load::Requests(requested) => Some(requested),
            Load::Characterisation { .. } | Load::Benchmark(_) => None,
        }
    }

    /// The benchmark and its engine, if the run has one.
    pub(crate) fn benchmarked(&self) -> Option<(&Benchmarked, &EngineStage)> {
        match (&self.load, &self.stack.engine) {
            (Load::Benchmark(benchmarked), Some(stage)) => Some((benchmarked, stage)),
            _ => None,
        }
    }

    /// The translation layer without a drive, if the run has one.
    pub(crate) fn translation(&self) -> Option<&TranslationConfig> {
        match &self.stack.device.drive {
            DriveConfig::Translation(translation) => Some(translation),
            _ => None,
        }
    }

    /// Bytes in a page of the load.
    pub(crate) fn page_bytes(&self) -> u32 {
        match (&self.load, &self.stack.pool) {
            (Load::Characterisation { page_bytes }, _) => *page_bytes,
            (Load::Benchmark(_), _) if let Some(engine) = &self.stack.engine => engine.page_bytes,
            (_, Some(pool)) => pool.page_bytes,
            (_, None) => self.stack.device.page_bytes(),
        }
    }

    /// The workload with addresses mapped to pages of this stack.
    pub(crate) fn bind(&self) -> Result<Bound, StackError> {
        let Load::Requests(requested) = &self.load else {
            return Err(StackError::run("a characterisation and a benchmark have no workload"));
        };
        requested.workload.bind(self.stack.view(requested))
    }

    /// The number of requests, as far as it is known.
    pub fn ops(&self) -> u64 {
        match &self.load {
            Load::Characterisation { .. } => PROFILE_OPS,
            Load::Benchmark(Benchmarked { stop: Extent::Ops(ops), .. }) => *ops,
            Load::Benchmark(_) => 0,
            Load::Requests(requested) => requested.known_ops(),
        }
    }

    /// Whether it uses a real drive, which no other run may use meanwhile.
    pub fn is_real(&self) -> bool {
        self.stack.device.is_real()
    }
}

impl EngineStage {
    /// The options of the store.
    pub(crate) fn options(&self) -> Options {
        Options {
            page_bytes: self.page_bytes,
            memory_bytes: self.memory_bytes,
            log_bytes: self.log_bytes,
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
}

/// An estimate of the number of requests of a characterisation.
pub(crate) const PROFILE_OPS: u64 = 1_000_000;

impl Stack {
    /// The policies of the pool, or of the engine's pool.
    pub fn policies(&self) -> Option<&Policies> {
        let of_engine = self.engine.as_ref().map(|engine| &engine.policies);
        of_engine.or(self.pool.as_ref().map(|pool| &pool.policies))
    }

    /// The write-back policy of that pool; `None` without a pool, or if the store chooses.
    pub fn write_back(&self) -> Option<&ChosenWriteBack> {
        let of_engine = self.engine.as_ref().and_then(|engine| engine.write_back.as_ref());
        of_engine.or(self.pool.as_ref().map(|pool| &pool.write_back))
    }

    /// The meaning of a workload's addresses in this stack.
    fn view(&self, requested: &Requested) -> View {
        match (&self.pool, &self.device.drive) {
            // Without a drive the number of a trace's pages matters only if frames are a share of it. Then it
            // was counted and is given here.
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

    /// The garbage collection for pages of the host: that of the layer, else that of the drive. `None` if the
    /// device has none.
    pub fn collect(&self) -> Option<&Collect> {
        match (&self.layer, &self.device.drive) {
            (Some(layer), _) => Some(&layer.log.collect),
            (None, DriveConfig::Simulated { config, .. }) => Some(&config.collect),
            (None, DriveConfig::Translation(translation)) => Some(&translation.ftl.collect),
            _ => None,
        }
    }

    /// The same, for changes; `None` also for a medium that is overwritten in place.
    pub fn collect_mut(&mut self) -> Option<&mut Collect> {
        match (&mut self.layer, &mut self.device.drive) {
            (Some(layer), _) => Some(&mut layer.log.collect),
            (None, DriveConfig::Simulated { config, .. }) if !config.in_place => Some(&mut config.collect),
            (None, DriveConfig::Translation(translation)) => Some(&mut translation.ftl.collect),
            _ => None,
        }
    }
}

/// The error for a trace that ends within the skipped requests.
pub(crate) fn passes_over(skip: u64, has: u64) -> StackError {
    StackError::request(format!(
        "--skip {skip} passes over the whole trace, which has {has} page requests; accepted: 0 to {}",
        has.saturating_sub(1)
    ))
}
