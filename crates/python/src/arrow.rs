//! Lays out columns as Arrow arrays in memory, and passes them to Python without a copy, through the capsules
//! of Arrow's C data interface.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::{ArrowError, Field, Schema};
use fulgurite_stack::{Column, Unit};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::collections::HashMap;
use std::sync::Arc;

/// Returns the unit of a column as a word, or an empty text if the column has no unit.
pub(crate) fn unit(column: Column) -> &'static str {
    match column.unit() {
        Unit::Name | Unit::Number => "",
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "bytes",
        Unit::BytesPerSecond => "bytes/s",
    }
}

/// Builds an Arrow batch of named columns. Each column has metadata for its readers.
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

/// Returns a capsule with a stream of this one batch. The stream shares the batch's memory.
pub(crate) fn stream<'py>(py: Python<'py>, batch: &RecordBatch) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = batch.schema();
    let batches = RecordBatchIterator::new([Ok(batch.clone())], schema);
    let stream = FFI_ArrowArrayStream::new(Box::new(batches));
    // The C interface requires this name. A consumer that takes the stream marks it as released; otherwise
    // the capsule releases it.
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}
