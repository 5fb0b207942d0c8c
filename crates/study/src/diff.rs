//! Compares two results: matches their rows with equal settings, and lists the figures that differ, the
//! largest change first.
//!
//! A *result* is the folder of a study, or a file of CSV, JSON or JSON lines as the commands print them. It
//! may come from another version of Fulgurite. So a column that only one result has is ignored when rows are
//! matched. Columns whose absence is a setting are the exception: a run without `layer` has no layer. Equal
//! values of `run_id` prove that two runs had equal settings. Different values prove nothing, because
//! versions may describe a run differently.

use crate::people::{self, View};
use crate::table::Table;
use fulgurite_base::units::{Share, parse_share};
use fulgurite_files::obstacle;
use fulgurite_files::output::is_standard;
use fulgurite_stack::{Column, Row, StackError, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use std::{fs, io};

/// The maximum number of changes that are shown on a terminal.
const SHOWN_AT_MOST: usize = 30;

/// The maximum size of a file in bytes. A result is read into memory, and a row has at most some kilobytes.
const LONGEST: u64 = 256 << 20;

/// The maximum relative error of a number that was written to JSON and read back. Such a number may differ in
/// its last bits.
const ROUNDED: f64 = 1e-14;

/// The differences between two results.
pub struct Difference {
    /// The summary of the comparison, in one sentence.
    pub sentence: String,
    /// One row per figure that differs. It contains the settings of the matched rows, the column, both
    /// values, and the relative change.
    pub table: Table,
    /// The reasons why the comparison fails; empty if it passes.
    beyond: Vec<String>,
}

/// Compares the results at the paths `a` and `b`. `tolerance` is the largest accepted relative change as a
/// share (`2%`); `None` means 0. `columns` are the figures to compare; all figures are compared if it is
/// empty.
pub fn diff(
    a: &Path,
    b: &Path,
    tolerance: Option<&str>,
    columns: &[Column],
) -> Result<Difference, StackError> {
    let tolerance = tolerance.map_or(Ok(Share::ZERO), parse_share);
    let tolerance = tolerance.map_err(|error| StackError::request(format!("--tolerance: {error}")))?;
    let (names, results) = ([named(a, "A"), named(b, "B")], [read(a, "A")?, read(b, "B")?]);
    for column in columns {
        if let Some(at) = results.iter().position(|rows| rows.iter().all(|row| row.get(*column).is_none())) {
            return Err(StackError::request(format!(
                "--columns {column}: {} has no such column; accepted: columns of both results",
                names[at]
            )));
        }
    }
    let joined = Joined::of(&results);
    if joined.pairs.is_empty() {
        if let (Some(of_a), Some(of_b)) = (study(a), study(b))
            && of_a != of_b
        {
            return Err(StackError::request(format!(
                "{} is of the study `{of_a}`, and {} of `{of_b}`; accepted: two results of one study",
                names[0], names[1]
            )));
        }
        return Err(StackError::request(joined.nothing_in_common(&names, &results)));
    }
    Ok(joined.difference(&results, tolerance, columns))
}

/// Returns the title of the study that wrote the folder `path`, or `None` if no study did.
fn study(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path.join("study.toml")).ok()?;
    let file: toml::Table = text.parse().ok()?;
    file.get("title")?.as_str().map(str::to_owned)
}

fn named(path: &Path, argument: &str) -> String {
    format!("{argument} {}", path.display())
}

