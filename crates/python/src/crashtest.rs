//! Exports power cuts for programs to Python. The checker is a shell command or a Python function. A function runs in a
//! thread that holds the GIL meanwhile; the threads that serve the mounted folder never need it.

use crate::errors::of_stack;
use crate::watched::watched;
use fulgurite_crashtest::{Check, Typed, crashtest as run};
use fulgurite_stack::StackError;
use fulgurite_stack::runner::all_cores;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

/// Runs the tests and returns their outcome as JSON.
#[pyfunction]
#[pyo3(signature = (program, check, cuts, seed, recovery_cuts, folder, time, setup, keep, stop, threads))]
#[allow(clippy::too_many_arguments)] // all are keyword arguments in Python
fn crashtest(
    py: Python<'_>,
    program: Vec<OsString>,
    check: &Bound<'_, PyAny>,
    cuts: Option<&str>,
    seed: Option<&str>,
    recovery_cuts: Option<&str>,
    folder: Option<&str>,
    time: Option<&str>,
    setup: Option<&str>,
    keep: Option<PathBuf>,
    stop: bool,
    threads: Option<usize>,
) -> PyResult<String> {
    let jobs = threads.map_or(Some(all_cores()), NonZeroUsize::new).ok_or_else(|| {
        of_stack(StackError::request("threads=0 runs nothing; accepted: a number from 1 on"))
    })?;
    let check = match check.extract::<String>() {
        Ok(command) => Check::Command(command),
        Err(_) => function(check.clone().unbind()),
    };
    let typed = Typed {
        cuts,
        seed,
        recovery_cuts,
        folder,
        time,
        check,
        setup,
        keep: keep.as_deref(),
        stop,
        program: &program,
    };
    let asked = typed.asked(jobs).map_err(of_stack)?;
    let outcome = watched(py, None, move |progress| run(&asked, progress))?;
    serde_json::to_string(&outcome).map_err(|error| of_stack(StackError::run(error.to_string())))
}

/// Returns the checker that calls a Python function with the folder and the output of the program. It fails if the
/// function raises an exception or returns something false other than None.
fn function(function: Py<PyAny>) -> Check {
    Check::Function(Arc::new(move |folder, printed| {
        Python::attach(|py| {
            let is_well = |found: Py<PyAny>| Ok(found.is_none(py) || found.bind(py).is_truthy()?);
            match function.call1(py, (folder, PyBytes::new(py, printed))).and_then(is_well) {
                Ok(true) => None,
                Ok(false) => Some("it returned False".to_owned()),
                Err(error) => Some(error.to_string()),
            }
        })
    }))
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(crashtest, module)?)
}
