//! Calls the methods of a policy in Python and checks the answers. An exception that the policy raises ends
//! the run.

use super::inside;
use crate::errors::error;
use fulgurite_stack::StackError;
use fulgurite_stack::progress::check_stopped;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// The state that a maker and its policies share.
pub(super) struct Own {
    /// The policy's name in tables.
    pub name: String,
    /// The policy's text in run ids: its name, and a hash of its source.
    pub text: String,
    /// The Python function that returns a new policy. It is called once for each run.
    pub make: Py<PyAny>,
    /// The first exception that one of the policies raised; `None` if none is stored.
    pub raised: Mutex<Option<PyErr>>,
    /// The messages about invalid answers that no caller of `take_refused` has taken yet.
    pub refused: Mutex<Vec<String>>,
}

impl std::fmt::Debug for Own {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl Own {
    /// Calls Python in this thread. An exception is stored and ends the run of this thread.
    pub(super) fn ask<T>(&self, ask: impl FnOnce(Python<'_>) -> PyResult<T>) -> T {
        // Checks before each call whether the run was cancelled, because Python is slow and a cancelled run
        // should end soon.
        check_stopped();
        inside::attach(|py| ask(py).unwrap_or_else(|raised| self.end(py, raised)))
    }

    /// Calls Python and converts the answer to a Rust type. An answer that cannot be converted ends the run.
    pub(super) fn answer<T: for<'a, 'py> FromPyObject<'a, 'py>>(
        &self,
        method: &str,
        accepted: &str,
        ask: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyAny>>,
    ) -> T {
        self.ask(|py| {
            let given = ask(py)?;
            given.extract().map_err(|_| self.wrong(method, &given, accepted))
        })
    }

    /// Creates the exception for an invalid answer.
    pub(super) fn wrong(&self, method: &str, given: &Bound<'_, PyAny>, accepted: &str) -> PyErr {
        let shown = given.repr().map_or_else(|_| "something".to_owned(), |shown| shown.to_string());
        let kind = given.get_type().name().map_or_else(|_| "type".to_owned(), |name| name.to_string());
        let sentence =
            format!("{}: {method}() gives {shown:.100}, of type {kind}; accepted: {accepted}", self.name);
        error("PolicyError", sentence)
    }

    /// Ends the run with an exception that describes the error of the policy.
    pub(super) fn refuse(&self, what: &str) -> ! {
        inside::attach(|py| self.end(py, error("PolicyError", format!("{}: {what}", self.name))))
    }

    fn end(&self, py: Python<'_>, raised: PyErr) -> ! {
        // An exception in a cancelled run is not an error of the policy, and must not be reported for the
        // next run.
        check_stopped();
        let sentence = if is_refusal(py, &raised) {
            // Stores the message, because `take_refused` recognises the error by it.
            let sentence = raised.value(py).to_string();
            self.refused.lock().unwrap_or_else(PoisonError::into_inner).push(sentence.clone());
            sentence
        } else if raised.is_instance_of::<pyo3::exceptions::PyException>(py) {
            format!("the policy {} raised {raised}", self.name)
        } else {
            format!("the policy {} was interrupted: {raised}", self.name)
        };
        // Keeps only the first exception, which is the cause. Later ones belong to other runs, which fail in
        // the same way.
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(raised);
        StackError::run(sentence).unwind()
    }
}

fn is_refusal(py: Python<'_>, raised: &PyErr) -> bool {
    let class = py.import("fulgurite.errors").and_then(|errors| errors.getattr("PolicyError"));
    class.is_ok_and(|class| raised.matches(py, class).unwrap_or(false))
}

/// Whether this thread is already unwinding. If so, the policy must not be called any more.
pub(super) fn is_ending() -> bool {
    std::thread::panicking()
}
