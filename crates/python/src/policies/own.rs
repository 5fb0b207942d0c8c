//! One policy in Python: asks it, checks its answers, and ends the run with what it raised.

use super::inside;
use crate::errors::error;
use fulgurite_stack::StackError;
use fulgurite_stack::progress::check_stopped;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// What the policies at work share with their maker.
pub(super) struct Own {
    /// What tables call it.
    pub name: String,
    /// What run ids call it: the name, and a hash of what it consists of.
    pub text: String,
    /// Called for each run; gives a policy at work.
    pub make: Py<PyAny>,
    /// The first exception that one of them raised.
    pub raised: Mutex<Option<PyErr>>,
    /// What was said of answers that cannot be, until somebody has asked which of the failures that was.
    pub refused: Mutex<Vec<String>>,
}

impl std::fmt::Debug for Own {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl Own {
    /// Asks Python. An exception is kept and ends the run that this thread executes.
    pub fn ask<T>(&self, ask: impl FnOnce(Python<'_>) -> PyResult<T>) -> T {
        // Python takes long, and a run is to end soon after it was stopped.
        check_stopped();
        inside::attach(|py| ask(py).unwrap_or_else(|raised| self.end(py, raised)))
    }

    /// Asks Python for a value of a Rust type. One of another type ends the run.
    pub fn answer<T: for<'a, 'py> FromPyObject<'a, 'py>>(
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

    /// What is wrong with an answer that is of no use.
    pub fn wrong(&self, method: &str, given: &Bound<'_, PyAny>, accepted: &str) -> PyErr {
        let shown = given.repr().map_or_else(|_| "something".to_owned(), |shown| shown.to_string());
        let kind = given.get_type().name().map_or_else(|_| "type".to_owned(), |name| name.to_string());
        let sentence =
            format!("{}: {method}() gives {shown:.100}, of type {kind}; accepted: {accepted}", self.name);
        error("PolicyError", sentence)
    }

    /// Ends the run with an exception that says what is wrong with the policy.
    pub fn refuse(&self, what: &str) -> ! {
        inside::attach(|py| self.end(py, error("PolicyError", format!("{}: {what}", self.name))))
    }

    fn end(&self, py: Python<'_>, raised: PyErr) -> ! {
        // What ended a run that was to end is no fault of the policy, and of no interest to the next run.
        check_stopped();
        let sentence = if is_refusal(py, &raised) {
            // The class is told apart from it, see `take_refused`.
            let sentence = raised.value(py).to_string();
            self.refused.lock().unwrap_or_else(PoisonError::into_inner).push(sentence.clone());
            sentence
        } else if raised.is_instance_of::<pyo3::exceptions::PyException>(py) {
            format!("the policy {} raised {raised}", self.name)
        } else {
            format!("the policy {} was left: {raised}", self.name)
        };
        // The first tells what went wrong. Later ones are of other runs, which would fail alike.
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(raised);
        StackError::run(sentence).unwind()
    }
}

fn is_refusal(py: Python<'_>, raised: &PyErr) -> bool {
    let class = py.import("fulgurite.errors").and_then(|errors| errors.getattr("PolicyError"));
    class.is_ok_and(|class| raised.matches(py, class).unwrap_or(false))
}

/// Whether this thread is being unwound already: then a policy is told nothing more, and asked nothing.
pub(super) fn is_ending() -> bool {
    std::thread::panicking()
}
