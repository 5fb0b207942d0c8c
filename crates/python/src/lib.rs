//! Implements the extension module `fulgurite._native`, on which the Python package `fulgurite` is built.
//!
//! Users import the package in `python/`, which has typed descriptions, documentation and progress bars. This
//! module contains only the code that needs Rust. Its functions take and return plain values. For example, a
//! run is a command with its settings as text, as on the command line and in a study file.
//!
//! All functions follow three rules. Long work runs in a thread of its own with the GIL (the interpreter's
//! lock) released, and is cancelled when Python handles a signal (`watched.rs`). Errors are raised as classes
//! of `fulgurite.errors`, with the message that the command prints. A panic becomes an error that names the
//! failed check.

mod arrow;
mod errors;
mod describe;
mod policies;
mod table;
mod watched;
mod models;
mod crashtest;
mod runs;
mod store;
mod studies;
mod trace;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    crashtest::add(module)?;
    describe::add(module)?;
    models::add(module)?;
    policies::add(module)?;
    runs::add(module)?;
    store::add(module)?;
    studies::add(module)?;
    table::add(module)?;
    trace::add(module)
}