/// Reads the rows of a result. `argument` is the name of the result in errors: A or B.
fn read(path: &Path, argument: &str) -> Result<Vec<Row>, StackError> {
    let refused = |why: String| {
        StackError::request(format!(
            "{}: {why}; accepted: the folder of a study, or a file of CSV, JSON or JSON lines",
            named(path, argument)
        ))
    };
    let is_folder = path.is_dir();
    let file = if is_folder { path.join("table.csv") } else { path.to_owned() };
    let missing = if is_folder { "has no table.csv that can be read" } else { "cannot be read" };
    let mut bytes = Vec::new();
    // Reads one byte more than is accepted, which tells whether the file is too long.
    let outcome = match is_standard(path) {
        true => io::stdin().take(LONGEST + 1).read_to_end(&mut bytes),
        false => fs::File::open(&file).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes)),
    };
    outcome.map_err(|error| refused(format!("{missing}: {}", obstacle(&file, &error))))?;
    if bytes.len() as u64 > LONGEST {
        return Err(refused(format!("is longer than {} MiB", LONGEST >> 20)));
    }
    let text = String::from_utf8(bytes).map_err(|_| refused("is not text in UTF-8".to_owned()))?;
    let text = text.trim_start_matches('\u{feff}').trim();
    let rows = match text.chars().next() {
        Some('[') => serde_json::from_str::<Vec<Object>>(text)
            .map(|objects| objects.into_iter().map(of_object).collect())
            .map_err(|error| format!("is not a JSON array of rows: {error}")),
        Some('{') => text
            .lines()
            .map(|line| serde_json::from_str(line).map(of_object))
            .collect::<Result<Vec<Row>, _>>()
            .map_err(|error| format!("is not JSON lines: {error}")),
        _ => of_csv(text),
    };
    let rows = rows.map_err(refused)?;
    match rows.iter().any(|row| Column::all().any(|column| row.get(column).is_some())) {
        true => Ok(rows),
        false => Err(refused("has no row of a result".to_owned())),
    }
}

type Object = serde_json::Map<String, serde_json::Value>;

/// Converts a JSON object to a row. Columns that this version does not know are ignored.
fn of_object(object: Object) -> Row {
    let mut row = Row::default();
    for (name, value) in object {
        let Ok(column) = Column::from_name(&name) else { continue };
        match value {
            serde_json::Value::String(text) => row.set(column, text),
            serde_json::Value::Number(number) => row.set_some(column, number.as_f64()),
            _ => {}
        }
    }
    row
}

fn of_csv(text: &str) -> Result<Vec<Row>, String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let broken = |error: csv::Error| format!("is not CSV: {error}");
    let columns: Vec<Option<Column>> =
        reader.headers().map_err(broken)?.iter().map(|name| Column::from_name(name).ok()).collect();
    let mut rows = Vec::new();
    for record in reader.records() {
        let (record, mut row) = (record.map_err(broken)?, Row::default());
        for (cell, column) in record.iter().zip(&columns) {
            let Some(column) = column.filter(|_| !cell.is_empty()) else { continue };
            match cell.parse::<f64>() {
                Ok(number) => row.set(column, number),
                Err(_) => row.set(column, cell),
            }
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Whether `column` is a setting of a run, or identifies one of several rows of a run.
fn is_asked(column: Column) -> bool {
    column.is_axis() || matches!(column, Column::TimeNs | Column::File | Column::Name | Column::Kind)
}

/// Returns the setting of `row` in `column`, or `None` if the row has none. `equal` are the `run_id`s in both
/// results.
fn asked<'a>(row: &'a Row, column: Column, equal: &BTreeSet<String>) -> Option<&'a Value> {
    if column == Column::Ops { asked_ops(row, equal) } else { row.get(column) }
}

/// Returns the number of requests that the run of `row` was asked for. In a run with a time limit, and in a
/// row that describes only a part of its run, the column `ops` is an outcome and no setting, so the result is
/// `None`. For runs in `equal` the result is `None` too, because their settings are known to be equal.
fn asked_ops<'a>(row: &'a Row, equal: &BTreeSet<String>) -> Option<&'a Value> {
    let is_outcome = [Column::TimeLimitNs, Column::TimeNs, Column::Transaction]
        .iter()
        .any(|column| row.get(*column).is_some());
    row.get(Column::Ops).filter(|_| !is_outcome && !equal.contains(&row.text(Column::RunId)))
}

/// Returns the values of `run_id` that are in both results.
fn equal_runs(results: &[Vec<Row>; 2]) -> BTreeSet<String> {
    let [a, b] = results.each_ref().map(|rows| {
        let ids = rows.iter().filter_map(|row| row.get(Column::RunId));
        ids.map(Value::readable).collect::<BTreeSet<_>>()
    });
    a.intersection(&b).cloned().collect()
}

/// Whether `column` is an outcome of a run, which is compared by default.
fn is_outcome(column: Column) -> bool {
    let is_said = matches!(column, Column::RunId | Column::Note | Column::Explanation);
    !is_asked(column) && !column.is_cost() && !is_said
}

