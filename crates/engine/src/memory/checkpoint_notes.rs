//! Pages whose image in the log is incomplete (see [`crate::shard`]'s checkpoint notes).

use crate::Lsn;
use fulgurite_base::PageId;
use rustc_hash::FxHashMap;

/// The operations that a page has and its image lacks.
#[derive(Clone, Copy, Debug)]
struct Lacking {
    /// The LSN of the page's last structure change.
    made: Lsn,
    /// The first operation that is older than the structure change and was applied after it.
    since: Lsn,
    /// Whether the log records that the page was written.
    is_noted: bool,
}

/// Pages to which operations older than their images were applied. There are no more of them than structure
/// changes after the redo point.
#[derive(Debug, Default)]
pub(crate) struct CheckpointNotes(FxHashMap<PageId, Lacking>);

impl CheckpointNotes {
    /// An operation that is in the log from `since` on is applied to a page whose structure last changed at
    /// `made`.
    pub(crate) fn put(&mut self, page: PageId, made: Lsn, since: Lsn) {
        let new = Lacking { made, since, is_noted: false };
        let known = self.0.entry(page).or_insert(new);
        // The note is kept: only a new image makes it obsolete, and an image calls `forget`.
        *known = Lacking { made, since: known.since.min(since), is_noted: known.is_noted };
    }

    /// Removes a page that has a complete image, or was freed.
    pub(crate) fn forget(&mut self, page: PageId) {
        self.0.remove(&page);
    }

    /// The pages to be noted before the redo point moves to `redo`. Pages whose images are before it are
    /// removed.
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
