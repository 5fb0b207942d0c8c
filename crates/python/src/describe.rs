//! Exports the declarations of settings, columns and names to Python. The Python package checks descriptions
//! of runs against them, and prints them in `list`.

use crate::errors::{of_spec, of_stack};
use fulgurite_stack::settings::Absent;
use fulgurite_stack::{Column, Command, Unit};
use fulgurite_study::grid;
use pyo3::prelude::*;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The commands that run stacks.
const COMMANDS: [Command; 5] =
    [Command::Pool, Command::Gc, Command::Replay, Command::Bench, Command::Profile];

/// A setting, as the tuple of its name, the syntax of a value, its meaning, and its default; `None` if it has
/// no default.
type Setting = (&'static str, &'static str, &'static str, Option<&'static str>);

/// Returns the command called `name`, which executes runs.
pub(crate) fn command(name: &str) -> PyResult<Command> {
    Command::of_runs(name).map_err(of_spec)
}

/// Returns the settings of each command in their order. The last axis of a grid varies fastest.
#[pyfunction]
fn settings() -> BTreeMap<&'static str, Vec<Setting>> {
    let of_command = |command: Command| {
        let described = command.settings().map(|setting| {
            let absent = match setting.absent(command) {
                Some(Absent::Value(text) | Absent::Words(text)) => Some(text),
                _ => None,
            };
            (setting.name, setting.written, setting.help(command), absent)
        });
        (command.name(), described.collect())
    };
    COMMANDS.into_iter().map(of_command).collect()
}

/// A column, as the tuple of its name, its unit, its meaning, whether it is an axis, and whether more is
/// better; `None` if no value is better than another.
type Described = (&'static str, &'static str, &'static str, bool, Option<bool>);

/// Returns all columns that a result can have, in their order.
#[pyfunction]
fn columns() -> Vec<Described> {
    let described = |column: Column| {
        let better = column.better().map(|better| better == Ordering::Greater);
        (column.name(), crate::arrow::unit(column), column.meaning(), column.is_axis(), better)
    };
    Column::all().map(described).collect()
}

/// Returns the columns of a run's result row, without those about the cost of execution. The flag tells
/// whether a column contains names.
#[pyfunction]
fn schema() -> Vec<(&'static str, bool)> {
    let columns = Column::all().filter(|column| !column.is_cost());
    columns.map(|column| (column.name(), column.unit() == Unit::Name)).collect()
}

/// Splits a list of values: `single,ace:n_w=8` has two values.
#[pyfunction]
fn split(text: &str) -> PyResult<Vec<String>> {
    grid::values(text).map_err(of_stack)
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(settings, module)?)?;
    module.add_function(wrap_pyfunction!(columns, module)?)?;
    module.add_function(wrap_pyfunction!(schema, module)?)?;
    module.add_function(wrap_pyfunction!(split, module)?)
}
