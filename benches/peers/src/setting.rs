//! The settings of a measurement: the command line, and the part of it for a worker process.

use crate::engine::{KINDS, Order};
use crate::workload::Workload;
use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Measure storage engines with equal settings, each in its own process.
#[derive(Parser, Debug)]
#[command(name = "peers")]
pub struct Args {
    /// The folder for the stores; anything named `peers-…` in it may be overwritten
    #[arg(long, default_value = "target/peers")]
    pub dir: PathBuf,
    /// Number of rows of 116 bytes to load, and the most that `load` inserts; `8m` and `200k` are accepted
    #[arg(long, default_value = "8m", value_parser = parse_count)]
    pub rows: u64,
    /// Length of the measurement in seconds
    #[arg(long, default_value_t = 12.0)]
    pub seconds: f64,
    /// Length of the warm-up in seconds; `load` measures it too
    #[arg(long, default_value_t = 4.0)]
    pub warmup: f64,
    /// Number of threads
    #[arg(long, default_value_t = 4)]
    pub threads: u8,
    /// Updates or inserts per commit
    #[arg(long, default_value_t = 32)]
    pub batch: usize,
    /// Size of the engine's own cache; `128m` is accepted
    #[arg(long, default_value = "128m", value_parser = parse_bytes)]
    pub cache: u64,
    /// Limit of all memory of the engine's process, including its page cache
    #[arg(long, default_value = "256m", value_parser = parse_bytes)]
    pub memory: u64,
    /// How memory is bounded
    #[arg(long, value_enum, default_value_t = Bound::Auto)]
    pub bound: Bound,
    /// Use direct I/O in engines that can, even within a memory group
    #[arg(long)]
    pub direct: bool,
    /// The engines to run, in this order; all by default
    #[arg(long, value_delimiter = ',')]
    pub engines: Vec<String>,
    /// The workloads to run; all by default
    #[arg(long, value_delimiter = ',', value_enum)]
    pub workloads: Vec<Workload>,
    /// The durabilities for workloads that write; both by default
    #[arg(long, value_delimiter = ',', value_enum)]
    pub durabilities: Vec<Durability>,
    /// How many times everything is run, in turn; the table shows medians
    #[arg(long, default_value_t = 1)]
    pub repeat: u32,
    /// The order in which rows are loaded
    #[arg(long, value_enum, default_value_t = Order::Sorted)]
    pub load: Order,
    /// Run in the loaded store itself instead of a copy. This is faster, but each run ages the store for the
    /// next. Workloads that insert always get a copy
    #[arg(long)]
    pub keep: bool,
    /// Write every run as a line of JSON to this file
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// A run of seconds that only tests that everything works
    #[arg(long)]
    pub quick: bool,
    /// The skew of the Zipf distribution
    #[arg(long, default_value_t = 0.99)]
    pub theta: f64,
    /// The seed of the random numbers
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// How memory is bounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Bound {
    /// A memory group if the machine can create one, otherwise direct I/O.
    Auto,
    /// A control group, or an error.
    Cgroup,
    /// Direct I/O, in engines that support it.
    Direct,
}

/// When a commit returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Before it is flushed.
    Relaxed,
    /// After it is flushed.
    Durable,
}

/// The task of a worker process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    pub engine: String,
    /// The folder of the store.
    pub folder: PathBuf,
    pub rows: u64,
    pub threads: u8,
    pub cache_bytes: u64,
    pub memory_bytes: u64,
    pub direct: bool,
    pub seed: u64,
    /// First fill the empty store with rows in this order. Not for the workload that loads by itself.
    pub load: Option<Order>,
    /// Then measure. Without it the store is closed after the load.
    pub measure: Option<Measure>,
}

/// The parameters of a measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measure {
    pub workload: Workload,
    pub durability: Durability,
    pub batch: usize,
    pub theta: f64,
    /// Without a warm-up, everything from the first operation on is measured.
    pub warmup_s: f64,
    pub seconds: f64,
    /// Part of the versions of this run's values; not 0.
    pub run: u16,
    /// Whether earlier runs have written to this store.
    pub aged: bool,
}

impl Args {
    /// The command line, with defaults for `--quick` and empty lists.
    ///
    /// # Errors A value is invalid.
    pub fn read() -> Result<Args> {
        let mut args = Args::parse();
        if args.quick {
            (args.rows, args.warmup, args.seconds) = (100_000, 0.1, 0.4);
            (args.cache, args.repeat) = (4 << 20, 1);
        }
        if args.engines.is_empty() {
            args.engines = KINDS.iter().map(|kind| kind.name.to_owned()).collect();
        }
        if let Some(name) = args.engines.iter().find(|name| crate::engine::kind(name).is_none()) {
            let known: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
            bail!("--engines: there is no `{name}`; there are {}", known.join(", "));
        }
        if args.workloads.is_empty() {
            args.workloads = Workload::ALL.to_vec();
        }
        if args.durabilities.is_empty() {
            args.durabilities = vec![Durability::Relaxed, Durability::Durable];
        }
        ensure!(args.rows >= 1000, "--rows: at least 1000");
        ensure!(args.threads >= 1, "--threads: at least 1");
        ensure!(args.batch >= 1, "--batch: at least 1");
        ensure!(args.repeat >= 1, "--repeat: at least 1");
        ensure!(args.cache >= 1 << 20, "--cache: at least 1m");
        ensure!(args.seconds > 0.0 && args.warmup >= 0.0, "--seconds and --warmup: not negative");
        ensure!((0.0..1.0).contains(&args.theta), "--theta: at least 0 and below 1");
        Ok(args)
    }

    /// The workloads with their durabilities, in the order of the table.
    pub fn cells(&self) -> Vec<(Workload, Durability)> {
        let mut cells = Vec::new();
        for &workload in &self.workloads {
            if workload.writes() {
                cells.extend(self.durabilities.iter().map(|&durability| (workload, durability)));
            } else {
                cells.push((workload, Durability::Relaxed));
            }
        }
        cells
    }
}

fn parse_count(text: &str) -> Result<u64> {
    parse_suffixed(text, 1000)
}

fn parse_bytes(text: &str) -> Result<u64> {
    parse_suffixed(text, 1024)
}

fn parse_suffixed(text: &str, thousand: u64) -> Result<u64> {
    let lower = text.to_ascii_lowercase();
    let (digits, power) = match lower.strip_suffix(['k', 'm', 'g']) {
        Some(digits) if lower.ends_with('k') => (digits, 1),
        Some(digits) if lower.ends_with('m') => (digits, 2),
        Some(digits) => (digits, 3),
        None => (lower.as_str(), 0),
    };
    let number: u64 = digits.parse().with_context(|| format!("`{text}` is not a number such as 128m"))?;
    number.checked_mul(thousand.pow(power)).with_context(|| format!("`{text}` is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts_have_their_own_thousands() {
        assert_eq!(parse_bytes("128m").unwrap(), 128 << 20);
        assert_eq!(parse_count("8M").unwrap(), 8_000_000);
        assert_eq!(parse_count("1234").unwrap(), 1234);
        assert!(parse_count("m").is_err());
        assert!(parse_bytes("99999999999g").is_err());
    }
}
