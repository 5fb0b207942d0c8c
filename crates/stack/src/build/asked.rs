//! Holds the values of a run's settings before they are checked against each other.

use crate::device::{DeviceConfig, LayerConfig};
use crate::pattern::Pattern;
use crate::workload::{AddressMap, TraceForm};
use fulgurite_base::units::{Portion, Share};
use fulgurite_base::{Choice, Nanos};
use fulgurite_bench::Extent;
use fulgurite_engine::{Durability, PlaceConfig, TornPages};
use fulgurite_ftl::placement::PlacementConfig;
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ftl::victim::VictimConfig;
use fulgurite_pool::{PrefetchConfig, ReplacementConfig, WriteBackConfig};
use fulgurite_workload::trace::{Format, Join, TraceOptions};

/// The value of each setting of a run. `None` means that the setting was not given.
#[derive(Default)]
pub(crate) struct Asked {
    pub workload: String,
    pub benchmark: String,
    pub scale: Option<u64>,
    pub degree: Option<String>,
    pub format: Option<(Format, TraceOptions)>,
    pub sort: bool,
    /// How several files are one trace.
    pub files: Option<Join>,
    pub device: Option<DeviceConfig>,
    pub destroy_contents: bool,
    pub layer: Option<LayerConfig>,
    pub placement: Option<PlacementConfig>,
    pub placement_label: String,
    pub victim: Option<VictimConfig>,
    pub victim_label: String,
    pub schedule: Option<Schedule>,
    pub replacement: Option<ReplacementConfig>,
    pub write_back: Option<WriteBackConfig>,
    pub prefetch: Option<PrefetchConfig>,
    pub frames: Option<Portion>,
    pub pages: Option<u64>,
    pub page_bytes: u32,
    pub logical_bytes: u64,
    pub physical_bytes: u64,
    pub segment_bytes: u64,
    pub gc_reserve: Option<u32>,
    pub users: Option<u32>,
    pub speed: Option<f64>,
    pub rate: Option<u64>,
    pub until_steady: bool,
    pub addresses: Option<AddressMap>,
    pub cpu_per_request: Nanos,
    pub cores: u32,
    /// The number of shards of a store; `None` for one for each core.
    pub shards: Option<u32>,
    pub skip: u64,
    pub ops: Option<u64>,
    pub time: Option<Nanos>,
    pub warm_up: Option<Extent>,
    pub place: Option<PlaceConfig>,
    pub torn_pages: Option<TornPages>,
    pub durability: Option<Durability>,
    pub memory: Option<Memory>,
    pub log_bytes: u64,
    pub records: u8,
    pub cpu_per_op: Option<Nanos>,
    pub reuse: bool,
    pub by_type: bool,
    pub suite: SuiteName,
    pub rates: Option<u64>,
    pub patterns: Option<Pattern>,
    pub curve: bool,
    /// The divisor of the sampled pages.
    pub sample: Option<u32>,
    pub explain: bool,
    pub groups: bool,
    pub page_interval: Option<Portion>,
    pub time_interval: Option<Nanos>,
    pub trace_out: Option<String>,
    pub requests_out: Option<String>,
    pub force: bool,
    pub seed: u64,
}

/// The memory of an engine, as the user asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// A number of bytes.
    Bytes(u64),
    /// A share of the bytes of the loaded data.
    OfData(Share),
}

/// The name of a suite on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SuiteName {
    #[default]
    Concurrency,
    Latency,
    Overwrite,
    Zones,
    OverProvisioning,
}

impl Choice for SuiteName {
    const NAMES: &'static [(&'static str, SuiteName)] = &[
        ("concurrency", SuiteName::Concurrency),
        ("latency", SuiteName::Latency),
        ("overwrite", SuiteName::Overwrite),
        ("zones", SuiteName::Zones),
        ("over-provisioning", SuiteName::OverProvisioning),
    ];
}

impl Asked {
    /// Takes the form of a trace; `None` if no setting concerns it.
    pub(super) fn trace_form(&mut self) -> Option<TraceForm> {
        let (format, options) = match self.format.take() {
            Some((format, options)) => (Some(format), options),
            None if self.sort || self.files.is_some() => (None, TraceOptions::default()),
            None => return None,
        };
        let sort = self.sort || options.sort;
        Some(TraceForm { format, options: TraceOptions { sort, ..options }, join: self.files })
    }
}
