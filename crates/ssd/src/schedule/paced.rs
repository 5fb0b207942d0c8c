//! Paced collection: pages are moved in step with host writes.
//!
//! What enterprise drives do so that a write never meets a whole collection: a victim with v valid
//! pages of N frees N − v, so v moves are spread over N − v host pages. The reserve then neither
//! grows nor shrinks. Not from a paper; the schedule of the presets that stand for real drives.

use super::{Budget, FtlState, Progress};

/// As many moves as keep the share of valid pages moved level with the share of space used up.
#[inline]
pub(super) fn decide(state: &FtlState) -> Budget {
    if state.free == 0 {
        return Budget::Refill;
    }
    match state.collection {
        None if state.free >= state.reserve => Budget::Moves(0),
        None => Budget::Moves(1),
        Some(Progress { valid_at_pick, moved, host_pages }) => {
            let gained = u64::from(state.segment_pages - valid_at_pick).max(1);
            let due = (u64::from(valid_at_pick) * (u64::from(host_pages) + 1)).div_ceil(gained);
            Budget::Moves(u32::try_from(due).unwrap_or(u32::MAX).saturating_sub(moved))
        }
    }
}
