//! Implements the `fulgurite` command. It parses arguments, calls other crates, and prints results; it has no
//! logic of its own.

mod common;
mod examples;
mod output;
mod interrupt;
mod progress;
mod store_arguments;
mod serve;
mod crashtest;
mod arguments;
mod reference;
mod store;

use arguments::{Arguments, Command, Trace, Typed};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use common::Common;
use fulgurite_files::output::is_standard;
use fulgurite_study::advise::{Asked, Question, advise, quoted};
use fulgurite_study::grid::{self, Settings};
use fulgurite_study::people::{self, View};
use fulgurite_study::report::{self, ReportFile, Verdict, left_for_full_run};
use fulgurite_study::study::{How, Left, Outcome, Study, finished_runs};
use fulgurite_study::table::Table;
use fulgurite_study::trace_convert::{Converted, Cuts, Generated, Written};
use fulgurite_study::{
    Column, Outlook, SpecError, StackError, calibrate, diff, list, runner, trace_convert, trace_info,
    which_drive,
};
use output::{print, print_upright, say, written};
use progress::{watched, watched_with_remarks};
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;

/// The largest number of rows of a study that a terminal shows. If a table has more rows, the terminal shows
/// only its path and its number of rows.
const ROWS_AT_MOST: usize = 30;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse_from(joined(std::env::args_os())) {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() => return fail(&StackError::request(one_sentence(&error))),
        Err(help) => return end(written(help.print())),
    };
    interrupt::watch();
    end(run(arguments))
}

/// Joins an option with a negative value: `--frames -5%` becomes `--frames=-5%`. The parser would take the
/// value for an option. Joined, the option itself can report the accepted values. No option's name is a
/// number, so no option is joined.
fn joined(typed: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = Vec::new();
    for argument in typed {
        let is_negative =
            |text: &str| text.starts_with('-') && text[1..].starts_with(|c: char| c.is_ascii_digit());
        let is_option = |text: &str| text.starts_with("--") && text.len() > 2 && !text.contains('=');
        let has_ended = arguments.iter().any(|argument| argument == "--");
        match arguments.last_mut().filter(|last| last.to_str().is_some_and(is_option)) {
            Some(option) if !has_ended && argument.to_str().is_some_and(is_negative) => {
                option.push("=");
                option.push(argument);
            }
            _ => arguments.push(argument),
        }
    }
    arguments
}

fn end(result: Result<(), StackError>) -> ExitCode {
    result.map_or_else(|error| fail(&error), |()| ExitCode::SUCCESS)
}

fn fail(error: &StackError) -> ExitCode {
    interrupt::give_way();
    say(&format!("fulgurite: {error}"));
    ExitCode::from(error.exit_code())
}

/// Describes an error of the parser in one sentence.
fn one_sentence(error: &clap::Error) -> String {
    let told = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        Some(ContextValue::StyledStr(text)) => text.to_string(),
        _ => String::new(),
    };
    let usage = || told(ContextKind::Usage).trim_start_matches("Usage: ").to_owned();
    let argument = told(ContextKind::InvalidArg);
    // The command in the usage text consists of the words before the first argument.
    let command = || {
        let usage = usage();
        let words = usage.split_whitespace().take_while(|word| word.starts_with(char::is_alphanumeric));
        words.collect::<Vec<_>>().join(" ")
    };
    let near = |kind| match error.get(kind) {
        Some(ContextValue::String(near)) => format!("; did you mean `{near}`?"),
        Some(ContextValue::Strings(near)) => format!("; did you mean `{}`?", near.join("` or `")),
        _ => format!("; accepted: what {} --help lists", command()),
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            format!(
                "unknown command `{}`{}",
                told(ContextKind::InvalidSubcommand),
                near(ContextKind::SuggestedSubcommand)
            )
        }
        ErrorKind::UnknownArgument if argument.starts_with('-') => {
            format!("unknown option `{argument}`{}", near(ContextKind::SuggestedArg))
        }
        ErrorKind::UnknownArgument => format!("`{argument}` is one argument too many; accepted: {}", usage()),
        ErrorKind::MissingRequiredArgument => {
            format!("{argument} is missing; accepted: {}, as --help explains", usage())
        }
        ErrorKind::MissingSubcommand => {
            let commands = told(ContextKind::ValidSubcommand).replace(", help", "");
            format!("{} needs a command; accepted: {commands}", told(ContextKind::InvalidSubcommand))
        }
        ErrorKind::ArgumentConflict => match told(ContextKind::PriorArg) {
            other if other.is_empty() || other == argument => {
                format!("{argument} is given twice; accepted: once")
            }
            other => format!("{argument} and {other} exclude each other; accepted: one of them"),
        },
        _ => in_one_line(&error.to_string()),
    }
}

