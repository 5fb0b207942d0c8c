//! The `fulgurite` command: parses, calls the study crate, prints. No logic lives here.

use clap::{Parser, Subcommand};
use fulgurite_study::device::DeviceDescription;
use fulgurite_study::error::StudyError;
use fulgurite_study::profile;
use fulgurite_study::table::Table;
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    version,
    about = "Storage that knows it is on flash: simulate, measure, compare",
    arg_required_else_help = true
)]
struct Arguments {
    /// Seed of all randomness.
    #[arg(long, global = true, default_value_t = 42)]
    seed: u64,
    /// Print one JSON array of flat row objects.
    #[arg(long, global = true, conflicts_with = "csv")]
    json: bool,
    /// Print CSV.
    #[arg(long, global = true)]
    csv: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure alpha, k_r and k_w of a device.
    Profile {
        /// A preset, with changes if any: p4510:channels=4
        device: String,
        /// Request sizes.
        #[arg(long, default_value = "4KiB")]
        page: String,
    },
}

fn run(arguments: &Arguments) -> Result<Table, StudyError> {
    match &arguments.command {
        Command::Profile { device, page } => {
            profile::table(&DeviceDescription::parse(device)?, page, arguments.seed)
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(table) => {
            let text = match (arguments.json, arguments.csv) {
                (true, _) => table.to_json(),
                (_, true) => table.to_csv(),
                _ => table.to_text(&table.columns()),
            };
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("fulgurite: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
