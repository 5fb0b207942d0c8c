//! The zones of a zoned drive (NVMe Zoned Namespace command set) as a host sees them.

use fulgurite_base::Lpn;
use thiserror::Error;

/// The zones of a device. The pages before the first zone are conventional: they may be written in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneCaps {
    /// The number of pages of a zone.
    pub zone_pages: u32,
    /// The number of conventional pages.
    pub conventional_pages: u32,
    /// The most zones that may be begun and not full at once.
    pub active: u16,
}

/// A zone, as a report of zones says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// The first page.
    pub first: Lpn,
    /// The number of written pages. The write pointer is so many pages behind the first page, unless the zone
    /// is full.
    pub written: u32,
}

/// The rule of zones that a command has broken. The command changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ZoneError {
    /// A write has pages of two zones, or of a zone and the conventional part (Zone Boundary Error, B8h).
    #[error("the write crosses the end of a zone")]
    Boundary,
    /// A write is to a full zone (Zone Is Full, B9h).
    #[error("the zone is full; reset it first")]
    Full,
    /// A write does not begin at the write pointer (Zone Invalid Write, BCh).
    #[error("the write does not begin at the write pointer of its zone")]
    NotAtWritePointer,
    /// A write would begin a zone while as many as may be are begun and not full (Too Many Active Zones, BDh).
    #[error("as many zones as the device allows are begun and not full")]
    TooManyActive,
    /// A trim has a part of a zone.
    #[error("the trim has a part of a zone, and a zone is reset as a whole")]
    PartOfZone,
}
