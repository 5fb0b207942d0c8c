//! Semi-preemptive collection: "A Semi-Preemptive Garbage Collector for Solid State Drives"
//! (Lee, Kim, Shipman, Oral, Wang, Kim; ISPASS 2011).
//!
//! Flash operations cannot be interrupted, but collection can be between them: after a page is read
//! and before it is written (it stays in a buffer), between pages, and before the erase. Every command that
//! arrives waits for the operation under way, never for the whole collection. Putting collection
//! off may exhaust the free segments, so writes wait below a hard threshold (state 2), and when a
//! write has waited for `urgent_us` nothing goes before collection until it ends (state 3).
//!
//! The paper enters state 3 for a write of high priority. Commands carry none here, so a write becomes
//! one by waiting: reads alone can then not starve it.

use super::{FtlState, ScheduleRule, ScheduleState, is_exhausted, pressed};

pub(super) const RULE: ScheduleRule = ScheduleRule {
    name: "semi-preemptive",
    about: "the host goes first between any two flash operations of collection; +merge +pipeline",
    decide,
    keeps_step: false,
    has_hard_threshold: true,
    steps_aside: true,
    suspends: false,
};

/// By the soft and the hard threshold.
#[inline]
pub(super) fn decide(state: &FtlState) -> ScheduleState {
    if is_exhausted(state) {
        pressed(state)
    } else if state.free < state.soft || state.idle {
        ScheduleState::Collecting
    } else {
        ScheduleState::Idle
    }
}
