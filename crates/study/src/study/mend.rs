//! Makes rows under which a failing check holds. A check that fails already cannot show which faults it would notice. So its
//! column is given figures that satisfy it, and faults are then planted in these rows. All other columns stay as they are.

use super::file::Check;
use super::finding::pairs;
use super::select::Select;
use crate::table::Table;
use fulgurite_stack::{Column, Row, StackError};

impl Check {
    /// The table with figures that are within the bounds, where any are.
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
                    [(old, figure), (new, figure * self.within())]
                };
                pairs(&rows, &old, &new)?.into_iter().flat_map(both).collect()
            }
            (None, None) => {
                let whole = |row| self.against.map_or(1.0, |against| positive(row, against));
                rows.iter().map(|row| (*row, whole(row) * self.within())).collect()
            }
        };
        let mut mended = Table { rows: table.rows.clone() };
        for (row, figure) in figures {
            let place = table.rows.iter().position(|known| std::ptr::eq(known, row));
            mended.rows[place.expect("a row of the table")].set(self.column, figure);
        }
        Ok(mended)
    }

    /// A number within the bounds, and away from them where there is room.
    fn within(&self) -> f64 {
        match (self.at_least.or(self.above), self.at_most.or(self.below)) {
            (Some(low), Some(high)) => f64::midpoint(low, high),
            (Some(0.0), None) | (None, None) => 1.0,
            (Some(low), None) => low + 0.1 * low.abs(),
            (None, Some(high)) => high - 0.1 * high.abs(),
        }
    }
}

/// The row's figure, or one in the place of a figure that it does not have.
fn positive(row: &Row, column: Column) -> f64 {
    row.number(column).filter(|figure| *figure > 0.0).unwrap_or(1.0)
}

/// A figure for each row that falls as `axis` rises.
fn falling<'a>(rows: &[&'a Row], axis: Column) -> Vec<(&'a Row, f64)> {
    let value = |row: &Row| row.number(axis).unwrap_or_default();
    let below = |row: &Row| rows.iter().filter(|other| value(other) < value(row)).count();
    rows.iter().map(|row| (*row, 1_000.0 / (1 + below(row)) as f64)).collect()
}