/// Joins the lines of the parser's error message without its usage text.
fn in_one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    // Leave out the tip about `--`, because it never helps with a mistyped option or number.
    let is_idle = |line: &str| line.starts_with("tip: to pass") || line.starts_with("For more information");
    let is_wanted = |line: &&str| !line.is_empty() && !is_idle(line);
    let said: Vec<&str> = lines.filter(is_wanted).collect();
    let sentence = said.join("; ").replace(":; ", ": ").trim_start_matches("error: ").to_owned();
    // Our own reasons follow a colon and begin with the accepted values, so a semicolon must replace the
    // colon.
    let sentence = sentence.replacen(": accepted:", "; accepted:", 1);
    match sentence.split_once("[possible values: ") {
        Some((before, values)) => format!("{before}accepted: {}", values.replacen(']', "", 1)),
        None => sentence,
    }
}

fn run(arguments: Arguments) -> Result<(), StackError> {
    let Arguments { mut common, command } = arguments;
    common.is_stdout_taken = command.as_ref().is_some_and(Command::writes_stdout)
        || common.report.as_deref().is_some_and(is_standard);
    if common.dry_run && command.as_ref().is_some_and(|command| !command.has_outlook()) {
        return Err(StackError::request(
            "--dry-run is for commands that run stacks: pool, gc, replay, bench, profile, advise and study; leave \
                it out",
        ));
    }
    if common.report.is_some() && !command.as_ref().is_some_and(Command::has_report) {
        return Err(StackError::request(
            "--report is for pool, gc, replay, bench, profile, advise and trace info; a study writes its report into \
             --out; leave it out",
        ));
    }
    common.seed.as_deref().map_or(Ok(()), grid::check_seeds)?;
    match command {
        None => study("quickstart", &StudyAsked::default(), &common),
        Some(Command::Study { study: name, out, quick, resume }) => {
            study(&name, &StudyAsked { out: out.as_deref(), quick, resume }, &common)
        }
        Some(Command::List { kind }) => {
            let table = list::list(kind.as_deref())?;
            let columns =
                if kind.is_some() { table.columns() } else { table.columns_first(Column::is_shown_by_lists) };
            let show = |table: &Table, view: &View| people::list(table, &columns, view);
            print(&table, &common, |table| table.to_text(&output::asked(table, &columns, &common)), show)
        }
        Some(Command::Trace { command }) => trace(command, &common),
        Some(Command::Profile(typed)) => grid(typed, &common),
        Some(Command::Pool(typed)) => grid(typed, &common),
        Some(Command::Gc(typed)) => grid(typed, &common),
        Some(Command::Replay(typed)) => grid(typed, &common),
        Some(Command::Bench(typed)) => grid(typed, &common),
        Some(Command::Advise { typed, memory, goal, require: Some(require) }) => {
            if memory.is_some() || goal.is_some() {
                return Err(StackError::request(
                    "--memory and --for are about a buffer pool, and --require compares drives; accepted: one or \
                     the other",
                ));
            }
            let asked =
                which_drive::Asked { typed: typed.0, require: &require, seed: common.seed.as_deref() };
            drives(asked, &common)
        }
        Some(Command::Advise { typed, memory, goal, require: None }) => {
            let asked = Asked {
                typed: typed.0,
                memory: memory.as_deref(),
                goal: goal.as_deref(),
                seed: common.seed.as_deref(),
            };
            advice(asked, &common)
        }
        Some(Command::Diff { a, b, tolerance }) => compare(&a, &b, tolerance.as_deref(), &common),
        Some(Command::Calibrate {
            source,
            out,
            drive,
            start,
            free,
            check,
            sequential,
            evaluations,
            force,
            destroy_contents,
        }) => fit(
            calibrate::Asked {
                source: &source,
                drive: drive.as_deref(),
                out: &out,
                force,
                destroy_contents,
                start: &start,
                free: free.as_deref(),
                check: check.as_deref(),
                sequential: sequential.as_deref(),
                evaluations: &evaluations,
                seed: common.seed.as_deref(),
            },
            &common,
        ),
        Some(Command::Serve { typed, served }) => serve::run(typed.0, &served, &common),
        Some(Command::Ctl { socket, command }) => serve::ctl(&socket, &command, &common),
        Some(Command::Crashtest(asked)) => crashtest::run(&asked, &common),
        Some(Command::Store(command)) => store::run(command, &common),
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "fulgurite", &mut script);
            written(io::stdout().write_all(&script))
        }
        Some(Command::Man { command }) => manual(command.as_deref()),
        Some(Command::Reference { page }) => {
            written(io::stdout().write_all(reference::text(page).as_bytes()))
        }
    }
}

