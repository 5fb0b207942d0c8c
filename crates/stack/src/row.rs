//! The result of a run: a flat row of cells, each in its column.

use crate::Column;
use crate::value::Value;

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row(Vec<(Column, Value)>);

impl Row {
    /// Sets a column.
    pub fn set(&mut self, column: Column, value: impl Into<Value>) {
        let value = value.into();
        match self.0.iter_mut().find(|(known, _)| *known == column) {
            Some((_, old)) => *old = value,
            None => self.0.push((column, value)),
        }
    }

    /// Sets a column if there is a value.
    pub fn set_some(&mut self, column: Column, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.set(column, value);
        }
    }

    /// Drops the columns about the cost of the simulator itself. They differ from one execution to the next,
    /// and mean little if runs share the machine.
    pub fn drop_cost(&mut self) {
        self.0.retain(|(column, _)| !column.is_cost());
    }

    /// Drops all other columns.
    pub fn keep(&mut self, columns: &[Column]) {
        self.0.retain(|(column, _)| columns.contains(column));
    }

    /// A column's value.
    pub fn get(&self, column: Column) -> Option<&Value> {
        self.0.iter().find(|(known, _)| *known == column).map(|(_, value)| value)
    }

    /// A column's number.
    pub fn number(&self, column: Column) -> Option<f64> {
        self.get(column)?.as_f64()
    }

    /// A column's text for people; empty if the row does not have it.
    pub fn text(&self, column: Column) -> String {
        self.get(column).map(Value::readable).unwrap_or_default()
    }
}
