//! Preemptive collection: like semi-preemptive, but a host read also suspends a running program or erase, at
//! a cost of `suspend_us` each time.
//!
//! "Reducing SSD Read Latency via NAND Flash Program and Erase Suspension" (Wu and He, FAST 2012). The
//! suspended operation resumes when no host read waits for its die. After [`SUSPENSIONS`] suspensions the
//! operation runs to its end.

use super::rule::{FtlState, ScheduleRule, ScheduleState};
use super::semi_preemptive;

pub(super) const RULE: ScheduleRule = ScheduleRule {
    name: "preemptive",
    about: "semi-preemptive, and host reads suspend programs and erases; +merge +pipeline",
    decide,
    keeps_step: false,
    has_hard_threshold: true,
    steps_aside: true,
    suspends: true,
};

/// The most suspensions of one operation, unless a drive says otherwise.
pub const SUSPENSIONS: u32 = 8;

/// Returns the same states as semi-preemptive.
#[inline]
pub(super) fn decide(state: &FtlState<'_>) -> ScheduleState {
    semi_preemptive::decide(state)
}
