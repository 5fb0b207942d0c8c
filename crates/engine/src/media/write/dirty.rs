//! Tracks the dirty pages, and the LSN from which each dirty page must be recovered.
//!
//! Each dirty page has a lower bound of the LSNs of those of its changes that may not be durable. A page
//! stays dirty until its write has completed *and* the drive was flushed afterwards. The redo point may move
//! up to the smallest of the lower bounds. A delta of a page counts like a page that is being written.

use crate::Lsn;
use fulgurite_base::PageId;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// The dirty pages of a store.
#[derive(Debug, Default)]
pub(crate) struct DirtyPages {
    /// The pages that were changed since their last write began, with the lower bounds of the LSNs of these
    /// changes.
    changed: FxHashMap<PageId, Lsn>,
    /// The writes, in progress or completed, that may not be durable, by their numbers.
    writes: BTreeMap<u64, Write>,
    /// The number of the last completed write of each page, if that write is in `writes`.
    last: FxHashMap<PageId, u64>,
    /// The pages whose last write failed. Their contents on the drive are unknown.
    failed: FxHashSet<PageId>,
    begun: u64,
}

/// A write that may not be durable.
#[derive(Debug)]
struct Write {
    /// The smallest lower bound of the LSNs of its pages.
    least: Lsn,
    ended: bool,
    /// The dirty pages of the write with the checksums that were written; empty until the write has
    /// completed.
    pages: Vec<(PageId, u32)>,
}

/// A write of pages that is in progress.
#[derive(Clone, Debug)]
pub(crate) struct Writing {
    number: u64,
    /// The pages with the lower bounds of the LSNs of their changes. `None` for a page that was not dirty,
    /// such as a page of a tree that is being built: no crash needs its contents before the tree is complete.
    pages: Vec<(PageId, Option<Lsn>)>,
}

impl DirtyPages {
    /// Marks a page as dirty because of a change that a record at `since` made.
    pub(crate) fn mark(&mut self, page: PageId, since: Lsn) {
        let entry = self.changed.entry(page).or_insert(since);
        // Keep the lower LSN. A split that was logged after an operation, but before the operation was
        // applied, may have moved its key to a page that is dirty since the split.
        *entry = (*entry).min(since);
    }

    /// Whether a page was changed since its last write began.
    pub(crate) fn has(&self, page: PageId) -> bool {
        self.changed.contains_key(&page)
    }

    /// Returns the number of pages that were changed since their last write began.
    pub(crate) fn len(&self) -> usize {
        self.changed.len()
    }

    /// Begins a write of pages. The write does not contain changes that are made after this call.
    pub(crate) fn begin(&mut self, pages: impl Iterator<Item = PageId>) -> Writing {
        let pages: Vec<(PageId, Option<Lsn>)> =
            pages.map(|page| (page, self.changed.remove(&page))).collect();
        self.begun += 1;
        if let Some(least) = pages.iter().filter_map(|(_, since)| *since).min() {
            self.writes.insert(self.begun, Write { least, ended: false, pages: Vec::new() });
        }
        Writing { number: self.begun, pages }
    }

    /// Begins a write of deltas of pages, whose records are in the log from these LSNs on. The pages no longer
    /// have the contents of their last writes, because readers get the deltas from now on.
    pub(crate) fn begin_deltas(&mut self, deltas: &[(PageId, Lsn)]) -> Writing {
        self.begun += 1;
        for (page, _) in deltas {
            self.last.remove(page);
        }
        if let Some(least) = deltas.iter().map(|(_, since)| *since).min() {
            self.writes.insert(self.begun, Write { least, ended: false, pages: Vec::new() });
        }
        Writing { number: self.begun, pages: Vec::new() }
    }

