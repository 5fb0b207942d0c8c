//! What a study found, in one sentence with its number.

use super::file::{Compare, Deviation};
use super::words::Words;
use super::{Select, known_columns};
use crate::grid::Settings;
use crate::report::change as report_change;
use crate::table::Table;
use fulgurite_base::SpecError;
use fulgurite_stack::StackError;
use fulgurite_stack::{Column, Row, Value};
use std::collections::BTreeMap;

/// The value of an axis that a row does not have.
const ABSENT: &str = "none";

impl Compare {
    /// Whether the grid has what is to be compared.
    pub fn check(&self, settings: &Settings) -> Result<(), StackError> {
        let values = settings.get(self.axis.name()).ok_or_else(|| {
            StackError::request(format!(
                "[compare] axis {} is not in [grid], so nothing differs in it",
                self.axis
            ))
        })?;
        match [&self.baseline, &self.candidate].into_iter().find(|value| !values.contains(value)) {
            Some(value) => {
                let values: Vec<&str> = values.iter().map(String::as_str).collect();
                Err(SpecError::unknown(&format!("{} in [compare]", self.axis), value, &values).into())
            }
            None => Ok(()),
        }
    }

    /// Whether it is about the rows of this part.
    pub fn is_about(&self, part: &str) -> bool {
        self.part.as_ref().is_none_or(|about| about == part)
    }

    /// Rows of the baseline, each with the row of the candidate that has the same values in all other axes. A row
    /// without a value in the axis, such as `layer`, counts as `none`.
    pub fn pairs<'a>(
        rows: &[&'a Row],
        axis: Column,
        baseline: &str,
        candidate: &str,
    ) -> Result<Vec<(&'a Row, &'a Row)>, StackError> {
        let with = |value: &str| {
            let is = |row: &&&Row| row.get(axis).map_or(value == ABSENT, |cell| cell.exact() == value);
            rows.iter().filter(is).copied().collect::<Vec<&Row>>()
        };
        let (old, mut new) = (with(baseline), with(candidate));
        // Columns that only one of the rows has are passed over: a layer, for one, changes who collects garbage.
        let same = |old: &Row, new: &Row| {
            let others = Column::all().filter(|column| column.is_axis() && *column != axis);
            others
                .filter(|column| old.get(*column).is_some())
                .all(|column| new.get(column).is_none_or(|value| Some(value) == old.get(column)))
        };
        let mut pairs = Vec::new();
        for old in &old {
            // Of several the first: rows keep the order of the grid.
            // A row without a partner is enough to refuse the comparison.
            let Some(at) = new.iter().position(|new| same(old, new)) else { break };
            // Each candidate is used once, so that repeated rows pair up in order.
            pairs.push((*old, new.remove(at)));
        }
        if old.is_empty() || pairs.len() < old.len() || !new.is_empty() {
            return Err(StackError::request(format!(
                "{} rows have {axis} {baseline}, and not each of them has one with {candidate} that differs in nothing else, so they cannot be compared; \
                 accepted: values as the table shows them",
                old.len(),
            )));
        }
        Ok(pairs)
    }

    /// The candidate against the baseline, over every pair of rows that differ in the axis alone.
    pub fn sentence(&self, table: &Table) -> Result<String, StackError> {
        known_columns(table, [self.axis, self.column])?;
        let rows = Select { part: self.part.as_deref(), only: &BTreeMap::new() }.of(table)?;
        let pairs = Compare::pairs(&rows, self.axis, &self.baseline, &self.candidate)?;
        let change = |old: &Row, new: &Row| Some(new.number(self.column)? / old.number(self.column)? - 1.0);
        let changes = pairs
            .into_iter()
            .map(|(old, new)| Some((change(old, new)?, describe(table, old, Some(self.axis), Words::NONE))));
        let (low, high) = extremes(changes.collect::<Option<_>>().ok_or_else(|| not_a_number(self.column))?);
        let Compare { baseline, candidate, what, .. } = self;
        let size = |change: f64| format!("{:.1} %", change.abs() * 100.0);
        let at = |(change, place): &(f64, String)| format!("{} ({place})", size(*change));
        let moved = if low.0 == high.0 {
            format!("{} by {}", direction(low.0), size(low.0))
        } else if high.0 <= 0.0 || low.0 >= 0.0 {
            let (least, most) = if high.0 <= 0.0 { (&high, &low) } else { (&low, &high) };
            format!("{} by {} to {}", direction(most.0), at(least), at(most))
        } else {
            format!("falls by up to {} and rises by up to {}", at(&low), at(&high))
        };
        Ok(format!("With {candidate} instead of {baseline}, {what} {moved}."))
    }
}

