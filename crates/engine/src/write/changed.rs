//! Which pages differ from the drive, and since when.
//!
//! For each page that was changed: the place in the log from which recovery would have to begin to find the first change
//! that the drive does not have for sure. A page leaves the list when its write has ended *and* the drive was flushed
//! afterwards. The least place of all is as far as the redo point may move.

use crate::Lsn;
use fulgurite_base::PageId;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The changed pages of a store.
#[derive(Debug, Default)]
pub struct Changed {
    /// Changed since their last write began.
    changed: FxHashMap<PageId, Lsn>,
    /// Writes under way or ended, not known to be durable: by the number of the write, its least place.
    writes: BTreeMap<u64, (Lsn, bool)>,
    begun: u64,
}

/// A write under way.
#[derive(Clone, Debug)]
pub struct Writing {
    number: u64,
    pages: Vec<(PageId, Lsn)>,
}

impl Changed {
    /// A page is changed, as the log says from `since` on.
    pub fn mark(&mut self, page: PageId, since: Lsn) {
        let entry = self.changed.entry(page).or_insert(since);
        // A split may come between the record of an operation and its page, which then is new.
        *entry = (*entry).min(since);
    }

    /// Pages changed since their last write began.
    pub fn len(&self) -> usize {
        self.changed.len()
    }

    /// A write of pages begins: what is changed from now on is not in it.
    pub fn begin(&mut self, pages: impl Iterator<Item = PageId>) -> Writing {
        let pages: Vec<(PageId, Lsn)> =
            pages.filter_map(|page| Some((page, self.changed.remove(&page)?))).collect();
        self.begun += 1;
        if let Some(least) = pages.iter().map(|(_, since)| *since).min() {
            self.writes.insert(self.begun, (least, false));
        }
        Writing { number: self.begun, pages }
    }

    /// A write has ended, and is durable after the next flush.
    pub fn written(&mut self, write: &Writing) {
        if let Some((_, ended)) = self.writes.get_mut(&write.number) {
            *ended = true;
        }
    }

    /// A write has failed: its pages are changed as they were.
    pub fn failed(&mut self, write: Writing) {
        self.writes.remove(&write.number);
        for (page, since) in write.pages {
            let entry = self.changed.entry(page).or_insert(since);
            // It may have been changed again; the older place counts.
            *entry = (*entry).min(since);
        }
    }

    /// Writes that have ended, to be given to [`Changed::flushed`] after a flush that begins now.
    pub fn ended(&self) -> Vec<u64> {
        self.writes.iter().filter(|(_, (_, ended))| *ended).map(|(number, _)| *number).collect()
    }

    /// These writes are durable.
    pub fn flushed(&mut self, writes: &[u64]) {
        for write in writes {
            self.writes.remove(write);
        }
    }

    /// The place that recovery must not begin behind; `None` where the drive has everything.
    pub fn least(&self) -> Option<Lsn> {
        let changed = self.changed.values().copied();
        changed.chain(self.writes.values().map(|(least, _)| *least)).min()
    }

    /// Pages changed before `place`, in order of their numbers.
    pub fn before(&self, place: Lsn) -> Vec<PageId> {
        let mut pages: Vec<PageId> =
            self.changed.iter().filter(|(_, since)| **since < place).map(|(page, _)| *page).collect();
        pages.sort_unstable();
        pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_counts_until_its_write_is_durable() {
        let mut changed = Changed::default();
        changed.mark(PageId(1), Lsn(12));
        changed.mark(PageId(1), Lsn(10));
        changed.mark(PageId(1), Lsn(20));
        changed.mark(PageId(2), Lsn(15));
        assert_eq!(changed.least(), Some(Lsn(10)));
        let write = changed.begin([PageId(1), PageId(9)].into_iter());
        changed.mark(PageId(1), Lsn(30));
        assert_eq!((changed.least(), changed.ended()), (Some(Lsn(10)), vec![]));
        changed.written(&write);
        let ended = changed.ended();
        assert_eq!(changed.least(), Some(Lsn(10)), "written is not durable");
        changed.flushed(&ended);
        assert_eq!(changed.least(), Some(Lsn(15)));
        assert_eq!(changed.before(Lsn(30)), [PageId(2)]);
        let failing = changed.begin([PageId(1), PageId(2)].into_iter());
        changed.mark(PageId(2), Lsn(40));
        changed.failed(failing);
        assert_eq!(changed.before(Lsn(31)), [PageId(1), PageId(2)]);
        assert_eq!(changed.least(), Some(Lsn(15)));
    }
}