    /// Marks a write as completed, with the checksums of its pages. The write is durable after the next
    /// flush.
    pub(crate) fn written(&mut self, write: &Writing, mut pages: Vec<(PageId, u32)>) {
        let is_changed = |page| write.pages.iter().any(|(known, since)| *known == page && since.is_some());
        pages.retain(|(page, _)| is_changed(*page));
        // The page no longer has the contents of earlier writes, even if it was freed, allocated again and is
        // not dirty.
        for (page, _) in &write.pages {
            self.last.remove(page);
        }
        if let Some(known) = self.writes.get_mut(&write.number) {
            known.ended = true;
            for (page, _) in &pages {
                self.last.insert(*page, write.number);
            }
            known.pages = pages;
        }
        for (page, _) in &write.pages {
            self.failed.remove(page);
        }
    }

    /// Returns the pages of completed writes with their checksums, except for pages that were written again
    /// since.
    pub(crate) fn last_written(&self, writes: &[u64]) -> Vec<(PageId, u32)> {
        let written = writes.iter().filter_map(|number| Some((number, self.writes.get(number)?)));
        let last = written.flat_map(|(number, write)| {
            write.pages.iter().filter(move |(page, _)| self.last.get(page) == Some(number))
        });
        last.copied().collect()
    }

    /// Whether the last write of `page` failed.
    pub(crate) fn has_failed(&self, page: PageId) -> bool {
        self.failed.contains(&page)
    }

    /// Whether a write of `page` other than these has completed since.
    pub(crate) fn is_written_again(&self, page: PageId, writes: &[u64]) -> bool {
        self.last.get(&page).is_none_or(|last| !writes.contains(last))
    }

    /// Marks a write as failed. Its pages are dirty as before the write.
    pub(crate) fn failed(&mut self, write: Writing) {
        self.writes.remove(&write.number);
        for (page, since) in write.pages {
            self.failed.insert(page);
            let Some(since) = since else { continue };
            let entry = self.changed.entry(page).or_insert(since);
            // The page may have been changed again since the write began, so the lower LSN is kept.
            *entry = (*entry).min(since);
        }
    }

    /// Returns the numbers of completed writes. Pass them to [`DirtyPages::flushed`] after a flush that
    /// begins now.
    pub(crate) fn ended(&self) -> Vec<u64> {
        self.writes.iter().filter(|(_, write)| write.ended).map(|(number, _)| *number).collect()
    }

    /// Marks writes as durable, except for pages in `unsure`. Those pages were written again meanwhile and
    /// could not be verified, so they stay dirty until a later flush.
    pub(crate) fn flushed(&mut self, writes: &[u64], unsure: &[PageId]) {
        for number in writes {
            let Some(write) = self.writes.get_mut(number) else { continue };
            write.pages.retain(|(page, _)| {
                let is_unsure = unsure.contains(page);
                if !is_unsure && self.last.get(page) == Some(number) {
                    self.last.remove(page);
                }
                is_unsure
            });
            if write.pages.is_empty() {
                self.writes.remove(number);
            }
        }
    }

    /// Returns the upper limit of the redo point; `None` if no page is dirty.
    pub(crate) fn least(&self) -> Option<Lsn> {
        let changed = self.changed.values().copied();
        changed.chain(self.writes.values().map(|write| write.least)).min()
    }

