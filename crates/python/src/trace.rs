//! Exports traces to Python as columns. A trace is read from files and written to files in all formats, and
//! converted from and to numpy arrays.

use crate::arrow;
use crate::errors::{error, of_spec, of_stack};
use crate::table::Table;
use crate::watched::watched;
use arrow_array::{ArrayRef, RecordBatch, UInt8Array, UInt64Array};
use fulgurite_base::Nanos;
use fulgurite_stack::StackError;
use fulgurite_stack::workload::{TraceForm, open_trace};
use fulgurite_study::{trace_convert, trace_info};
use fulgurite_workload::Op;
use fulgurite_workload::trace::{Format, Record, TraceOptions, Unit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The requests of a trace as columns: the time in nanoseconds, the operation (0 read, 1 write, 2 trim), the
/// first byte or page, and the number of bytes or pages.
#[pyclass(frozen, module = "fulgurite._native")]
pub struct Trace {
    batch: RecordBatch,
    unit: Unit,
}

const COLUMNS: [&str; 4] = ["at_ns", "op", "start", "length"];

impl Trace {
    fn new(records: &[Record], unit: Unit) -> Result<Trace, StackError> {
        let number = |of: fn(&Record) -> u64| -> ArrayRef {
            Arc::new(records.iter().map(|record| Some(of(record))).collect::<UInt64Array>())
        };
        let operations: UInt8Array = records.iter().map(|record| Some(code(record.op))).collect();
        let arrays: [ArrayRef; 4] = [
            number(|record| record.at.0),
            Arc::new(operations),
            number(|record| record.start),
            number(|record| record.length),
        ];
        let counted = word(unit);
        let units = ["ns", "0 read, 1 write, 2 trim", counted, counted];
        let columns = COLUMNS.into_iter().zip(units).zip(arrays);
        let columns = columns.map(|((name, unit), array)| {
            (name, HashMap::from([("unit".to_owned(), unit.to_owned())]), array)
        });
        let batch = arrow::batch(columns.collect()).map_err(StackError::run)?;
        Ok(Trace { batch, unit })
    }

    fn numbers(&self, column: usize) -> &[u64] {
        let array = self.batch.column(column).as_any().downcast_ref::<UInt64Array>();
        array.map_or(&[], |array| array.values())
    }

    fn operations(&self) -> &[u8] {
        let array = self.batch.column(1).as_any().downcast_ref::<UInt8Array>();
        array.map_or(&[], |array| array.values())
    }

    fn records(&self) -> Vec<Record> {
        let [at, start, length] = [0, 2, 3].map(|column| self.numbers(column));
        let record = |(number, operation): (usize, &u8)| {
            // The default is never used: other codes were refused when the trace was created.
            let op = operation_of(*operation).unwrap_or(Op::Read);
            Record::new(Nanos(at[number]), op, start[number], length[number])
        };
        self.operations().iter().enumerate().map(record).collect()
    }
}

fn word(unit: Unit) -> &'static str {
    match unit {
        Unit::Bytes => "bytes",
        Unit::Pages => "pages",
    }
}

fn code(operation: Op) -> u8 {
    match operation {
        Op::Read => 0,
        Op::Write => 1,
        Op::Trim => 2,
    }
}

fn operation_of(code: u8) -> Option<Op> {
    [Op::Read, Op::Write, Op::Trim].get(usize::from(code)).copied()
}

/// Reads 64-bit numbers in the memory layout of numpy.
fn numbers(name: &str, bytes: &[u8]) -> PyResult<Vec<u64>> {
    let (whole, rest) = bytes.as_chunks::<8>();
    match rest.is_empty() {
        true => Ok(whole.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect()),
        false => Err(error("RequestError", format!("{name} is not an array of 64-bit numbers"))),
    }
}

/// Checks that there is at least one request, that each request is at least one byte or page long and ends
/// within 64 bits, and that times do not decrease.
fn check(records: &[Record]) -> Result<(), StackError> {
    if records.is_empty() {
        return Err(StackError::request("a trace has at least one request; accepted: longer arrays"));
    }
    let mut before = Nanos(0);
    for (number, Record { at, start, length, .. }) in records.iter().enumerate() {
        let wrong = if *length == 0 {
            "length is 0; accepted: at least 1".to_owned()
        } else if start.checked_add(*length).is_none() {
            format!("start {start} and length {length} end beyond 2^64 - 1; accepted: less")
        } else if *at < before {
            format!("at_ns {} is before its predecessor's {}; accepted: times in order", at.0, before.0)
        } else {
            before = *at;
            continue;
        };
        return Err(StackError::request(format!("request {number}: {wrong}")));
    }
    Ok(())
}

