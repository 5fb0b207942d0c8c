//! Declares the arguments of the command line. Values stay text here; the stack crate knows their meaning.
//!
//! The commands over a store in a file are in [`crate::store`]. The commands that execute runs have no list
//! of options of their own: their options are the declared settings of runs.

use crate::common::Common;
use crate::crashtest::CrashtestArguments;
use crate::examples;
use crate::serve::{Control, Served};
use crate::store_arguments::StoreCommand;
use clap::{Arg, ArgAction, ArgMatches, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use fulgurite_files::output::is_standard;
use fulgurite_study::settings::{Absent, Setting};
use fulgurite_study::{Command as Runs, advise, which_drive};
use std::path::{Path, PathBuf};

/// Storage that knows it is on flash: simulate, measure, compare.
#[derive(Parser)]
#[command(
    name = "fulgurite",
    version,
    about,
    after_help = examples::ALL
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    #[command(after_help = examples::LIST)]
    /// List devices, policies, workloads, formats and studies; with a kind, list their options too
    List {
        /// devices, device-parameters, layers, replacement, write-back, prefetch, placement, victim,
        /// schedule, workloads, benchmarks, formats, studies or columns [default: everything but
        /// device-parameters and columns]
        kind: Option<String>,
    },
    /// Measure how a device reads and writes: its asymmetry (alpha) and its concurrency (k_r, k_w)
    #[command(after_help = examples::PROFILE)]
    Profile(Typed<PROFILE>),
    /// Run a workload against a buffer pool on a device
    #[command(after_help = examples::POOL)]
    Pool(Typed<POOL>),
    /// Count the write amplification of a workload, without simulating time
    #[command(after_help = examples::GC)]
    Gc(Typed<GC>),
    /// Send a trace or a generated workload to a drive and measure response times, in an open or closed loop
    #[command(after_help = examples::REPLAY)]
    Replay(Typed<REPLAY>),
    /// Run a benchmark on the storage engine: YCSB, TPC-C, LinkBench, sysbench or an index scan
    #[command(after_help = examples::BENCH)]
    Bench(Typed<BENCH>),
    /// Find the settings of a buffer pool that suit a workload and a drive; say what they gain and how sure
    /// that is
    #[command(after_help = examples::ADVISE)]
    Advise {
        #[command(flatten)]
        typed: AdviceTyped,
        /// Memory of the pool: a size, or a share of the workload's data [default: 6%]
        #[arg(long, value_name = "SIZE|6%")]
        memory: Option<String>,
        /// Objective: throughput, or p99, the 99th percentile of response times [default: throughput]
        #[arg(long = "for", value_name = "GOAL")]
        goal: Option<String>,
        /// Compare the drives of --device instead: which of them meet these requirements at the workload's own
        /// rate? With p50, p99, p999 (also read_p99, write_p99 …), waf, years and headroom
        #[arg(long, value_name = "p99=2ms,years=5")]
        require: Option<String>,
    },
    /// Run a study and write its table and report
    #[command(after_help = examples::STUDY)]
    Study {
        /// A built-in study, a TOML file, or - for TOML from standard input
        study: String,
        /// Folder for the table and the report [default: results/NAME]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// Run a smaller version of the study, for a first look
        #[arg(long)]
        quick: bool,
        /// Keep the finished runs of an interrupted study and run only the others
        #[arg(long)]
        resume: bool,
    },
    /// Describe, convert and generate trace files
    // Do not print the help if the subcommand is missing: an error names what is missing, the help would not.
    #[command(after_help = examples::TRACE, arg_required_else_help = false)]
    Trace {
        #[command(subcommand)]
        command: Trace,
    },
    /// Fit a simulated drive to a measured one, and write it to a file for --device
    #[command(after_help = examples::CALIBRATE)]
    Calibrate {
        /// The measurements: CSV as profile --suite latency prints it, one row per rate; a folder with fio's JSON,
        /// one file per rate; or file:PATH, a drive to measure now
        source: PathBuf,
        /// The file for the fitted drive
        #[arg(short, long, value_name = "FILE.toml")]
        out: PathBuf,
        /// A part of the name of the drive, if the table has several
        #[arg(long, value_name = "NAME")]
        drive: Option<String>,
        /// The drive that the search starts from, with options
        #[arg(long, value_name = "DEVICE", default_value = "pe8110")]
        start: String,
        /// The parameters that the search changes [default: op, times, queue_depth, spreads, suspension]
        #[arg(long, value_name = "KEY,KEY")]
        free: Option<String>,
        /// The rates that are held out of the search, or none [default: every third]
        #[arg(long, value_name = "RATE,RATE")]
        check: Option<String>,
        /// The measured rate of sequential writes per second, as a size
        #[arg(long, value_name = "SIZE")]
        sequential: Option<String>,
        /// The most drives that the search simulates
        #[arg(long, value_name = "N", default_value = "150")]
        evaluations: String,
        /// Replace an existing file
        #[arg(long)]
        force: bool,
        /// Overwrite a file or block device that Fulgurite did not create
        #[arg(long)]
        destroy_contents: bool,
    },
    /// Compare two results: match the rows that asked for the same, and list the figures that changed
    #[command(after_help = examples::DIFF)]
    Diff {
        /// The earlier result: a study's folder, a file of CSV, JSON or JSON lines, or - for standard input
        a: PathBuf,
        /// The later result
        b: PathBuf,
        /// How much a figure may rise or fall; if one changes by more, the exit code is 1 [default: 0%]
        #[arg(long, value_name = "6%")]
        tolerance: Option<String>,
    },
    #[command(flatten)]
    Store(StoreCommand),
    /// Serve a simulated drive to other programs: as a network block device, or as a file in a folder
    #[command(after_help = examples::SERVE)]
    Serve {
        #[command(flatten)]
        typed: Typed<SERVE>,
        #[command(flatten)]
        served: Served,
    },
    /// Cut the power of a served drive, inject faults, or print its figures
    #[command(after_help = examples::CTL, arg_required_else_help = false)]
    Ctl {
        /// The path that serve --control was given
        socket: PathBuf,
        #[command(subcommand)]
        command: Control,
    },
    /// Run a program in a folder, cut the power, and check what is left; again and again
    #[command(after_help = examples::CRASHTEST)]
    Crashtest(CrashtestArguments),
    /// Print the completion script of a shell
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page of fulgurite, or of one command
    #[command(after_help = examples::MAN)]
    Man {
        /// The command
        command: Option<String>,
    },
    /// Print a page of the book's reference, as Markdown
    #[command(hide = true)]
    Reference {
        /// The page
        page: Page,
    },
}

