//! What a study found, in one sentence with its number.

use super::file::{Compare, Deviation};
use super::select::{Select, known_columns};
use super::words::Words;
use crate::change;
use crate::grid::Settings;
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
                "[compare] axis {} is not in [grid], so all runs have the same; accepted: an option that has several values in [grid]",
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

    /// What the comparison found, or in a quick run that cannot tell, why it cannot.
    pub fn found(&self, table: &Table, words: Words<'_>, is_quick: bool) -> Result<String, StackError> {
        match self.full.as_ref().filter(|_| is_quick) {
            Some(full) => Ok(format!("A quick run does not tell how {} changes. {full}", self.what)),
            None => self.sentence(table, words),
        }
    }

    /// The candidate against the baseline, over every pair of rows that differ in the axis alone.
    pub fn sentence(&self, table: &Table, words: Words<'_>) -> Result<String, StackError> {
        known_columns(table, [self.axis, self.column])?;
        let rows = Select { part: self.part.as_deref(), only: &BTreeMap::new() }.of(table)?;
        let [old, new] =
            [&self.baseline, &self.candidate].map(|value| BTreeMap::from([(self.axis, value.clone())]));
        let pairs = pairs(&rows, &old, &new)?;
        let by = |old: &Row, new: &Row| Some(new.number(self.column)? / old.number(self.column)? - 1.0);
        // The part is named once, at the beginning of the sentence.
        let compared: &[Column] = match self.part {
            Some(_) => &[self.axis, Column::Part],
            None => &[self.axis],
        };
        let changes =
            pairs.into_iter().map(|(old, new)| Some((by(old, new)?, describe(table, old, compared, words))));
        let (low, high) = extremes(changes.collect::<Option<_>>().ok_or_else(|| not_a_number(self.column))?);
        let what = &self.what;
        let moved = change::moved((low.0, &low.1), (high.0, &high.1));
        // Other parts may show the opposite.
        let with = match &self.part {
            Some(part) => format!("In the part {}, with", words.name(part)),
            None => "With".to_owned(),
        };
        let [candidate, baseline] = [&self.candidate, &self.baseline].map(|name| words.name(name));
        Ok(format!("{with} {candidate} instead of {baseline}, {what} {moved}."))
    }
}

/// How far figures have moved, in words: "falls by 6.1 % to 24.1 %".
pub(super) fn moved(changes: impl Iterator<Item = f64>) -> String {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    changes.for_each(|change| (low, high) = (low.min(change), high.max(change)));
    if low > high { "is unknown".to_owned() } else { change::moved((low, ""), (high, "")) }
}

