//! Tracks the pages that change while a backup copies them.

use fulgurite_base::PageId;
use std::collections::BTreeSet;

/// The pages that the running backup has to copy again, or for the first time.
#[derive(Debug, Default)]
pub(crate) struct BackupWatch {
    /// The pages that were changed since the backup copied them.
    pub touched: BTreeSet<PageId>,
    /// The pages that were allocated during the backup with contents that are not in the log.
    pub unlogged: BTreeSet<PageId>,
}

impl BackupWatch {
    /// Records a change of a page.
    pub(crate) fn touch(&mut self, page: PageId) {
        self.touched.insert(page);
    }

    /// Records an allocated page whose contents are not in the log.
    pub(crate) fn unlogged(&mut self, page: PageId) {
        self.unlogged.insert(page);
    }
}
