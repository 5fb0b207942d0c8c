//! Declares all settings.

use super::read::{
    count, read_extent, read_memory, read_page_bytes, read_records, read_sample, read_shards, read_speed,
    read_time_interval,
};
use super::setting::Absent::{Nothing, Required, Value, Words};
use super::setting::Setting;
use super::write_back::{canonical_write_back, read_write_back};
use crate::Command::{Bench, Gc, Pool, Profile, Replay, Serve};
use crate::device::{DeviceConfig, LayerConfig};
use crate::run::{Benchmarked, EngineStage, Load, Rows, STORES_OWN, Suite};
use crate::{Run, StackError};
use fulgurite_base::option::{self, parse_choice};
use fulgurite_base::{Spec, SpecError, units};
use fulgurite_ftl::placement::PlacementConfig;
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ftl::victim::VictimConfig;
use fulgurite_workload::trace::Format;

/// All settings, in the order of axes: the values of the last setting vary fastest.
pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "workload",
        written: "WORKLOAD",
        help: |_| {
            "A workload with options (mixed-skewed, zipf:theta=0.99,write=50%) or the path of a trace file, - \
            for standard input"
        },
        commands: &[(Pool, Required), (Gc, Required), (Replay, Required)],
        read: |asked, text| put(&mut asked.workload, Ok(text.to_owned())),
        show: |run| match run.requested() {
            Some(_) => Ok(Some(run.bind()?.canonical()?)),
            None => Ok(None),
        },
    },
    Setting {
        name: "benchmark",
        written: "BENCHMARK",
        help: |_| "A benchmark with options (ycsb-a, tpcc:warehouses=4); see `list benchmarks`",
        commands: &[(Bench, Required)],
        read: |asked, text| put(&mut asked.benchmark, Ok(text.to_owned())),
        show: |run| of_benchmark(run, |asked| asked.benchmark.to_string()),
    },
    Setting {
        name: "scale",
        written: "N",
        help: |_| {
            "Size of the data as a multiple of the default: that many warehouses, or that many times 100K \
            records, nodes or rows"
        },
        commands: &[(Bench, Words("1"))],
        read: |asked, text| put(&mut asked.scale, count(text, 1, 1 << 40).map(Some)),
        // The options of the benchmark include the scale, so `benchmark` shows it in the identity.
        show: no_effect,
    },
    Setting {
        name: "degree",
        written: "N",
        help: |_| "Rows that an index scan reads at once: 1 to 256, or auto (the drive's k_r)",
        commands: &[(Bench, Words("32"))],
        read: |asked, text| put(&mut asked.degree, Ok(Some(text.to_owned()))),
        show: no_effect,
    },
    Setting {
        name: "device",
        written: "DEVICE",
        help: |command| match command {
            Serve => {
                "A preset (p4510), a preset with changes (p4510:channels=4), a drive that calibrate has written \
                (my-drive.toml), or mem, memory that takes no time"
            }
            _ => {
                "A preset (p4510), a preset with changes (p4510:channels=4), a real drive or file (file:PATH), or \
                mem, memory that takes no time"
            }
        },
        commands: &[
            (Pool, Value("p4510")),
            (Replay, Value("p4510")),
            (Bench, Value("p4510")),
            (Profile, Required),
            (Serve, Required),
        ],
        read: |asked, text| {
            let device = DeviceConfig::parse(text).map_err(|error| SpecError::new(error.to_string()))?;
            put(&mut asked.device, Ok(Some(device)))
        },
        show: |run| Ok(Some(run.stack.canonical_storage())),
    },
    Setting {
        name: "destroy_contents",
        written: "",
        help: |_| "Overwrite a file or block device that Fulgurite did not create, or that holds a store",
        commands: &[(Pool, Nothing), (Replay, Nothing), (Bench, Nothing), (Profile, Nothing)],
        read: |asked, text| put(&mut asked.destroy_contents, units::parse_yes_no(text)),
        show: no_effect,
    },
    Setting {
        name: "layer",
        written: "LAYER",
        help: |_| "A layer above the drive: none, or log with options (see `list layers`)",
        commands: &[
            (Pool, Words("none")),
            (Replay, Words("none")),
            (Bench, Words("none")),
            (Serve, Words("none")),
        ],
        read: |asked, text| put(&mut asked.layer, LayerConfig::parse(text)),
        show: told_by_device,
    },
    Setting {
        name: "placement",
        written: "PLACEMENT",
        help: |command| match command {
            Gc => "Placement policy: which pages are written to one segment",
            _ => "Placement policy of the layer; without a layer, of the simulated drive",
        },
        commands: &[
            (Gc, Value("none")),
            (Pool, Words("the drive's")),
            (Replay, Words("the drive's")),
            (Bench, Words("the drive's")),
            (Serve, Words("the drive's")),
        ],
        read: |asked, text| {
            text.clone_into(&mut asked.placement_label);
            put(&mut asked.placement, PlacementConfig::from_spec(Spec::parse(text)?).map(Some))
        },
        show: |run| Ok(run.translation().map(|translation| translation.ftl.collect.placement.to_string())),
    },
    Setting {
        name: "victim",
        written: "VICTIM",
        help: |command| match command {
            Gc => "Victim policy: which segment is collected next",
            _ => "Victim policy of the layer; without a layer, of the simulated drive",
        },
        commands: &[
            (Gc, Value("greedy")),
            (Pool, Words("the drive's")),
            (Replay, Words("the drive's")),
            (Bench, Words("the drive's")),
            (Serve, Words("the drive's")),
        ],
        read: |asked, text| {
            text.clone_into(&mut asked.victim_label);
            put(&mut asked.victim, VictimConfig::from_spec(Spec::parse(text)?).map(Some))
        },
        show: |run| Ok(run.translation().map(|translation| translation.ftl.collect.victim.to_string())),
    },
    Setting {
        name: "schedule",
        written: "SCHEDULE",
        help: |_| "Schedule of garbage collection in the layer; without a layer, in the simulated drive",
        commands: &[
            (Replay, Words("the drive's")),
            (Bench, Words("the drive's")),
            (Serve, Words("the drive's")),
        ],
        read: |asked, text| put(&mut asked.schedule, Schedule::from_name(text).map(Some)),
        show: told_by_device,
    },
    Setting {
        name: "replacement",
        written: "POLICY",
        help: |command| match command {
            Serve => "Replacement policy of the pool of --frames",
            _ => "Replacement policy",
        },
        commands: &[(Pool, Value("lru")), (Bench, Value("lru")), (Serve, Words("lru"))],
        read: |asked, text| put(&mut asked.replacement, text.parse().map(Some)),
        show: |run| Ok(run.stack.policies().map(|policies| policies.replacement.to_string())),
    },
    Setting {
        name: "write_back",
        written: "POLICY",
        help: |command| match command {
            Serve => "Write-back policy of the pool of --frames",
            _ => "Write-back policy",
        },
        commands: &[(Pool, Value("single")), (Serve, Words("single"))],
        read: |asked, text| put(&mut asked.write_back, text.parse().map(Some)),
        show: |run| Ok(run.stack.write_back().map(canonical_write_back)),
    },
    Setting {
        name: "write_back",
        written: "POLICY",
        help: |_| {
            "Write-back policy; store is the engine's own choice: ace+raw with the largest batch that its \
            torn-page protection and memory allow"
        },
        commands: &[(Bench, Value(STORES_OWN))],
        read: |asked, text| put(&mut asked.write_back, read_write_back(text)),
        show: |run| Ok(Some(run.stack.write_back().map_or(STORES_OWN.to_owned(), canonical_write_back))),
    },
    Setting {
        name: "prefetch",
        written: "POLICY",
        help: |command| match command {
            Serve => "Prefetch policy of the pool of --frames",
            _ => "Prefetch policy",
        },
        commands: &[(Pool, Value("none")), (Bench, Value("none")), (Serve, Words("none"))],
        read: |asked, text| put(&mut asked.prefetch, text.parse().map(Some)),
        show: |run| Ok(run.stack.policies().map(|policies| policies.prefetch.to_string())),
    },
    Setting {
        name: "frames",
        written: "N|6%",
        help: |command| match command {
            Serve => {
                "Put a pool before the drive, as a write-back cache of so many frames, or of a share of the drive's \
                pages"
            }
            _ => {
                "Size of the pool: a number of frames, or a share of the pages; with --curve, the largest size"
            }
        },
        commands: &[(Pool, Words("6%; 100% with --curve")), (Serve, Words("no pool"))],
        read: |asked, text| put(&mut asked.frames, units::parse_portion(text).map(Some)),
        show: |run| match run.measure.rows {
            Rows::Sizes(sizes) => Ok(Some(sizes.largest.to_string())),
            _ => Ok(run.stack.pool.as_ref().map(|pool| pool.frames.to_string())),
        },
    },
    Setting {
        name: "pages",
        written: "N",
        help: |_| "Number of pages that a generated workload accesses",
        commands: &[(Pool, Words("102400"))],
        read: |asked, text| put(&mut asked.pages, count(text, 1, 1 << 40).map(Some)),
        show: |run| Ok(run.requested().map(|requested| requested.pages.to_string())),
    },
    Setting {
        name: "logical",
        written: "SIZE",
        help: |_| "Logical capacity",
        commands: &[(Gc, Value("8GB"))],
        read: |asked, text| put(&mut asked.logical_bytes, units::parse_size(text)),
        show: |run| Ok(run.translation().map(|translation| translation.ftl.logical_pages.to_string())),
    },
    Setting {
        name: "physical",
        written: "SIZE",
        help: |_| "Physical capacity",
        commands: &[(Gc, Value("8GiB"))],
        read: |asked, text| put(&mut asked.physical_bytes, units::parse_size(text)),
        show: |run| Ok(run.translation().map(|translation| translation.ftl.segments.to_string())),
    },
    Setting {
        name: "segment",
        written: "SIZE",
        help: |_| "Segment size",
        commands: &[(Gc, Value("4MiB"))],
        read: |asked, text| put(&mut asked.segment_bytes, units::parse_size(text)),
        show: |run| Ok(run.translation().map(|translation| translation.ftl.segment_pages.to_string())),
    },
    Setting {
        name: "page",
        written: "SIZE",
        help: |command| match command {
            Gc => "Size of a logical page",
            Bench => "Size of the storage engine's pages",
            Profile => "Size of a request",
            _ => "Size of the pool's pages",
        },
        commands: &[
            (Pool, Value("4KiB")),
            (Gc, Value("4KiB")),
            (Bench, Value("4KiB")),
            (Profile, Value("4KiB")),
        ],
        read: |asked, text| put(&mut asked.page_bytes, read_page_bytes(text)),
        show: |run| Ok(Some(run.page_bytes().to_string())),
    },
    Setting {
        name: "gc_reserve",
        written: "N",
        help: |_| "Collect garbage when fewer segments than this are free",
        commands: &[(Gc, Words("2"))],
        read: |asked, text| put(&mut asked.gc_reserve, count(text, 1, 1 << 20).map(|n| Some(n as u32))),
        show: |run| Ok(run.translation().map(|translation| translation.ftl.collect.reserve.to_string())),
    },
    Setting {
        name: "users",
        written: "N",
        help: |command| match command {
            Bench => "Closed loop: number of users, each with one transaction at a time",
            _ => "Closed loop: number of users, each with one request at a time",
        },
        commands: &[(Pool, Words("1")), (Replay, Nothing), (Bench, Words("1"))],
        read: |asked, text| put(&mut asked.users, count(text, 1, 100_000).map(|n| Some(n as u32))),
        show: show_users,
    },
    Setting {
        name: "speed",
        written: "2x",
        help: |_| "Open loop: send requests at the workload's arrival times, this many times as fast",
        commands: &[(Replay, Words("1x"))],
        read: |asked, text| put(&mut asked.speed, read_speed(text).map(Some)),
        show: no_effect,
    },
    Setting {
        name: "rate",
        written: "N",
        help: |_| {
            "Open loop: send this many requests per second; the workload's times are stretched, or gaps are \
            even if it has none"
        },
        commands: &[(Replay, Nothing)],
        read: |asked, text| put(&mut asked.rate, count(text, 1, 1_000_000_000).map(Some)),
        show: no_effect,
    },
    Setting {
        name: "until_steady",
        written: "",
        help: |_| {
            "Repeat the workload until waf and p99 change by less than 1% from one round to the next, at most 20 \
            rounds; a round writes the logical space at least once, and the row is about the last round"
        },
        commands: &[(Replay, Nothing)],
        read: |asked, text| put(&mut asked.until_steady, units::parse_yes_no(text)),
        show: |run| Ok(run.measure.until_steady.then(|| "yes".to_owned())),
    },
    Setting {
        name: "addresses",
        written: "HOW",
        help: |_| {
            "How the addresses of a trace that is larger than the drive are mapped to it: scale, wrap or \
            compact"
        },
        commands: &[(Replay, Words("scale; compact for several volumes"))],
        read: |asked, text| put(&mut asked.addresses, parse_choice(text).map(Some)),
        show: |run| {
            // A generator addresses the pages of the drive without a mapping, so only traces show this
            // setting.
            let addresses = run
                .requested()
                .filter(|requested| run.command() == Replay && requested.workload.trace().is_some());
            Ok(addresses.map(|requested| option::name_of(requested.addresses).to_owned()))
        },
    },
    Setting {
        name: "cpu_per_request",
        written: "µs",
        help: |_| "CPU time of a request in microseconds, on the core of its user",
        commands: &[(Pool, Value("0"))],
        read: |asked, text| put(&mut asked.cpu_per_request, units::parse_micros(text)),
        show: |run| Ok(run.stack.pool.as_ref().map(|pool| units::format_micros(pool.cpu_per_request))),
    },
    Setting {
        name: "cores",
        written: "N",
        help: |_| {
            "Simulated cores, each with CPU time and a queue of its own; all share the drive. The users of a pool \
            are spread over them, or the shards of a store"
        },
        commands: &[(Pool, Value("1")), (Bench, Value("1"))],
        read: |asked, text| put(&mut asked.cores, count(text, 1, 4_096).map(|cores| cores as u32)),
        show: |run| {
            let of_pool = run.stack.pool.as_ref().map(|pool| pool.cores);
            let cores = of_pool.or(run.stack.engine.as_ref().map(|stage| stage.cores));
            Ok(cores.filter(|cores| *cores > 1).map(|cores| cores.to_string()))
        },
    },
    Setting {
        name: "shards",
        written: "N|auto",
        help: |_| {
            "Shards of the store, which divide its drive, memory and log equally; auto: one for each simulated core. \
            The hash of a key selects its shard, and each shard works on one core"
        },
        commands: &[(Bench, Value("1"))],
        read: |asked, text| put(&mut asked.shards, read_shards(text)),
        show: |run| {
            let stage = run.stack.engine.as_ref();
            Ok(stage.filter(|stage| stage.shards > 1).map(|stage| stage.shards.to_string()))
        },
    },
    Setting {
        name: "skip",
        written: "N",
        help: |_| "Leave out this many requests at the beginning, to run a later part of a trace",
        commands: &[(Pool, Value("0"))],
        read: |asked, text| put(&mut asked.skip, count(text, 0, 1 << 40)),
        show: |run| {
            let skip = run.requested().map_or(0, |requested| requested.skip);
            Ok((skip > 0).then(|| skip.to_string()))
        },
    },
    Setting {
        name: "ops",
        written: "N",
        help: |command| match command {
            Gc => "Number of page writes and trims after the first fill",
            Bench => "Number of transactions in the measured part",
            _ => "Number of requests",
        },
        commands: &[
            (Pool, Words("1M, or the whole trace")),
            (Replay, Words("100K, or the whole trace")),
            (Gc, Words("20 times the logical pages, or the whole trace")),
            (Bench, Words("20K")),
        ],
        read: |asked, text| put(&mut asked.ops, count(text, 1, 1 << 40).map(Some)),
        show: |run| match run.benchmarked() {
            Some((asked, _)) => Ok(Some(format!("{:?}", asked.stop))),
            None => Ok(run.requested().map(|requested| requested.ops.to_string())),
        },
    },
    Setting {
        name: "time",
        written: "10s",
        help: |command| match command {
            Profile => "Measured time of a rate, on the device's clock, with --suite latency",
            _ => "Length of the measured part on the device's clock; replaces --ops",
        },
        commands: &[(Bench, Nothing), (Profile, Words("4s, or 30s on a real drive"))],
        read: |asked, text| put(&mut asked.time, read_time_interval(text).map(Some)),
        // The settings `ops` and `suite` show the time in the identity.
        show: no_effect,
    },
    Setting {
        name: "warm_up",
        written: "N|10s",
        help: |_| "Warm-up before the measured part: a number of transactions, or a time",
        commands: &[(Bench, Words("a tenth of the measured part"))],
        read: |asked, text| put(&mut asked.warm_up, read_extent(text).map(Some)),
        show: |run| of_benchmark(run, |asked| format!("{:?}", asked.warm_up)),
    },
    Setting {
        name: "place",
        written: "WHERE",
        help: |_| {
            "Place of pages: in-place, out-of-place[:unit=,compress=,deltas=,spare=,placement=,victim=], or \
            auto: out of place if they would be written twice in place"
        },
        commands: &[(Bench, Value("in-place"))],
        read: |asked, text| put(&mut asked.place, text.parse().map(Some)),
        show: |run| of_engine(run, |stage| stage.place.to_string()),
    },
    Setting {
        name: "torn_pages",
        written: "HOW",
        help: |_| {
            "Protection of pages in place from torn writes: double-write, share, atomic or none; auto chooses \
            for the drive"
        },
        commands: &[(Bench, Value("auto"))],
        read: |asked, text| put(&mut asked.torn_pages, parse_choice(text).map(Some)),
        show: |run| of_engine(run, |stage| option::name_of(stage.torn_pages).to_owned()),
    },
    Setting {
        name: "durability",
        written: "WHEN",
        help: |_| {
            "Durability of commits: flush, group (it may wait for others) or relaxed (a crash may lose the \
            last ones)"
        },
        commands: &[(Bench, Value("group"))],
        read: |asked, text| put(&mut asked.durability, parse_choice(text).map(Some)),
        show: |run| of_engine(run, |stage| option::name_of(stage.durability).to_owned()),
    },
    Setting {
        name: "memory",
        written: "SIZE|10%",
        help: |_| {
            "Memory of the engine: a size, or a share of the loaded data. The map of pages out of place is \
            not part of a share; it gets memory of its own"
        },
        commands: &[(Bench, Words("10%, at least 1MiB for each shard"))],
        read: |asked, text| put(&mut asked.memory, read_memory(text).map(Some)),
        show: |run| of_engine(run, |stage| stage.memory_bytes.to_string()),
    },
    Setting {
        name: "log_size",
        written: "SIZE",
        help: |_| "Size of the log on the drive",
        commands: &[(Bench, Value("64MiB"))],
        read: |asked, text| put(&mut asked.log_bytes, units::parse_size(text)),
        show: |run| of_engine(run, |stage| stage.log_bytes.to_string()),
    },
    Setting {
        name: "records",
        written: "0%..90%",
        help: |_| {
            "Largest share of the engine's memory for single records instead of pages: records that were \
            read, and new records that are not yet merged into their pages. Records get only the part of it with \
            which they save the drive more work than pages would"
        },
        commands: &[(Bench, Value("70%"))],
        read: |asked, text| put(&mut asked.records, read_records(text)),
        show: |run| of_engine(run, |stage| format!("{}%", stage.records)),
    },
    Setting {
        name: "cpu_per_op",
        written: "µs",
        help: |_| {
            "CPU time in microseconds that each look-up, scanned row, write and commit costs on a simulated \
            drive, on the core of its shard"
        },
        commands: &[(Bench, Words("2; none on a real drive, whose clock is real"))],
        read: |asked, text| put(&mut asked.cpu_per_op, units::parse_micros(text).map(Some)),
        show: |run| of_engine(run, |stage| units::format_micros(stage.cpu_per_op)),
    },
    Setting {
        name: "reuse",
        written: "",
        help: |_| "Do not load the data; use those that an earlier run of the same benchmark left in the file",
        commands: &[(Bench, Nothing)],
        read: |asked, text| put(&mut asked.reuse, units::parse_yes_no(text)),
        show: |run| of_engine(run, |stage| if stage.reuse { "yes" } else { "no" }.to_owned()),
    },
    Setting {
        name: "by_type",
        written: "",
        help: |_| "Give one row per type of transaction; with --interval, one per type and interval",
        commands: &[(Bench, Nothing)],
        read: |asked, text| put(&mut asked.by_type, units::parse_yes_no(text)),
        show: |run| {
            let by_type = matches!(run.measure.rows, Rows::Types | Rows::TypeIntervals(_));
            Ok(by_type.then(|| "yes".to_owned()))
        },
    },
    Setting {
        name: "suite",
        written: "SUITE",
        help: |_| {
            "Measurements: concurrency (alpha, k_r, k_w), latency (a probe beside a load of random writes), \
            overwrite, zones or over-provisioning (steady throughput and write amplification by pattern)"
        },
        commands: &[(Profile, Value("concurrency"))],
        read: |asked, text| put(&mut asked.suite, parse_choice(text)),
        show: |run| match &run.load {
            // The suite `concurrency` has no name in the identity.
            Load::Characterisation { suite: Suite::Concurrency, .. } => Ok(None),
            Load::Characterisation { suite, .. } => Ok(Some(format!("{suite:?}"))),
            _ => Ok(None),
        },
    },
    Setting {
        name: "rates",
        written: "N",
        help: |_| "Offered requests per second with --suite latency: the load, and the probe's 5K writes per second",
        commands: &[(Profile, Words("seven rates, up to more than the drive sustains"))],
        read: |asked, text| put(&mut asked.rates, count(text, 10_000, 1_000_000_000).map(Some)),
        // The setting `suite` shows the rate in the identity.
        show: no_effect,
    },
    Setting {
        name: "patterns",
        written: "PATTERN",
        help: |_| {
            "Pattern of writes with --suite overwrite (uniform, zipf:0.8, zones:95/5, read-only:25%), zones \
            (open-zones:8, one-zone:4GiB) or over-provisioning (used:80%)"
        },
        commands: &[(Profile, Words("all of the suite"))],
        read: |asked, text| put(&mut asked.patterns, text.parse().map(Some)),
        // The setting `suite` shows the pattern in the identity.
        show: no_effect,
    },
    Setting {
        name: "curve",
        written: "",
        help: |_| "Give one row per measured number of users, with its reads and writes per second",
        commands: &[(Profile, Nothing)],
        read: |asked, text| put(&mut asked.curve, units::parse_yes_no(text)),
        show: |run| Ok((run.measure.rows == Rows::Curve).then(|| "yes".to_owned())),
    },
    Setting {
        name: "curve",
        written: "",
        help: |_| {
            "Give one row per size of the pool, for 64 sizes up to --frames, with its miss ratio; only with \
            --device none"
        },
        commands: &[(Pool, Nothing)],
        read: |asked, text| put(&mut asked.curve, units::parse_yes_no(text)),
        show: |run| Ok(matches!(run.measure.rows, Rows::Sizes(_)).then(|| "yes".to_owned())),
    },
    Setting {
        name: "sample",
        written: "1/N",
        help: |_| {
            "Make the curve from the requests for one page in N, chosen by --seed, and say its error; 1 for all \
            pages"
        },
        commands: &[(Pool, Words("1 for lru; else a share that suits the number of pages and requests"))],
        read: |asked, text| put(&mut asked.sample, read_sample(text).map(Some)),
        show: |run| match run.measure.rows {
            Rows::Sizes(sizes) => Ok(Some(format!("{:?}", sizes.sampling))),
            _ => Ok(None),
        },
    },
    Setting {
        name: "explain",
        written: "",
        help: |_| "Explain the measurements and predictions of the placement policy, and its changes to the groups",
        commands: &[(Gc, Nothing)],
        read: |asked, text| put(&mut asked.explain, units::parse_yes_no(text)),
        show: |run| Ok((run.measure.rows == Rows::Explained).then(|| "yes".to_owned())),
    },
    Setting {
        name: "groups",
        written: "",
        help: |_| "Give one row per group of segments: its size, the pages written to it, and their lifetimes",
        commands: &[(Gc, Nothing)],
        read: |asked, text| put(&mut asked.groups, units::parse_yes_no(text)),
        show: |run| Ok((run.measure.rows == Rows::Groups).then(|| "yes".to_owned())),
    },
    Setting {
        name: "interval",
        written: "N|25%",
        help: |_| "Give one row per interval of this many page writes, or of this share of the logical pages",
        commands: &[(Gc, Nothing)],
        read: |asked, text| put(&mut asked.page_interval, units::parse_portion(text).map(Some)),
        show: |run| match run.measure.rows {
            Rows::PageIntervals(length) => Ok(Some(length.to_string())),
            _ => Ok(None),
        },
    },
    Setting {
        name: "interval",
        written: "100ms",
        help: |_| "Give one row per interval of this length, with the latencies in it, instead of one row per run",
        commands: &[(Replay, Nothing), (Bench, Nothing)],
        read: |asked, text| put(&mut asked.time_interval, read_time_interval(text).map(Some)),
        show: |run| match run.measure.rows {
            Rows::TimeIntervals(length) | Rows::TypeIntervals(length) => Ok(Some(length.0.to_string())),
            _ => Ok(None),
        },
    },
    Setting {
        name: "trace_out",
        written: "FILE",
        help: |_| {
            "Write a timeline of dies, channels, requests and garbage collection to a file that Perfetto \
            opens; - for standard output"
        },
        commands: &[(Replay, Nothing)],
        read: |asked, text| put(&mut asked.trace_out, Ok(Some(text.to_owned()))),
        show: no_effect,
    },
    Setting {
        name: "requests_out",
        written: "FILE",
        help: |_| {
            "Write one line of CSV per request: its response time and, if the drive reports them, its waits; \
            - for standard output"
        },
        commands: &[(Replay, Nothing)],
        read: |asked, text| put(&mut asked.requests_out, Ok(Some(text.to_owned()))),
        show: no_effect,
    },
    Setting {
        name: "force",
        written: "",
        help: |_| {
            "Let --trace-out and --requests-out replace any file; without it they replace only earlier \
            outputs of their kind"
        },
        commands: &[(Replay, Nothing)],
        read: |asked, text| put(&mut asked.force, units::parse_yes_no(text)),
        show: no_effect,
    },
    Setting {
        name: "format",
        written: "FORMAT",
        help: |_| {
            "Format of the trace, with options (disksim:time_unit=ns), if the file's name and content do not \
            determine it"
        },
        commands: &[(Pool, Nothing), (Gc, Nothing), (Replay, Nothing)],
        read: |asked, text| put(&mut asked.format, Format::parse(text).map(Some)),
        // Another format gives other requests. The identity includes the hash of the requests, so it need not
        // show the format.
        show: no_effect,
    },
    Setting {
        name: "sort",
        written: "",
        help: |_| "Sort the requests of the trace by time, instead of clamping times that go back",
        commands: &[(Pool, Nothing), (Gc, Nothing), (Replay, Nothing)],
        read: |asked, text| put(&mut asked.sort, units::parse_yes_no(text)),
        // The identity includes the hash of the requests, as for the format.
        show: no_effect,
    },
    Setting {
        name: "files",
        written: "time|volumes|sequence",
        help: |_| {
            "How the files of a list, a folder or a pattern are one trace: merged by time, merged with volumes of \
            their own, or one after the other; without it, a list makes one run for each file"
        },
        commands: &[(Pool, Nothing), (Gc, Nothing), (Replay, Nothing)],
        read: |asked, text| put(&mut asked.files, parse_choice(text).map(Some)),
        // The identity includes the hash of the requests, as for the format.
        show: no_effect,
    },
    Setting {
        name: "seed",
        written: "N",
        help: |_| "Seed of all randomness",
        commands: &[
            (Pool, Value("42")),
            (Gc, Value("42")),
            (Replay, Value("42")),
            (Bench, Value("42")),
            (Profile, Value("42")),
            (Serve, Value("42")),
        ],
        read: |asked, text| put(&mut asked.seed, units::parse_count(text)),
        show: |run| Ok(Some(run.seed.to_string())),
    },
];

