//! Tests the checks of a study by fault injection into its rows. A check proves something only if it fails
//! when the program is wrong.
//!
//! An injected fault changes the rows as an error of the program would, and the check is then repeated. A run
//! depends only on its description. So if one policy worked like another by mistake, its rows would be those
//! of the other policy. Exchanging the labels of rows injects exactly this fault. The faults are injected in
//! the following order, and the report names the first that the check detects.
//!
//! - *No effect*: the rows of the candidate are those of the baseline.
//! - *Swapped sides*: the gain becomes an equal loss.
//! - *Reversed*: a column that falls along an axis rises instead.
//! - *Mixed up*: the figures of the candidate, of the baseline or of both are those of rows with another
//!   value in one axis, such as another policy, drive, number of users or part of the study.
//! - *A factor*: the figures are ten times as large, or a tenth. This fault is injected only if the check
//!   compares nothing. A bound that allows both says nothing about the figures.
//!
//! A check that fails, or that has no figures in a quick run, first gets figures under which it holds
//! (`mend.rs`). A check that no figures satisfy proves nothing. A check that no injected fault makes fail
//! proves nothing either.

use super::file::Check;
use super::select::Select;
use super::words::Words;
use crate::table::Table;
use fulgurite_stack::{Column, Row, StackError, Value};
use std::collections::BTreeMap;

/// The labels of one side of a comparison: its columns with their values.
type Labels = BTreeMap<Column, String>;

impl Check {
    /// Returns the first injected fault that the check detects, in words. If there is none, the check proves
    /// nothing, and the result is `None`.
    pub(super) fn noticed(&self, table: &Table, words: Words<'_>) -> Result<Option<String>, StackError> {
        if self.holds(table, words).is_ok_and(|holds| holds) {
            return self.noticed_in(table, words);
        }
        let mended = self.mended(table)?;
        if !self.holds(&mended, words)? {
            return Ok(None);
        }
        Ok(self.noticed_in(&mended, words)?.map(|fault| format!("{fault} (in figures that hold)")))
    }

    /// Returns the first fault that the check detects, injected into rows in which the check holds.
    fn noticed_in(&self, table: &Table, words: Words<'_>) -> Result<Option<String>, StackError> {
        if let Some(fault) = self.first_noticed(self.faults(table, words)?, words) {
            return Ok(Some(fault));
        }
        match self.mixed_up(table, words)? {
            None if self.compare.is_none() => Ok(self.first_noticed(self.by_a_factor(table), words)),
            noticed => Ok(noticed),
        }
    }

    /// Returns the first of `faults` that makes the check fail. A fault that leaves nothing to compare is
    /// skipped, because no error of a policy would remove all rows.
    fn first_noticed(&self, faults: Vec<(String, Vec<Row>)>, words: Words<'_>) -> Option<String> {
        let is_noticed = |rows| self.holds(&Table { rows }, words).is_ok_and(|holds| !holds);
        faults.into_iter().find_map(|(fault, rows)| is_noticed(rows).then_some(fault))
    }

    /// Returns the rows with each of the first three faults, with the fault in words.
    fn faults(&self, table: &Table, words: Words<'_>) -> Result<Vec<(String, Vec<Row>)>, StackError> {
        if let Some(axis) = self.falls_with {
            return Ok(vec![(format!("{} reversed", words.column(axis)), reversed(table, axis))]);
        }
        let Some(compare) = &self.compare else { return Ok(Vec::new()) };
        let [old, new] = compare.sides()?;
        Ok(vec![
            ("no difference between the two sides".to_owned(), idle(table, &old, &new)),
            ("both sides exchanged".to_owned(), swapped(table, &old, &new)),
        ])
    }

