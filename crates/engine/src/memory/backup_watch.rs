//! Pages that change while a backup copies them.

use fulgurite_base::PageId;
use std::collections::BTreeSet;

/// What a store notes while a backup is made.
#[derive(Debug, Default)]
pub struct BackupWatch {
    /// Pages changed since they were copied.
    pub touched: BTreeSet<PageId>,
    /// Pages that have become used with contents that no log has.
    pub unlogged: BTreeSet<PageId>,
}

impl BackupWatch {
    /// A page is changed.
    pub fn touch(&mut self, page: PageId) {
        self.touched.insert(page);
    }

    /// A page becomes used with contents that are not in the log.
    pub fn unlogged(&mut self, page: PageId) {
        self.unlogged.insert(page);
    }
}