/// How far figures have moved, in words: "falls by 6.1 % to 24.1 %".
pub(super) fn moved(changes: impl Iterator<Item = f64>) -> String {
    // What would be written as no change is none.
    let rounded = |change: f64| if change.abs() < 0.0005 { 0.0 } else { change };
    let mut changes: Vec<f64> = changes.map(rounded).collect();
    changes.sort_by(f64::total_cmp);
    let (Some(low), Some(high)) = (changes.first(), changes.last()) else { return "is unknown".to_owned() };
    let size = |change: f64| report_change(change.abs()).replace('+', "");
    let [least, most] = if *high <= 0.0 { [*high, *low] } else { [*low, *high] };
    match (size(least), size(most)) {
        (least, most) if *low < 0.0 && *high > 0.0 => {
            format!("falls by up to {least} and rises by up to {most}")
        }
        (least, most) if least == "0.0 %" => format!("{} by up to {most}", direction(*low + *high)),
        (least, most) if least == most => format!("{} by {least}", direction(*low + *high)),
        (least, most) => format!("{} by {least} to {most}", direction(*low + *high)),
    }
}

fn direction(change: f64) -> &'static str {
    if change < 0.0 { "falls" } else { "rises" }
}

impl Deviation {
    /// How far the column is from what it should be, where it is farthest.
    pub fn sentence(&self, table: &Table) -> Result<String, StackError> {
        known_columns(table, [self.column, self.expected])?;
        let with_both = table.rows.iter().filter_map(|row| {
            Some((
                row.number(self.column)? / row.number(self.expected)? - 1.0,
                describe(table, row, None, Words::NONE),
            ))
        });
        let deviations: Vec<_> = with_both.collect();
        if deviations.is_empty() {
            return Err(not_a_number(self.expected));
        }
        let count = deviations.len();
        let (low, high) = extremes(deviations);
        let (worst, place) = if -low.0 > high.0 { low } else { high };
        Ok(format!(
            "{} is within {:.2} % of {} in all {count} runs; farthest at {place}.",
            self.what,
            worst.abs() * 100.0,
            self.from
        ))
    }
}

/// The least and the greatest, with their places.
fn extremes(mut changes: Vec<(f64, String)>) -> ((f64, String), (f64, String)) {
    changes.sort_by(|a, b| a.0.total_cmp(&b.0));
    (changes[0].clone(), changes[changes.len() - 1].clone())
}

pub(super) fn not_a_number(column: Column) -> StackError {
    StackError::request(format!("column {column} does not hold numbers in every row that is compared"))
}

/// Names a row by as few of the varying axes as tell it from the same rows as all of them do. `compared` is
/// left out.
pub(super) fn describe(table: &Table, row: &Row, compared: Option<Column>, words: Words<'_>) -> String {
    let axes: Vec<Column> = table.varying_axes().filter(|axis| Some(*axis) != compared).collect();
    let alike = |axes: &[Column]| {
        table.rows.iter().filter(|other| axes.iter().all(|axis| other.get(*axis) == row.get(*axis))).count()
    };
    let enough = (0..axes.len()).find(|count| alike(&axes[..*count]) == alike(&axes)).unwrap_or(axes.len());
    let named = |axis: &Column| match row.get(*axis) {
        Some(Value::Text(name)) => words.name(name).to_owned(),
        _ => format!("{axis} {}", row.text(*axis)),
    };
    axes[..enough].iter().filter(|axis| row.get(**axis).is_some()).map(named).collect::<Vec<_>>().join(", ")
}
