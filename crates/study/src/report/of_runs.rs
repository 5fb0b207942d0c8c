//! Writes the report of a single command: the page of `--report FILE.html`, with the table and the plots that
//! its rows allow.

use super::automatic;
use super::{BEGINNING, Report, html};
use crate::advise::{Advice, listed};
use crate::people::{self, humane, named};
use crate::table::Table;
use crate::trace_info::Description;
use crate::which_drive::{Answer, DRIVE};
use fulgurite_files::output::{self, Named, OutputError, OutputFile, Replaces};
use fulgurite_stack::device::named_file;
use fulgurite_stack::workload::files_of;
use fulgurite_stack::{Column, Command, Row, StackError, Value};
use fulgurite_workload::trace::Join;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The most values of an axis that the page names in its first sentence.
const VALUES_AT_MOST: usize = 8;

/// A file for the report of a command.
#[derive(Clone, Copy, Debug)]
pub struct ReportFile<'a>(Named<'a>);

impl<'a> ReportFile<'a> {
    /// Checks, before anything is executed, that the report can be written to `path` and destroys nothing.
    /// `settings` are the settings of the command, some of which name files that it reads or writes.
    pub fn prepare<'s>(
        path: &'a Path,
        settings: impl Iterator<Item = (&'s str, &'s str)>,
    ) -> Result<ReportFile<'a>, StackError> {
        let report = Named::new("--report", path).replacing(Replaces::Beginning(BEGINNING));
        let settings: Vec<(&str, &str)> = settings.collect();
        let of_trace = |(name, text): &(&str, &str)| match *name {
            "workload" => files_of(text, Some(Join::default())).unwrap_or_default(),
            _ => Vec::new(),
        };
        let traces: Vec<PathBuf> = settings.iter().flat_map(of_trace).collect();
        let mut inputs: Vec<Named<'_>> = traces.iter().map(|path| Named::new("workload", path)).collect();
        let mut outputs = Vec::new();
        for (name, text) in settings {
            let file = |argument| Named::new(argument, named_file(text));
            match name {
                "requests_out" => outputs.push(file("--requests-out").replacing(Replaces::Anything)),
                "trace_out" => outputs.push(file("--trace-out").replacing(Replaces::Anything)),
                // The command creates a drive that does not exist.
                "device" if text.starts_with("file:") && !named_file(text).exists() => {
                    outputs.push(file("device"));
                }
                "device" => inputs.push(file("device")),
                _ => {}
            }
        }
        outputs.push(report);
        output::check(&inputs, &outputs).map_err(|error| match error {
            OutputError::Exists { output, .. } => StackError::request(format!(
                "{output} exists and is no earlier report; accepted: another file, or this one after that is deleted"
            )),
            other => other.into(),
        })?;
        Ok(ReportFile(report))
    }

    /// Writes the page, which replaces an earlier report.
    pub fn write(self, page: &str) -> Result<(), StackError> {
        let mut file = OutputFile::create(self.0)?;
        file.write_all(page.as_bytes()).map_err(|error| self.0.failed(error))?;
        Ok(file.finish()?)
    }
}

/// Renders the page of a command's rows. `typed` is the command as the user typed it, and `remarks` are those
/// that the runs left.
pub fn of_runs(table: &Table, command: Command, typed: &str, remarks: &[String]) -> String {
    let table = &without_cost(table);
    let columns = table.columns_for_people(command);
    let mut notes: Vec<String> = remarks.to_vec();
    notes.extend(table.note_on_fill(&columns));
    page(Contents {
        title: &title(table, command),
        question: &question(table),
        finding: &people::finding(table, command).unwrap_or_default(),
        command: command.name(),
        notes,
        plots: automatic::plots(table, command),
        table,
        columns: &columns,
        typed,
    })
}

/// Renders the page of an advice.
pub fn of_advice(advice: &Advice, typed: &str, remarks: &[String]) -> String {
    let table = &without_cost(&advice.table());
    page(Contents {
        title: &format!("advise: {}", place(table)),
        question: "",
        finding: &advice.sentence(),
        command: "advise",
        notes: remarks.iter().cloned().chain(advice.notes()).collect(),
        plots: automatic::plots_of_advice(table),
        table,
        columns: &ADVICE,
        typed,
    })
}

/// Renders the page of a comparison of drives.
pub fn of_drives(answer: &Answer, typed: &str, remarks: &[String]) -> String {
    let table = &without_cost(&answer.table());
    let own =
        Table { rows: table.rows.iter().filter(|row| row.text(Column::Kind) == DRIVE).cloned().collect() };
    page(Contents {
        title: &format!("Which drive? {}", place(&own)),
        question: "",
        finding: &answer.sentence(),
        command: "advise",
        notes: remarks.iter().cloned().chain(answer.notes()).collect(),
        plots: automatic::plots_of_drives(table),
        table,
        columns: &DRIVES,
        typed,
    })
}

/// Renders the page of a trace, with all its figures and how it develops. `path` is as the user typed it.
///
/// Fails if rows of volumes were asked for, which have no plots.
pub fn of_trace(description: &Description, path: &str, typed: &str) -> Result<String, StackError> {
    let table = &description.whole();
    let (Some(profile), [row]) = (description.profile(), &table.rows[..]) else {
        return Err(StackError::request(
            "--report shows one trace and not a list of volumes; choose one volume, or leave it out",
        ));
    };
    Ok(page(Contents {
        title: &format!("trace info: {path}"),
        question: "",
        finding: &finding_of_trace(row),
        command: "trace info",
        notes: Vec::new(),
        plots: automatic::plots_of_trace(row, profile),
        table,
        columns: &table.columns(),
        typed,
    }))
}

