//! The `fulgurite` command: parses, calls the study crate, prints. No logic lives here.

mod arguments;
mod interrupt;
mod progress;
mod store;

use arguments::{Arguments, Command, Common, Trace, Typed};
use clap::Parser;
use clap::error::ErrorKind;
use fulgurite_study::grid::{self, Grid, Settings};
use fulgurite_study::report::Verdict;
use fulgurite_study::study::{How, Study, finished_runs};
use fulgurite_study::table::Table;
use fulgurite_study::trace_convert::Generated;
use fulgurite_study::{Column, Outlook, StackError, list, runner, trace_convert, trace_info};
use progress::watched;
use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;

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
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(StackError::run(format!("standard output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// What the parser found wrong, without its usage text.
fn one_sentence(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    // What follows `--` is a value without an option: never what is meant by a mistyped option or a number.
    let is_wanted = |line: &&str| {
        !["", "tip: to pass", "For more information"].iter().any(|idle| match *idle {
            "" => line.is_empty(),
            idle => line.starts_with(idle),
        })
    };
    let said: Vec<&str> = lines.filter(is_wanted).collect();
    let mut sentence = said.join("; ").replace(":; ", ": ").trim_start_matches("error: ").to_owned();
    if error.kind() == ErrorKind::UnknownArgument && !sentence.contains("tip:") {
        sentence += "; accepted: what --help lists";
    }
    sentence
}

fn run(arguments: Arguments) -> Result<(), StackError> {
    let Arguments { mut common, command } = arguments;
    common.is_stdout_taken = command.as_ref().is_some_and(Command::writes_stdout);
    if common.dry_run && command.as_ref().is_some_and(|command| !command.has_outlook()) {
        return Err(StackError::request(
            "--dry-run is for commands that run stacks: pool, gc, replay, bench, profile and study; leave it out",
        ));
    }
    match command {
        None => study("quickstart", &StudyAsked::default(), &common),
        Some(Command::Study { study: name, out, quick, resume }) => {
            study(&name, &StudyAsked { out: out.as_deref(), quick, resume }, &common)
        }
        Some(Command::List { kind }) => {
            let table = list::list(kind.as_deref())?;
            let columns =
                if kind.is_some() { table.columns() } else { table.columns_first(Column::is_shown_by_lists) };
            print(&table, &common, |table| table.to_text(&columns))
        }
        Some(Command::Trace { command: Trace::Info { file, format, page } }) => {
            let table =
                watched("records", |_| trace_info::describe(&file, format.as_deref(), page.as_deref()))?;
            print(&table, &common, |table| table.to_upright_text(&table.columns()))
        }
        Some(Command::Trace { command: Trace::Convert { file, out, to, format, page } }) => {
            let convert = || trace_convert::convert(&file, &out, &to, format.as_deref(), page.as_deref());
            let table = watched("records", |_| convert())?;
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
            let table = watched("requests", |progress| trace_convert::generate(generated, progress))?;
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

/// What was typed for a study, beside its name.
#[derive(Default)]
struct StudyAsked<'a> {
    out: Option<&'a Path>,
    quick: bool,
    resume: bool,
}

/// Runs a study, and says what it found and where the report lies.
fn study(name: &str, asked: &StudyAsked<'_>, common: &Common) -> Result<(), StackError> {
    let study = Study::open(name)?;
    let StudyAsked { out, quick, resume } = *asked;
    let how = How { out, quick, seed: common.seed.as_deref(), threads: threads(common), resume };
    if common.dry_run {
        return tell_outlook(&watched("requests", |_| study.outlook(&how))?, common);
    }
    let folder = study.folder(out);
    if !resume && finished_runs(&folder) > 0 {
        say(&format!(
            "{} has finished runs of an interrupted study, which --resume would go on from",
            folder.display()
        ));
    }
    let command = format!("fulgurite study {name}{} --resume", typed_again(asked, common));
    interrupt::leaves(move || match finished_runs(&folder) {
        0 => "no run of the study is finished".to_owned(),
        finished => format!(
            "finished runs are kept in {} ({finished}); go on from them with: {command}",
            folder.display()
        ),
    });
    let outcome = watched("requests", |progress| study.run(&how, progress, announce))?;
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

/// The options of a study that must be typed again to go on with it.
fn typed_again(asked: &StudyAsked<'_>, common: &Common) -> String {
    let out = asked.out.map(|out| format!(" --out {}", out.display())).unwrap_or_default();
    let quick = if asked.quick { " --quick" } else { "" };
    let seed = common.seed.as_ref().map(|seed| format!(" --seed {seed}")).unwrap_or_default();
    format!("{quick}{seed}{out}")
}

/// Says before the first run what all of them will need, where somebody looks on.
fn announce(outlook: &Outlook) {
    if io::stderr().is_terminal() {
        // In place of what the bar has drawn, which is drawn again below.
        say(&format!("\r\x1b[2K{}", outlook.sentence()));
    }
}

/// Prints what runs will need, and then whether the machine has it.
fn tell_outlook(outlook: &Outlook, common: &Common) -> Result<(), StackError> {
    let table = Table { rows: vec![outlook.row()] };
    print(&table, common, |_| outlook.sentence() + "\n")?;
    outlook.check()
}

/// Runs the grid that the typed settings span, and prints its table.
fn grid<const COMMAND: usize>(typed: Typed<COMMAND>, common: &Common) -> Result<(), StackError> {
    let command = Typed::<COMMAND>::COMMAND;
    let mut settings = Settings::new();
    for (name, value) in typed.0.into_iter().chain(common.seed.clone().map(|seed| ("seed", seed))) {
        settings.insert(name.to_owned(), grid::values(&value)?);
    }
    let threads = threads(common);
    if common.dry_run {
        return tell_outlook(&watched("requests", |_| Grid::new(command, &settings, threads))?.1, common);
    }
    let rows = watched("requests", |progress| {
        let (mut runs, outlook) = Grid::new(command, &settings, threads)?;
        outlook.check()?;
        announce(&outlook);
        runs.prepare()?;
        runner::execute_all(&runs, threads, progress, &())
    })?;
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
