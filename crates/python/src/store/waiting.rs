//! Calls of the store that may wait for long: without the interpreter's lock, and given up where Python handles a signal with an
//! exception meanwhile.

use crate::errors::{error, of_engine};
use fulgurite_engine::Error;
use fulgurite_stack::StackError;
use pyo3::prelude::*;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// Whether this is the thread that handles signals, once it is known. The others do not ask for the interpreter's lock while they wait: at the
    /// end of the interpreter they would not get it.
    static HANDLES_SIGNALS: Cell<Option<bool>> = const { Cell::new(None) };
    /// The exception that the thread's call was given up for.
    static RAISED: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// Does what may wait. A broken check of the engine is an error, not a panic.
pub fn waiting<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Error> + Send) -> PyResult<T> {
    note_thread(py)?;
    let caught = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    // A call may have come to its end when it was to be given up; the exception is raised nevertheless.
    if let Some(raised) = RAISED.take() {
        return Err(raised);
    }
    match caught {
        Ok(outcome) => outcome.map_err(|failed| of_engine(&failed)),
        Err(panic) => Err(error("StoreError", StackError::of_panic(panic).to_string())),
    }
}

fn note_thread(py: Python<'_>) -> PyResult<()> {
    if HANDLES_SIGNALS.get().is_none() {
        let threading = py.import("threading")?;
        let main = threading.call_method0("main_thread")?;
        HANDLES_SIGNALS.set(Some(threading.call_method0("current_thread")?.is(&main)));
    }
    Ok(())
}

/// Whether the call that this thread waits in goes on: it does unless Python handles a signal with an exception.
pub fn goes_on() -> bool {
    if HANDLES_SIGNALS.get() != Some(true) {
        return true;
    }
    Python::attach(|py| py.check_signals()).map_err(|raised| RAISED.set(Some(raised))).is_ok()
}
