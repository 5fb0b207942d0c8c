//! The events of flexible data placement for the host. The drive reports two kinds. The proposal has others,
//! which cannot happen here: a handle goes to another reclaim unit only when its unit is full, and a unit may
//! stay open for any time.

use fulgurite_base::{Nanos, PlacementId};
use fulgurite_device::{FdpEvent, FdpEventKind, FdpLog};
use std::collections::VecDeque;

/// The newest events, and the number of all events of each kind.
#[derive(Clone, Debug, Default)]
pub(super) struct FdpEvents {
    pub(super) invalid_identifiers: u64,
    pub(super) reallocated_units: u64,
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
        self.invalid_identifiers += 1;
        self.keep(at, FdpEventKind::InvalidIdentifier(id));
    }

    /// Keeps the choice of a victim in a reclaim group, with valid pages that will be moved.
    pub(super) fn reallocated(&mut self, at: Nanos, group: u32, pages: u32) {
        self.reallocated_units += 1;
        self.keep(at, FdpEventKind::MediaReallocated { group, pages });
    }

    /// Returns the newest events, the oldest of them first.
    pub(super) fn newest(&self) -> Vec<FdpEvent> {
        self.newest.iter().copied().collect()
    }
}