/// The rows of two results, matched by their settings.
struct Joined {
    /// The columns by which rows are matched.
    by: Vec<Column>,
    /// The values of `run_id` that are in both results.
    equal: BTreeSet<String>,
    /// The pairs of matched rows, as row numbers in each result.
    pairs: Vec<(usize, usize)>,
    /// The numbers of the rows of each result that have no match.
    alone: [Vec<usize>; 2],
}

impl Joined {
    fn of(results: &[Vec<Row>; 2]) -> Joined {
        let has = |rows: &[Row], column: Column| rows.iter().any(|row| row.get(column).is_some());
        // If `--columns` has cut a result, a missing column does not tell that the setting was absent, so
        // rows are not matched by such a column.
        let is_whole = results.iter().all(|rows| has(rows, Column::RunId));
        let tells = |column: &Column| match results.each_ref().map(|rows| has(rows, *column)) {
            [true, true] => true,
            [false, false] => false,
            _ => is_whole && column.tells_when_absent(),
        };
        let is_key = |column: &Column| is_asked(*column) || *column == Column::Ops;
        let by: Vec<Column> = Column::all().filter(|column| is_key(column) && tells(column)).collect();
        let equal = equal_runs(results);
        let key = |row: &Row| -> Vec<Option<String>> {
            by.iter().map(|column| asked(row, *column, &equal).map(Value::exact)).collect()
        };
        // Rows with equal settings in the same result are matched in their order.
        let mut partners: BTreeMap<Vec<Option<String>>, Vec<usize>> = BTreeMap::new();
        for (at, row) in results[1].iter().enumerate().rev() {
            partners.entry(key(row)).or_default().push(at);
        }
        let (mut pairs, mut alone) = (Vec::new(), Vec::new());
        for (at, row) in results[0].iter().enumerate() {
            match partners.get_mut(&key(row)).and_then(Vec::pop) {
                Some(partner) => pairs.push((at, partner)),
                None => alone.push(at),
            }
        }
        let mut others: Vec<usize> = partners.into_values().flatten().collect();
        others.sort_unstable();
        Joined { by, equal, pairs, alone: [alone, others] }
    }

    /// Returns the error message for results in which no row has a match.
    fn nothing_in_common(&self, names: &[String; 2], results: &[Vec<Row>; 2]) -> String {
        let values = |rows: &[Row], column: Column| {
            let said = |row| {
                asked(row, column, &self.equal).map_or("absent".to_owned(), |value| whole(value).exact())
            };
            let mut values: Vec<String> = rows.iter().map(said).collect();
            values.sort();
            values.dedup();
            values.join(", ")
        };
        let differs = self.by.iter().find_map(|column| {
            let [a, b] = [values(&results[0], *column), values(&results[1], *column)];
            (a != b).then(|| format!("{column} is {a} in A and {b} in B"))
        });
        format!(
            "{} and {} have no row in common: {}; accepted: results of the same request",
            names[0],
            names[1],
            differs.unwrap_or_else(|| "no two rows have equal settings".to_owned())
        )
    }

    fn difference(&self, results: &[Vec<Row>; 2], tolerance: Share, columns: &[Column]) -> Difference {
        let places = Table { rows: self.pairs.iter().map(|(a, _)| results[0][*a].clone()).collect() };
        let told_by: Vec<Column> = self
            .by
            .iter()
            .copied()
            .filter(|column| {
                let of = |row| asked(row, *column, &self.equal);
                places.rows.iter().any(|row| of(row) != of(&places.rows[0]))
            })
            .collect();
        let counts = |column: &Column| match columns {
            [] => is_outcome(*column),
            some => some.contains(column),
        };
        let (mut changes, mut figures, mut changed_rows) = (Vec::new(), 0, 0);
        for (a, b) in &self.pairs {
            let (old, new) = (&results[0][*a], &results[1][*b]);
            let before = changes.len();
            for column in Column::all().filter(counts) {
                let values = [old.get(column), new.get(column)];
                figures += usize::from(values.iter().any(Option::is_some));
                changes.extend(Change::of(column, values).map(|change| (change, old)));
            }
            changed_rows += usize::from(changes.len() > before);
        }
        // Sorts by falling size. A change from zero has an infinite size, so it is first.
        changes.sort_by(|a, b| b.0.size().total_cmp(&a.0.size()));
        let over = changes.iter().filter(|(change, _)| change.size() > tolerance.as_f64()).count();
        let table =
            Table { rows: changes.iter().map(|(change, place)| change.row(place, &told_by)).collect() };
        let mut beyond = Vec::new();
        if over > 0 {
            let have = if over == 1 { "has" } else { "have" };
            beyond.push(format!("{} {have} changed by more than {tolerance}", count(over, "figure")));
        }
        for (alone, name) in self.alone.iter().zip(["A", "B"]) {
            if !alone.is_empty() {
                let are = if alone.len() == 1 { "is" } else { "are" };
                beyond.push(format!("{} {are} only in {name}", count(alone.len(), "row")));
            }
        }
        let sentence = match changes.len() {
            0 => format!(
                "Nothing has changed: {} with {}.",
                count(self.pairs.len(), "row"),
                count(figures, "figure")
            ),
            changed => format!(
                "{changed} of {} changed, in {changed_rows} of {}; {over} by more than {tolerance}.",
                count(figures, "figure"),
                count(self.pairs.len(), "row")
            ),
        };
        Difference { sentence, table, beyond }
    }
}

