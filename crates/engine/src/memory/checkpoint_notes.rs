//! Tracks the pages whose image in the log is incomplete (see the module `checkpoint_notes` of
//! [`crate::shard`]).

use crate::Lsn;
use fulgurite_base::PageId;
use rustc_hash::FxHashMap;

/// The operations that a page contains and its image lacks.
#[derive(Clone, Copy, Debug)]
struct Lacking {
    /// The LSN of the page's last structure change.
    made: Lsn,
    /// The LSN of the first operation that is older than the structure change and was applied after it.
    since: Lsn,
    /// Whether the log records that the page was written.
    is_noted: bool,
}

/// The pages to which operations older than their images were applied. They are no more than the structure
/// changes after the redo point.
#[derive(Debug, Default)]
pub(crate) struct CheckpointNotes(FxHashMap<PageId, Lacking>);

impl CheckpointNotes {
    /// Records that an operation is applied to a page. The operation is in the log from `since` on. The
    /// structure of the page last changed at `made`.
    pub(crate) fn put(&mut self, page: PageId, made: Lsn, since: Lsn) {
        let new = Lacking { made, since, is_noted: false };
        let known = self.0.entry(page).or_insert(new);
        // `is_noted` is kept, because only a new image makes the record in the log obsolete, and a new image
        // calls `forget`.
        *known = Lacking { made, since: known.since.min(since), is_noted: known.is_noted };
    }

    /// Removes a page that has a complete image now, or was freed.
    pub(crate) fn forget(&mut self, page: PageId) {
        self.0.remove(&page);
    }

    /// Returns the pages that the log must record as written before the redo point moves to `redo`. Removes
    /// the pages whose images are before `redo`.
    pub(crate) fn due(&mut self, redo: Lsn) -> Vec<PageId> {
        self.0.retain(|_, lacking| lacking.made > redo);
        let due = self.0.iter().filter(|(_, lacking)| lacking.since < redo && !lacking.is_noted);
        let mut due: Vec<PageId> = due.map(|(page, _)| *page).collect();
        due.sort_unstable();
        due
    }

    pub(crate) fn noted(&mut self, pages: &[PageId]) {
        for page in pages {
            if let Some(lacking) = self.0.get_mut(page) {
                lacking.is_noted = true;
            }
        }
    }
}
