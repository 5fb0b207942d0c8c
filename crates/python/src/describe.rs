//! The declarations: settings, columns and names, for the package's own checks and for `list`.

use crate::errors::{of_spec, of_stack};
use fulgurite_base::option::parse_choice;
use fulgurite_stack::settings::Absent;
use fulgurite_stack::{Column, Command, Unit};
use fulgurite_study::grid;
use pyo3::prelude::*;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Every command that runs stacks.
const COMMANDS: [Command; 5] =
    [Command::Pool, Command::Gc, Command::Replay, Command::Bench, Command::Profile];

/// A setting: its name, how a value is written, what it means, and what stands in where it is not given.
type Setting = (&'static str, &'static str, &'static str, Option<&'static str>);

/// The command called `name`.
pub fn command(name: &str) -> PyResult<Command> {
    parse_choice(name).map_err(of_spec)
}

/// The settings of every command, in order: the last axis of a grid varies fastest.
#[pyfunction]
fn settings() -> BTreeMap<&'static str, Vec<Setting>> {
    let of_command = |command: Command| {
        let described = command.settings().map(|setting| {
            let absent = match setting.absent(command) {
                Some(Absent::Value(text) | Absent::Words(text)) => Some(text),
                _ => None,
            };
            (setting.name, setting.written, setting.about, absent)
        });
        (command.name(), described.collect())
    };
    COMMANDS.into_iter().map(of_command).collect()
}

/// A column: its name, its unit, what it means, whether it tells runs apart, and whether more of it is better.
type Described = (&'static str, &'static str, &'static str, bool, Option<bool>);

/// Every column that a result can have, in order.
#[pyfunction]
fn columns() -> Vec<Described> {
    let described = |column: Column| {
        let better = column.better().map(|better| better == Ordering::Greater);
        (column.name(), crate::arrow::unit(column), column.meaning(), column.is_axis(), better)
    };
    Column::all().map(described).collect()
}

/// The columns that a run's row can have, without those about the execution itself, and whether each holds names.
#[pyfunction]
fn schema() -> Vec<(&'static str, bool)> {
    let columns = Column::all().filter(|column| !column.is_cost());
    columns.map(|column| (column.name(), column.unit() == Unit::Name)).collect()
}

/// The values that a text lists: `single,ace:n_w=8` has two.
#[pyfunction]
fn split(text: &str) -> PyResult<Vec<String>> {
    grid::values(text).map_err(of_stack)
}

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(settings, module)?)?;
    module.add_function(wrap_pyfunction!(columns, module)?)?;
    module.add_function(wrap_pyfunction!(schema, module)?)?;
    module.add_function(wrap_pyfunction!(split, module)?)
}
