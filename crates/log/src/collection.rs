//! The progress of a garbage collection in its victim segment.

use fulgurite_device::IoError;
use fulgurite_ftl::{Ftl, UnitId};

/// The progress of the garbage collection of the victim segment.
#[derive(Default)]
pub(crate) struct Collection {
    /// The first page of the victim that is not examined yet.
    pub(crate) next: u32,
    /// The page after the victim's last page; 0 without a victim.
    pub(crate) end: u32,
    /// The number of the victim's pages that are being read or whose copies are being written.
    pub(crate) moving: u32,
    /// Whether the victim is being trimmed on the drive below.
    pub(crate) is_discarding: bool,
    /// The error that has ended collection for good; `None` while collection works.
    pub(crate) failure: Option<IoError>,
}

impl Collection {
    /// Returns the progress of a collection that was begun, and not ended, in a translation layer used
    /// without virtual time.
    pub(crate) fn resumed(ftl: &Ftl) -> Collection {
        let mut collection = Collection::default();
        collection.begin(ftl);
        collection
    }

    pub(crate) fn begin(&mut self, ftl: &Ftl) {
        if let Some(victim) = ftl.victim(UnitId(0)) {
            let segment_pages = ftl.config().segment_pages;
            (self.next, self.end) = (victim.0 * segment_pages, (victim.0 + 1) * segment_pages);
        }
    }
}
