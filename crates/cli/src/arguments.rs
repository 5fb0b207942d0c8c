//! What can be typed. Values stay text here: the study crate knows what they mean.

use clap::{Args, Parser, Subcommand};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Storage that knows it is on flash: simulate, measure, compare.
#[derive(Parser)]
#[command(
    name = "fulgurite",
    version,
    about,
    after_help = "Without a command the quickstart study runs.\n\nSizes are written 4KiB or 8GB, counts 2M, shares 6%. A list (lru,clock) on any policy means one run each."
)]
pub struct Arguments {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Args)]
pub struct Common {
    /// Seed of all randomness [default: 42]
    #[arg(long, global = true, value_name = "N")]
    pub seed: Option<String>,
    /// Print one JSON array of flat row objects, and nothing else
    #[arg(long, global = true, conflicts_with = "csv")]
    pub json: bool,
    /// Print CSV, and nothing else
    #[arg(long, global = true)]
    pub csv: bool,
    /// Runs at once [default: as many as there are cores]
    #[arg(long, global = true, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
}

#[derive(Subcommand)]
pub enum Command {
    /// Name what there is: devices, policies, workloads, formats, studies
    List {
        /// devices, device-parameters, layers, replacement, write-back, prefetch, placement, victim,
        /// schedule, workloads, formats or studies [default: everything]
        kind: Option<String>,
    },
    /// Measure alpha, k_r and k_w of a device
    Profile(Profile),
    /// Run a workload against a buffer pool on a device
    Pool(Pool),
    /// Count the write amplification of a workload's writes, without time
    Gc(Gc),
    /// Time requests against a drive: a trace or a generated workload, open or closed loop
    Replay(Replay),
    /// Run a study: a table, and a report to read
    Study {
        /// A built-in study, or a TOML file
        study: String,
        /// Folder for table and report [default: results/NAME]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// Smaller runs, as the study says: for a first look
        #[arg(long)]
        quick: bool,
    },
    /// Look at trace files, convert and make them
    Trace {
        #[command(subcommand)]
        command: Trace,
    },
}

#[derive(Subcommand)]
pub enum Trace {
    /// Describe a trace: requests, sizes, footprint, rate, sequentiality, reuse
    Info {
        /// The file, as it is or packed with gzip or zstd
        file: String,
        /// Trace format, with options (disksim:time_unit=ns), where the file's name and content do not tell
        #[arg(long, value_name = "NAME")]
        format: Option<String>,
        /// Page size that footprints are counted in [default: 4KiB]
        #[arg(long, value_name = "SIZE")]
        page: Option<String>,
    },
    /// Write a trace in another format
    Convert {
        /// The file, as it is or packed with gzip or zstd
        file: String,
        /// The new file, packed if its name ends in .gz or .zst
        out: PathBuf,
        /// Its format
        #[arg(long, value_name = "NAME")]
        to: String,
        /// Trace format, with options (disksim:time_unit=ns), where the file's name and content do not tell
        #[arg(long, value_name = "NAME")]
        format: Option<String>,
        /// Page size, where one of the formats counts pages and the other bytes [default: 4KiB]
        #[arg(long, value_name = "SIZE")]
        page: Option<String>,
    },
    /// Write the requests of a generated workload into a file, for other programs to read
    Generate {
        /// A workload with options
        workload: String,
        /// The new file, packed if its name ends in .gz or .zst
        out: PathBuf,
        /// Its format
        #[arg(long, value_name = "NAME")]
        to: String,
        /// Logical capacity, whose pages are requested [default: 8GB]
        #[arg(long, value_name = "SIZE")]
        logical: Option<String>,
        /// Page size [default: 4KiB]
        #[arg(long, value_name = "SIZE")]
        page: Option<String>,
        /// Requests [default: 20 times the logical pages]
        #[arg(long, value_name = "N")]
        ops: Option<String>,
    },
}

