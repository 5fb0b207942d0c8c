//! Flexible data placement (FDP, NVMe technical proposal 4146) as a host sees it: the capabilities of the
//! drive, its statistics and its events.

use fulgurite_base::{Isolation, Nanos, PlacementId};

/// The capabilities of a drive with flexible data placement, as in its configuration log page (20h). The host
/// names a [`PlacementId`] as the stream of each write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdpCaps {
    /// The number of reclaim groups.
    pub groups: u32,
    /// The number of reclaim-unit handles.
    pub handles: u16,
    /// Whether collection may mix the pages of different handles.
    pub isolation: Isolation,
    /// The number of pages of a reclaim unit.
    pub unit_pages: u32,
}

impl FdpCaps {
    /// Returns whether the drive has the handle of this identifier, and its group.
    #[inline]
    pub fn has(&self, id: PlacementId) -> bool {
        u16::from(id.handle) < self.handles && id.group.is_none_or(|group| u32::from(group) < self.groups)
    }
}

/// An event of the log page of events (23h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdpEvent {
    /// The time of the event on the device's clock.
    pub at: Nanos,
    /// The kind of the event.
    pub kind: FdpEventKind,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FdpEventKind {
    /// A write named an identifier that the drive does not have (03h). It went where the drive chose.
    InvalidIdentifier(PlacementId),
    /// Garbage collection began to move the valid pages of a reclaim unit (80h).
    MediaReallocated {
        /// The reclaim group of the unit.
        group: u32,
        /// The number of valid pages.
        pages: u32,
    },
}

/// The statistics (log page 22h) and events (23h) of a drive since it was set up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FdpLog {
    /// The bytes that the host wrote (HBMW).
    pub host_bytes_written: u64,
    /// The bytes that were written to the flash, for the host and by collection (MBMW).
    pub media_bytes_written: u64,
    /// The bytes of the reclaim units that were erased (MBE).
    pub media_bytes_erased: u64,
    /// The newest events, the oldest of them first; at most [`FdpLog::EVENTS_AT_MOST`].
    pub events: Vec<FdpEvent>,
}

impl FdpLog {
    /// The most events that a drive keeps.
    pub const EVENTS_AT_MOST: usize = 64;
}
