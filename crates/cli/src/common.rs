//! Declares the options that every command has.

use clap::Args;
use fulgurite_study::{Column, people};
use std::num::NonZeroUsize;
use std::path::PathBuf;

#[derive(Args, Clone)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Common {
    /// Seed of all randomness [default: 42]
    #[arg(long, global = true, value_name = "N")]
    pub seed: Option<String>,
    /// Print one JSON array of flat row objects, and nothing else
    #[arg(long, global = true, conflicts_with = "csv")]
    pub json: bool,
    /// Print CSV, and nothing else
    #[arg(long, global = true)]
    pub csv: bool,
    /// Number of runs at the same time [default: the number of cores]
    #[arg(long, global = true, value_name = "N", value_parser = threads)]
    pub threads: Option<NonZeroUsize>,
    /// Run nothing; say how many runs there would be, and how much memory and time they would need
    #[arg(long, global = true)]
    pub dry_run: bool,
    /// Show only these columns (throughput_ops_s,latency_p99_ns)
    #[arg(long, global = true, value_name = "NAME,…", value_delimiter = ',', value_parser = column)]
    pub columns: Vec<Column>,
    /// Show every column
    #[arg(long, global = true, conflicts_with = "columns")]
    pub wide: bool,
    /// Also write the rows and their plots as an HTML page (of pool, gc, replay, bench, profile and advise); - for
    /// standard output
    #[arg(long, global = true, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Print only the result and errors: no progress, no remarks
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Whether standard output holds a file that was asked for (`--requests-out -`), so that the table is
    /// printed to standard error.
    #[arg(skip)]
    pub is_stdout_taken: bool,
}

/// Parses the name of a column.
fn column(name: &str) -> Result<Column, String> {
    if name.is_empty() {
        return Err("a name is missing; accepted: names that `fulgurite list columns` shows".to_owned());
    }
    people::column_called(name).map_err(|error| error.to_string())
}

/// Parses the number of runs that are executed at the same time.
fn threads(text: &str) -> Result<NonZeroUsize, &'static str> {
    text.parse().map_err(|_| "accepted: a whole number from 1 on")
}
