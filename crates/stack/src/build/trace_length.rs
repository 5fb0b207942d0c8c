//! Checks a number of requests against the length of a trace.

use crate::StackError;

/// Returns the number of requests: `asked`, or `has`, which is the number of requests in the trace. Refuses
/// more than `has`.
pub(super) fn within_trace(asked: Option<u64>, has: u64, what: &str) -> Result<u64, StackError> {
    match asked {
        // No value of `--ops` is valid for an empty trace.
        _ if has == 0 => Err(StackError::request(format!("the trace has no {what}"))),
        Some(asked) if asked > has => Err(StackError::request(format!(
            "--ops {asked} exceeds the trace's {has} {what}; accepted: 1 to {has}"
        ))),
        asked => Ok(asked.unwrap_or(has)),
    }
}
