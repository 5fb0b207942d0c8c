//! Semi-preemptive collection: "A Semi-Preemptive Garbage Collector for Solid State Drives" (Lee, Kim,
//! Shipman, Oral, Wang, Kim; ISPASS 2011).
//!
//! A flash operation cannot be interrupted, but a collection can be interrupted between two operations: after
//! a page is read and before it is written (it stays in a buffer), between pages, and before the erase. Every
//! arriving command waits for the current operation, never for the whole collection. Delaying collection may
//! exhaust the free segments. So writes wait below a hard threshold (state 2). When a write has waited for
//! `urgent_us`, collection goes before all host operations until the collection ends (state 3).
//!
//! For Lee et al., a write of high priority enters state 3. Commands have no priority here. Instead, a write
//! that has waited long enough enters state 3, so reads cannot starve it.

use super::rule::{FtlState, ScheduleRule, ScheduleState, is_exhausted, pressed};

pub(super) const RULE: ScheduleRule = ScheduleRule {
    name: "semi-preemptive",
    about: "the host goes first between any two flash operations of collection; +merge +pipeline",
    decide,
    keeps_step: false,
    has_hard_threshold: true,
    steps_aside: true,
    suspends: false,
};

/// Decides by the soft and the hard threshold.
#[inline]
pub(super) fn decide(state: &FtlState<'_>) -> ScheduleState {
    if is_exhausted(state) {
        pressed(state)
    } else if state.free < state.soft || state.idle {
        ScheduleState::Collecting
    } else {
        ScheduleState::Idle
    }
}
