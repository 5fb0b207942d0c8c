//! Reads the result rows of a completed study from its tables, so that a report with other texts, plots and
//! checks needs no new runs.
//!
//! The rows are used only if the study in the folder has the same grids and each run has the same identity.
//! The identity covers the version, the seed, and a hash of the requests of a trace.

use super::file::File;
use crate::table::Table;
use fulgurite_stack::{Column, Row, Value};
use serde_json::{Map, Value as Json};
use std::fs;
use std::path::Path;

/// The rows of the finished runs, one list per run in the order of the study; empty if they cannot be used.
#[derive(Default)]
pub(super) struct Finished(Vec<Vec<Row>>);

impl Finished {
    /// Reads the finished runs in `folder`. The study has `count` runs.
    pub(super) fn open(folder: &Path, file: &File, count: usize) -> Finished {
        let runs = rows(folder, file).map(by_run).unwrap_or_default();
        // If the number of runs differs, rows cannot be assigned to runs, so none are used.
        Finished(if runs.len() == count { runs } else { Vec::new() })
    }

    /// Whether no finished run is known.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the rows of the run with the number `at`, or `None` if its part or its identity differs.
    pub(super) fn rows(&self, at: usize, part: Option<&str>, run_id: &str) -> Option<Vec<Row>> {
        let rows = self.0.get(at)?;
        let first = rows.first()?;
        let is_it = first.text(Column::RunId) == run_id && first.text(Column::Part) == part.unwrap_or("");
        is_it.then(|| rows.clone())
    }
}

fn rows(folder: &Path, file: &File) -> Option<Vec<Row>> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let was = File::parse("study.toml", &read("study.toml")?).ok()?;
    if !was.runs_like(file) {
        return None;
    }
    let (csv, lines) = (read("table.csv")?, read("table.jsonl")?);
    let mut cells = csv::Reader::from_reader(csv.as_bytes());
    let columns: Option<Vec<Column>> =
        cells.headers().ok()?.iter().map(|name| Column::from_name(name).ok()).collect();
    let columns = columns?;
    let mut rows = Vec::new();
    for (cells, line) in cells.records().zip(lines.lines()) {
        let types: Map<String, Json> = serde_json::from_str(line).ok()?;
        rows.push(row(&columns, &cells.ok()?, &types)?);
    }
    let table = Table { rows };
    // This comparison detects reading errors and manual changes of either file.
    (table.to_csv() == csv && table.to_json_lines() == lines).then_some(table.rows)
}

/// Reads a row from both tables. The JSON tells the type of each value, and the CSV has all digits.
fn row(columns: &[Column], cells: &csv::StringRecord, types: &Map<String, Json>) -> Option<Row> {
    let mut row = Row::default();
    for (column, text) in columns.iter().zip(cells) {
        let value = match types.get(column.name()) {
            None => continue,
            Some(Json::String(_)) => Value::Text(text.to_owned()),
            Some(Json::Number(number)) if number.is_u64() => Value::Integer(text.parse().ok()?),
            Some(_) => Value::Real(text.parse().ok()?),
        };
        row.set(*column, value);
    }
    Some(row)
}

/// Groups the rows by run. Rows of time intervals and groups that have the same identity and are adjacent
/// belong to one run. Every other row is a run of its own: two runs with equal meaning, such as `ace` and
/// `ace:n_w=8`, have the same identity but must not be merged.
fn by_run(rows: Vec<Row>) -> Vec<Vec<Row>> {
    let mut runs: Vec<Vec<Row>> = Vec::new();
    for row in rows {
        let has = |column: &Column| row.get(*column).is_some();
        let is_one_of_several = [Column::Group, Column::TimePages, Column::TimeNs].iter().any(has);
        let same = |first: &Row, column: &Column| first.get(*column) == row.get(*column);
        let is_same = |first: &Row| [Column::RunId, Column::Part].iter().all(|column| same(first, column));
        match runs.last_mut() {
            Some(run) if is_one_of_several && is_same(&run[0]) => run.push(row),
            _ => runs.push(vec![row]),
        }
    }
    runs
}