impl Deviation {
    /// How far the column is from what it should be, where it is farthest.
    pub fn sentence(&self, table: &Table, words: Words<'_>) -> Result<String, StackError> {
        known_columns(table, [self.column, self.expected])?;
        let with_both = table.rows.iter().filter_map(|row| {
            Some((
                row.number(self.column)? / row.number(self.expected)? - 1.0,
                describe(table, row, &[], words),
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

/// Rows with the values of `baseline`, each with the row that has those of `candidate` and the same values in all other
/// axes. A row without a value in a column, such as `layer`, counts as `none`.
pub(super) fn pairs<'a>(
    rows: &[&'a Row],
    baseline: &BTreeMap<Column, String>,
    candidate: &BTreeMap<Column, String>,
) -> Result<Vec<(&'a Row, &'a Row)>, StackError> {
    let with = |side: &BTreeMap<Column, String>| {
        let has = |row: &Row, column: Column, value: &str| {
            row.get(column).map_or(value == ABSENT, |cell| cell.exact() == value)
        };
        let is = |row: &&&Row| side.iter().all(|(column, value)| has(row, *column, value));
        rows.iter().filter(is).copied().collect::<Vec<&Row>>()
    };
    let (old, mut new) = (with(baseline), with(candidate));
    let rows_of_new = new.len();
    // Columns that only one of the rows has are passed over: a layer, for one, changes who collects garbage.
    let same = |old: &Row, new: &Row| {
        let others = Column::all().filter(|column| column.is_axis() && !baseline.contains_key(column));
        others
            .filter(|column| old.get(*column).is_some() && !follows(old, new, *column))
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
            "the {} rows with {} and the {rows_of_new} rows with {} are not pairs that differ in nothing else, so they cannot be \
             compared; accepted: values as the table shows them",
            old.len(),
            written(baseline, None),
            written(candidate, Some(Words::NONE)),
        )));
    }
    Ok(pairs)
}

/// Whether the column holds what follows from another one in both rows: an engine's frames, from its memory and page.
fn follows(old: &Row, new: &Row, column: Column) -> bool {
    column == Column::Frames && [old, new].iter().all(|row| row.get(Column::MemoryBytes).is_some())
}

/// The values of one side of a comparison, with the names of their columns or in words.
pub(super) fn written(side: &BTreeMap<Column, String>, words: Option<Words<'_>>) -> String {
    let value = |(column, value): (&Column, &String)| match words {
        None => format!("{column} {value}"),
        Some(words) => words.named(*column, value),
    };
    side.iter().map(value).collect::<Vec<_>>().join(", ")
}

/// The least and the greatest, with their places.
fn extremes(mut changes: Vec<(f64, String)>) -> ((f64, String), (f64, String)) {
    changes.sort_by(|a, b| a.0.total_cmp(&b.0));
    (changes[0].clone(), changes[changes.len() - 1].clone())
}

pub(super) fn not_a_number(column: Column) -> StackError {
    StackError::request(format!("column {column} does not hold numbers in every row that is compared"))
}

/// Names a row by its part, if there are several, and by as few of the axes that vary in it as tell it from the same
/// rows as all of them do. The columns of `compared` are left out.
pub(super) fn describe(table: &Table, row: &Row, compared: &[Column], words: Words<'_>) -> String {
    // Rows of other parts differ in much that says nothing here.
    let in_part: Vec<&Row> =
        table.rows.iter().filter(|other| other.get(Column::Part) == row.get(Column::Part)).collect();
    let varies = |axis: &Column| in_part.iter().any(|other| other.get(*axis) != row.get(*axis));
    // An engine's frames say less than the size of pages that they follow from.
    let follows = |axis: &Column| follows(row, row, *axis) && varies(&Column::PageBytes);
    let axes: Vec<Column> = Column::all()
        .filter(|axis| axis.is_axis() && !compared.contains(axis))
        .filter(|axis| row.get(*axis).is_some() && varies(axis) && !follows(axis))
        .collect();
    let alike = |axes: &[Column]| {
        in_part.iter().filter(|other| axes.iter().all(|axis| other.get(*axis) == row.get(*axis))).count()
    };
    let enough = (0..axes.len()).find(|count| alike(&axes[..*count]) == alike(&axes)).unwrap_or(axes.len());
    let is_one_of_parts = in_part.len() < table.rows.len() && !compared.contains(&Column::Part);
    let part = is_one_of_parts.then_some(Column::Part);
    let named = |axis: Column| match row.get(axis) {
        Some(Value::Text(name)) => words.name(name).to_owned(),
        Some(value) => words.counted(axis, value),
        None => String::new(),
    };
    part.into_iter().chain(axes[..enough].iter().copied()).map(named).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(page_bytes: u32, frames: u32, memory_bytes: Option<u32>) -> Row {
        let mut row = Row::default();
        row.set(Column::PageBytes, page_bytes);
        row.set(Column::Frames, frames);
        row.set_some(Column::MemoryBytes, memory_bytes);
        row
    }

    /// The rule: a row of an engine is named by the size of its pages, not by the frames that follow from it.
    #[test]
    fn a_row_is_named_by_what_was_asked_for() {
        let named = |rows: &[Row]| {
            let table = Table { rows: rows.to_vec() };
            describe(&table, &rows[0], &[], Words::NONE)
        };
        assert_eq!(
            named(&[row(4096, 400, Some(1 << 20)), row(16_384, 100, Some(1 << 20))]),
            "pages of 4 KiB"
        );
        assert_eq!(named(&[row(4096, 400, None), row(4096, 100, None)]), "400 frames");
    }

    /// The rule: frames that follow from an engine's memory do not set rows apart; frames that were asked for do.
    #[test]
    fn what_follows_from_another_column_sets_no_rows_apart() {
        let compared = |rows: [Row; 2]| {
            let [old, new] =
                ["4096", "16384"].map(|page| BTreeMap::from([(Column::PageBytes, page.to_owned())]));
            pairs(&rows.each_ref(), &old, &new).map(|pairs| pairs.len()).ok()
        };
        assert_eq!(compared([row(4096, 400, Some(1 << 20)), row(16_384, 100, Some(1 << 20))]), Some(1));
        assert_eq!(compared([row(4096, 400, None), row(16_384, 100, None)]), None);
        assert_eq!(compared([row(4096, 400, Some(1 << 20)), row(16_384, 100, Some(1 << 21))]), None);
    }
}