/// Formats a number with its noun: `1 row`, `2 rows`.
fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A figure that differs between two matched rows.
struct Change<'a> {
    column: Column,
    values: [Option<&'a Value>; 2],
}

impl<'a> Change<'a> {
    fn of(column: Column, values: [Option<&'a Value>; 2]) -> Option<Change<'a>> {
        let is_equal = match values.map(|value| value.and_then(Value::as_f64)) {
            [Some(old), Some(new)] => (old - new).abs() <= ROUNDED * old.abs().max(new.abs()),
            _ => values[0] == values[1],
        };
        (!is_equal).then_some(Change { column, values })
    }

    /// Returns the relative change, which is the new value over the old one minus one; `None` if that is
    /// undefined.
    fn share(&self) -> Option<f64> {
        let [old, new] = self.values.map(|value| value.and_then(Value::as_f64));
        let share = new? / old? - 1.0;
        share.is_finite().then_some(share)
    }

    /// Returns the absolute relative change, by which changes are sorted. If the relative change is
    /// undefined, as for a change from zero, it is infinite and exceeds every tolerance.
    fn size(&self) -> f64 {
        self.share().map_or(f64::INFINITY, f64::abs)
    }

    fn row(&self, place: &Row, told_by: &[Column]) -> Row {
        let mut row = Row::default();
        for column in told_by {
            row.set_some(*column, place.get(*column).map(whole));
        }
        row.set(Column::Metric, self.column.name());
        row.set_some(Column::A, self.values[0].map(whole));
        row.set_some(Column::B, self.values[1].map(whole));
        row.set_some(Column::Change, self.share());
        row
    }
}

/// Converts a real number without a fraction to an integer, because files do not tell the types of numbers.
fn whole(value: &Value) -> Value {
    match value {
        Value::Real(real) if real.fract() == 0.0 && (0.0..9e15).contains(real) => {
            Value::Integer(*real as u64)
        }
        other => other.clone(),
    }
}

impl Difference {
    /// Fails if a change exceeds the tolerance or a row has no match.
    pub fn verdict(&self) -> Result<(), StackError> {
        match self.beyond.is_empty() {
            true => Ok(()),
            false => Err(StackError::run(self.beyond.join("; "))),
        }
    }

    /// Returns the text for a terminal: the largest changes, with each value in a unit for people.
    pub fn shown(&self, view: &View) -> String {
        let humane = |row: &Row| {
            let mut shown = row.clone();
            let Ok(metric) = Column::from_name(&row.text(Column::Metric)) else { return shown };
            shown.set(Column::Metric, people::head(metric));
            for column in [Column::A, Column::B] {
                shown.set_some(column, row.get(column).map(|value| people::humane(metric, value)));
            }
            let percent = row.number(Column::Change).map(|change| format!("{:+.2} %", 100.0 * change));
            shown.set_some(Column::Change, percent);
            shown
        };
        let most = if view.is_wide { usize::MAX } else { SHOWN_AT_MOST };
        let table = Table { rows: self.table.rows.iter().take(most).map(humane).collect() };
        let mut text = people::wrapped(&self.sentence, view.width);
        if !table.rows.is_empty() {
            text += &format!("\n{}", people::list(&table, &table.columns(), view));
        }
        let hidden = self.table.rows.len().saturating_sub(most);
        if hidden > 0 {
            text += &format!("{hidden} smaller changes with --wide\n");
        }
        text
    }
}
