//! From words to runs: settings by name, each with one value or several, and their grid.
//!
//! The command line and study files use the same words (`--write-back single,ace`, `write_back =
//! ["single", "ace"]`), so both end here. The grid's last axis varies fastest; axes come in the
//! order of [`Command::settings`], whatever the order in which they were given.

use crate::device::DeviceDescription;
use crate::error::StudyError;
use crate::output::{self, Named};
use crate::profile;
use crate::run::Run;
use crate::run::gc::{GcRun, Rows};
use crate::run::pool::PoolRun;
use crate::run::replay::{Arrivals, ReplayRun};
use crate::workload::{AddressMap, BoundWorkload, ReplayWorkload, WorkloadDescription};
use fulgurite_base::{Nanos, Spec, SpecError, units};
use fulgurite_ftl::FtlConfig;
use fulgurite_ftl::placement::Placement;
use fulgurite_ftl::victim::VictimPolicy;
use fulgurite_pool::{Prefetch, Replacement, WriteBack, write_back};
use fulgurite_workload::trace::Format;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a grid runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// Pool runs.
    Pool,
    /// Counting runs.
    Gc,
    /// Timed requests against a drive.
    Replay,
    /// Characterisations.
    Profile,
}

/// One setting: its word, its default, and whether a comma-separated list makes an axis of it.
pub struct Setting {
    /// The word, as in study files; on the command line with dashes.
    pub name: &'static str,
    /// Used where nothing is given; `None` where something must be, or it depends on the workload.
    pub default: Option<&'static str>,
}

const fn setting(name: &'static str, default: Option<&'static str>) -> Setting {
    Setting { name, default }
}

const POOL: &[Setting] = &[
    setting("workload", None),
    setting("device", Some("p4510")),
    setting("destroy_contents", Some("no")),
    setting("layer", None),
    setting("placement", None),
    setting("victim", None),
    setting("replacement", Some("lru")),
    setting("write_back", Some("single")),
    setting("prefetch", Some("none")),
    setting("frames", Some("6%")),
    setting("pages", None),
    setting("page", Some("4KiB")),
    setting("ops", None),
    setting("users", Some("1")),
    setting("cpu_per_request", Some("0")),
    setting("format", None),
    setting("seed", Some("42")),
];

const GC: &[Setting] = &[
    setting("workload", None),
    setting("placement", Some("none")),
    setting("victim", Some("greedy")),
    setting("logical", Some("8GB")),
    setting("physical", Some("8GiB")),
    setting("segment", Some("4MiB")),
    setting("page", Some("4KiB")),
    setting("gc_reserve", None),
    setting("explain", Some("no")),
    setting("groups", Some("no")),
    setting("interval", None),
    setting("ops", None),
    setting("format", None),
    setting("seed", Some("42")),
];

const REPLAY: &[Setting] = &[
    setting("workload", None),
    setting("device", Some("p4510")),
    setting("destroy_contents", Some("no")),
    setting("layer", None),
    setting("placement", None),
    setting("victim", None),
    setting("schedule", None),
    setting("users", None),
    setting("speed", None),
    setting("rate", None),
    setting("addresses", Some("scale")),
    setting("ops", None),
    setting("interval", None),
    setting("trace_out", None),
    setting("requests_out", None),
    setting("format", None),
    setting("seed", Some("42")),
];

const PROFILE: &[Setting] = &[
    setting("device", None),
    setting("destroy_contents", Some("no")),
    setting("page", Some("4KiB")),
    setting("seed", Some("42")),
];

