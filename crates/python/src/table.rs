//! Exports the results of runs to Python: a table of flat rows, which can also be read as Arrow columns.

use crate::arrow;
use crate::describe;
use crate::errors::{error, of_stack};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use fulgurite_files::output::{self, Named, Replaces};
use fulgurite_stack::{Column, Row, StackError, Value};
use fulgurite_study::table::Table as Rows;
use fulgurite_study::{list, parquet, people};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use std::collections::HashMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// A constructor and its arguments, from which Python rebuilds a pickled table.
type Rebuilt<'py> = (Bound<'py, PyAny>, (Vec<Bound<'py, PyDict>>,));

/// A table of result rows.
#[pyclass(frozen, module = "fulgurite._native")]
pub struct Table {
    rows: Rows,
    /// The same table as Arrow columns, created on first use.
    batch: OnceLock<RecordBatch>,
}

impl Table {
    /// Creates a table of these rows.
    pub fn new(rows: Rows) -> Table {
        Table { rows, batch: OnceLock::new() }
    }

    /// Returns the rows of the table.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    fn batch(&self) -> PyResult<&RecordBatch> {
        if let Some(made) = self.batch.get() {
            return Ok(made);
        }
        let columns = self.rows.columns().into_iter().map(|column| {
            let about = HashMap::from([
                ("unit".to_owned(), arrow::unit(column).to_owned()),
                ("meaning".to_owned(), column.meaning().to_owned()),
            ]);
            (column.name(), about, array(&self.rows, column))
        });
        let made = arrow::batch(columns.collect());
        let made = made.map_err(|failed| error("RunError", format!("the table as Arrow: {failed}")))?;
        Ok(self.batch.get_or_init(|| made))
    }
}

/// Converts a column to an Arrow array: integers if all cells are integers, text if any cell is text, and
/// reals otherwise. A missing cell is null.
fn array(rows: &Rows, column: Column) -> ArrayRef {
    let cells = || rows.rows.iter().map(|row| row.get(column));
    let has = |is: fn(&Value) -> bool| cells().flatten().any(is);
    if has(|value| matches!(value, Value::Text(_))) {
        let text: StringArray = cells().map(|cell| cell.map(Value::exact)).collect();
        Arc::new(text)
    } else if has(|value| matches!(value, Value::Real(_))) {
        let reals: Float64Array = cells().map(|cell| cell.and_then(Value::as_f64)).collect();
        Arc::new(reals)
    } else {
        let integer = |cell: Option<&Value>| match cell {
            Some(Value::Integer(integer)) => Some(*integer),
            _ => None,
        };
        let integers: UInt64Array = cells().map(integer).collect();
        Arc::new(integers)
    }
}

fn python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Text(text) => text.into_pyobject(py)?.into_any(),
        Value::Integer(integer) => integer.into_pyobject(py)?.into_any(),
        Value::Real(real) => real.into_pyobject(py)?.into_any(),
    })
}

