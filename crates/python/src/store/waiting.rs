//! Runs calls of the store that may wait for a long time. The GIL (the interpreter's lock) is released during
//! such a call, and the call is cancelled if a signal handler of Python raises an exception.

use crate::errors::{error, of_engine};
use fulgurite_engine::Error;
use fulgurite_stack::StackError;
use pyo3::prelude::*;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// Whether this thread handles signals; `None` until that is known. Other threads do not request the GIL
    /// while they wait, because they would not get it when the interpreter shuts down.
    static HANDLES_SIGNALS: Cell<Option<bool>> = const { Cell::new(None) };
    /// The exception that cancelled the call of this thread.
    static RAISED: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// Runs `work`, which may wait, with the GIL released. A failed internal check of the engine becomes an error
/// instead of a panic.
pub(super) fn waiting<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    note_thread(py)?;
    let caught = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    // Raises the exception even if the call completed before it was cancelled.
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

/// Whether the waiting call of this thread continues. The call is cancelled if a signal handler raised an
/// exception.
pub(super) fn goes_on() -> bool {
    if HANDLES_SIGNALS.get() != Some(true) {
        return true;
    }
    Python::attach(|py| py.check_signals()).map_err(|raised| RAISED.set(Some(raised))).is_ok()
}