    /// Injects the fourth fault: the figures of one side or of both come from rows with another value in one
    /// column. Returns the first such fault that the check detects.
    fn mixed_up(&self, table: &Table, words: Words<'_>) -> Result<Option<String>, StackError> {
        let sides = match &self.compare {
            Some(compare) => {
                let [old, new] = compare.sides()?;
                vec![vec![new.clone()], vec![old.clone()], vec![old, new]]
            }
            None => vec![vec![Labels::new()]],
        };
        for sides in &sides {
            let judged = self.judged(table, sides)?;
            // Tries the columns of the comparison before the others.
            let compared = |column: &Column| sides.iter().any(|side| side.contains_key(column));
            let others = Column::all().filter(|column| column.is_axis() && !compared(column));
            for axis in Column::all().filter(compared).chain(others) {
                for wrong in values(table, axis) {
                    let Some((right, rows)) = self.with_figures_of_others(table, &judged, axis, wrong) else {
                        continue;
                    };
                    if self.holds(&Table { rows }, words).is_ok_and(|holds| !holds) {
                        return Ok(Some(in_place_of(axis, wrong, &right, words)));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Returns the rows with the fifth fault: figures that are ten times as large, or a tenth.
    fn by_a_factor(&self, table: &Table) -> Vec<(String, Vec<Row>)> {
        let scaled = |factor: f64| {
            let mut rows = table.rows.clone();
            for row in &mut rows {
                row.set_some(self.column, row.number(self.column).map(|figure| figure * factor));
            }
            rows
        };
        vec![
            ("figures ten times as large".to_owned(), scaled(10.0)),
            ("figures of a tenth".to_owned(), scaled(0.1)),
        ]
    }

    /// Copies the table, and gives the rows with the numbers `judged` the figures of rows that have the value
    /// `wrong` in `axis` and equal values in the other axes. Returns the value of one judged row in `axis`,
    /// and the copy. Returns `None` if there is no such row.
    fn with_figures_of_others(
        &self,
        table: &Table,
        judged: &[usize],
        axis: Column,
        wrong: &Value,
    ) -> Option<(String, Vec<Row>)> {
        let mut rows = table.rows.clone();
        let mut right = None;
        let mut others: Vec<&Row> = table.rows.iter().filter(|row| row.get(axis) == Some(wrong)).collect();
        others.retain(|row| row.get(self.column).is_some());
        for at in judged {
            let judged = &table.rows[*at];
            if judged.get(axis) == Some(wrong) {
                continue;
            }
            let Some(other) = others.iter().find(|row| is_same_but(row, judged, axis)) else { continue };
            right = Some(exact(judged, axis));
            rows[*at].set_some(self.column, other.get(self.column).cloned());
        }
        Some((right?, rows))
    }

    /// Returns the numbers of the rows that the check selects and that belong to one of `sides`.
    fn judged(&self, table: &Table, sides: &[Labels]) -> Result<Vec<usize>, StackError> {
        let chosen = Select { part: self.part.as_deref(), only: &self.only }.of(table)?;
        let is_chosen = |row: &Row| chosen.iter().any(|chosen| std::ptr::eq(*chosen, row));
        let is_on = |row: &Row| sides.iter().any(|side| has(row, side));
        let places = table.rows.iter().enumerate().filter(|(_, row)| is_on(row) && is_chosen(row));
        Ok(places.map(|(at, _)| at).collect())
    }
}

fn exact(row: &Row, column: Column) -> String {
    row.get(column).map_or_else(|| "none".to_owned(), Value::exact)
}

fn has(row: &Row, labels: &Labels) -> bool {
    labels.iter().all(|(column, value)| exact(row, *column) == *value)
}

/// Whether two rows have equal values in every axis but `axis`. An axis in which one of the rows has no value
/// is ignored, because it follows from `axis`, as the channels of a drive follow from the drive. The name of
/// the part is ignored too.
fn is_same_but(row: &Row, other: &Row, axis: Column) -> bool {
    let agrees = |column: Column| match (row.get(column), other.get(column)) {
        (Some(own), Some(other)) => own == other,
        _ => true,
    };
    Column::all().filter(|column| column.is_axis() && *column != axis && *column != Column::Part).all(agrees)
}

/// Copies the values of the columns of `labels` from the row `like` to `row`. The labels are texts, and
/// `like` has their values with the right types.
fn relabel(row: &mut Row, labels: &Labels, like: &Row) {
    for column in labels.keys() {
        row.set_some(*column, like.get(*column).cloned());
    }
}

/// Replaces the rows of the candidate by those of the baseline, with the labels of the candidate.
fn idle(table: &Table, old: &Labels, new: &Labels) -> Vec<Row> {
    let Some(like) = table.rows.iter().find(|row| has(row, new)) else { return Vec::new() };
    let others = table.rows.iter().filter(|row| !has(row, new)).cloned();
    let copies = table.rows.iter().filter(|row| has(row, old)).map(|row| {
        let mut copy = row.clone();
        relabel(&mut copy, new, like);
        copy
    });
    others.chain(copies).collect()
}

/// Swaps the labels of the baseline and the candidate.
fn swapped(table: &Table, old: &Labels, new: &Labels) -> Vec<Row> {
    let like = |side: &Labels| table.rows.iter().find(|row| has(row, side));
    let (Some(like_old), Some(like_new)) = (like(old), like(new)) else { return Vec::new() };
    let swap = |row: &Row| {
        let mut swapped = row.clone();
        match (has(row, old), has(row, new)) {
            (true, _) => relabel(&mut swapped, new, like_new),
            (_, true) => relabel(&mut swapped, old, like_old),
            _ => {}
        }
        swapped
    };
    table.rows.iter().map(swap).collect()
}

/// Returns the distinct values of a column.
fn values(table: &Table, column: Column) -> Vec<&Value> {
    let mut values: Vec<&Value> = Vec::new();
    for value in table.rows.iter().filter_map(|row| row.get(column)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// Describes a value that replaces another one. A name is preceded by the label of its column.
fn in_place_of(axis: Column, wrong: &Value, right: &str, words: Words<'_>) -> String {
    let kind = match wrong {
        Value::Text(_) => words.column(axis) + " ",
        _ => String::new(),
    };
    format!("{kind}{} in place of {}", words.named(axis, &wrong.exact()), words.named(axis, right))
}

/// Reverses the order of the values of `axis`, so that the smallest value becomes the largest.
fn reversed(table: &Table, axis: Column) -> Vec<Row> {
    let mut values = values(table, axis);
    values.sort_by(|a, b| a.as_f64().unwrap_or_default().total_cmp(&b.as_f64().unwrap_or_default()));
    let turn = |row: &Row| {
        let mut turned = row.clone();
        let at = row.get(axis).and_then(|value| values.iter().position(|known| *known == value));
        turned.set_some(axis, at.map(|at| values[values.len() - 1 - at].clone()));
        turned
    };
    table.rows.iter().map(turn).collect()
}

#[cfg(test)]
mod tests {
    use super::super::file::File;
    use super::*;

    /// Creates rows with two policies, two workloads and two numbers of users.
    fn table() -> Table {
        let row = |workload: &str, policy: &str, users: u64, elapsed: u64| {
            let mut row = Row::default();
            row.set(Column::Workload, workload);
            row.set(Column::WriteBack, policy);
            row.set(Column::Users, users);
            row.set(Column::ElapsedNs, elapsed);
            row
        };
        Table {
            rows: vec![
                row("a", "single", 1, 100),
                row("a", "ace", 1, 80),
                row("b", "single", 1, 200),
                row("b", "ace", 1, 150),
                row("a", "single", 8, 50),
                row("a", "ace", 8, 49),
            ],
        }
    }

    /// Returns the fault that a check with these lines of TOML detects.
    fn noticed(lines: &str) -> Option<String> {
        noticed_in(&table(), lines)
    }

    fn noticed_in(table: &Table, lines: &str) -> Option<String> {
        let source = format!(
            "title = \"t\"\nquestion = \"q\"\ncommand = \"pool\"\n[grid]\n[[checks]]\nsays = \"s\"\ncolumn \
             = \"elapsed_ns\"\n{lines}"
        );
        let names = BTreeMap::new();
        File::parse("test", &source).unwrap().checks[0].noticed(table, Words(&names)).unwrap()
    }

    const COMPARE: &str = "compare = { axis = \"write_back\", baseline = \"single\", candidate = \"ace\" \
         }\nwhere = { users = \"1\" }\n";

    #[test]
    fn a_missing_gain_is_detected() {
        let found = noticed(&format!("{COMPARE}at_most = 0.85"));
        assert_eq!(found.as_deref(), Some("no difference between the two sides"));
    }

    #[test]
    fn an_inclusive_bound_of_one_detects_a_loss_and_an_exclusive_one_a_missing_gain() {
        let found = |bound: &str| noticed(&format!("{COMPARE}{bound}"));
        assert_eq!(found("at_most = 1.0").as_deref(), Some("both sides exchanged"));
        assert_eq!(found("below = 1.0").as_deref(), Some("no difference between the two sides"));
        // All figures are above zero, so a lower bound of zero detects no fault.
        assert_eq!(found("at_least = 0.0"), None);
    }

    #[test]
    fn a_tolerance_detects_rows_with_another_value() {
        let eight = COMPARE.replace("\"1\"", "\"8\"");
        let found = noticed(&format!("{eight}at_least = 0.95\nat_most = 1.05"));
        assert_eq!(found.as_deref(), Some("1 user in place of 8 users"));
    }

    #[test]
    fn a_reversed_fall_and_figures_of_other_rows_are_detected() {
        let falls =
            noticed("falls_with = \"users\"\nfor_each = \"write_back\"\nwhere = { workload = \"a\" }");
        assert_eq!(falls.as_deref(), Some("users reversed"));
        let plain = noticed("at_most = 50\nwhere = { users = \"8\", workload = \"a\" }");
        assert_eq!(plain.as_deref(), Some("1 user in place of 8 users"));
    }

    /// The rule: a bound that no row violates is close enough if figures ten times as large, or a tenth,
    /// violate it. The figures are 49 to 200 ns, so 2,000 exceeds the bound 1,000 but not 3,000, and 4.9 is
    /// below the bound 20 but not below 4.
    #[test]
    fn a_bound_that_no_other_row_violates_detects_a_factor_if_it_is_close() {
        assert_eq!(noticed("at_most = 1_000").as_deref(), Some("figures ten times as large"));
        assert_eq!(noticed("at_least = 20").as_deref(), Some("figures of a tenth"));
        assert_eq!(noticed("at_most = 3_000"), None);
        assert_eq!(noticed("at_least = 4"), None);
    }

    /// The rule: a check that already fails must also detect a fault. The fault is injected into figures for
    /// which the check holds.
    #[test]
    fn a_failing_check_must_detect_a_fault_in_figures_that_satisfy_it() {
        let found = noticed(&format!("{COMPARE}at_most = 0.5"));
        assert_eq!(found.as_deref(), Some("no difference between the two sides (in figures that hold)"));
        let found = noticed(&format!("{COMPARE}at_least = 1.0"));
        assert_eq!(found.as_deref(), Some("both sides exchanged (in figures that hold)"));
        let mut rising = table();
        for row in &mut rising.rows {
            row.set(Column::ElapsedNs, 10 * row.number(Column::Users).unwrap() as u64);
        }
        let falls = "falls_with = \"users\"\nfor_each = \"write_back\"\nwhere = { workload = \"a\" }";
        assert_eq!(noticed_in(&rising, falls).as_deref(), Some("users reversed (in figures that hold)"));
    }

    #[test]
    fn an_unsatisfiable_check_proves_nothing() {
        assert_eq!(noticed("at_least = 300\nat_most = 200"), None);
    }
}
