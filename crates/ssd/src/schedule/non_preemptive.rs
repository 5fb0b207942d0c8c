//! Non-preemptive collection: once it starts, a victim segment is collected to its end.
//!
//! The baseline of "A Semi-Preemptive Garbage Collector for Solid State Drives" (ISPASS 2011):
//! whatever arrives meanwhile waits for all of the copies and the erase. It is also the schedule
//! for counting studies, where time plays no part.

use super::{Budget, FtlState};

/// Whole segments, whenever the reserve is not full.
#[inline]
pub(super) fn decide(state: &FtlState) -> Budget {
    if state.free < state.reserve { Budget::Refill } else { Budget::Moves(0) }
}
