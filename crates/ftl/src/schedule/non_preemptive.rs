//! Non-preemptive collection: a collection always runs to its end.
//!
//! The baseline of "A Semi-Preemptive Garbage Collector for Solid State Drives" (ISPASS 2011): every command
//! that arrives meanwhile waits for all of the copies and the erase. It only uses states 0 and 3. It is also
//! the schedule for counting studies, which have no time.

use super::rule::{FtlState, ScheduleRule, ScheduleState};

pub(super) const RULE: ScheduleRule = ScheduleRule {
    name: "non-preemptive",
    about: "a victim segment is collected in one go; nothing overtakes it",
    decide,
    keeps_step: false,
    has_hard_threshold: false,
    steps_aside: false,
    suspends: false,
};

/// All commands wait while a segment is collected or the reserve is not full.
#[inline]
pub(super) fn decide(state: &FtlState) -> ScheduleState {
    if state.collection.is_some() || state.free < state.soft || state.idle {
        ScheduleState::Exclusive
    } else {
        ScheduleState::Idle
    }
}
