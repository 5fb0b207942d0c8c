//! A run as a value: what is built, what is asked of it, what is measured, and the seed of all randomness.
//!
//! Every command is a shape of it: `pool` has a pool, `gc` a translation layer for a device, `replay` a device alone,
//! `profile` a load of its own. A run is checked before anything of a grid is executed; see [`Run::check`].

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
    /// What is built.
    pub stack: Stack,
    /// What is asked of it.
    pub load: Load,
    /// What is measured.
    pub measure: Measure,
    /// The seed of all randomness.
    pub seed: u64,
}

/// What is built, from the top down.
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
    /// Which frame leaves.
    pub replacement: ReplacementConfig,
    /// What is read beside a missed page.
    pub prefetch: PrefetchConfig,
}

/// What is written when a frame is needed.
#[derive(Clone, Debug)]
pub struct ChosenWriteBack {
    /// The policy as it was asked for.
    pub policy: WriteBackConfig,
    /// The same for the device of this stack: what was not given followed from measurements of it.
    pub batches: WriteBack,
}

/// What tables call the store's own choice of a write-back policy, and how it is asked for.
pub const STORES_OWN: &str = "store";

/// A buffer pool in a stack.
#[derive(Clone, Debug)]
pub struct PoolStage {
    /// Its policies.
    pub policies: Policies,
    /// What it writes when a frame is needed.
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
    /// What its pool writes when a frame is needed; `None` for what the store chooses by itself.
    pub write_back: Option<ChosenWriteBack>,
    /// Bytes in a page.
    pub page_bytes: u32,
    /// Bytes of memory, for everything that grows.
    pub memory_bytes: u64,
    /// Bytes of the log's area.
    pub log_bytes: u64,
    /// Per cent of the memory for pages that records have by themselves.
    pub records: u8,
    /// Where pages are written.
    pub place: PlaceConfig,
    /// What protects pages in place from torn writes.
    pub torn_pages: TornPages,
    /// What commits promise.
    pub durability: Durability,
    /// CPU time of a call of the store, on the one core that all users share.
    pub cpu_per_op: Nanos,
    /// Begin with the data that an earlier run left in the file.
    pub reuse: bool,
}

/// What is asked of a stack.
#[derive(Clone, Debug)]
pub enum Load {
    /// The transactions of a benchmark.
    Benchmark(Benchmarked),
    /// The requests of a workload.
    Requests(Requested),
    /// Random reads, then random writes, of `page_bytes` by a rising number of users: what alpha and k are measured
    /// with.
    Characterisation {
        /// Bytes of a request.
        page_bytes: u32,
    },
}

/// The requests of a workload.
#[derive(Clone, Debug)]
pub struct Requested {
    /// What is requested.
    pub workload: Workload,
    /// The pages that a generator ranges over where a pool is above the device; a trace has its own.
    pub pages: u64,
    /// How the addresses of a trace are brought onto a device without a pool.
    pub addresses: AddressMap,
    /// When requests are made.
    pub arrivals: Arrivals,
    /// How many requests to single pages are passed over before the first.
    pub skip: u64,
    /// How many; `u64::MAX` for all of a trace of unknown length.
    pub ops: u64,
}

impl Requested {
    /// The number of requests; 0 if it is not known yet.
    pub(crate) fn known_ops(&self) -> u64 {
        if self.ops == u64::MAX { 0 } else { self.ops }
    }
}

/// A benchmark and how long it is run.
#[derive(Clone, Debug)]
pub struct Benchmarked {
    /// What tables call it: as it was typed.
    pub label: String,
    /// The benchmark, at its scale.
    pub benchmark: BenchmarkConfig,
    /// Its scale, in multiples of the default data; `None` where an option says another size.
    pub scale: Option<u64>,
    /// Users, each with one transaction at a time.
    pub users: u32,
    /// The measured part.
    pub stop: Extent,
    /// What runs before it.
    pub warm_up: Extent,
}

/// Who decides when a request is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// A number of users, each with one request outstanding.
    Closed {
        /// Users.
        users: u32,
    },
    /// The workload's times, divided by the speed.
    Times {
        /// Time passes this many times as fast.
        speed: f64,
    },
    /// A number of requests a second: the workload's times stretched, or even gaps where it has none.
    Rate {
        /// Requests per second.
        requests_s: f64,
    },
}

/// What is measured.
#[derive(Clone, Debug, Default)]
pub struct Measure {
    /// What the rows are about.
    pub rows: Rows,
    /// Where the drive's timeline goes.
    pub timeline: Option<PathBuf>,
    /// Where a line for every request goes.
    pub requests: Option<PathBuf>,
    /// Whether the two may replace any file.
    pub force: bool,
}

