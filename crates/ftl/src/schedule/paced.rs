//! Paced collection: pages are moved in step with host writes.
//!
//! Enterprise drives do this so that a write never waits for a whole collection. A victim with v valid pages
//! of N frees N − v. So v moves are spread over N − v host pages, and the number of free segments stays the
//! same. This rule is not from a paper. The presets of real drives use it.

use super::rule::{FtlState, Progress, ScheduleRule, ScheduleState, is_exhausted, pressed};

pub(super) const RULE: ScheduleRule = ScheduleRule {
    name: "paced",
    about: "pages are moved in step with host writes; the host goes first",
    decide,
    keeps_step: true,
    has_hard_threshold: true,
    steps_aside: false,
    suspends: false,
};

/// Keeps collection within a slack of at most [`ROWS`] rows ahead of the host or behind it.
#[inline]
pub(super) fn decide(state: &FtlState<'_>) -> ScheduleState {
    let wanted = state.free < state.soft || state.idle;
    match state.collection.map(|progress| lead(state, progress)) {
        _ if is_exhausted(state) => pressed(state),
        Some(Lead::Behind) => pressed(state),
        Some(Lead::Ahead) if !state.idle => ScheduleState::Idle,
        None if !wanted => ScheduleState::Idle,
        _ => ScheduleState::Collecting,
    }
}

/// The number of rows across all planes in the slack, enough for all dies to work at once.
const ROWS: u32 = 16;

#[derive(Debug, PartialEq, Eq)]
enum Lead {
    Behind,
    Level,
    Ahead,
}

/// Compares the progress of a collection with the host pages written since the collection began.
#[inline]
fn lead(
    state: &FtlState<'_>,
    &Progress { valid_at_pick, room_at_pick, moved, host_pages }: &Progress,
) -> Lead {
    let slack = (ROWS * state.stripe_pages).min(state.segment_pages / 4);
    // The room for the host during the collection. The moves are spread over the pages that the collection
    // will free, or over this room if it is smaller.
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

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: FtlState<'static> = FtlState { soft: 6, ..FtlState::CALM };

    /// Returns the lead in a segment of 64 pages, of which collection moves 32 and frees 32: one move for
    /// each host page. Its slack is a quarter of a segment, 16 moves.
    fn lead_at(moved: u32, host_pages: u32) -> Lead {
        lead_of(32, 1_000, moved, host_pages)
    }

    fn lead_of(valid_at_pick: u32, room_at_pick: u32, moved: u32, host_pages: u32) -> Lead {
        lead(&STATE, &Progress { valid_at_pick, room_at_pick, moved, host_pages })
    }

    /// The rule: the pace counts the next host page in advance, so that there is room for it.
    #[test]
    fn collection_is_behind_one_page_after_its_slack() {
        assert_eq!(lead_at(0, 15), Lead::Level, "16 moves are due");
        assert_eq!(lead_at(0, 16), Lead::Behind, "17 are");
        assert_eq!(lead_at(1, 16), Lead::Level, "one of them was made");
    }

    #[test]
    fn collection_is_ahead_from_its_slack_on_until_all_is_moved() {
        assert_eq!(lead_at(16, 0), Lead::Level, "15 moves more than are due");
        assert_eq!(lead_at(17, 0), Lead::Ahead, "16 more");
        assert_eq!(lead_at(31, 14), Lead::Ahead);
        assert_eq!(lead_at(32, 15), Lead::Level, "what is left is to erase");
    }

    /// The rule: a collection ahead of the host pauses, unless the drive is idle. A collection that is not
    /// ahead continues, even if no segment is wanted any more. A new collection begins if a segment is wanted
    /// or the drive is idle.
    #[test]
    fn a_collection_ahead_of_the_host_pauses() {
        let at = |moved: u32, idle: bool, free: u32| {
            let progress = Progress { valid_at_pick: 32, room_at_pick: 1_000, moved, host_pages: 0 };
            decide(&FtlState { collection: Some(&progress), idle, free, ..STATE })
        };
        assert_eq!(at(17, false, 5), ScheduleState::Idle, "it is ahead");
        assert_eq!(at(17, true, 5), ScheduleState::Collecting, "nobody needs the drive");
        assert_eq!(at(16, false, 5), ScheduleState::Collecting);
        assert_eq!(at(16, false, 6), ScheduleState::Collecting, "what was begun is ended");
        let without = |idle, free| decide(&FtlState { idle, free, ..STATE });
        assert_eq!(without(false, 5), ScheduleState::Collecting);
        assert_eq!(without(false, 6), ScheduleState::Idle);
        assert_eq!(without(true, 6), ScheduleState::Collecting);
    }

    /// The rule: the pace follows the pages that the victim frees. Here it is three moves for each host page,
    /// and then none.
    #[test]
    fn the_pace_follows_the_pages_that_the_victim_frees() {
        assert_eq!(lead_of(48, 1_000, 2, 5), Lead::Level, "18 moves are due after six pages");
        assert_eq!(lead_of(48, 1_000, 1, 5), Lead::Behind);
        assert_eq!(lead_of(0, 1_000, 0, 63), Lead::Level, "nothing is due");
    }

    /// The rule: if the copies and the slack leave less room than the victim frees, the moves are spread over
    /// that room.
    #[test]
    fn little_room_speeds_up_collection() {
        // There is room for eight host pages, so four moves are due for each.
        let little = 32 + 16 + 8;
        assert_eq!(lead_of(32, little, 0, 3), Lead::Level, "16 moves are due");
        assert_eq!(lead_of(32, little, 0, 4), Lead::Behind, "20 are");
        assert_eq!(lead_of(32, little, 4, 4), Lead::Level);
        // If there is as much room as the victim frees, the pace does not change.
        assert_eq!(lead_of(32, 32 + 16 + 32, 0, 15), Lead::Level);
        // Without room, every move is due at the first page, except for the slack.
        assert_eq!(lead_of(32, 0, 15, 0), Lead::Behind);
        assert_eq!(lead_of(32, 0, 16, 0), Lead::Level);
    }

    /// The rule: the slack is sixteen rows across all planes, if a quarter of a segment is more.
    #[test]
    fn the_slack_is_sixteen_rows_of_a_large_segment() {
        let state = FtlState { segment_pages: 1_024, stripe_pages: 2, ..STATE };
        let progress = Progress { valid_at_pick: 512, room_at_pick: 10_000, moved: 0, host_pages: 31 };
        assert_eq!(lead(&state, &progress), Lead::Level, "32 moves are due");
        assert_eq!(lead(&state, &Progress { host_pages: 32, ..progress }), Lead::Behind, "33 are");
    }
}
