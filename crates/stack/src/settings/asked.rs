//! The settings of a run after parsing, before it is checked whether they go together.

use crate::device::{DeviceConfig, LayerConfig};
use crate::workload::AddressMap;
use fulgurite_base::units::{self, Portion, Share};
use fulgurite_base::{Nanos, SpecError, option};
use fulgurite_bench::Extent;
use fulgurite_engine::{Durability, PlaceConfig, TornPages};
use fulgurite_ftl::placement::PlacementConfig;
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ftl::victim::VictimConfig;
use fulgurite_pool::{PrefetchConfig, ReplacementConfig, WriteBackConfig};
use fulgurite_workload::trace::{Format, TraceOptions};

/// What was asked for, setting by setting.
#[derive(Default)]
pub(crate) struct Asked {
    pub workload: String,
    pub benchmark: String,
    pub scale: Option<u64>,
    pub degree: Option<String>,
    pub format: Option<(Format, TraceOptions)>,
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
    pub addresses: Option<AddressMap>,
    pub wrap: bool,
    pub cpu_per_request: Nanos,
    pub cores: u32,
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
    pub curve: bool,
    pub explain: bool,
    pub groups: bool,
    pub page_interval: Option<Portion>,
    pub time_interval: Option<Nanos>,
    pub trace_out: Option<String>,
    pub requests_out: Option<String>,
    pub force: bool,
    pub seed: u64,
}

/// How much memory an engine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// Bytes.
    Bytes(u64),
    /// A share of the data that are loaded.
    OfData(Share),
}

pub(super) fn read_memory(text: &str) -> Result<Memory, SpecError> {
    match text.ends_with('%') {
        true => units::parse_share(text).map(Memory::OfData),
        false => units::parse_size(text).map(Memory::Bytes),
    }
}

/// A share of the memory in whole per cent: `0%` to `90%`.
pub(super) fn read_records(text: &str) -> Result<u8, SpecError> {
    let percent = text.strip_suffix('%').and_then(|number| number.parse().ok());
    percent.filter(|percent| *percent <= 90).ok_or_else(|| {
        SpecError::new(format!("`{text}` is not a share of the memory for records; accepted: 0% to 90%"))
    })
}

/// A number of transactions, or a length of time: `20K`, `10s`.
pub(super) fn read_extent(text: &str) -> Result<Extent, SpecError> {
    match text.ends_with('s') {
        true => read_time_interval(text).map(Extent::Time),
        false => count(text, 0, 1 << 40).map(Extent::Ops),
    }
}

/// A count within `least..=most`.
pub(super) fn count(text: &str, least: u64, most: u64) -> Result<u64, SpecError> {
    option::COUNT_64.parse_within(text, &least, &most)
}

pub(super) fn read_page_bytes(text: &str) -> Result<u32, SpecError> {
    let bytes = units::parse_size(text)?;
    let fits =
        u32::try_from(bytes).ok().filter(|bytes| bytes.is_power_of_two() && (512..=1 << 20).contains(bytes));
    fits.ok_or_else(|| {
        SpecError::new(format!("{text} is not a page size; accepted: a power of two from 512B to 1MiB"))
    })
}

pub(super) fn read_speed(text: &str) -> Result<f64, SpecError> {
    let number = text.strip_suffix('x').and_then(|number| number.parse::<f64>().ok());
    let in_range = number.filter(|speed| (1e-6..=1e6).contains(speed));
    in_range.ok_or_else(|| SpecError::new(format!("{text} is not a speed; write 2x or 0.5x")))
}

/// An interval of time: `100ms`, `1s`, `250us`.
pub(super) fn read_time_interval(text: &str) -> Result<Nanos, SpecError> {
    let scales = [("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    let scaled = scales.iter().find_map(|(unit, scale)| {
        text.strip_suffix(unit)?.parse::<u64>().ok()?.checked_mul(*scale).filter(|length| *length > 0)
    });
    scaled
        .map(Nanos)
        .ok_or_else(|| SpecError::new(format!("{text} is not a length of time; write 250us, 100ms or 1s")))
}
