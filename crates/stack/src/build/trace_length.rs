//! Checks a number of requests against the length of a trace.

use crate::StackError;

/// The number of requests: `asked`, or the whole trace of `has`.
pub(super) fn within_trace(asked: Option<u64>, has: u64, what: &str) -> Result<u64, StackError> {
    match asked {
        // No number of `--ops` would suit an empty trace, so it is refused first.
        _ if has == 0 => Err(StackError::request(format!("the trace has no {what}"))),
        Some(asked) if asked > has => Err(StackError::request(format!(
            "--ops {asked} exceeds the trace's {has} {what}; accepted: 1 to {has}"
        ))),
        asked => Ok(asked.unwrap_or(has)),
    }
}