/// A page of the reference.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Page {
    /// Commands and their options.
    Commands,
    /// Devices, policies, workloads, formats and studies.
    Names,
    /// Columns of the tables.
    Columns,
}

impl Command {
    /// Whether the command executes runs, so that `--dry-run` can estimate their cost.
    pub(crate) fn has_outlook(&self) -> bool {
        match self {
            Command::Profile(_) | Command::Pool(_) | Command::Gc(_) | Command::Replay(_) => true,
            Command::Bench(_) | Command::Study { .. } | Command::Advise { .. } => true,
            Command::List { .. } | Command::Trace { .. } | Command::Diff { .. } | Command::Store(_) => false,
            Command::Calibrate { .. }
            | Command::Serve { .. }
            | Command::Ctl { .. }
            | Command::Crashtest(_) => false,
            Command::Completions { .. } | Command::Man { .. } | Command::Reference { .. } => false,
        }
    }

    /// Whether `--report` can write a page of the command. A study writes its report into its folder.
    pub(crate) fn has_report(&self) -> bool {
        let is_info = matches!(self, Command::Trace { command: Trace::Info { .. } });
        is_info || self.has_outlook() && !matches!(self, Command::Study { .. })
    }

    /// Whether an output of the command is `-`, which stands for standard output.
    pub(crate) fn writes_stdout(&self) -> bool {
        match self {
            Command::Replay(typed) => {
                typed.0.iter().any(|(name, value)| name.ends_with("_out") && is_standard(Path::new(value)))
            }
            Command::Trace { command: Trace::Convert { out, .. } | Trace::Generate { out, .. } } => {
                is_standard(out)
            }
            _ => false,
        }
    }
}

