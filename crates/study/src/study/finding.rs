//! What a study found, in one sentence with its number.

use super::file::{Compare, Deviation};
use super::{Select, known_columns};
use crate::error::StudyError;
use crate::grid::Settings;
use crate::table::{AXES, Row, Table, Value};
use fulgurite_base::SpecError;
use std::collections::BTreeMap;

impl Compare {
    /// Whether the grid has what is to be compared.
    pub fn check(&self, settings: &Settings) -> Result<(), StudyError> {
        let values = settings.get(&self.axis).ok_or_else(|| {
            StudyError::request(format!(
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

    /// Rows of the baseline, each with the candidate's that differs in nothing else.
    pub fn pairs<'a>(
        rows: &[&'a Row],
        axis: &str,
        baseline: &str,
        candidate: &str,
    ) -> Result<Vec<(&'a Row, &'a Row)>, StudyError> {
        let with = |value: &str| {
            let is = |row: &&&Row| row.get(axis).is_some_and(|cell| cell.exact() == value);
            rows.iter().filter(is).copied().collect::<Vec<&Row>>()
        };
        let (old, new) = (with(baseline), with(candidate));
        if old.is_empty() || old.len() != new.len() {
            return Err(StudyError::request(format!(
                "there are {} rows with {axis} {baseline} and {} with {candidate}, so they cannot be compared; \
                 accepted: values as the table shows them",
                old.len(),
                new.len(),
            )));
        }
        Ok(old.into_iter().zip(new).collect())
    }

    /// The candidate against the baseline, over every pair of rows that differ in the axis alone.
    pub fn sentence(&self, table: &Table) -> Result<String, StudyError> {
        known_columns(table, [&self.axis, &self.column])?;
        let rows = Select { part: self.part.as_deref(), only: &BTreeMap::new() }.of(table)?;
        let pairs = Compare::pairs(&rows, &self.axis, &self.baseline, &self.candidate)?;
        let change = |old: &Row, new: &Row| Some(new.number(&self.column)? / old.number(&self.column)? - 1.0);
        let changes =
            pairs.into_iter().map(|(old, new)| Some((change(old, new)?, describe(table, old, &self.axis))));
        let (low, high) = extremes(changes.collect::<Option<_>>().ok_or_else(|| not_a_number(&self.column))?);
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

fn direction(change: f64) -> &'static str {
    if change < 0.0 { "falls" } else { "rises" }
}

impl Deviation {
    /// How far the column is from what it should be, where it is farthest.
    pub fn sentence(&self, table: &Table) -> Result<String, StudyError> {
        known_columns(table, [&self.column, &self.expected])?;
        let with_both = table.rows.iter().filter_map(|row| {
            Some((row.number(&self.column)? / row.number(&self.expected)? - 1.0, describe(table, row, "")))
        });
        let deviations: Vec<_> = with_both.collect();
        if deviations.is_empty() {
            return Err(not_a_number(&self.expected));
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

pub(super) fn not_a_number(column: &str) -> StudyError {
    StudyError::request(format!("column {column} does not hold numbers in every row that is compared"))
}

/// What sets a row apart: as few of the varying axes as tell the rows apart that all of them tell
/// apart, `compared` left out.
pub(super) fn describe(table: &Table, row: &Row, compared: &str) -> String {
    let varies = |axis: &&&str| table.rows.iter().any(|other| other.get(axis) != table.rows[0].get(axis));
    let axes: Vec<&str> = AXES.iter().filter(|axis| **axis != compared).filter(varies).copied().collect();
    let alike = |axes: &[&str]| {
        table.rows.iter().filter(|other| axes.iter().all(|axis| other.get(axis) == row.get(axis))).count()
    };
    let enough = (0..axes.len()).find(|count| alike(&axes[..*count]) == alike(&axes)).unwrap_or(axes.len());
    let named = |axis: &&str| match row.get(axis) {
        Some(Value::Text(name)) => name.clone(),
        _ => format!("{axis} {}", row.text(axis)),
    };
    axes[..enough].iter().map(named).collect::<Vec<_>>().join(", ")
}
