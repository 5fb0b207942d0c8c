//! Errors as Python's exceptions. Their classes are written in Python (`fulgurite/errors.py`), where they have documentation
//! and several bases each.

use fulgurite_base::SpecError;
use fulgurite_engine::Error;
use fulgurite_stack::StackError;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// The exception of the class `class` of `fulgurite.errors` that says `sentence`.
pub fn error(class: &str, sentence: String) -> PyErr {
    Python::attach(|py| {
        let found = py.import("fulgurite.errors").and_then(|module| module.getattr(class));
        match found.and_then(|class| Ok(class.cast_into::<PyType>()?)) {
            Ok(class) => PyErr::from_type(class, sentence),
            // The package is not whole; that is what there is to say.
            Err(error) => error,
        }
    })
}

/// What a failed run or a wrong request is in Python.
pub fn of_stack(failed: StackError) -> PyErr {
    let class = class_of(&failed);
    error(class, failed.to_string())
}

/// The name of its class.
pub fn class_of(failed: &StackError) -> &'static str {
    match failed {
        StackError::Request(_) => "RequestError",
        StackError::Run(_) => "RunError",
    }
}

/// A value that cannot be read.
pub fn of_spec(refused: SpecError) -> PyErr {
    of_stack(refused.into())
}

/// What the store refuses, or what has become of it.
pub fn of_engine(failed: &Error) -> PyErr {
    let class = match failed {
        Error::Deadlock => "DeadlockError",
        Error::SnapshotTooOld => "SnapshotTooOldError",
        Error::Full { .. } => "StoreFullError",
        Error::Closed => "StoreClosedError",
        Error::Corrupt { .. } | Error::LogCorrupt { .. } => "StoreDamagedError",
        Error::KeyTooLong { .. }
        | Error::TransactionTooLarge { .. }
        | Error::NoTable(_)
        | Error::OtherStore
        | Error::IndexNotOpen { .. }
        | Error::Options(_)
        | Error::MapMemory { .. }
        | Error::NotAStore
        | Error::Version { .. } => "RequestError",
        _ => "StoreError",
    };
    error(class, failed.to_string())
}