/// Converts a cell from Python; `None` if the cell is Python's None.
fn value(cell: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    if cell.is_none() {
        return Ok(None);
    }
    // Tries integers first, because integers convert to reals as well.
    if let Ok(integer) = cell.extract::<u64>() {
        return Ok(Some(Value::Integer(integer)));
    }
    if let Ok(real) = cell.extract::<f64>() {
        return Ok(Some(Value::Real(real)));
    }
    Ok(Some(Value::Text(cell.extract()?)))
}

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        self.rows.rows.len()
    }

    /// Returns the names of the columns, in their order.
    fn columns(&self) -> Vec<&'static str> {
        self.rows.columns().into_iter().map(Column::name).collect()
    }

    /// Returns the default columns for rows of `command`, and the axes that differ between the rows.
    fn columns_first(&self, command: &str) -> PyResult<Vec<&'static str>> {
        let command = describe::command(command)?;
        let columns = match self.rows.rows.is_empty() {
            true => Vec::new(),
            false => self.rows.columns_for_people(command),
        };
        Ok(columns.into_iter().map(Column::name).collect())
    }

    /// Returns the cells of a column; None for a row without a value.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let column = Column::from_name(name).map_err(crate::errors::of_spec)?;
        let cells = self.rows.rows.iter().map(|row| match row.get(column) {
            Some(value) => python(py, value),
            None => Ok(py.None().into_bound(py)),
        });
        PyList::new(py, cells.collect::<PyResult<Vec<_>>>()?)
    }

    /// Returns the row with this number as a dict, without columns that have no value.
    fn row<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyDict>> {
        let row = PyDict::new(py);
        let Some(found) = self.rows.rows.get(at) else {
            return Err(pyo3::exceptions::PyIndexError::new_err(format!(
                "row {at} of {}",
                self.rows.rows.len()
            )));
        };
        for column in Column::all() {
            if let Some(value) = found.get(column) {
                row.set_item(column.name(), python(py, value)?)?;
            }
        }
        Ok(row)
    }

    /// Builds a table from rows in the format of `row`. An integer has 64 bits and is not negative. A cell
    /// that is None is left out.
    #[staticmethod]
    fn from_rows(rows: Vec<Bound<'_, PyDict>>) -> PyResult<Table> {
        let read = |cells: Bound<'_, PyDict>| {
            let mut row = Row::default();
            for (name, cell) in cells.iter() {
                let column = Column::from_name(&name.extract::<String>()?).map_err(crate::errors::of_spec)?;
                if let Some(value) = value(&cell)? {
                    row.set(column, value);
                }
            }
            Ok(row)
        };
        Ok(Table::new(Rows { rows: rows.into_iter().map(read).collect::<PyResult<_>>()? }))
    }

    /// Pickles the table: returns the function `from_rows` and the rows with which Python calls it.
    fn __reduce__<'py>(slf: &Bound<'py, Table>) -> PyResult<Rebuilt<'py>> {
        let (py, table) = (slf.py(), slf.get());
        let rows = (0..table.__len__()).map(|at| table.row(py, at));
        Ok((slf.get_type().getattr("from_rows")?, (rows.collect::<PyResult<_>>()?,)))
    }

    /// Returns the table without the columns about the cost of execution, which differ between executions.
    fn without_cost(&self) -> Table {
        let mut rows = self.rows.clone();
        rows.rows.iter_mut().for_each(Row::drop_cost);
        Table::new(rows)
    }

    fn csv(&self) -> String {
        self.rows.to_csv()
    }

    fn json(&self) -> String {
        self.rows.to_json()
    }

    fn parquet(&self) -> PyResult<Vec<u8>> {
        parquet::bytes(&self.rows).map_err(of_stack)
    }

    /// Returns the table as the command prints it, in lines of at most `width` characters.
    fn text(&self, command: Option<&str>, typed: Vec<String>, width: usize) -> PyResult<String> {
        let Some(command) = command else { return Ok(self.rows.to_text(&self.rows.columns())) };
        let command = describe::command(command)?;
        if self.rows.rows.is_empty() {
            return Ok("no rows\n".to_owned());
        }
        let typed: Vec<&str> = typed.iter().map(String::as_str).collect();
        let view =
            people::View { width, is_wide: false, is_quiet: false, columns: Vec::new(), has_colours: false };
        // Replaces an option of the command by its name in Python.
        Ok(people::runs(&self.rows, command, &typed, &view).replace("with --wide", "in .columns"))
    }

    /// Returns the finding of the rows in one sentence, or None if there is nothing to compare.
    fn finding(&self, command: &str) -> PyResult<Option<String>> {
        Ok(people::finding(&self.rows, describe::command(command)?))
    }

    fn stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::stream(py, self.batch()?)
    }
}

/// Writes a file, which appears complete or not at all. As usual in Python, an existing file is replaced.
#[pyfunction]
fn write_file(path: PathBuf, content: &[u8]) -> PyResult<()> {
    let named = Named::new("path", &path).replacing(Replaces::Anything);
    let outcome = output::check(&[], &[named]).map_err(StackError::from).and_then(|()| {
        output::write_whole(named, |file| file.write_all(content).map_err(|error| named.failed(error).into()))
    });
    outcome.map_err(of_stack)
}

/// Returns the names of a kind, or of all kinds that are not too long.
#[pyfunction]
#[pyo3(signature = (kind=None))]
fn names(kind: Option<&str>) -> PyResult<Table> {
    list::list(kind).map(Table::new).map_err(of_stack)
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Table>()?;
    module.add_function(wrap_pyfunction!(names, module)?)?;
    module.add_function(wrap_pyfunction!(write_file, module)?)
}