/// Says in a sentence what the trace is like.
fn finding_of_trace(row: &Row) -> String {
    let text = |column: Column| row.get(column).map(|value| humane(column, value));
    let of = |column: Column| text(column).unwrap_or_default();
    let mut finding = format!(
        "{} requests for {} different pages; {} of them read, and {} ask for a page again",
        of(Column::Requests),
        of(Column::FootprintPages),
        of(Column::ReadShare),
        of(Column::ReuseShare),
    );
    if let Some(distance) = text(Column::ReuseDistanceP50) {
        finding += &format!(", half of those after at most {distance} other pages");
    }
    finding + "."
}

/// The columns of a comparison of drives that its page shows at first.
const DRIVES: [Column; 15] = [
    Column::Kind,
    Column::Device,
    Column::Name,
    Column::Times,
    Column::Meets,
    Column::Headroom,
    Column::HeadroomLimit,
    Column::SustainedOpsS,
    Column::OfferedOpsS,
    Column::ThroughputOpsS,
    Column::LatencyP99Ns,
    Column::LatencyP999Ns,
    Column::Waf,
    Column::LifetimeYearsAtThisRate,
    Column::RatedYearsAtThisRate,
];

/// The columns of an advice that its page shows at first.
const ADVICE: [Column; 12] = [
    Column::Kind,
    Column::Name,
    Column::Plain,
    Column::Advised,
    Column::Replacement,
    Column::WriteBack,
    Column::Prefetch,
    Column::Frames,
    Column::ThroughputOpsS,
    Column::LatencyP99Ns,
    Column::ThroughputChange,
    Column::LatencyP99Change,
];

struct Contents<'a> {
    title: &'a str,
    question: &'a str,
    finding: &'a str,
    command: &'a str,
    notes: Vec<String>,
    plots: Vec<super::Plot>,
    table: &'a Table,
    columns: &'a [Column],
    typed: &'a str,
}

fn page(contents: Contents<'_>) -> String {
    let Contents { title, question, finding, command, mut notes, plots, table, columns, typed } = contents;
    // Notes of rows are listed below the table.
    let of_rows = table.rows.iter().map(|row| row.text(Column::Note)).filter(|note| !note.is_empty());
    for note in of_rows {
        if !notes.iter().any(|known| known.contains(&note) || note.contains(known.as_str())) {
            notes.push(note);
        }
    }
    let there = table.columns();
    let columns: Vec<Column> =
        columns.iter().copied().filter(|column| *column != Column::Note && there.contains(column)).collect();
    html(&Report {
        title,
        command,
        question,
        is_quick: false,
        finding,
        verdicts: &[],
        notes: &notes,
        plots: &plots,
        plots_left_out: 0,
        table,
        columns: &columns,
        repeat: &[typed.to_owned()],
    })
}

/// Drops the execution cost, which differs from one execution to the next.
fn without_cost(table: &Table) -> Table {
    let mut table = table.clone();
    table.rows.iter_mut().for_each(Row::drop_cost);
    table
}

fn title(table: &Table, command: Command) -> String {
    format!("{}: {}", command.name(), place(table))
}

/// Names the workload and the device of a table; several are counted.
fn place(table: &Table) -> String {
    let one = |column: Column, several: &str| {
        let values = values(table, column);
        match &values[..] {
            [] => None,
            [one] => Some(one.clone()),
            more => Some(format!("{} {several}", more.len())),
        }
    };
    let what = one(Column::Workload, "workloads").or_else(|| one(Column::Benchmark, "benchmarks"));
    let said: Vec<String> = [what, one(Column::Device, "devices")].into_iter().flatten().collect();
    said.join(" on ")
}

/// Says how many runs there are, and in which settings they differ.
fn question(table: &Table) -> String {
    let has = |column: Column| table.rows.iter().any(|row| row.get(column).is_some());
    let (is_curve, is_curve_of_misses) = (has(Column::ReadIops), has(Column::MissRatio));
    let is_piece = |axis: &Column| match axis {
        Column::TimePages | Column::Group | Column::Transaction => true,
        Column::Users => is_curve,
        Column::Frames => is_curve_of_misses,
        _ => false,
    };
    let axes: Vec<Column> = table.varying_axes().filter(|axis| !is_piece(axis)).collect();
    let differ = axes.iter().map(|axis| {
        let values = values(table, *axis);
        match values.len() {
            count if count > VALUES_AT_MOST => format!("{} ({count} values)", people::head(*axis)),
            _ => format!("{} ({})", people::head(*axis), values.join(", ")),
        }
    });
    let differ: Vec<String> = differ.collect();
    let mut settings: Vec<String> = table.rows.iter().map(|row| named(row, &axes)).collect();
    settings.sort_unstable();
    settings.dedup();
    match settings.len() {
        0 | 1 => String::new(),
        count => format!("{count} runs, which differ in {}.", listed(&differ)),
    }
}

/// Returns the distinct values of a column, as people read them.
fn values(table: &Table, column: Column) -> Vec<String> {
    let mut values: Vec<&Value> = Vec::new();
    for value in table.rows.iter().filter_map(|row| row.get(column)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values.into_iter().map(|value| people::humane(column, value)).collect()
}