/// Describes, converts or generates a trace file.
fn trace(command: Trace, common: &Common) -> Result<(), StackError> {
    match command {
        Trace::Info { file, format, sort, files, page, interval } => {
            let report = report_page(common, [("workload", &*file)].into_iter())?;
            let description = watched(common.quiet, "records", |_| {
                trace_info::describe(trace_info::Described {
                    path: &file,
                    format: format.as_deref(),
                    sort,
                    files: files.as_deref(),
                    page: page.as_deref(),
                    interval: interval.as_deref(),
                })
            })?;
            let table = description.table();
            if description.has_intervals() {
                let plain = |table: &Table| table.to_text(&output::asked(table, &table.columns(), common));
                print(&table, common, plain, |table, view| people::list(table, &table.columns(), view))?;
            } else {
                print_upright(&table, common)?;
            }
            let Some(report) = report else { return Ok(()) };
            report.write(&report::of_trace(&description, &file, &typed_command())?)
        }
        Trace::Convert { file, out, to, format, sort, files, page, cut, force } => {
            let converted = Converted {
                path: &file,
                written: Written { out: &out, force, to: &to },
                format: format.as_deref(),
                sort,
                files: files.as_deref(),
                page: page.as_deref(),
                cut: Cuts {
                    from: cut.from.as_deref(),
                    until: cut.until.as_deref(),
                    volume: cut.volume.as_deref(),
                    sample: cut.sample.as_deref(),
                    anonymise: cut.anonymise,
                    seed: common.seed.as_deref(),
                },
            };
            let table = watched(common.quiet, "records", |_| trace_convert::convert(converted))?;
            print_upright(&table, common)
        }
        Trace::Generate { workload, out, to, logical, page, ops, force } => {
            let generated = Generated {
                workload: &workload,
                written: Written { out: &out, force, to: &to },
                logical: logical.as_deref(),
                page: page.as_deref(),
                ops: ops.as_deref(),
                seed: common.seed.as_deref(),
            };
            let table =
                watched(common.quiet, "requests", |progress| trace_convert::generate(generated, progress))?;
            print_upright(&table, common)
        }
    }
}

/// Compares two results. Fails if a figure differs by more than the tolerance.
fn compare(a: &Path, b: &Path, tolerance: Option<&str>, common: &Common) -> Result<(), StackError> {
    let difference = diff::diff(a, b, tolerance, &common.columns)?;
    // For `diff`, `--columns` names the figures to compare and not the columns of this table.
    let common = &Common { columns: Vec::new(), ..common.clone() };
    let plain = |table: &Table| match table.rows.is_empty() {
        true => format!("{}\n", difference.sentence),
        false => format!("{}\n\n{}", difference.sentence, table.to_text(&table.columns())),
    };
    print(&difference.table, common, plain, |_, view| difference.shown(view))?;
    difference.verdict()
}

/// Fits a drive to measurements, writes it, and prints its errors.
fn fit(asked: calibrate::Asked<'_>, common: &Common) -> Result<(), StackError> {
    let twin = watched(common.quiet, "drives", |progress| calibrate::calibrate(asked, progress))?;
    let plain = |table: &Table| format!("{}\n\n{}\n", table.to_text(&table.columns()), twin.sentence);
    print(&twin.table, common, plain, |table, view| {
        format!("{}\n{}\n", people::list(table, &table.columns(), view), twin.sentence)
    })
}