/// Settings of a grid with what was typed for them, if anything.
pub type Typed = Vec<(&'static str, Option<String>)>;

#[derive(Args)]
pub struct Profile {
    /// A preset, with changes if any: p4510:channels=4
    pub device: String,
    /// Request sizes, separated by commas [default: 4KiB]
    #[arg(long, value_name = "SIZE")]
    pub page: Option<String>,
    /// Let the contents of a file or block device go that Fulgurite did not make
    #[arg(long)]
    pub destroy_contents: bool,
}

#[derive(Args)]
pub struct Pool {
    /// A workload with options (mixed-skewed, zipf:theta=0.99,write=50%) or a trace file
    pub workload: String,
    /// Device [default: p4510]
    #[arg(long, value_name = "D")]
    pub device: Option<String>,
    /// Let the contents of a file or block device go that Fulgurite did not make
    #[arg(long)]
    pub destroy_contents: bool,
    /// A layer above the drive: none, or log (options op, segment, depth, ...; see list layers) [default: none]
    #[arg(long, value_name = "L")]
    pub layer: Option<String>,
    /// Placement policy, of the layer or else inside a simulated drive [default: none]
    #[arg(long, value_name = "P")]
    pub placement: Option<String>,
    /// Victim policy, of the layer or else inside a simulated drive [default: greedy, the drive's]
    #[arg(long, value_name = "V")]
    pub victim: Option<String>,
    /// Replacement policy [default: lru]
    #[arg(long, value_name = "P")]
    pub replacement: Option<String>,
    /// Write-back policy [default: single]
    #[arg(long, value_name = "W")]
    pub write_back: Option<String>,
    /// Prefetch policy [default: none]
    #[arg(long, value_name = "F")]
    pub prefetch: Option<String>,
    /// Frames, or a share of the pages [default: 6%]
    #[arg(long, value_name = "N|6%")]
    pub frames: Option<String>,
    /// Pages that a generated workload ranges over [default: 102400]
    #[arg(long, value_name = "N")]
    pub pages: Option<String>,
    /// Page size of the pool [default: 4KiB]
    #[arg(long, value_name = "SIZE")]
    pub page: Option<String>,
    /// Requests [default: 1M, or the whole trace]
    #[arg(long, value_name = "N")]
    pub ops: Option<String>,
    /// Users in a closed loop [default: 1]
    #[arg(long, value_name = "N")]
    pub users: Option<String>,
    /// CPU time of a request, in microseconds, on the one core that all users share [default: 0]
    #[arg(long, value_name = "US")]
    pub cpu_per_request: Option<String>,
    /// Trace format, with options (disksim:time_unit=ns), where the file's name and content do not tell
    #[arg(long, value_name = "NAME")]
    pub format: Option<String>,
}

#[derive(Args)]
pub struct Gc {
    /// A workload with options, or a trace file, whose writes and trims are used: at their own addresses if they fit
    /// into --logical, else with pages numbered densely
    pub workload: String,
    /// Placement policy [default: none]
    #[arg(long, value_name = "P")]
    pub placement: Option<String>,
    /// Victim policy [default: greedy]
    #[arg(long, value_name = "V")]
    pub victim: Option<String>,
    /// Logical capacity [default: 8GB]
    #[arg(long, value_name = "SIZE")]
    pub logical: Option<String>,
    /// Physical capacity [default: 8GiB]
    #[arg(long, value_name = "SIZE")]
    pub physical: Option<String>,
    /// Segment size [default: 4MiB]
    #[arg(long, value_name = "SIZE")]
    pub segment: Option<String>,
    /// Page size [default: 4KiB]
    #[arg(long, value_name = "SIZE")]
    pub page: Option<String>,
    /// Free segments below which garbage is collected [default: 2]
    #[arg(long, value_name = "N")]
    pub gc_reserve: Option<String>,
    /// Say what placement did to its groups, with what it measured and predicted
    #[arg(long)]
    pub explain: bool,
    /// A row for every group of segments: its size, what goes into it, and after how long that really dies
    #[arg(long)]
    pub groups: bool,
    /// A row for every stretch of so many page writes, or of a share of the logical pages (25%)
    #[arg(long, value_name = "N")]
    pub interval: Option<String>,
    /// Page writes after the fill [default: 20 times the logical pages, or the whole trace]
    #[arg(long, value_name = "N")]
    pub ops: Option<String>,
    /// Trace format, with options (disksim:time_unit=ns), where the file's name and content do not tell
    #[arg(long, value_name = "NAME")]
    pub format: Option<String>,
}

#[derive(Args)]
pub struct Replay {
    /// A trace file, or a workload with options (financial-like, synthetic:read=80%, mixed-uniform)
    pub workload: String,
    /// Device [default: p4510]
    #[arg(long, value_name = "D")]
    pub device: Option<String>,
    /// Let the contents of a file or block device go that Fulgurite did not make
    #[arg(long)]
    pub destroy_contents: bool,
    /// Schedule of garbage collection, of the layer or else inside a simulated drive [default: paced, the
    /// drive's]
    #[arg(long, value_name = "S")]
    pub schedule: Option<String>,
    /// A layer above the drive: none, or log (options op, segment, depth, ...; see list layers) [default: none]
    #[arg(long, value_name = "L")]
    pub layer: Option<String>,
    /// Placement policy, of the layer or else inside a simulated drive [default: none]
    #[arg(long, value_name = "P")]
    pub placement: Option<String>,
    /// Victim policy, of the layer or else inside a simulated drive [default: greedy, the drive's]
    #[arg(long, value_name = "V")]
    pub victim: Option<String>,
    /// Closed loop: so many users, each with one request outstanding
    #[arg(long, value_name = "N")]
    pub users: Option<String>,
    /// Open loop: the workload's times, so many times as fast [default: 1x]
    #[arg(long, value_name = "2x")]
    pub speed: Option<String>,
    /// Open loop: so many requests a second, by stretching the workload's times or at even gaps
    #[arg(long, value_name = "N")]
    pub rate: Option<String>,
    /// Wrap addresses beyond the end of the drive: the same as --addresses wrap
    #[arg(long, conflicts_with = "addresses")]
    pub wrap: bool,
    /// How a trace that is larger than the drive is brought onto it: scale, wrap or compact [default:
    /// scale; compact where there are several volumes]
    #[arg(long, value_name = "HOW")]
    pub addresses: Option<String>,
    /// Requests [default: 100K, or the whole trace]
    #[arg(long, value_name = "N")]
    pub ops: Option<String>,
    /// A row for every interval (100ms) instead of one for the run
    #[arg(long, value_name = "TIME")]
    pub interval: Option<String>,
    /// Write the timeline of dies, channels, requests and collection, to be opened in Perfetto
    #[arg(long, value_name = "FILE")]
    pub trace_out: Option<String>,
    /// Write a line of CSV for every request: its response time and, where the drive tells, what it waited for
    #[arg(long, value_name = "FILE")]
    pub requests_out: Option<String>,
    /// Trace format, with options (disksim:time_unit=ns), where the file's name and content do not tell
    #[arg(long, value_name = "NAME")]
    pub format: Option<String>,
}

/// A flag as a setting.
fn yes(flag: bool) -> Option<String> {
    flag.then(|| "yes".to_owned())
}

impl Profile {
    pub fn typed(self) -> Typed {
        vec![
            ("device", Some(self.device)),
            ("destroy_contents", yes(self.destroy_contents)),
            ("page", self.page),
        ]
    }
}

impl Pool {
    pub fn typed(self) -> Typed {
        vec![
            ("workload", Some(self.workload)),
            ("device", self.device),
            ("destroy_contents", yes(self.destroy_contents)),
            ("layer", self.layer),
            ("placement", self.placement),
            ("victim", self.victim),
            ("replacement", self.replacement),
            ("write_back", self.write_back),
            ("prefetch", self.prefetch),
            ("frames", self.frames),
            ("pages", self.pages),
            ("page", self.page),
            ("ops", self.ops),
            ("users", self.users),
            ("cpu_per_request", self.cpu_per_request),
            ("format", self.format),
        ]
    }
}

impl Gc {
    pub fn typed(self) -> Typed {
        vec![
            ("workload", Some(self.workload)),
            ("placement", self.placement),
            ("victim", self.victim),
            ("logical", self.logical),
            ("physical", self.physical),
            ("segment", self.segment),
            ("page", self.page),
            ("gc_reserve", self.gc_reserve),
            ("explain", yes(self.explain)),
            ("groups", yes(self.groups)),
            ("interval", self.interval),
            ("ops", self.ops),
            ("format", self.format),
        ]
    }
}

impl Replay {
    pub fn typed(self) -> Typed {
        vec![
            ("workload", Some(self.workload)),
            ("device", self.device),
            ("destroy_contents", yes(self.destroy_contents)),
            ("schedule", self.schedule),
            ("layer", self.layer),
            ("placement", self.placement),
            ("victim", self.victim),
            ("users", self.users),
            ("speed", self.speed),
            ("rate", self.rate),
            ("addresses", self.addresses.or_else(|| self.wrap.then(|| "wrap".to_owned()))),
            ("ops", self.ops),
            ("interval", self.interval),
            ("trace_out", self.trace_out),
            ("requests_out", self.requests_out),
            ("format", self.format),
        ]
    }
}
