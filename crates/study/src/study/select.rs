//! Selects rows of a table by their part and by values of columns.

use crate::table::Table;
use fulgurite_base::SpecError;
use fulgurite_stack::{Column, Row, StackError};
use std::collections::BTreeMap;

/// The conditions that select rows of a table.
pub(super) struct Select<'a> {
    pub part: Option<&'a str>,
    /// The values that a row must have in these columns.
    pub only: &'a BTreeMap<Column, String>,
}

impl Select<'_> {
    pub(super) fn of<'a>(&self, table: &'a Table) -> Result<Vec<&'a Row>, StackError> {
        known_columns(table, self.only.keys().copied())?;
        let is = |row: &Row, column: Column, value: &str| {
            row.get(column).is_some_and(|cell| cell.exact() == value)
        };
        let wanted = |row: &&Row| {
            self.part.is_none_or(|part| is(row, Column::Part, part))
                && self.only.iter().all(|(column, value)| is(row, *column, value))
        };
        Ok(table.rows.iter().filter(wanted).collect())
    }
}

pub(super) fn known_columns(
    table: &Table,
    columns: impl IntoIterator<Item = Column>,
) -> Result<(), StackError> {
    let known = table.columns();
    let unknown = columns.into_iter().find(|column| !known.contains(column));
    unknown.map_or(Ok(()), |column| {
        let names: Vec<&str> = known.iter().map(|column| column.name()).collect();
        Err(SpecError::unknown("column", column.name(), &names).into())
    })
}
