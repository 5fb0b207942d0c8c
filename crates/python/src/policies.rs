//! Policies that are written in Python: replacement, placement and victims. Each stands where one of ours does.
//!
//! A run's thread takes the interpreter's lock for each question, so such a policy is slow. It must not be wrong: what it
//! answers is checked on the spot, and before the first run a replacement policy must keep the order law over some hundred
//! random steps. A method that raises, or an answer that cannot be, ends the run; what was raised is kept, and becomes
//! the exception of whoever asked for the run.

mod inside;
mod placement;
mod replacement;
mod victim;

pub use inside::interrupt;

use crate::errors::error;
use fulgurite_stack::device::DriveConfig;
use fulgurite_stack::progress::check_stopped;
use fulgurite_stack::{Run, StackError};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// What a policy decides.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Replacement,
    Placement { streams: u16 },
    Victim,
}

/// A policy in Python as a part of a description: what makes it, and what tables and run ids call it.
#[pyclass(frozen, module = "fulgurite._native")]
pub struct Maker {
    kind: Kind,
    own: Arc<Own>,
    /// Whether it keeps the order law, once known.
    lawful: OnceLock<Result<(), StackError>>,
}

/// What the policies at work share with their maker.
struct Own {
    /// What tables call it.
    name: String,
    /// What run ids call it: the name, and a hash of what it consists of.
    text: String,
    /// Called for each run; gives a policy at work.
    make: Py<PyAny>,
    /// The first exception that one of them raised.
    raised: Mutex<Option<PyErr>>,
    /// What was said of answers that cannot be, until somebody has asked which of the failures that was.
    refused: Mutex<Vec<String>>,
}

impl std::fmt::Debug for Own {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

#[pymethods]
impl Maker {
    #[new]
    #[pyo3(signature = (kind, name, text, make, streams=1))]
    fn new(kind: &str, name: String, text: String, make: Py<PyAny>, streams: u16) -> PyResult<Maker> {
        let kind = match kind {
            "replacement" => Kind::Replacement,
            "placement" => Kind::Placement { streams },
            "victim" => Kind::Victim,
            _ => return Err(error("RequestError", format!("unknown kind of policy `{kind}`"))),
        };
        let own = Arc::new(Own { name, text, make, raised: Mutex::default(), refused: Mutex::default() });
        Ok(Maker { kind, own, lawful: OnceLock::new() })
    }

    /// Raises what is wrong with the policy, if the order law shows it.
    fn check(&self) -> PyResult<()> {
        match self.check_law() {
            Ok(()) => Ok(()),
            Err(failed) => Err(self.take_raised().unwrap_or_else(|| crate::errors::of_stack(failed))),
        }
    }
}

impl Maker {
    /// What it is called in a description, and in tables.
    pub fn text_and_name(&self) -> (&str, &str) {
        (&self.own.text, &self.own.name)
    }

    /// The first exception that a policy of this maker has raised since this was asked.
    pub fn take_raised(&self) -> Option<PyErr> {
        self.own.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether a run has failed with this sentence because of an answer that cannot be.
    pub fn take_refused(&self, sentence: &str) -> bool {
        let mut refused = self.own.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let at = refused.iter().position(|known| known == sentence);
        at.map(|at| refused.swap_remove(at)).is_some()
    }

    fn check_law(&self) -> Result<(), StackError> {
        if self.kind != Kind::Replacement {
            return Ok(());
        }
        let check = || {
            let check = std::panic::AssertUnwindSafe(|| replacement::check_law(&self.own));
            std::panic::catch_unwind(check).unwrap_or_else(|panic| Err(StackError::of_panic(panic)))
        };
        // What was raised goes to the first who asks, so a law that is broken is looked for again.
        if let Some(Ok(())) = self.lawful.get() {
            return Ok(());
        }
        let outcome = check();
        if outcome.is_ok() {
            let _ = self.lawful.set(Ok(()));
        }
        outcome
    }
}

impl Own {
    /// Asks Python. An exception is kept and ends the run that this thread executes.
    fn ask<T>(&self, ask: impl FnOnce(Python<'_>) -> PyResult<T>) -> T {
        // Python takes long, and a run is to end soon after it was stopped.
        check_stopped();
        inside::attach(|py| ask(py).unwrap_or_else(|raised| self.end(py, raised)))
    }

    /// Asks Python for a value of a Rust type. One of another type ends the run.
    fn answer<T: for<'a, 'py> FromPyObject<'a, 'py>>(
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
    fn wrong(&self, method: &str, given: &Bound<'_, PyAny>, accepted: &str) -> PyErr {
        let shown = given.repr().map_or_else(|_| "something".to_owned(), |shown| shown.to_string());
        let kind = given.get_type().name().map_or_else(|_| "type".to_owned(), |name| name.to_string());
        let sentence =
            format!("{}: {method}() gives {shown:.100}, of type {kind}; accepted: {accepted}", self.name);
        error("PolicyError", sentence)
    }

    /// Ends the run with an exception that says what is wrong with the policy.
    fn refuse(&self, what: &str) -> ! {
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
fn is_ending() -> bool {
    std::thread::panicking()
}

/// Puts the policy into the place of the one that stands for it.
pub fn apply(maker: &Maker, run: &mut Run) -> Result<(), StackError> {
    maker.check_law()?;
    let own = &maker.own;
    let no_collector = |flag: &str, run: &Run| {
        StackError::request(format!(
            "{flag} {} does not go with {}, which collects no garbage; leave it out",
            own.name, run.stack.device.label
        ))
    };
    match maker.kind {
        Kind::Replacement => {
            let of_pool = run.stack.pool.as_mut().map(|pool| &mut pool.policies);
            let of_engine = run.stack.engine.as_mut().map(|engine| &mut engine.policies);
            let policies = of_engine.or(of_pool).ok_or_else(|| {
                StackError::request(format!(
                    "--replacement {} needs a pool or an engine; leave it out",
                    own.name
                ))
            })?;
            policies.replacement = replacement::config(own);
        }
        Kind::Placement { streams } => {
            let Some(collect) = run.stack.collect_mut() else {
                return Err(no_collector("--placement", run));
            };
            collect.placement = placement::config(own, streams);
            label(run, 0, &own.name);
        }
        Kind::Victim => {
            let Some(collect) = run.stack.collect_mut() else { return Err(no_collector("--victim", run)) };
            collect.victim = victim::config(own);
            label(run, 1, &own.name);
        }
    }
    Ok(())
}

/// Where there is no drive, tables show policies as they were typed.
fn label(run: &mut Run, at: usize, name: &str) {
    if let DriveConfig::Translation(translation) = &mut run.stack.device.drive {
        name.clone_into(&mut translation.labels[at]);
    }
}

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    inside::add(module)?;
    module.add_class::<Maker>()
}
