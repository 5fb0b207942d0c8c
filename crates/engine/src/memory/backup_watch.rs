//! Pages that change while a backup copies them.

use fulgurite_base::PageId;
use std::collections::BTreeSet;

/// The pages that an ongoing backup has to copy again, or for the first time.
#[derive(Debug, Default)]
pub(crate) struct BackupWatch {
    /// Pages changed since they were copied.
    pub touched: BTreeSet<PageId>,
    /// Pages allocated meanwhile, with contents that are not in the log.
    pub unlogged: BTreeSet<PageId>,
}

impl BackupWatch {
    /// Notes a change of a page.
    pub(crate) fn touch(&mut self, page: PageId) {
        self.touched.insert(page);
    }

    /// Notes an allocated page whose contents are not in the log.
    pub(crate) fn unlogged(&mut self, page: PageId) {
        self.unlogged.insert(page);
    }
}
