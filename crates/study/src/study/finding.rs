//! Writes the finding of a study, one sentence with its figures, from its result rows.

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

/// The text that stands for the value of a row without a value in an axis.
const ABSENT: &str = "none";

impl Compare {
    /// Checks that the grid contains the baseline and the candidate.
    pub(super) fn check(&self, settings: &Settings) -> Result<(), StackError> {
        let values = settings.get(self.axis.name()).ok_or_else(|| {
            StackError::request(format!(
                "[compare] axis {} is not in [grid], so all runs have the same value; accepted: an option \
                 that has several values in [grid]",
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

    /// Whether the comparison concerns the rows of this part.
    pub(super) fn is_about(&self, part: &str) -> bool {
        self.part.as_ref().is_none_or(|about| about == part)
    }

    /// Returns the finding of the comparison. If a quick run cannot tell how the column changes, the sentence
    /// says why.
    pub(super) fn found(
        &self,
        table: &Table,
        words: Words<'_>,
        is_quick: bool,
    ) -> Result<String, StackError> {
        match self.full.as_ref().filter(|_| is_quick) {
            Some(full) => Ok(format!("A quick run does not tell how {} changes. {full}", self.what)),
            None => self.sentence(table, words),
        }
    }

    /// Compares the candidate with the baseline, for all pairs of rows that differ only in the axis.
    pub(super) fn sentence(&self, table: &Table, words: Words<'_>) -> Result<String, StackError> {
        known_columns(table, [self.axis, self.column])?;
        let rows = Select { part: self.part.as_deref(), only: &BTreeMap::new() }.of(table)?;
        let [old, new] =
            [&self.baseline, &self.candidate].map(|value| BTreeMap::from([(self.axis, value.clone())]));
        let pairs = pairs(&rows, &old, &new)?;
        let by = |old: &Row, new: &Row| Some(new.number(self.column)? / old.number(self.column)? - 1.0);
        // Leaves the part out of the names of the rows, because the sentence begins with it.
        let compared: &[Column] = match self.part {
            Some(_) => &[self.axis, Column::Part],
            None => &[self.axis],
        };
        let changes =
            pairs.into_iter().map(|(old, new)| Some((by(old, new)?, describe(table, old, compared, words))));
        let (low, high) = extremes(changes.collect::<Option<_>>().ok_or_else(|| not_a_number(self.column))?);
        let what = &self.what;
        let moved = change::moved((low.0, &low.1), (high.0, &high.1));
        // Names the part in the sentence, because other parts may show the opposite.
        let with = match &self.part {
            Some(part) => format!("In the part {}, with", words.name(part)),
            None => "With".to_owned(),
        };
        let [candidate, baseline] = [&self.candidate, &self.baseline].map(|name| words.name(name));
        Ok(format!("{with} {candidate} instead of {baseline}, {what} {moved}."))
    }
}

/// Describes the range of some changes in words: "falls by 6.1 % to 24.1 %".
pub(super) fn moved(changes: impl Iterator<Item = f64>) -> String {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    changes.for_each(|change| (low, high) = (low.min(change), high.max(change)));
    if low > high { "is unknown".to_owned() } else { change::moved((low, ""), (high, "")) }
}

impl Deviation {
    /// Describes the largest relative deviation from the expected value, with the row in which it occurs.
    pub(super) fn sentence(&self, table: &Table, words: Words<'_>) -> Result<String, StackError> {
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

/// Pairs each row of `baseline` with the row of `candidate` that has equal values in all other axes. A row
/// without a value in a column, such as `layer`, has the value `none`.
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
    // A column in which only one of the two rows has a value is ignored. For example, a layer changes which
    // component collects garbage, and with it the policies that a row names.
    let same = |old: &Row, new: &Row| {
        let others = Column::all().filter(|column| column.is_axis() && !baseline.contains_key(column));
        others
            .filter(|column| old.get(*column).is_some() && !follows(old, new, *column))
            .all(|column| new.get(column).is_none_or(|value| Some(value) == old.get(column)))
    };
    let mut pairs = Vec::new();
    for old in &old {
        // Takes the first match, because rows are in the order of the grid. The loop ends at the first row
        // without a match, because that is enough to refuse the comparison.
        let Some(at) = new.iter().position(|new| same(old, new)) else { break };
        // Removes the candidate, so that each is used once and repeated rows are paired in order.
        pairs.push((*old, new.remove(at)));
    }
    if old.is_empty() || pairs.len() < old.len() || !new.is_empty() {
        return Err(StackError::request(format!(
            "the {} rows with {} and the {rows_of_new} rows with {} are not pairs that differ in nothing \
             else, so they cannot be \
             compared; accepted: values as the table shows them",
            old.len(),
            written(baseline, None),
            written(candidate, Some(Words::NONE)),
        )));
    }
    Ok(pairs)
}

/// Whether the value in `column` follows from other settings in both rows. An engine's number of frames
/// follows from its memory and its page size.
fn follows(old: &Row, new: &Row, column: Column) -> bool {
    column == Column::Frames && [old, new].iter().all(|row| row.get(Column::MemoryBytes).is_some())
}

/// Writes the values of one side of a comparison, with column names or with the labels of the study.
pub(super) fn written(side: &BTreeMap<Column, String>, words: Option<Words<'_>>) -> String {
    let value = |(column, value): (&Column, &String)| match words {
        None => format!("{column} {value}"),
        Some(words) => words.named(*column, value),
    };
    side.iter().map(value).collect::<Vec<_>>().join(", ")
}

/// Returns the smallest and the largest change, with the names of their rows.
fn extremes(mut changes: Vec<(f64, String)>) -> ((f64, String), (f64, String)) {
    changes.sort_by(|a, b| a.0.total_cmp(&b.0));
    (changes[0].clone(), changes[changes.len() - 1].clone())
}

pub(super) fn not_a_number(column: Column) -> StackError {
    StackError::request(format!("column {column} does not hold numbers in every row that is compared"))
}

/// Names a row by its part, if there are several, and by as few axes as possible. The columns of `compared`
/// are not used. Axes are added in order until the row is as well identified as by all of them.
pub(super) fn describe(table: &Table, row: &Row, compared: &[Column], words: Words<'_>) -> String {
    // Considers only rows of the same part, because other parts differ in further columns.
    let in_part: Vec<&Row> =
        table.rows.iter().filter(|other| other.get(Column::Part) == row.get(Column::Part)).collect();
    let varies = |axis: &Column| in_part.iter().any(|other| other.get(*axis) != row.get(*axis));
    // An engine's number of frames follows from its page size, which says more and is used instead.
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

    /// The rule: a row of an engine is named by its page size, because its number of frames follows from the
    /// page size. A row without an engine is named by its number of frames.
    #[test]
    fn a_row_is_named_by_its_settings() {
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

    /// The rule: rows with different numbers of frames may be paired if these numbers follow from an engine's
    /// memory. Rows with different settings of `frames` or of the memory may not.
    #[test]
    fn derived_columns_do_not_separate_rows() {
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