fn of_benchmark(run: &Run, show: impl FnOnce(&Benchmarked) -> String) -> Result<Option<String>, StackError> {
    Ok(run.benchmarked().map(|(asked, _)| show(asked)))
}

fn of_engine(run: &Run, show: impl FnOnce(&EngineStage) -> String) -> Result<Option<String>, StackError> {
    Ok(run.benchmarked().map(|(_, stage)| show(stage)))
}

fn show_users(run: &Run) -> Result<Option<String>, StackError> {
    // Each of the three kinds of arrivals excludes the others, so `users` shows the arrivals of all three
    // kinds.
    if let Some((asked, _)) = run.benchmarked() {
        return Ok(Some(asked.users.to_string()));
    }
    let arrivals = run.requested().filter(|_| run.command() != Gc);
    Ok(arrivals.map(|requested| format!("{:?}", requested.arrivals)))
}

fn no_effect(_: &Run) -> Result<Option<String>, StackError> {
    Ok(None)
}

/// Shows nothing, because the canonical text of the device includes the setting.
fn told_by_device(_: &Run) -> Result<Option<String>, StackError> {
    Ok(None)
}

fn put<T>(place: &mut T, value: Result<T, SpecError>) -> Result<(), SpecError> {
    *place = value?;
    Ok(())
}