#[derive(Subcommand)]
pub(crate) enum Trace {
    /// Describe a trace: requests, sizes, footprint, rate, sequentiality, reuse
    #[command(after_help = examples::TRACE_INFO)]
    Info {
        /// The trace file, which may be packed with gzip, zstd, xz or lz4; - for standard input; several files as a
        /// list, a folder or a pattern ('day-*.csv')
        file: String,
        /// Trace format, with options (disksim:time_unit=ns), if the file's name and content do not determine
        /// it
        #[arg(long, value_name = "NAME")]
        format: Option<String>,
        /// Sort the requests by time, instead of clamping times that go back
        #[arg(long)]
        sort: bool,
        /// How several files are one trace: merged by time, merged with volumes of their own, or one after the
        /// other [default: time]
        #[arg(long, value_name = "time|volumes|sequence")]
        files: Option<String>,
        /// Page size in which footprints are counted [default: 4KiB]
        #[arg(long, value_name = "SIZE")]
        page: Option<String>,
        /// Give one row per interval of this length: a time (10s, 1h), or a number of requests (10K)
        #[arg(long, value_name = "TIME|N")]
        interval: Option<String>,
    },
    /// Write a trace in another format
    #[command(after_help = examples::TRACE_CONVERT)]
    Convert {
        /// The trace file, which may be packed with gzip, zstd, xz or lz4; - for standard input; several files as a
        /// list, a folder or a pattern ('day-*.csv')
        file: String,
        /// The new file, packed if its name ends in .gz or .zst; - for standard output
        out: PathBuf,
        /// Format of the new file
        #[arg(long, value_name = "NAME")]
        to: String,
        /// Trace format, with options (disksim:time_unit=ns), if the file's name and content do not determine
        /// it
        #[arg(long, value_name = "NAME")]
        format: Option<String>,
        /// Sort the requests by time, instead of clamping times that go back
        #[arg(long)]
        sort: bool,
        /// How several files are one trace: merged by time, merged with volumes of their own, or one after the
        /// other [default: time]
        #[arg(long, value_name = "time|volumes|sequence")]
        files: Option<String>,
        /// Page size, if one of the formats counts pages and the other bytes, or for --sample [default: 4KiB]
        #[arg(long, value_name = "SIZE")]
        page: Option<String>,
        #[command(flatten)]
        cut: CutOptions,
        /// Replace OUT if it is a file with contents
        #[arg(long)]
        force: bool,
    },
    /// Write the requests of a generated workload into a file, for other programs to read
    #[command(after_help = examples::TRACE_GENERATE)]
    Generate {
        /// A workload with options
        workload: String,
        /// The new file, packed if its name ends in .gz or .zst; - for standard output
        out: PathBuf,
        /// Format of the new file
        #[arg(long, value_name = "NAME")]
        to: String,
        /// Logical capacity that the requests are spread over [default: 8GB]
        #[arg(long, value_name = "SIZE")]
        logical: Option<String>,
        /// Page size [default: 4KiB]
        #[arg(long, value_name = "SIZE")]
        page: Option<String>,
        /// Number of requests [default: 20 times the logical pages]
        #[arg(long, value_name = "N")]
        ops: Option<String>,
        /// Replace OUT if it is a file with contents
        #[arg(long)]
        force: bool,
    },
}