/// What the rows of a run are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rows {
    /// One, of the whole run.
    #[default]
    Run,
    /// The same, with what placement did to its groups and why.
    Explained,
    /// One for every stretch of this number of page writes.
    PageIntervals(u64),
    /// One for every stretch of time.
    TimeIntervals(Nanos),
    /// One for every group of segments.
    Groups,
    /// One for every type of transaction.
    Types,
    /// One for every type of transaction in every stretch of time.
    TypeIntervals(Nanos),
    /// One for every number of users that a characterisation has measured.
    Curve,
}

impl Run {
    /// The command that it is a run of.
    pub fn command(&self) -> Command {
        match (&self.load, &self.stack) {
            (Load::Characterisation { .. }, _) => Command::Profile,
            (Load::Benchmark(_), _) => Command::Bench,
            (_, Stack { pool: Some(_), .. }) => Command::Pool,
            (_, Stack { device: DeviceConfig { drive: DriveConfig::Translation(_), .. }, .. }) => Command::Gc,
            _ => Command::Replay,
        }
    }

    /// The requests of a workload that are asked for; `None` for a characterisation and a benchmark.
    pub fn requested(&self) -> Option<&Requested> {
        match &self.load {
            Load::Requests(requested) => Some(requested),
            Load::Characterisation { .. } | Load::Benchmark(_) => None,
        }
    }

    /// The benchmark that is asked for, and the engine that it runs on.
    pub fn benchmarked(&self) -> Option<(&Benchmarked, &EngineStage)> {
        match (&self.load, &self.stack.engine) {
            (Load::Benchmark(benchmarked), Some(stage)) => Some((benchmarked, stage)),
            _ => None,
        }
    }

    /// The translation layer without a drive, where the run has one.
    pub(crate) fn translation(&self) -> Option<&TranslationConfig> {
        match &self.stack.device.drive {
            DriveConfig::Translation(translation) => Some(translation),
            _ => None,
        }
    }

    /// Bytes in a page of what the workload requests.
    pub(crate) fn page_bytes(&self) -> u32 {
        match (&self.load, &self.stack.pool) {
            (Load::Characterisation { page_bytes }, _) => *page_bytes,
            (Load::Benchmark(_), _) if let Some(engine) = &self.stack.engine => engine.page_bytes,
            (_, Some(pool)) => pool.page_bytes,
            (_, None) => self.stack.device.page_bytes(),
        }
    }

    /// The workload with pages of this stack for addresses.
    pub(crate) fn bind(&self) -> Result<Bound, StackError> {
        let Load::Requests(requested) = &self.load else {
            return Err(StackError::run("a characterisation and a benchmark have no workload"));
        };
        requested.workload.bind(self.stack.view(requested))
    }

    /// How many requests it performs, as far as is known.
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

/// About how many requests the characterisation of a device takes.
pub(crate) const PROFILE_OPS: u64 = 1_000_000;

impl Stack {
    /// The policies of the pool, which the engine's own is where there is an engine.
    pub fn policies(&self) -> Option<&Policies> {
        let of_engine = self.engine.as_ref().map(|engine| &engine.policies);
        of_engine.or(self.pool.as_ref().map(|pool| &pool.policies))
    }

    /// The write-back policy of that pool that was asked for; `None` where there is no pool, or the store chooses.
    pub fn write_back(&self) -> Option<&ChosenWriteBack> {
        let of_engine = self.engine.as_ref().and_then(|engine| engine.write_back.as_ref());
        of_engine.or(self.pool.as_ref().map(|pool| &pool.write_back))
    }

    /// What the addresses of a workload mean in this stack.
    fn view(&self, requested: &Requested) -> View {
        match (&self.pool, &self.device.drive) {
            // Without a drive the pages of a trace are needed only where frames are a share of them. Then they
            // were counted, and are given here.
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

    /// How garbage is collected for the host's pages: in the layer where there is one, for it decides where pages go;
    /// else in the drive. `None` where Fulgurite knows of no collector.
    pub fn collect(&self) -> Option<&Collect> {
        match (&self.layer, &self.device.drive) {
            (Some(layer), _) => Some(&layer.log.collect),
            (None, DriveConfig::Simulated { config, .. }) => Some(&config.collect),
            (None, DriveConfig::Translation(translation)) => Some(&translation.ftl.collect),
            _ => None,
        }
    }

    /// The same, to change it; `None` also for a medium that is overwritten in place.
    pub fn collect_mut(&mut self) -> Option<&mut Collect> {
        match (&mut self.layer, &mut self.device.drive) {
            (Some(layer), _) => Some(&mut layer.log.collect),
            (None, DriveConfig::Simulated { config, .. }) if !config.in_place => Some(&mut config.collect),
            (None, DriveConfig::Translation(translation)) => Some(&mut translation.ftl.collect),
            _ => None,
        }
    }
}

/// The error for a trace of which nothing is left.
pub(crate) fn passes_over(skip: u64, has: u64) -> StackError {
    StackError::request(format!(
        "--skip {skip} passes over the whole trace, which has {has} page requests; accepted: 0 to {}",
        has.saturating_sub(1)
    ))
}
