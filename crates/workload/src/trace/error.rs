//! Defines the error of reading a trace, with the file, the line and the reason.

use thiserror::Error;

/// The error of reading a trace, which is one sentence with the place of the error and the accepted input.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}{}: {reason}", line.map_or_else(String::new, |line| format!(", line {line}")))]
pub struct TraceError {
    /// The name of the trace file, as the user gave it.
    pub file: String,
    /// The number of the wrong line, counted from one; `None` if the whole file is wrong.
    pub line: Option<u64>,
    /// The reason why the line or file is wrong, with the accepted input.
    pub reason: String,
}
