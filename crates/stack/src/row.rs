//! Defines a result row of a run: a flat list of cells, each in its column.

use crate::Column;
use crate::value::Value;

/// A result row of a run: a value in each of some columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row(Vec<(Column, Value)>);

impl Row {
    /// Sets the value of a column.
    pub fn set(&mut self, column: Column, value: impl Into<Value>) {
        let value = value.into();
        match self.0.iter_mut().find(|(known, _)| *known == column) {
            Some((_, old)) => *old = value,
            None => self.0.push((column, value)),
        }
    }

    /// Sets the value of a column if there is one.
    pub fn set_some(&mut self, column: Column, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.set(column, value);
        }
    }

    /// Drops the columns about the cost of the simulator itself. These columns differ from one execution to
    /// the next, and mean little if runs share the machine.
    pub fn drop_cost(&mut self) {
        self.0.retain(|(column, _)| !column.is_cost());
    }

    /// Keeps only `columns`, and drops all other columns.
    pub fn keep(&mut self, columns: &[Column]) {
        self.0.retain(|(column, _)| columns.contains(column));
    }

    /// Returns the value of a column; `None` if the row does not have the column.
    pub fn get(&self, column: Column) -> Option<&Value> {
        self.0.iter().find(|(known, _)| *known == column).map(|(_, value)| value)
    }

    /// Returns the value of a column as a number; `None` if it is not one.
    pub fn number(&self, column: Column) -> Option<f64> {
        self.get(column)?.as_f64()
    }

    /// Returns the value of a column as text for people; empty if the row does not have the column.
    pub fn text(&self, column: Column) -> String {
        self.get(column).map(Value::readable).unwrap_or_default()
    }
}
