//! The module `fulgurite._native`: what the Python package `fulgurite` stands on.
//!
//! The package in `python/` is what people use. It has the typed descriptions, the documentation and the progress bars;
//! here is what only Rust can do. So functions here take and give plain values: a run is a command with its settings as
//! text, as on the command line and in a study file.
//!
//! Rules: whatever takes long runs in a thread of its own, without the interpreter's lock, and ends when Python has a
//! signal to handle (`watched.rs`). An error is one of the classes of `fulgurite.errors`, with the sentence that the command
//! prints. A panic does not cross: it becomes an error that says which check failed.

mod arrow;
mod describe;
mod errors;
mod models;
mod policies;
mod runs;
mod store;
mod studies;
mod table;
mod trace;
mod watched;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    describe::add(module)?;
    models::add(module)?;
    policies::add(module)?;
    runs::add(module)?;
    store::add(module)?;
    studies::add(module)?;
    table::add(module)?;
    trace::add(module)
}
