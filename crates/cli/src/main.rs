//! The `fulgurite` command: parses, calls the study crate, prints. No logic lives here.

mod arguments;
mod interrupt;
mod store;

use arguments::{Arguments, Command, Common, Trace, Typed};
use clap::Parser;
use fulgurite_study::grid::{self, Settings};
use fulgurite_study::report::Verdict;
use fulgurite_study::study::Study;
use fulgurite_study::table::Table;
use fulgurite_study::trace_convert::Generated;
use fulgurite_study::{Column, Progress, StackError, list, runner, trace_convert, trace_info};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() => return fail(&StackError::request(one_sentence(&error))),
        Err(help) => return end(written(help.print())),
    };
    interrupt::watch();
    end(run(arguments))
}

fn end(result: Result<(), StackError>) -> ExitCode {
    result.map_or_else(|error| fail(&error), |()| ExitCode::SUCCESS)
}

fn fail(error: &StackError) -> ExitCode {
    say(&format!("fulgurite: {error}"));
    ExitCode::from(error.exit_code())
}

/// Writes a line to standard error. Nothing can be told where that cannot be written, so the exit code alone tells.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// The outcome of writing to standard output. A closed pipe (`fulgurite list | head -1`) is no failure: its
/// reader has seen enough. A full disk is one.
fn written(result: io::Result<()>) -> Result<(), StackError> {
    // What the buffer still holds would be lost in silence at exit.
    match result.and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(StackError::run(format!("standard output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// What the parser found wrong, without its usage text.
fn one_sentence(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let said: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    said.join("; ").replace(":; ", ": ").trim_start_matches("error: ").to_owned()
}

fn run(arguments: Arguments) -> Result<(), StackError> {
    let Arguments { mut common, command } = arguments;
    common.is_stdout_taken = command.as_ref().is_some_and(Command::writes_stdout);
    match command {
        None => study("quickstart", None, false, &common),
        Some(Command::Study { study: name, out, quick }) => study(&name, out.as_deref(), quick, &common),
        Some(Command::List { kind }) => {
            let table = list::list(kind.as_deref())?;
            let columns =
                if kind.is_some() { table.columns() } else { table.columns_first(Column::is_shown_by_lists) };
            print(&table, &common, |table| table.to_text(&columns))
        }
        Some(Command::Trace { command: Trace::Info { file, format, page } }) => {
            let table = trace_info::describe(&file, format.as_deref(), page.as_deref())?;
            print(&table, &common, |table| table.to_upright_text(&table.columns()))
        }
        Some(Command::Trace { command: Trace::Convert { file, out, to, format, page } }) => {
            let table = trace_convert::convert(&file, &out, &to, format.as_deref(), page.as_deref())?;
            print(&table, &common, |table| table.to_upright_text(&table.columns()))
        }
        Some(Command::Trace { command: Trace::Generate { workload, out, to, logical, page, ops } }) => {
            let generated = Generated {
                workload: &workload,
                out: &out,
                to: &to,
                logical: logical.as_deref(),
                page: page.as_deref(),
                ops: ops.as_deref(),
                seed: common.seed.as_deref(),
            };
            let table = watched(|progress| trace_convert::generate(generated, progress))?;
            print(&table, &common, |table| table.to_upright_text(&table.columns()))
        }
        Some(Command::Profile(typed)) => grid(typed, &common),
        Some(Command::Pool(typed)) => grid(typed, &common),
        Some(Command::Gc(typed)) => grid(typed, &common),
        Some(Command::Replay(typed)) => grid(typed, &common),
        Some(Command::Bench(typed)) => grid(typed, &common),
        Some(Command::Store(command)) => store::run(command, &common),
    }
}

/// Runs a study, and says what it found and where the report lies.
fn study(name: &str, out: Option<&Path>, quick: bool, common: &Common) -> Result<(), StackError> {
    let study = Study::open(name)?;
    let seed = common.seed.as_deref();
    let outcome = watched(|progress| study.run(out, quick, seed, threads(common), progress))?;
    let report = outcome.report.display();
    print(&outcome.table, common, |table| {
        let mut found = format!("{}\n", outcome.finding);
        for Verdict { says, holds, figure } in &outcome.verdicts {
            found += &format!("{}: {says} ({figure})\n", if *holds { "holds" } else { "does not hold here" });
        }
        format!("{}\n\n{}\n{found}\nreport: {report}\n", study.title(), table.to_text(&outcome.columns))
    })?;
    // Standard output holds the table alone, so the path goes to standard error.
    if common.json || common.csv {
        say(&format!("report: {report}"));
    }
    Ok(())
}

/// Runs the grid that the typed settings span, and prints its table.
fn grid<const COMMAND: usize>(typed: Typed<COMMAND>, common: &Common) -> Result<(), StackError> {
    let command = Typed::<COMMAND>::COMMAND;
    let mut settings = Settings::new();
    for (name, value) in typed.0.into_iter().chain(common.seed.clone().map(|seed| ("seed", seed))) {
        settings.insert(name.to_owned(), grid::values(&value)?);
    }
    let runs = grid::expand(command, &settings)?;
    let rows = watched(|progress| runner::execute_each(&runs, threads(common), progress))?;
    let table = Table { rows: rows.into_iter().flatten().collect() };
    print(&table, common, |table| {
        let mut text = table.to_text(&table.columns_for_people(command));
        for row in table.rows.iter().filter(|row| row.get(Column::Explanation).is_some()) {
            let [workload, placement, victim, explanation] =
                [Column::Workload, Column::Placement, Column::Victim, Column::Explanation]
                    .map(|column| row.text(column));
            text += &format!("\n{workload}, {placement}, {victim}\n{explanation}");
        }
        text
    })
}

fn threads(common: &Common) -> NonZeroUsize {
    common.threads.unwrap_or_else(runner::all_cores)
}

/// Does `work` under a bar on standard error where that is a terminal, and quietly elsewhere.
fn watched<T>(work: impl FnOnce(&Progress) -> T) -> T {
    watched_as("{bar:32} {percent}% of {human_len} requests, {elapsed} ({eta} left)", work)
}

/// The same, under a bar of another form.
fn watched_as<T>(template: &str, work: impl FnOnce(&Progress) -> T) -> T {
    let progress = Progress::default();
    // A log file would be filled with the frames of the bar.
    if !io::stderr().is_terminal() {
        return work(&progress);
    }
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| watch(template, &progress, &is_done));
        let result = work(&progress);
        is_done.store(true, Ordering::Relaxed);
        result
    })
}

fn watch(template: &str, progress: &Progress, is_done: &AtomicBool) {
    let style = ProgressStyle::with_template(template);
    let bar = ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    while !is_done.load(Ordering::Relaxed) {
        bar.set_length(progress.total());
        bar.set_position(progress.done());
        std::thread::sleep(Duration::from_millis(100));
    }
    bar.finish_and_clear();
}

/// Prints the table as asked; `text` is the form for people.
fn print(table: &Table, common: &Common, text: impl Fn(&Table) -> String) -> Result<(), StackError> {
    let text = match (common.json, common.csv) {
        (true, _) => table.to_json(),
        (_, true) => table.to_csv(),
        _ => text(table),
    };
    if common.is_stdout_taken {
        // Standard error may be closed; the output is written all the same.
        let _ = io::stderr().write_all(text.as_bytes());
        return Ok(());
    }
    written(io::stdout().write_all(text.as_bytes()))
}