/// Prints the manual page of a command, or of the whole program.
fn manual(command: Option<&str>) -> Result<(), StackError> {
    let mut whole = Arguments::command();
    // `build` adds the global options and the full name to each command.
    whole.build();
    let page = match command {
        None => whole,
        Some(name) => whole.find_subcommand(name).cloned().ok_or_else(|| {
            let names: Vec<&str> = whole
                .get_subcommands()
                .filter(|one| !one.is_hide_set())
                .map(clap::Command::get_name)
                .collect();
            StackError::from(SpecError::unknown("command", name, &names))
        })?,
    };
    // Global options have a section of their own after the others, so put them last in the synopsis too.
    let page = page
        .mut_args(|option| if option.is_global_set() { option.display_order(usize::MAX) } else { option });
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text).map_err(StackError::run)?;
    let text = String::from_utf8(text).map_err(StackError::run)?.replacen(".SH EXTRA", ".SH EXAMPLES", 1);
    written(io::stdout().write_all(text.as_bytes()))
}

/// The options of `study`.
#[derive(Default)]
struct StudyAsked<'a> {
    out: Option<&'a Path>,
    quick: bool,
    resume: bool,
}

/// Executes a study, and prints its findings and the path of its report.
fn study(name: &str, asked: &StudyAsked<'_>, common: &Common) -> Result<(), StackError> {
    let study = Study::open(name)?;
    let StudyAsked { out, quick, resume } = *asked;
    let how = How { out, quick, seed: common.seed.as_deref(), threads: threads(common), resume };
    let folder = study.folder(out);
    let Left { usable: finished, others, .. } = watched(common.quiet, "requests", |_| study.left(&how))?;
    if common.dry_run {
        if resume && !common.quiet && finished > 0 {
            say(&format!(
                "{} has {finished} finished runs, which --resume does not run again; they are counted here",
                folder.display()
            ));
        }
        return tell_outlook(&watched(common.quiet, "requests", |_| study.outlook(&how))?, common);
    }
    if !resume && !common.quiet && finished > 0 {
        say(&format!(
            "{} has finished runs of an interrupted study, which --resume would go on from",
            folder.display()
        ));
    }
    let command = format!("fulgurite study {name}{} --resume", typed_again(asked, common));
    interrupt::leaves(move || match finished_runs(&folder).saturating_sub(others) {
        0 => "no run of the study is finished".to_owned(),
        finished => format!(
            "finished runs are kept in {} ({finished}); go on from them with: {command}",
            folder.display()
        ),
    });
    let outcome = watched(common.quiet, "requests", |progress| {
        study.run(&how, progress, |outlook| announce(outlook, common))
    })?;
    let report = outcome.report.display();
    let plain = |table: &Table| {
        let columns = output::asked(table, &outcome.columns, common);
        format!(
            "{}\n\n{}\n{}\nreport: {report}\n",
            study.title(),
            table.to_text(&columns),
            findings(&outcome)
        )
    };
    print(&outcome.table, common, plain, |table, view| {
        let folder = outcome.report.parent().unwrap_or(Path::new(".")).display();
        let rows = table.rows.len();
        let figures = match rows <= ROWS_AT_MOST || view.is_wide || !view.columns.is_empty() {
            true => people::figures_of(table, &[], &outcome.columns, view),
            false => format!("table:  {folder}/table.csv, {rows} rows\n"),
        };
        let title = people::wrapped(study.title(), view.width);
        let found = people::wrapped(&findings(&outcome), view.width);
        format!("{title}\n{found}\n{figures}report: {report}\n")
    })?;
    // Print the path to standard error here, because standard output must hold only the table.
    if (common.json || common.csv) && !common.quiet {
        say(&format!("report: {report}"));
    }
    Ok(())
}

/// Returns the findings and conclusions of a study, one per line.
fn findings(outcome: &Outcome) -> String {
    let mut found = outcome.finding.clone();
    found += if found.is_empty() { "" } else { "\n" };
    let told = outcome.verdicts.iter().filter(|verdict| verdict.is_told());
    for Verdict { says, answer, figure, noticed, .. } in told {
        let figure = if figure.is_empty() { String::new() } else { format!(" ({figure})") };
        let vacuous = if noticed.is_some() { "" } else { " [no planted fault makes this check fail]" };
        found += &format!("{}: {says}{figure}{vacuous}\n", answer.words());
    }
    found + &left_for_full_run(&outcome.verdicts).map_or_else(String::new, |sentence| sentence + "\n")
}

