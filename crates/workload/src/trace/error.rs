//! The error of reading a trace: file, line and reason.

use thiserror::Error;

/// The reason why a trace cannot be read: one sentence with the place and the accepted input.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}{}: {reason}", line.map_or_else(String::new, |line| format!(", line {line}")))]
pub struct TraceError {
    /// The file as it was given.
    pub file: String,
    /// The wrong line, counted from one; `None` if the whole file is wrong.
    pub line: Option<u64>,
    /// The reason.
    pub reason: String,
}