impl Command {
    /// The settings that the command knows.
    pub fn settings(self) -> &'static [Setting] {
        match self {
            Command::Pool => POOL,
            Command::Gc => GC,
            Command::Replay => REPLAY,
            Command::Profile => PROFILE,
        }
    }

    /// The columns that matter most of its rows.
    pub fn main_columns(self) -> &'static [&'static str] {
        match self {
            Command::Pool => &[
                "workload",
                "device",
                "layer",
                "replacement",
                "write_back",
                "n_w",
                "elapsed_ns",
                "throughput_ops_s",
                "hit_ratio",
                "pages_read",
                "pages_written",
                "write_ios",
                "latency_p99_ns",
                "waf",
                "layer_waf",
                "drive_waf",
            ],
            Command::Gc => &[
                "workload",
                "placement",
                "victim",
                "group",
                "time_pages",
                "spare_effective",
                "host_pages_written",
                "gc_pages_copied",
                "erases",
                "waf",
                "waf_steady",
                "waf_closed_form",
                "groups",
                "hot_segments",
                "last_segments",
                "group_segments",
                "valid_share",
                "share_c1",
                "share_c2",
                "share_c3",
                "share_c4",
                "share_c5",
                "share_c6",
            ],
            Command::Replay => &[
                "workload",
                "device",
                "layer",
                "placement",
                "schedule",
                "time_ns",
                "throughput_ops_s",
                "bandwidth_bytes_s",
                "latency_mean_ns",
                "latency_stddev_ns",
                "latency_p99_ns",
                "latency_p999_ns",
                "latency_max_ns",
                "read_latency_mean_ns",
                "write_latency_mean_ns",
                "wait_gc_mean_ns",
                "wait_die_mean_ns",
                "wait_channel_mean_ns",
                "waf",
                "layer_waf",
                "drive_waf",
            ],
            Command::Profile => &[
                "device",
                "page_bytes",
                "alpha",
                "alpha_target",
                "k_r",
                "k_r_target",
                "k_w",
                "k_w_target",
                "read_iops_max",
                "write_iops_max",
                "verdict",
            ],
        }
    }
}

/// Settings with their values: more than one makes an axis.
pub type Settings = BTreeMap<String, Vec<String>>;

/// The values that `text` lists: `single,ace:n_w=8,raw` has three.
pub fn values(text: &str) -> Result<Vec<String>, StudyError> {
    Ok(Spec::split_list(text)?)
}

/// One cell of the grid: every setting that has a value, with it.
struct Cell<'a>(BTreeMap<&'static str, &'a str>);

/// Every run of the grid, checked, so that a wrong request is refused before the first run.
pub fn expand(command: Command, settings: &Settings) -> Result<Vec<Run>, StudyError> {
    let known = command.settings();
    let names: Vec<&str> = known.iter().map(|setting| setting.name).collect();
    if let Some(name) = settings.keys().find(|name| !names.contains(&name.as_str())) {
        return Err(SpecError::unknown("setting", name, &names).into());
    }
    if let Some((name, _)) = settings.iter().find(|(_, values)| values.is_empty()) {
        return Err(StudyError::request(format!("{} has no value; give one, or leave it out", flag(name))));
    }
    let mut cells: Vec<Cell> = vec![Cell(BTreeMap::new())];
    for Setting { name, default } in known {
        let given: Vec<&str> = match settings.get(*name) {
            Some(values) => values.iter().map(String::as_str).collect(),
            None => default.iter().copied().collect(),
        };
        if given.is_empty() {
            continue;
        }
        let grown = cells.iter().flat_map(|cell| given.iter().map(|value| cell.with(name, value)));
        cells = grown.collect();
    }
    let single = ["trace_out", "requests_out"].into_iter().find(|name| settings.contains_key(*name));
    if let Some(name) = single.filter(|_| cells.len() > 1) {
        return Err(StudyError::request(format!(
            "{} records one run, here are {}; accepted: one value for every option",
            flag(name),
            cells.len()
        )));
    }
    let mut workloads = Workloads::default();
    cells.iter().map(|cell| cell.run(command, &mut workloads)).collect()
}

/// The file that the text of a workload or a device names: a trace, or a drive (`file:PATH,size=1GiB`). The text of a
/// generator or a preset names no file that exists.
pub fn named_file(text: &str) -> &Path {
    Path::new(text.strip_prefix("file:").map_or(text, |drive| drive.split(',').next().unwrap_or(drive)))
}

