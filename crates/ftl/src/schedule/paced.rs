//! Paced collection: pages are moved in step with host writes.
//!
//! Enterprise drives do this so that a write never meets a whole collection. A victim with v valid
//! pages of N frees N − v, so v moves are spread over N − v host pages, and the reserve keeps its
//! size. Not from a paper; the schedule of the presets that stand for real drives.

use super::{FtlState, Progress, ScheduleRule, ScheduleState, is_exhausted, pressed};

pub(super) const RULE: ScheduleRule = ScheduleRule {
    name: "paced",
    about: "pages are moved in step with host writes; the host goes first",
    decide,
    keeps_step: true,
    has_hard_threshold: true,
    steps_aside: false,
    suspends: false,
};

/// Collection runs ahead of the host, or behind it, by [`ROWS`] at most.
#[inline]
pub(super) fn decide(state: &FtlState) -> ScheduleState {
    let wanted = state.free < state.soft || state.idle;
    match state.collection.map(|progress| lead(state, progress)) {
        _ if is_exhausted(state) => pressed(state),
        Some(Lead::Behind) => pressed(state),
        Some(Lead::Ahead) if !state.idle => ScheduleState::Idle,
        None if !wanted => ScheduleState::Idle,
        _ => ScheduleState::Collecting,
    }
}

/// How many rows over all planes that is: enough for all dies to work at once.
const ROWS: u32 = 16;

enum Lead {
    Behind,
    Level,
    Ahead,
}

/// Where the moves of a collection are, compared with the host pages written since it began.
#[inline]
fn lead(state: &FtlState, Progress { valid_at_pick, room_at_pick, moved, host_pages }: Progress) -> Lead {
    let slack = (ROWS * state.stripe_pages).min(state.segment_pages / 4);
    // What the collection will free or, where the host has used more than that before, what is left.
    let left = room_at_pick.saturating_sub(valid_at_pick + slack);
    let allowance = u64::from((state.segment_pages - valid_at_pick).min(left).max(1));
    let due = u64::from(valid_at_pick) * (u64::from(host_pages) + 1);
    if due > u64::from(moved + slack) * allowance {
        Lead::Behind
    } else if due + u64::from(slack) * allowance <= u64::from(moved) * allowance && moved < valid_at_pick {
        Lead::Ahead
    } else {
        Lead::Level
    }
}
