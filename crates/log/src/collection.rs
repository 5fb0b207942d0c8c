//! The progress of a collection.

use fulgurite_device::IoError;
use fulgurite_ftl::{Ftl, UnitId};

/// The progress of the collection of the victim.
#[derive(Default)]
pub(crate) struct Collection {
    /// The first page not yet examined.
    pub(crate) next: u32,
    /// The end of the victim; 0 without a victim.
    pub(crate) end: u32,
    /// Pages being fetched or stored.
    pub(crate) moving: u32,
    /// The victim is being trimmed below.
    pub(crate) is_discarding: bool,
    /// The error that has ended collection for good.
    pub(crate) failure: Option<IoError>,
}

impl Collection {
    /// The collection that a translation layer used without time has left unfinished.
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