/// A setting's name as a flag.
fn flag(name: &str) -> String {
    if matches!(name, "workload" | "device") {
        name.to_owned()
    } else {
        format!("--{}", name.replace('_', "-"))
    }
}

/// Trace files that were read, so that each is read once for a grid.
#[derive(Default)]
struct Workloads(BTreeMap<String, WorkloadDescription>);

impl<'a> Cell<'a> {
    fn with(&self, name: &'static str, value: &'a str) -> Cell<'a> {
        let mut cell = Cell(self.0.clone());
        cell.0.insert(name, value);
        cell
    }

    fn parse<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, SpecError>,
    ) -> Result<Option<T>, StudyError> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        parse(value).map(Some).map_err(|error| StudyError::request(format!("{}: {error}", flag(name))))
    }

    fn need<T>(&self, name: &str, parse: impl Fn(&str) -> Result<T, SpecError>) -> Result<T, StudyError> {
        self.parse(name, parse)?.ok_or_else(|| StudyError::request(format!("{} is missing", flag(name))))
    }

    /// A count within `least..=most`.
    fn count(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, StudyError> {
        self.parse(name, |text| {
            let count = units::parse_count(text)?;
            let refused = || SpecError::new(format!("{text} is out of range; accepted: {least} to {most}"));
            (least..=most).contains(&count).then_some(count).ok_or_else(refused)
        })
    }

    fn seed(&self) -> Result<u64, StudyError> {
        Ok(self.count("seed", 0, u64::MAX)?.unwrap_or(42))
    }

    fn page_bytes(&self) -> Result<u32, StudyError> {
        self.need("page", |text| {
            let bytes = units::parse_size(text)?;
            let fits = u32::try_from(bytes)
                .ok()
                .filter(|bytes| bytes.is_power_of_two() && (512..=1 << 20).contains(bytes));
            fits.ok_or_else(|| {
                SpecError::new(format!(
                    "{text} is not a page size; accepted: a power of two from 512B to 1MiB"
                ))
            })
        })
    }

    fn device(&self) -> Result<DeviceDescription, StudyError> {
        let text = self.0.get("device").ok_or_else(|| StudyError::request("device is missing"))?;
        let mut device = DeviceDescription::parse(text)?;
        if let Some(layer) = self.0.get("layer") {
            device = device.with_layer(layer)?;
        }
        if let Some(placement) = self.0.get("placement") {
            device = device.with_placement(placement)?;
        }
        if let Some(victim) = self.0.get("victim") {
            device = device.with_victim(victim)?;
        }
        if let Some(schedule) = self.0.get("schedule") {
            device = device.with_schedule(schedule)?;
        }
        let destroy = self.parse("destroy_contents", units::parse_yes_no)? == Some(true);
        Ok(if destroy { device.with_destroyed_contents() } else { device })
    }

    fn workload(&self, workloads: &mut Workloads) -> Result<WorkloadDescription, StudyError> {
        let text = *self.0.get("workload").ok_or_else(|| StudyError::request("workload is missing"))?;
        if let Some(known) = workloads.0.get(text) {
            return Ok(known.clone());
        }
        let format = self.parse("format", |text| Format::from_spec(Spec::parse(text)?))?;
        let workload = WorkloadDescription::parse(text, format)?;
        workloads.0.insert(text.to_owned(), workload.clone());
        Ok(workload)
    }

    fn run(&self, command: Command, workloads: &mut Workloads) -> Result<Run, StudyError> {
        match command {
            Command::Pool => Ok(Run::Pool(Box::new(self.pool(workloads)?))),
            Command::Gc => Ok(Run::Gc(Box::new(self.gc(workloads)?))),
            Command::Replay => Ok(Run::Replay(Box::new(self.replay(workloads)?))),
            Command::Profile => {
                let (device, page_bytes) = (self.device()?, self.page_bytes()?);
                device.check()?;
                profile::request_pages(&device, page_bytes)?;
                Ok(Run::Profile { device, page_bytes, seed: self.seed()? })
            }
        }
    }

    fn pool(&self, workloads: &mut Workloads) -> Result<PoolRun, StudyError> {
        let (device, page_bytes, seed) = (self.device()?, self.page_bytes()?, self.seed()?);
        let request_pages = profile::request_pages(&device, page_bytes)?;
        let description = self.workload(workloads)?;
        // Without a drive it does not matter how many pages there are, unless frames are a share of them.
        let streams = device.is_none() && self.0.get("frames").is_some_and(|frames| !frames.ends_with('%'));
        let workload =
            if streams { description.stream(page_bytes)? } else { description.bind(page_bytes)? };
        let pages = self.pages(&workload)?;
        let device = device.with_room_for(pages.saturating_mul(u64::from(request_pages)));
        if !device.is_none() {
            device.check()?;
        }
        let on_device = device.pages() / u64::from(request_pages);
        if pages > on_device && !device.is_none() {
            return Err(StudyError::request(format!(
                "{pages} pages of {} do not fit on {}{}, which has {on_device}; use fewer --pages or a larger drive, like {}:blocks=N",
                units::format_size(u64::from(page_bytes)),
                device.layer().map_or_else(String::new, |layer| format!("the layer {layer} above ")),
                device.name,
                device.name.split(':').next().unwrap_or_default()
            )));
        }
        workload.source(pages, page_bytes, seed)?;
        let frames = self.frames(pages)?;
        let replacement_name = self.need("replacement", |text| Ok(text.to_owned()))?;
        let replacement = self.need("replacement", Spec::parse)?;
        let needs_erase_counts = Replacement::from_spec(replacement.clone(), frames)?.needs_erase_counts();
        if needs_erase_counts && !device.tells_erase_counts() {
            return Err(StudyError::request(format!(
                "--replacement {replacement_name} asks how often erase blocks were erased, which {} does not tell; accepted: a preset with flash, like p4510",
                device.name
            )));
        }
        let write_back_name = self.need("write_back", |text| Ok(text.to_owned()))?;
        let write_back = self.write_back(&device, page_bytes, seed)?;
        if write_back.buffers >= frames {
            return Err(StudyError::request(format!(
                "--write-back {write_back_name} takes {} of {frames} frames for pages under way; accepted: more --frames, or fewer buffers=",
                write_back.buffers
            )));
        }
        let prefetch = self.need("prefetch", |text| Prefetch::from_spec(Spec::parse(text)?))?;
        let users = self.count("users", 1, 100_000)?.unwrap_or(1) as u32;
        if device.is_none() {
            let timed = [
                (device.layer().is_some(), "--layer", device.layer().unwrap_or_default()),
                (write_back.buffers > 0 || write_back.ahead > 0, "--write-back", write_back_name.as_str()),
                (!prefetch.is_none(), "--prefetch", prefetch.name()),
                (users > 1, "--users", "more than 1"),
            ];
            if let Some((_, what, value)) = timed.into_iter().find(|(given, ..)| *given) {
                return Err(StudyError::request(format!(
                    "{what} {value} matters only in time, which device none has not; accepted: a drive, or write-back single or ace, no prefetch, no layer and one user"
                )));
            }
        }
        Ok(PoolRun {
            workload_name: description.name.clone(),
            ops: self.pool_ops(&workload)?,
            workload,
            replacement,
            replacement_name,
            write_back,
            write_back_name,
            prefetch,
            frames,
            pages,
            page_bytes,
            users,
            cpu_per_request: self.need("cpu_per_request", units::parse_micros)?,
            device,
            seed,
        })
    }

    /// The write-back policy; what it was not told it takes from the device.
    fn write_back(
        &self,
        device: &DeviceDescription,
        page_bytes: u32,
        seed: u64,
    ) -> Result<WriteBack, StudyError> {
        let spec = self.need("write_back", Spec::parse)?;
        let measured = |what: &str| match device.is_none() {
            true => Err(SpecError::new(format!(
                "--write-back: {what} is measured on the drive, and device none is no drive; accepted: ace:n_w=8"
            ))),
            false => Ok(()),
        };
        if spec.name() == write_back::AUTO {
            measured("everything in auto")?;
            spec.finish()?;
            let profile = profile::profile(device, page_bytes, seed)?;
            return Ok(write_back::auto::choose(&profile.reads.curve, &profile.writes.curve));
        }
        let k_w = || {
            measured("n_w")?;
            let plateau = profile::plateau(device, page_bytes, true, seed);
            plateau.map(|writes| writes.k).map_err(|error| SpecError::new(error.to_string()))
        };
        Ok(WriteBack::from_spec(spec, k_w)?)
    }

    /// Pages of a pool run: the trace's, or what was asked for.
    fn pages(&self, workload: &BoundWorkload) -> Result<u64, StudyError> {
        let asked = self.count("pages", 1, 1 << 40)?;
        match workload {
            BoundWorkload::Generator(_) => Ok(asked.unwrap_or(DEFAULT_PAGES)),
            BoundWorkload::Trace(trace) if asked.is_some() => Err(StudyError::request(format!(
                "--pages does not go with a trace, which has {} distinct pages; leave it out",
                trace.distinct_pages()
            ))),
            BoundWorkload::Stream(_) if asked.is_some() => {
                Err(StudyError::request("--pages does not go with a trace, which has its own; leave it out"))
            }
            BoundWorkload::Stream(_) => Ok(u64::MAX),
            BoundWorkload::Trace(trace) => Ok(trace.distinct_pages()),
            BoundWorkload::Changes(_) => unreachable!("a pool performs reads as well"),
        }
    }

    fn frames(&self, pages: u64) -> Result<u32, StudyError> {
        let text = self.0.get("frames").copied().unwrap_or("6%");
        let frames = if text.ends_with('%') {
            self.need("frames", units::parse_share)?.of(pages).max(1)
        } else {
            self.need("frames", units::parse_count)?
        };
        let refused = |why: &str| {
            StudyError::request(format!(
                "--frames {text} is {frames} frames for {pages} pages, {why}; accepted: 1 to {pages}"
            ))
        };
        match u32::try_from(frames) {
            Ok(0) => Err(refused("and a pool needs at least one")),
            Ok(frames) if u64::from(frames) <= pages => Ok(frames),
            _ => Err(refused("so that some would never be used")),
        }
    }

    fn pool_ops(&self, workload: &BoundWorkload) -> Result<u64, StudyError> {
        let asked = self.count("ops", 1, 1 << 40)?;
        match workload {
            BoundWorkload::Generator(_) => Ok(asked.unwrap_or(DEFAULT_OPS)),
            BoundWorkload::Trace(trace) => within_trace(asked, trace.pages_requested(), "page requests"),
            BoundWorkload::Stream(_) => Ok(asked.unwrap_or(u64::MAX)),
            BoundWorkload::Changes(_) => unreachable!("a pool performs reads as well"),
        }
    }

    fn replay(&self, workloads: &mut Workloads) -> Result<ReplayRun, StudyError> {
        let (device, seed) = (self.device()?, self.seed()?);
        device.check()?;
        let description = self.workload(workloads)?;
        let workload = description.replay()?;
        let addresses = self.need("addresses", |text| match text {
            "scale" => Ok(AddressMap::Scale),
            "wrap" => Ok(AddressMap::Wrap),
            "compact" => Ok(AddressMap::Compact),
            _ => Err(SpecError::unknown("map of addresses", text, &["scale", "wrap", "compact"])),
        })?;
        workload.source(&device, addresses, seed)?;
        let asked = self.count("ops", 1, 1 << 40)?;
        let ops = match workload.count() {
            Some(has) => within_trace(asked, has, "requests")?,
            None => asked.unwrap_or(DEFAULT_REPLAY_OPS),
        };
        let interval = self.parse("interval", parse_interval)?;
        let (trace_out, requests_out) = (self.file("trace_out"), self.file("requests_out"));
        if trace_out.is_some() && device.simulated().is_none() {
            return Err(StudyError::request(format!(
                "--trace-out needs a simulated drive, which {} is not; accepted: a preset",
                device.name
            )));
        }
        let inputs = ["workload", "device"].map(|name| Some(Named::new(name, named_file(self.0.get(name)?))));
        let outputs = [("--trace-out", &trace_out), ("--requests-out", &requests_out)]
            .map(|(argument, path)| Some(Named::new(argument, path.as_deref()?)));
        output::check(
            &inputs.into_iter().flatten().collect::<Vec<_>>(),
            &outputs.into_iter().flatten().collect::<Vec<_>>(),
        )?;
        Ok(ReplayRun {
            workload_name: description.name.clone(),
            arrivals: self.arrivals(&workload, &description.name)?,
            workload,
            addresses,
            device,
            ops,
            interval,
            trace_out,
            requests_out,
            seed,
        })
    }

    fn file(&self, name: &str) -> Option<PathBuf> {
        self.0.get(name).map(PathBuf::from)
    }

    /// An open loop by times or by a rate, or a closed one.
    fn arrivals(&self, workload: &ReplayWorkload, name: &str) -> Result<Arrivals, StudyError> {
        let users = self.count("users", 1, 100_000)?;
        let speed = self.parse("speed", |text| {
            let number = text.strip_suffix('x').and_then(|number| number.parse::<f64>().ok());
            let in_range = number.filter(|speed| (1e-6..=1e6).contains(speed));
            in_range.ok_or_else(|| SpecError::new(format!("{text} is not a speed; write 2x or 0.5x")))
        })?;
        let rate = self.count("rate", 1, 1_000_000_000)?;
        match (users, speed, rate) {
            (Some(users), None, None) => Ok(Arrivals::Users(users as u32)),
            (None, None, Some(requests_s)) => Ok(Arrivals::Rate { requests_s: requests_s as f64 }),
            (None, speed, None) if workload.is_timed() => Ok(Arrivals::Times { speed: speed.unwrap_or(1.0) }),
            (None, _, None) => Err(StudyError::request(format!(
                "workload {name} has no arrival times; give a --rate of requests per second, or a number of --users"
            ))),
            _ => Err(StudyError::request(
                "--users, --speed and --rate each say when requests are made; accepted: one of them",
            )),
        }
    }

    /// A row for the run, for every stretch of it, or for every group.
    fn gc_rows(&self, logical: u64) -> Result<Rows, StudyError> {
        let interval = self.parse("interval", |text| {
            let pages = if text.ends_with('%') {
                units::parse_share(text)?.of(logical)
            } else {
                units::parse_count(text)?
            };
            Some(pages).filter(|pages| *pages > 0).ok_or_else(|| {
                SpecError::new(format!(
                    "{text} is no page write; accepted: a count, or a share of the logical pages"
                ))
            })
        })?;
        let groups = self.need("groups", units::parse_yes_no)?;
        let explain = self.need("explain", units::parse_yes_no)?;
        match (interval, groups, explain) {
            (None, false, false) => Ok(Rows::Run),
            (None, false, true) => Ok(Rows::Explained),
            (Some(length), false, false) => Ok(Rows::Intervals(length)),
            (None, true, false) => Ok(Rows::Groups),
            (Some(_), true, _) => Err(StudyError::request(
                "--interval and --groups each say what rows are about; accepted: one of them",
            )),
            (_, _, true) => Err(StudyError::request(
                "--explain speaks of whole runs; accepted: without --interval and --groups",
            )),
        }
    }

    fn gc(&self, workloads: &mut Workloads) -> Result<GcRun, StudyError> {
        let page_bytes = self.page_bytes()?;
        let pages = |name: &str| -> Result<u64, StudyError> {
            let bytes = self.need(name, units::parse_size)?;
            if bytes < u64::from(page_bytes) {
                return Err(StudyError::request(format!(
                    "{} {bytes}B is less than a page; accepted: at least {}",
                    flag(name),
                    units::format_size(u64::from(page_bytes))
                )));
            }
            Ok(bytes / u64::from(page_bytes))
        };
        let (logical, physical, segment) = (pages("logical")?, pages("physical")?, pages("segment")?);
        if logical >= physical {
            return Err(StudyError::request(format!(
                "--logical is {logical} pages and --physical {physical}; accepted: less logical than physical, or nothing is left to collect into"
            )));
        }
        let narrow = |name: &str, value: u64| {
            u32::try_from(value).map_err(|_| {
                StudyError::request(format!("--{name} has {value} pages; accepted: fewer than 2^32"))
            })
        };
        let shape = FtlConfig::plain(
            narrow("logical", logical)?,
            narrow("physical", physical / segment)?,
            narrow("segment", segment)?,
        );
        let placement = self.need("placement", |text| Placement::from_spec(Spec::parse(text)?))?;
        let ftl = FtlConfig {
            reserve: self.count("gc_reserve", 1, 1 << 20)?.unwrap_or(2) as u32,
            victim: self.need("victim", |text| VictimPolicy::from_spec(Spec::parse(text)?))?,
            placement,
            ..shape
        };
        ftl.validate().map_err(|error| {
            StudyError::request(format!(
                "--logical, --physical and --segment do not suit each other: {error}"
            ))
        })?;
        let description = self.workload(workloads)?;
        let workload = description.bind_changes(page_bytes, ftl.logical_pages)?;
        workload.source(logical, page_bytes, self.seed()?)?;
        let asked = self.count("ops", 1, 1 << 40)?;
        let ops = match &workload {
            BoundWorkload::Generator(_) => asked.unwrap_or(20 * logical),
            BoundWorkload::Changes(changes) => within_trace(asked, changes.len(), "page writes and trims")?,
            BoundWorkload::Trace(trace) if trace.distinct_pages() > logical => {
                return Err(StudyError::request(format!(
                    "the trace touches {} pages, --logical has {logical}; use at least {}",
                    trace.distinct_pages(),
                    units::format_size(trace.distinct_pages() * u64::from(page_bytes))
                )));
            }
            BoundWorkload::Trace(trace) => {
                within_trace(asked, trace.pages_changed(), "page writes and trims")?
            }
            BoundWorkload::Stream(_) => unreachable!("gc binds its workload"),
        };
        Ok(GcRun {
            workload_name: description.name.clone(),
            uniform: description.is_uniform_random(),
            workload,
            rows: self.gc_rows(logical)?,
            placement_name: self.need("placement", |text| Ok(text.to_owned()))?,
            victim_name: self.need("victim", |text| Ok(text.to_owned()))?,
            ftl,
            page_bytes,
            ops,
            seed: self.seed()?,
        })
    }
}

