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
    /// Writes under way or ended, not known to be durable, by number.
    writes: BTreeMap<u64, Write>,
    /// The last write of each page in `writes`.
    last: FxHashMap<PageId, u64>,
    begun: u64,
}

/// A write that is not known to be durable.
#[derive(Debug)]
struct Write {
    /// The least place that its pages were changed at.
    least: Lsn,
    ended: bool,
    /// The pages with the checksums that were written.
    pages: Vec<(PageId, u32)>,
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

    /// Whether a page was changed since its last write began.
    pub fn has(&self, page: PageId) -> bool {
        self.changed.contains_key(&page)
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
            self.writes.insert(self.begun, Write { least, ended: false, pages: Vec::new() });
        }
        Writing { number: self.begun, pages }
    }

    /// A write has ended, with these checksums, and is durable after the next flush.
    pub fn written(&mut self, write: &Writing, mut pages: Vec<(PageId, u32)>) {
        // A page that was made and not used after all is written as it is, and nobody cares for it.
        pages.retain(|(page, _)| write.pages.iter().any(|(changed, _)| changed == page));
        if let Some(known) = self.writes.get_mut(&write.number) {
            known.ended = true;
            for (page, _) in &pages {
                self.last.insert(*page, write.number);
            }
            known.pages = pages;
        }
    }

    /// The pages of writes that have ended, with their checksums, unless they were written again since.
    pub fn last_written(&self, writes: &[u64]) -> Vec<(PageId, u32)> {
        let written = writes.iter().filter_map(|number| Some((number, self.writes.get(number)?)));
        let last = written.flat_map(|(number, write)| {
            write.pages.iter().filter(move |(page, _)| self.last.get(page) == Some(number))
        });
        last.copied().collect()
    }

    /// Whether a write of `page` is under way, or has ended since these.
    pub fn is_written_again(&self, page: PageId, writes: &[u64]) -> bool {
        self.last.get(&page).is_none_or(|last| !writes.contains(last))
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
        self.writes.iter().filter(|(_, write)| write.ended).map(|(number, _)| *number).collect()
    }

    /// These writes are durable.
    pub fn flushed(&mut self, writes: &[u64]) {
        for number in writes {
            let Some(write) = self.writes.remove(number) else { continue };
            for (page, _) in write.pages {
                if self.last.get(&page) == Some(number) {
                    self.last.remove(&page);
                }
            }
        }
    }

    /// The place that recovery must not begin behind; `None` where the drive has everything.
    pub fn least(&self) -> Option<Lsn> {
        let changed = self.changed.values().copied();
        changed.chain(self.writes.values().map(|write| write.least)).min()
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
        changed.written(&write, vec![(PageId(1), 77)]);
        let ended = changed.ended();
        assert_eq!(changed.least(), Some(Lsn(10)), "written is not durable");
        assert_eq!(changed.last_written(&ended), [(PageId(1), 77)]);
        changed.flushed(&ended);
        assert!(changed.last.is_empty());
        assert_eq!(changed.least(), Some(Lsn(15)));
        assert_eq!(changed.before(Lsn(30)), [PageId(2)]);
        let failing = changed.begin([PageId(1), PageId(2)].into_iter());
        changed.mark(PageId(2), Lsn(40));
        changed.failed(failing);
        assert_eq!(changed.before(Lsn(31)), [PageId(1), PageId(2)]);
        assert_eq!(changed.least(), Some(Lsn(15)));
    }
}
