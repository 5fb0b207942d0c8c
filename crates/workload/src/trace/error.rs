//! The error of reading a trace: file, line and reason.

use thiserror::Error;

/// A trace that cannot be read, in one sentence that names the place and what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}{}: {reason}", line.map_or_else(String::new, |line| format!(", line {line}")))]
pub struct TraceError {
    /// The file as it was given.
    pub file: String,
    /// The line at fault, counted from one; none where it is the file as a whole.
    pub line: Option<u64>,
    /// What is wrong there.
    pub reason: String,
}
