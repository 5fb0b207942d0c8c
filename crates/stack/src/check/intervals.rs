//! Limits the number of result rows of a run that gives one row per interval.

use crate::StackError;
use fulgurite_bench::INTERVALS_AT_MOST;

/// Refuses more intervals than a run may have. `whole` is the length of the run, `length` that of an
/// interval, both in the same unit. `typed` formats an interval as the user types it.
pub(super) fn check_intervals(
    whole: u64,
    length: u64,
    typed: impl Fn(u64) -> String,
) -> Result<(), StackError> {
    let most = INTERVALS_AT_MOST as u64;
    match whole / length.max(1) <= most {
        true => Ok(()),
        false => Err(StackError::request(format!(
            "--interval {} is too short: the run has more than {most} intervals; accepted: from {} on, or a shorter \
                run",
            typed(length),
            typed(whole.div_ceil(most))
        ))),
    }
}
