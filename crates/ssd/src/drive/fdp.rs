//! The events of flexible data placement for the host. The drive reports two kinds. The proposal has others,
//! which cannot happen here: a handle goes to another reclaim unit only when its unit is full, and a unit may
//! stay open for any time.

use fulgurite_base::{Nanos, PlacementId};
use fulgurite_device::{FdpEvent, FdpEventKind, FdpLog};
use std::collections::VecDeque;

/// The number of all events of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FdpCounts {
    /// The number of writes with a placement identifier that the drive does not have.
    pub invalid_identifiers: u64,
    /// The number of reclaim units whose valid pages collection began to move.
    pub reallocated_units: u64,
}

impl FdpCounts {
    /// Returns the increase of each count since `before`.
    pub(super) fn since(&self, before: &FdpCounts) -> FdpCounts {
        FdpCounts {
            invalid_identifiers: self.invalid_identifiers - before.invalid_identifiers,
            reallocated_units: self.reallocated_units - before.reallocated_units,
        }
    }
}

/// The newest events, and the counts of all events.
#[derive(Clone, Debug, Default)]
pub(super) struct FdpEvents {
    counts: FdpCounts,
    newest: VecDeque<FdpEvent>,
}

impl FdpEvents {
    /// Keeps an event, and forgets the oldest one if there are too many.
    fn keep(&mut self, at: Nanos, kind: FdpEventKind) {
        if self.newest.len() == FdpLog::EVENTS_AT_MOST {
            self.newest.pop_front();
        }
        self.newest.push_back(FdpEvent { at, kind });
    }

    /// Keeps a write of the host with an identifier that the drive does not have.
    pub(super) fn invalid(&mut self, at: Nanos, id: PlacementId) {
        self.counts.invalid_identifiers += 1;
        self.keep(at, FdpEventKind::InvalidIdentifier(id));
    }

    /// Keeps the choice of a victim in a reclaim group, with valid pages that will be moved.
    pub(super) fn reallocated(&mut self, at: Nanos, group: u32, pages: u32) {
        self.counts.reallocated_units += 1;
        self.keep(at, FdpEventKind::MediaReallocated { group, pages });
    }

    /// Returns the counts of all events.
    pub(super) fn counts(&self) -> FdpCounts {
        self.counts
    }

    /// Returns the newest events, the oldest of them first.
    pub(super) fn newest(&self) -> Vec<FdpEvent> {
        self.newest.iter().copied().collect()
    }
}