    /// Returns the pages with changes before LSN `place`, in the order of their numbers.
    pub(crate) fn before(&self, place: Lsn) -> Vec<PageId> {
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
    fn a_page_is_dirty_until_its_write_is_durable() {
        let mut changed = DirtyPages::default();
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
        changed.flushed(&ended, &[]);
        assert!(changed.last.is_empty());
        assert_eq!(changed.least(), Some(Lsn(15)));
        assert_eq!(changed.before(Lsn(30)), [PageId(2)]);
        let failing = changed.begin([PageId(1), PageId(2)].into_iter());
        changed.mark(PageId(2), Lsn(40));
        changed.failed(failing);
        assert_eq!(changed.before(Lsn(31)), [PageId(1), PageId(2)]);
        assert_eq!(changed.least(), Some(Lsn(15)));
    }

    /// Creates a state in which pages 1 and 2 are written together, then page 1 alone. The first write has
    /// completed, and the second one is in progress.
    fn written_twice() -> (DirtyPages, Writing) {
        let mut changed = DirtyPages::default();
        changed.mark(PageId(1), Lsn(10));
        changed.mark(PageId(2), Lsn(20));
        let first = changed.begin([PageId(1), PageId(2)].into_iter());
        changed.written(&first, vec![(PageId(1), 71), (PageId(2), 72)]);
        changed.mark(PageId(1), Lsn(30));
        let second = changed.begin([PageId(1)].into_iter());
        (changed, second)
    }

    #[test]
    fn a_write_counts_until_each_page_or_a_later_write_of_it_is_verified() {
        for later_sees in [PageId(1), PageId(2)] {
            let (mut changed, second) = written_twice();
            let ended = changed.ended();
            assert_eq!(ended, [1]);
            changed.flushed(&ended, &[PageId(1), PageId(2)]);
            assert_eq!(changed.least(), Some(Lsn(10)), "the log of the first write is still needed");
            changed.written(&second, vec![(PageId(1), 73)]);
            assert!(
                changed.is_written_again(PageId(1), &ended) && !changed.is_written_again(PageId(2), &ended)
            );
            // In two more flushes, the first one verifies one of the pages, the second one the other.
            let ended = changed.ended();
            assert_eq!(changed.last_written(&ended), [(PageId(2), 72), (PageId(1), 73)]);
            changed.flushed(&ended, &[later_sees]);
            assert_eq!(changed.least(), Some(Lsn(10)));
            let ended = changed.ended();
            assert_eq!(changed.last_written(&ended).len(), 1);
            changed.flushed(&ended, &[]);
            assert_eq!(changed.least(), None);
            assert!(changed.writes.is_empty() && changed.last.is_empty());
        }
    }

    /// A page that was freed and allocated again may be written before its new use is in the log. It no
    /// longer has the contents of its earlier write, and verification must not report the earlier write as
    /// lost.
    #[test]
    fn a_reused_page_does_not_hold_its_earlier_contents() {
        let mut changed = DirtyPages::default();
        changed.mark(PageId(1), Lsn(10));
        let write = changed.begin([PageId(1)].into_iter());
        changed.written(&write, vec![(PageId(1), 71)]);
        let ended = changed.ended();
        let again = changed.begin([PageId(1)].into_iter());
        changed.failed(again);
        assert!(changed.has_failed(PageId(1)) && changed.before(Lsn(99)).is_empty());
        let again = changed.begin([PageId(1)].into_iter());
        changed.written(&again, vec![(PageId(1), 72)]);
        assert!(!changed.has_failed(PageId(1)) && changed.is_written_again(PageId(1), &ended));
        assert_eq!(changed.last_written(&ended), []);
        changed.flushed(&ended, &[]);
        assert_eq!(changed.least(), None);
    }

    /// The rule: deltas hold the redo point until they are flushed, and the checksum of an earlier write of
    /// their page is not expected any more.
    #[test]
    fn deltas_hold_the_redo_point_until_they_are_durable() {
        let mut changed = DirtyPages::default();
        changed.mark(PageId(1), Lsn(30));
        let write = changed.begin([PageId(1)].into_iter());
        changed.written(&write, vec![(PageId(1), 71)]);
        let earlier = changed.ended();
        let deltas = changed.begin_deltas(&[(PageId(1), Lsn(20)), (PageId(2), Lsn(10))]);
        assert_eq!((changed.least(), changed.last_written(&earlier)), (Some(Lsn(10)), vec![]));
        changed.flushed(&earlier, &[]);
        assert_eq!((changed.least(), changed.ended()), (Some(Lsn(10)), vec![]));
        changed.written(&deltas, Vec::new());
        changed.flushed(&changed.ended(), &[]);
        assert_eq!(changed.least(), None);
    }

    #[test]
    fn a_failed_write_leaves_its_page_unknown_until_one_succeeds() {
        let (mut changed, second) = written_twice();
        assert!(!changed.has_failed(PageId(1)));
        changed.failed(second);
        assert!(changed.has_failed(PageId(1)) && !changed.has_failed(PageId(2)));
        let third = changed.begin([PageId(1)].into_iter());
        changed.written(&third, vec![(PageId(1), 74)]);
        assert!(!changed.has_failed(PageId(1)));
    }
}
