//! Non-preemptive collection: once it starts, a victim segment is collected to its end.
//!
//! The baseline of "A Semi-Preemptive Garbage Collector for Solid State Drives" (ISPASS 2011):
//! whatever arrives meanwhile waits for all of the copies and the erase. It knows the states 0 and 3
//! alone. It is also the schedule for counting studies, where time plays no part.

use super::{FtlState, State};

/// Everything waits while a segment is collected or the reserve is not full.
#[inline]
pub(super) fn decide(state: &FtlState) -> State {
    if state.collection.is_some() || state.free < state.soft || state.idle {
        State::Exclusive
    } else {
        State::Idle
    }
}
