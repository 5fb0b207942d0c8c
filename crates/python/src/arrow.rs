//! Columns in memory as Arrow lays them out, and handed over without a copy through the capsules that Arrow's C data
//! interface defines for Python.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::{ArrowError, Field, Schema};
use fulgurite_stack::{Column, Unit};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::collections::HashMap;
use std::sync::Arc;

/// The unit of a column, in a word; empty where it has none.
pub fn unit(column: Column) -> &'static str {
    match column.unit() {
        Unit::Name | Unit::Number => "",
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "bytes",
        Unit::BytesPerSecond => "bytes/s",
    }
}

/// Columns by name, each with what readers may want to know of it.
pub fn batch(columns: Vec<(&str, HashMap<String, String>, ArrayRef)>) -> Result<RecordBatch, ArrowError> {
    let field = |(name, about, array): &(&str, HashMap<String, String>, ArrayRef)| {
        Field::new(*name, array.data_type().clone(), true).with_metadata(about.clone())
    };
    let fields: Vec<Field> = columns.iter().map(field).collect();
    let schema = Arc::new(Schema::new(fields));
    let arrays: Vec<ArrayRef> = columns.into_iter().map(|(.., array)| array).collect();
    if arrays.is_empty() {
        return Ok(RecordBatch::new_empty(schema));
    }
    RecordBatch::try_new(schema, arrays)
}

/// The capsule of a stream with this one batch, whose memory is shared.
pub fn stream<'py>(py: Python<'py>, batch: &RecordBatch) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = batch.schema();
    let batches = RecordBatchIterator::new([Ok(batch.clone())], schema);
    let stream = FFI_ArrowArrayStream::new(Box::new(batches));
    // The name is part of the interface. Whoever takes the stream out marks it as released; otherwise it is released
    // with the capsule.
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}
