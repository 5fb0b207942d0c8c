//! Pages whose image in the log is not all of them (see [`crate::shard`]'s checkpoint notes).

use crate::Lsn;
use fulgurite_base::PageId;
use rustc_hash::FxHashMap;

/// What is known of a page.
#[derive(Clone, Copy, Debug)]
struct Lacking {
    /// Where the last change of its structure ends.
    made: Lsn,
    /// The first operation from before that which it got later.
    since: Lsn,
    /// Whether the log says that the drive has the page.
    is_noted: bool,
}

/// Pages that got operations from before their images. There are no more than structure changes behind the redo point.
#[derive(Debug, Default)]
pub struct CheckpointNotes(FxHashMap<PageId, Lacking>);

impl CheckpointNotes {
    /// A page, whose structure changed last at `made`, gets an operation that the log has from `since` on.
    pub fn put(&mut self, page: PageId, made: Lsn, since: Lsn) {
        let new = Lacking { made, since, is_noted: false };
        let known = self.0.entry(page).or_insert(new);
        // An image is the only thing that makes a note worthless, and it has the page forgotten.
        *known = Lacking { made, since: known.since.min(since), is_noted: known.is_noted };
    }

    /// A page has an image with all that it has, or is given back.
    pub fn forget(&mut self, page: PageId) {
        self.0.remove(&page);
    }

    /// The pages to be noted before the redo point moves to `redo`. Those whose images it leaves behind are forgotten.
    pub fn due(&mut self, redo: Lsn) -> Vec<PageId> {
        self.0.retain(|_, lacking| lacking.made > redo);
        let due = self.0.iter().filter(|(_, lacking)| lacking.since < redo && !lacking.is_noted);
        let mut due: Vec<PageId> = due.map(|(page, _)| *page).collect();
        due.sort_unstable();
        due
    }

    pub fn noted(&mut self, pages: &[PageId]) {
        for page in pages {
            if let Some(lacking) = self.0.get_mut(page) {
                lacking.is_noted = true;
            }
        }
    }
}
