//! Non-preemptive collection: a collection always runs to its end.
//!
//! This is the baseline of "A Semi-Preemptive Garbage Collector for Solid State Drives" (Lee et al., ISPASS
//! 2011): every command that arrives during a collection waits for all of its copies and the erase. The rule
//! only uses states 0 and 3. It is also the schedule for counting studies, which have no virtual time.

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

/// All commands wait while a segment is collected or fewer segments are free than the soft threshold.
#[inline]
pub(super) fn decide(state: &FtlState<'_>) -> ScheduleState {
    if state.collection.is_some() || state.free < state.soft || state.idle {
        ScheduleState::Exclusive
    } else {
        ScheduleState::Idle
    }
}
