//! The `fulgurite` command: parses, calls the study crate, prints. No logic lives here.

mod arguments;

use arguments::{Arguments, Command, Common};
use clap::Parser;
use fulgurite_base::Spec;
use fulgurite_study::error::StudyError;
use fulgurite_study::grid::{self, Settings};
use fulgurite_study::runner;
use fulgurite_study::table::Table;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fulgurite: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(arguments: Arguments) -> Result<(), StudyError> {
    let Arguments { common, command } = arguments;
    let command = command.ok_or_else(|| {
        StudyError::request("say what to do; accepted: profile, pool, gc (fulgurite --help tells more)")
    })?;
    let (command, mut settings) = settings_of(command)?;
    set(&mut settings, "seed", &common.seed)?;
    let table = execute(command, &settings, &common)?;
    print(&table, &common)
}

/// The grid's words for what was typed.
fn settings_of(command: Command) -> Result<(grid::Command, Settings), StudyError> {
    let mut settings = Settings::new();
    let (command, typed) = match command {
        Command::Profile { device, page } => {
            (grid::Command::Profile, vec![("device", Some(device)), ("page", page)])
        }
        Command::Pool(pool) => (
            grid::Command::Pool,
            vec![
                ("workload", Some(pool.workload)),
                ("device", pool.device),
                ("replacement", pool.replacement),
                ("write_back", pool.write_back),
                ("prefetch", pool.prefetch),
                ("frames", pool.frames),
                ("pages", pool.pages),
                ("page", pool.page),
                ("ops", pool.ops),
                ("users", pool.users),
                ("cpu_per_request", pool.cpu_per_request),
                ("format", pool.format),
            ],
        ),
        Command::Gc(gc) => (
            grid::Command::Gc,
            vec![
                ("workload", Some(gc.workload)),
                ("placement", gc.placement),
                ("victim", gc.victim),
                ("logical", gc.logical),
                ("physical", gc.physical),
                ("segment", gc.segment),
                ("page", gc.page),
                ("gc_reserve", gc.gc_reserve),
                ("ops", gc.ops),
                ("format", gc.format),
            ],
        ),
    };
    for (name, value) in typed {
        set(&mut settings, name, &value)?;
    }
    Ok((command, settings))
}

fn set(settings: &mut Settings, name: &str, value: &Option<String>) -> Result<(), StudyError> {
    if let Some(value) = value {
        settings.insert(name.to_owned(), Spec::split_list(value)?);
    }
    Ok(())
}

fn execute(command: grid::Command, settings: &Settings, common: &Common) -> Result<Table, StudyError> {
    let runs = grid::expand(command, settings)?;
    let bar = progress_bar(runs.len());
    let threads = common.threads.unwrap_or_else(runner::all_cores);
    let table = runner::execute(&runs, threads, &|done| bar.set_position(done as u64));
    bar.finish_and_clear();
    table
}

/// A bar on standard error where that is a terminal, and nothing elsewhere.
fn progress_bar(runs: usize) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(runs as u64), target);
    let style = ProgressStyle::with_template("{bar:32} {pos}/{len} runs, {elapsed} ({eta} left)");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// A closed pipe (`fulgurite … | head`) is no failure.
fn print(table: &Table, common: &Common) -> Result<(), StudyError> {
    let text = match (common.json, common.csv) {
        (true, _) => table.to_json(),
        (_, true) => table.to_csv(),
        _ => table.to_text(&table.columns()),
    };
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(())
}
