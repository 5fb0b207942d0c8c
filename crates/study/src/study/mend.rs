//! Builds rows in which a failing check holds. A check that already fails cannot show which injected faults
//! it would detect. So the column that it checks gets figures that satisfy the check, and the faults are
//! injected into these rows. All other columns are unchanged.

use super::file::Check;
use super::finding::pairs;
use super::select::Select;
use crate::table::Table;
use fulgurite_stack::{Column, Row, StackError};

impl Check {
    /// Returns the table with figures within the bounds of the check. The check may still fail, because no
    /// figures satisfy some bounds.
    pub(super) fn mended(&self, table: &Table) -> Result<Table, StackError> {
        let mut rows = Select { part: self.part.as_deref(), only: &self.only }.of(table)?;
        if self.no_value.is_some() {
            rows.retain(|row| row.number(self.column).is_some());
        }
        let figures: Vec<(&Row, f64)> = match (self.falls_with, &self.compare) {
            (Some(axis), _) => falling(&rows, axis),
            (None, Some(compare)) => {
                let [old, new] = compare.sides()?;
                let both = |(old, new)| {
                    let figure = positive(old, self.column);
                    [(old, figure), (new, figure * self.inside())]
                };
                pairs(&rows, &old, &new)?.into_iter().flat_map(both).collect()
            }
            (None, None) => {
                let whole = |row| self.against.map_or(1.0, |against| positive(row, against));
                rows.iter().map(|row| (*row, whole(row) * self.inside())).collect()
            }
        };
        let mut mended = Table { rows: table.rows.clone() };
        for (row, figure) in figures {
            let place = table.rows.iter().position(|known| std::ptr::eq(known, row));
            mended.rows[place.expect("a row of the table")].set(self.column, figure);
        }
        Ok(mended)
    }

    /// Returns a number within the bounds, with some distance to each bound if possible. The published figure
    /// is used if that number is too far from it, or if there are no bounds.
    fn inside(&self) -> f64 {
        let inside = match (self.at_least.or(self.above), self.at_most.or(self.below)) {
            (Some(low), Some(high)) => f64::midpoint(low, high),
            (Some(0.0), None) | (None, None) => 1.0,
            (Some(low), None) => low + 0.1 * low.abs(),
            (None, Some(high)) => high - 0.1 * high.abs(),
        };
        match self.published.filter(|_| !self.has_bounds() || !self.is_near(inside)) {
            Some(published) => published.middle(),
            None => inside,
        }
    }
}

/// Returns the figure of the row, or 1 if the row has no positive figure.
fn positive(row: &Row, column: Column) -> f64 {
    row.number(column).filter(|figure| *figure > 0.0).unwrap_or(1.0)
}

/// Returns a figure for each row, which falls as `axis` rises.
fn falling<'a>(rows: &[&'a Row], axis: Column) -> Vec<(&'a Row, f64)> {
    let value = |row: &Row| row.number(axis).unwrap_or_default();
    let below = |row: &Row| rows.iter().filter(|other| value(other) < value(row)).count();
    rows.iter().map(|row| (*row, 1_000.0 / (1 + below(row)) as f64)).collect()
}