/// Returns the options that continue the study, as the user must type them.
fn typed_again(asked: &StudyAsked<'_>, common: &Common) -> String {
    let out = asked.out.map(|out| format!(" --out {}", out.display())).unwrap_or_default();
    let quick = if asked.quick { " --quick" } else { "" };
    let seed = common.seed.as_ref().map(|seed| format!(" --seed {seed}")).unwrap_or_default();
    format!("{quick}{seed}{out}")
}

/// Prints the estimated needs of all runs before the first run, if standard error is a terminal or the runs
/// take long.
fn announce(outlook: &Outlook, common: &Common) {
    /// Seconds below which the estimate is not printed to a log file.
    const SHORT: f64 = 10.0;
    if common.quiet {
        return;
    }
    if io::stderr().is_terminal() {
        // Overwrite the progress bar, which is drawn again at its next frame.
        say(&format!("\r\x1b[2K{}", outlook.sentence()));
    } else if outlook.seconds().middle() >= SHORT {
        say(&outlook.sentence());
    }
}

/// Prints the estimated needs of all runs. Fails if the machine has too little memory.
fn tell_outlook(outlook: &Outlook, common: &Common) -> Result<(), StackError> {
    let table = Table { rows: vec![outlook.row()] };
    let sentence = outlook.sentence() + "\n";
    print(&table, common, |_| sentence.clone(), |_, view| people::wrapped(&sentence, view.width))?;
    outlook.check()
}

/// Executes the grid of the typed settings, and prints its table.
fn grid<const COMMAND: usize>(typed: Typed<COMMAND>, common: &Common) -> Result<(), StackError> {
    let command = Typed::<COMMAND>::COMMAND;
    let mut settings = Settings::new();
    let joins = typed.0.iter().any(|(name, _)| *name == "files");
    for (name, value) in typed.0.into_iter().chain(common.seed.clone().map(|seed| ("seed", seed))) {
        let flag = || command.setting(name).map_or_else(|_| name.to_owned(), |setting| setting.flag());
        let named = |error| StackError::request(format!("{}: {error}", flag()));
        // A list of files is one trace if `--files` says how.
        let values = match name {
            "workload" if joins => vec![value],
            _ => grid::values(&value).map_err(named)?,
        };
        settings.insert(name.to_owned(), values);
    }
    let threads = threads(common);
    if common.dry_run {
        return tell_outlook(
            &watched(common.quiet, "requests", |_| grid::span(command, &settings, threads))?.1,
            common,
        );
    }
    let pairs = settings.iter().flat_map(|(name, values)| values.iter().map(|value| (&**name, &**value)));
    let page = report_page(common, pairs)?;
    let (rows, remarks) = watched_with_remarks(common.quiet, "requests", |progress| {
        let (mut runs, outlook) = grid::span(command, &settings, threads)?;
        outlook.check()?;
        announce(&outlook, common);
        leaves_drives(settings.get("device").into_iter().flatten());
        runs.prepare()?;
        runner::execute_all(&runs, threads, progress, &())
    });
    let table = Table { rows: rows?.into_iter().flatten().collect() };
    let typed: Vec<&str> = settings.keys().map(String::as_str).collect();
    let plain = |table: &Table| {
        let columns = output::asked(table, &table.columns_for_people(command), common);
        // Standard output holds only the table, which scripts may read.
        if let Some(note) = table.note_on_fill(&columns).filter(|_| !common.quiet) {
            say(&note);
        }
        table.to_text(&columns) + &explanations(table)
    };
    print(&table, common, plain, |table, view| {
        people::runs(table, command, &typed, view) + &explanations(table)
    })?;
    let Some(page) = page else { return Ok(()) };
    page.write(&report::of_runs(&table, command, &typed_command(), &remarks))
}

