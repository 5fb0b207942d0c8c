//! The module `fulgurite._native`, on which the Python package `fulgurite` is built.
//!
//! Users import the package in `python/`, which has typed descriptions, documentation and progress bars. This
//! module contains only what needs Rust. Its functions take and return plain values: a run is a command with
//! its settings as text, as on the command line and in a study file.
//!
//! Rules: long work runs in a thread of its own, without the interpreter's lock, and is cancelled when Python
//! has a signal to handle (`watched.rs`). Errors are classes of `fulgurite.errors` with the message that the
//! command prints. A panic becomes an error that names the failed check.

mod arrow;
mod errors;
mod describe;
mod policies;
mod table;
mod watched;
mod models;
mod runs;
mod store;
mod studies;
mod trace;

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