/// Pages and requests of a generated pool workload where nothing is said: those of the published
/// comparison of ACE with LRU.
const DEFAULT_PAGES: u64 = 102_400;
const DEFAULT_OPS: u64 = 1_000_000;
/// Requests of a generated replay where nothing is said.
const DEFAULT_REPLAY_OPS: u64 = 100_000;

/// An interval of time: `100ms`, `1s`, `250us`.
fn parse_interval(text: &str) -> Result<Nanos, SpecError> {
    let scales = [("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    let scaled = scales.iter().find_map(|(unit, scale)| {
        text.strip_suffix(unit)?.parse::<u64>().ok()?.checked_mul(*scale).filter(|length| *length > 0)
    });
    scaled
        .map(Nanos)
        .ok_or_else(|| SpecError::new(format!("{text} is not a length of time; write 250us, 100ms or 1s")))
}

fn within_trace(asked: Option<u64>, has: u64, what: &str) -> Result<u64, StudyError> {
    match asked {
        _ if has == 0 => Err(StudyError::request(format!("the trace has no {what}"))),
        Some(asked) if asked > has => Err(StudyError::request(format!(
            "--ops {asked} exceeds the trace's {has} {what}; accepted: 1 to {has}"
        ))),
        asked => Ok(asked.unwrap_or(has)),
    }
}