#[pymethods]
impl Trace {
    /// Reads the trace file at `path`. `format` is needed only if the name and the content of the file do not
    /// tell the format.
    #[staticmethod]
    #[pyo3(signature = (path, format=None, listener=None))]
    fn read(
        py: Python<'_>,
        path: PathBuf,
        format: Option<String>,
        listener: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Trace> {
        watched(py, listener, move |_| {
            let (format, options) = match format {
                Some(spec) => {
                    let (format, options) = Format::parse(&spec)?;
                    (Some(format), options)
                }
                None => (None, TraceOptions::default()),
            };
            let form = TraceForm { format, options, join: None };
            let reader = open_trace(&path.to_string_lossy(), form)?;
            let unit = reader.unit();
            let records: Result<Vec<Record>, _> = reader.in_one_space().collect();
            Trace::new(&records.map_err(|error| StackError::request(error.to_string()))?, unit)
        })
    }

    /// Builds a trace from columns in memory. The column `op` has one byte per operation, the others have
    /// 64-bit numbers.
    #[staticmethod]
    fn from_columns(at_ns: &[u8], op: &[u8], start: &[u8], length: &[u8], pages: bool) -> PyResult<Trace> {
        let (at, start, length) =
            (numbers("at_ns", at_ns)?, numbers("start", start)?, numbers("length", length)?);
        if [at.len(), start.len(), length.len()] != [op.len(); 3] {
            return Err(error(
                "RequestError",
                format!(
                    "at_ns has {} values, op {}, start {}, length {}; accepted: as many of each",
                    at.len(),
                    op.len(),
                    start.len(),
                    length.len()
                ),
            ));
        }
        let mut records = Vec::with_capacity(op.len());
        for (number, code) in op.iter().enumerate() {
            let op = operation_of(*code).ok_or_else(|| {
                error(
                    "RequestError",
                    format!(
                        "op {code} of request {number} is not an operation; accepted: 0 read, 1 write, 2 trim"
                    ),
                )
            })?;
            let record = Record::new(Nanos(at[number]), op, start[number], length[number]);
            records.push(record);
        }
        check(&records).map_err(of_stack)?;
        Trace::new(&records, if pages { Unit::Pages } else { Unit::Bytes }).map_err(of_stack)
    }

    /// Writes the trace to a file, which appears complete or not at all. Returns a table with the file, the
    /// format, the numbers of requests that were written and left out, and the properties of the written ones
    /// that the format lost.
    #[pyo3(signature = (path, format, page_bytes=4096, force=false))]
    fn save(
        &self,
        py: Python<'_>,
        path: PathBuf,
        format: &str,
        page_bytes: u64,
        force: bool,
    ) -> PyResult<Table> {
        let (format, records, unit) =
            (Format::from_name(format).map_err(of_spec)?, self.records(), self.unit);
        watched(py, None, move |_| trace_convert::write(&records, unit, &path, format, page_bytes, force))
            .map(Table::new)
    }

    /// Returns the unit of positions and lengths, which is `bytes` or `pages`.
    #[getter]
    fn unit(&self) -> &'static str {
        word(self.unit)
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// Returns a column in the memory layout of numpy.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let place = COLUMNS.iter().position(|known| *known == name);
        match place {
            Some(1) => Ok(PyBytes::new(py, self.operations())),
            Some(column) => {
                let numbers = self.numbers(column);
                PyBytes::new_with(py, size_of_val(numbers), |bytes| {
                    for (into, number) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(numbers) {
                        *into = number.to_ne_bytes();
                    }
                    Ok(())
                })
            }
            None => Err(error(
                "RequestError",
                format!("unknown column `{name}`; accepted: {}", COLUMNS.join(", ")),
            )),
        }
    }

    fn stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::stream(py, &self.batch)
    }
}

/// Describes the trace file at `path` in one row.
#[pyfunction]
#[pyo3(signature = (path, format=None, page=None, listener=None))]
fn trace_summary(
    py: Python<'_>,
    path: String,
    format: Option<String>,
    page: Option<String>,
    listener: Option<&Bound<'_, PyAny>>,
) -> PyResult<Table> {
    watched(py, listener, move |_| {
        trace_info::describe(trace_info::Described {
            path: &path,
            format: format.as_deref(),
            page: page.as_deref(),
            ..Default::default()
        })
        .map(|description| description.table())
    })
    .map(Table::new)
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Trace>()?;
    module.add_function(wrap_pyfunction!(trace_summary, module)?)
}
