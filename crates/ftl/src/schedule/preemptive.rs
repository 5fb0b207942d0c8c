//! Preemptive collection: semi-preemptive, and a host read also suspends a program or an erase under
//! way, at a cost of `suspend_us` each time.
//!
//! "Reducing SSD Read Latency via NAND Flash Program and Erase Suspension" (Wu and He, FAST 2012). The
//! suspended operation goes on where it stopped once no host read waits on its die; it is not
//! suspended any more after [`SUSPENSIONS`] times, so that it ends.

use super::{FtlState, ScheduleRule, ScheduleState, semi_preemptive};

pub(super) const RULE: ScheduleRule = ScheduleRule {
    name: "preemptive",
    about: "semi-preemptive, and host reads suspend programs and erases; +merge +pipeline",
    decide,
    keeps_step: false,
    has_hard_threshold: true,
    steps_aside: true,
    suspends: true,
};

/// How many times an operation is suspended at most.
pub const SUSPENSIONS: u8 = 8;

/// The same states.
#[inline]
pub(super) fn decide(state: &FtlState) -> ScheduleState {
    semi_preemptive::decide(state)
}
