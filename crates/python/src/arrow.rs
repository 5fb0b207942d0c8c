//! Columns in Arrow's memory layout. They are passed to Python without a copy, through the capsules of
//! Arrow's C data interface.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::{ArrowError, Field, Schema};
use fulgurite_stack::{Column, Unit};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::collections::HashMap;
use std::sync::Arc;

/// The unit of a column as a word; empty if it has none.
pub(crate) fn unit(column: Column) -> &'static str {
    match column.unit() {
        Unit::Name | Unit::Number => "",
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "bytes",
        Unit::BytesPerSecond => "bytes/s",
    }
}

/// A batch of named columns. Each has metadata for readers.
pub(crate) fn batch(
    columns: Vec<(&str, HashMap<String, String>, ArrayRef)>,
) -> Result<RecordBatch, ArrowError> {
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

/// A capsule with a stream of this one batch. The memory is shared.
pub(crate) fn stream<'py>(py: Python<'py>, batch: &RecordBatch) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = batch.schema();
    let batches = RecordBatchIterator::new([Ok(batch.clone())], schema);
    let stream = FFI_ArrowArrayStream::new(Box::new(batches));
    // The interface requires this name. A consumer that takes the stream marks it as released; otherwise the
    // capsule releases it.
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}