/// Checks the file of `--report`, before anything is executed. `settings` are those of the command.
fn report_page<'a, 's>(
    common: &'a Common,
    settings: impl Iterator<Item = (&'s str, &'s str)>,
) -> Result<Option<ReportFile<'a>>, StackError> {
    common.report.as_deref().map(|path| ReportFile::prepare(path, settings)).transpose()
}

/// Returns the command as the user typed it, for a shell.
fn typed_command() -> String {
    let words = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    std::iter::once("fulgurite".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// Makes an interrupt report the drives in files, which keep what was written to them.
fn leaves_drives<'a>(devices: impl IntoIterator<Item = &'a String>) {
    let path = |device: &'a String| device.strip_prefix("file:")?.split(',').next();
    let drives = devices.into_iter().filter_map(path).collect::<Vec<_>>().join(", ");
    if !drives.is_empty() {
        interrupt::leaves(move || format!("what was written stays in {drives}"));
    }
}

/// Finds and prints the settings that suit a workload and a drive.
fn advice(asked: Asked, common: &Common) -> Result<(), StackError> {
    let threads = threads(common);
    if common.dry_run {
        let outlook = watched(common.quiet, "requests", |_| {
            Question::new(asked).map(|question| question.outlook(threads))
        })?;
        return tell_outlook(&outlook, common);
    }
    let page = report_page(common, asked.typed.iter().map(|(name, value)| (*name, &**value)))?;
    let (advice, remarks) = watched_with_remarks(common.quiet, "requests", |progress| {
        let question = Question::new(asked)?;
        let outlook = question.outlook(threads);
        outlook.check()?;
        announce(&outlook, common);
        leaves_drives(question.situation.get("device"));
        advise(question, threads, progress)
    });
    let advice = advice?;
    show(&advice.table(), common, &|width, has_colours| advice.text(width, has_colours))?;
    let Some(page) = page else { return Ok(()) };
    page.write(&report::of_advice(&advice, &typed_command(), &remarks))
}

/// Compares drives for a workload, and prints which of them meet the requirements.
fn drives(asked: which_drive::Asked, common: &Common) -> Result<(), StackError> {
    let threads = threads(common);
    if common.dry_run {
        let outlook = watched(common.quiet, "requests", |_| {
            which_drive::Question::new(asked).and_then(|mut question| question.outlook(threads))
        })?;
        return tell_outlook(&outlook, common);
    }
    let page = report_page(common, asked.typed.iter().map(|(name, value)| (*name, &**value)))?;
    let (answer, remarks) = watched_with_remarks(common.quiet, "requests", |progress| {
        let mut question = which_drive::Question::new(asked)?;
        let outlook = question.outlook(threads)?;
        outlook.check()?;
        announce(&outlook, common);
        which_drive::which_drive(question, threads, progress)
    });
    let answer = answer?;
    show(&answer.table(), common, &|width, has_colours| answer.text(width, has_colours))?;
    let Some(page) = page else { return Ok(()) };
    page.write(&report::of_drives(&answer, &typed_command(), &remarks))
}

/// Prints an answer as its text, or as a table with all of its figures if the user asked for columns.
fn show(table: &Table, common: &Common, text: &dyn Fn(usize, bool) -> String) -> Result<(), StackError> {
    /// The width of a line in characters, if standard output is no terminal.
    const WIDTH: usize = 100;
    let has_columns = common.wide || !common.columns.is_empty();
    let plain = |table: &Table| match has_columns {
        true => table.to_text(&output::asked(table, &table.columns(), common)),
        false => text(WIDTH, false),
    };
    print(table, common, plain, |table, view| match has_columns {
        true => people::figures_of(table, &[], &table.columns(), view),
        false => text(view.width, view.has_colours),
    })
}

/// Returns the texts of `--explain` for each run.
fn explanations(table: &Table) -> String {
    let mut text = String::new();
    for row in table.rows.iter().filter(|row| row.get(Column::Explanation).is_some()) {
        let [workload, placement, victim, explanation] =
            [Column::Workload, Column::Placement, Column::Victim, Column::Explanation]
                .map(|column| row.text(column));
        text += &format!("\n{workload}, {placement}, {victim}\n{explanation}");
    }
    text
}

fn threads(common: &Common) -> NonZeroUsize {
    common.threads.unwrap_or_else(runner::all_cores)
}