/// The parts of a trace that are kept, and the anonymisation.
#[derive(Args)]
pub(crate) struct CutOptions {
    /// Leave out requests before this time, from the first request on: 90s, 10m
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Leave out requests from this time on
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Leave out requests to other volumes; trace info with --format NAME:volume=list shows all
    #[arg(long, value_name = "NAME")]
    pub volume: Option<String>,
    /// Keep the requests for one page in N, chosen by --seed
    #[arg(long, value_name = "1/N")]
    pub sample: Option<String>,
    /// Permute the addresses within each GiB by --seed, and drop the names of volumes
    #[arg(long)]
    pub anonymise: bool,
}

/// The commands that execute runs, as numbers, since a const parameter cannot have a type of another crate.
const POOL: usize = 0;
const GC: usize = 1;
const REPLAY: usize = 2;
const PROFILE: usize = 3;
const BENCH: usize = 4;
const SERVE: usize = 5;
const COMMANDS: [Runs; 6] = [Runs::Pool, Runs::Gc, Runs::Replay, Runs::Profile, Runs::Bench, Runs::Serve];

/// The settings that the user typed for a command, as pairs of name and value.
pub(crate) struct Typed<const COMMAND: usize>(pub Vec<(&'static str, String)>);

impl<const COMMAND: usize> Typed<COMMAND> {
    /// The command whose settings these are.
    pub(crate) const COMMAND: Runs = COMMANDS[COMMAND];

    /// Returns the settings that are options of this command alone. The seed is left out, because it is an
    /// option of every command.
    fn settings() -> impl Iterator<Item = &'static Setting> {
        Self::COMMAND.settings().filter(|setting| setting.name != "seed")
    }
}

/// Converts a setting to an argument of the parser.
fn argument(setting: &'static Setting, command: Runs) -> Arg {
    let help = match setting.absent(command).unwrap_or(Absent::Nothing) {
        Absent::Value(usual) | Absent::Words(usual) => {
            format!("{} [default: {usual}]", setting.help(command))
        }
        Absent::Required | Absent::Nothing => setting.help(command).to_owned(),
    };
    argument_with(setting, command, help)
}

/// Converts a setting to an argument of the parser with another help text.
fn argument_with(setting: &'static Setting, command: Runs, help: String) -> Arg {
    let absent = setting.absent(command).unwrap_or(Absent::Nothing);
    let argument = Arg::new(setting.name).help(help);
    match absent {
        Absent::Required => argument.required(true).value_name(setting.written),
        _ if setting.written.is_empty() => {
            argument.long(setting.name.replace('_', "-")).action(ArgAction::SetTrue)
        }
        _ => argument.long(setting.name.replace('_', "-")).value_name(setting.written),
    }
}

impl<const COMMAND: usize> Args for Typed<COMMAND> {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(Self::settings().map(|setting| argument(setting, Self::COMMAND)))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl<const COMMAND: usize> clap::FromArgMatches for Typed<COMMAND> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Typed<COMMAND>, clap::Error> {
        Ok(Typed(Self::settings().filter_map(|setting| typed(setting, matches)).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns the name and the value of a setting; `None` if the user did not type it.
fn typed(setting: &'static Setting, matches: &ArgMatches) -> Option<(&'static str, String)> {
    let value = if setting.written.is_empty() {
        matches.get_flag(setting.name).then(|| "yes".to_owned())
    } else {
        matches.get_one::<String>(setting.name).cloned()
    };
    Some((setting.name, value?))
}

/// The settings that the user typed for `advise`. They are those of a pool; some have several values to try.
pub(crate) struct AdviceTyped(pub Vec<(&'static str, String)>);

/// Returns the settings that are options of `advise`, with their help texts. The seed is left out, because it is
/// an option of every command.
fn advice_settings() -> impl Iterator<Item = (&'static Setting, String)> {
    advise::settings().filter(|(setting, _)| setting.name != "seed").chain(which_drive::settings())
}

impl Args for AdviceTyped {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(advice_settings().map(|(setting, help)| argument_with(setting, Runs::Pool, help)))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for AdviceTyped {
    fn from_arg_matches(matches: &ArgMatches) -> Result<AdviceTyped, clap::Error> {
        Ok(AdviceTyped(advice_settings().filter_map(|(setting, _)| typed(setting, matches)).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
