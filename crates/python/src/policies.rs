//! Runs replacement, placement and victim policies that are written in Python, in place of built-in policies.
//!
//! Such a policy is slow, because the thread of the run takes the GIL (the interpreter's lock) for each call.
//! The answers of a policy are checked immediately.
//!
//! A replacement policy must obey the order law: frames are evicted in the order that the policy gives, and
//! this order changes only when a method is called. The law is checked over some hundred random steps before
//! the first run.
//!
//! An exception in a method and an invalid answer end the run. The exception is stored, and later raised in
//! the thread that started the run.

mod inside;
mod own;
mod placement;
mod replacement;
mod victim;

pub(crate) use inside::interrupt;

use crate::errors::error;
use fulgurite_stack::device::DriveConfig;
use fulgurite_stack::{Run, StackError};
use own::Own;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The kind of a policy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Replacement,
    Placement { streams: u16 },
    Victim,
}

/// A policy in the description of a run. It creates a new policy object for each run, and contains the
/// policy's name for tables and its text for run ids.
#[pyclass(frozen, module = "fulgurite._native")]
pub struct Maker {
    kind: Kind,
    own: Arc<Own>,
    /// The result of checking the order law; unset until a check has succeeded.
    lawful: OnceLock<Result<(), StackError>>,
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

    /// Checks the order law, and raises an exception if the policy breaks it.
    fn check(&self) -> PyResult<()> {
        match self.check_law() {
            Ok(()) => Ok(()),
            Err(failed) => Err(self.take_raised().unwrap_or_else(|| crate::errors::of_stack(failed))),
        }
    }
}

impl Maker {
    /// Returns the policy's text in a description, and its name in tables.
    pub fn text_and_name(&self) -> (&str, &str) {
        (&self.own.text, &self.own.name)
    }

    /// Takes the first exception that a policy of this maker has raised since the last call.
    pub fn take_raised(&self) -> Option<PyErr> {
        self.own.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether a run failed with this message because of an invalid answer of a policy. The message is then
    /// removed.
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
        // Stores only a success. An exception is handed to the first caller, so a failing check must be
        // repeated for the next caller.
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

/// Replaces the placeholder in `run` by the policy.
pub(crate) fn apply(maker: &Maker, run: &mut Run) -> Result<(), StackError> {
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

/// Sets the label of the policy. Tables show this label for a stack without a simulated drive.
fn label(run: &mut Run, at: usize, name: &str) {
    if let DriveConfig::Translation(translation) = &mut run.stack.device.drive {
        name.clone_into(&mut translation.labels[at]);
    }
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    inside::add(module)?;
    module.add_class::<Maker>()
}
