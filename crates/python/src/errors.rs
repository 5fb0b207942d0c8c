//! Converts errors to Python exceptions. The exception classes are written in Python (`fulgurite/errors.py`),
//! where they have documentation and several base classes.

use fulgurite_base::SpecError;
use fulgurite_engine::Error;
use fulgurite_stack::StackError;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// Creates an exception of the class `class` of `fulgurite.errors` with the message `sentence`.
pub(crate) fn error(class: &str, sentence: String) -> PyErr {
    Python::attach(|py| {
        let found = py.import("fulgurite.errors").and_then(|module| module.getattr(class));
        match found.and_then(|class| Ok(class.cast_into::<PyType>()?)) {
            Ok(class) => PyErr::from_type(class, sentence),
            // Returns the import error, because the package is incomplete.
            Err(error) => error,
        }
    })
}

/// Creates the exception for a failed run or an invalid request.
pub(crate) fn of_stack(failed: StackError) -> PyErr {
    let class = class_of(&failed);
    error(class, failed.to_string())
}

/// Returns the name of the exception's class.
pub(crate) fn class_of(failed: &StackError) -> &'static str {
    match failed {
        StackError::Request(_) => "RequestError",
        StackError::Run(_) => "RunError",
    }
}

/// Creates the exception for an invalid value.
pub(crate) fn of_spec(refused: SpecError) -> PyErr {
    of_stack(refused.into())
}

/// Creates the exception for an error of the store.
pub(crate) fn of_engine(failed: &Error) -> PyErr {
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
