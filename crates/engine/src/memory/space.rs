//! Allocates pages.
//!
//! The maps of used pages on the drive, one for each group of pages, are authoritative. They change together
//! with the structure of trees, and the changes are logged with it. Memory has three counts. The first is the
//! number of free pages in each group. The second is the number of pages that were picked for a structure
//! change that is not in the log yet. The third is the number of pages reserved for commits that are in the
//! log but not yet applied. Applying such a commit must not fail for lack of space.

use crate::format::page::map;
use crate::{Error, Lsn};
use fulgurite_base::PageId;
use rustc_hash::FxHashSet;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;

/// Returns the number of pages reserved for recovery, which may need more than normal operation did. This is
/// a 64th of the store and 16 more.
fn kept_for_recovery(pages: u64) -> u64 {
    pages / 64 + 16
}

/// Tracks the free pages of a store.
pub(crate) struct Space {
    first: PageId,
    pages: u64,
    per_group: u64,
    /// The number of free pages in each group, and the number in all groups.
    free: RefCell<Vec<u32>>,
    all_free: Cell<u64>,
    /// The pages that were picked for a structure change and are not yet marked as used.
    picked: RefCell<FxHashSet<PageId>>,
    reserved: Cell<u64>,
    /// The pages that were freed and not allocated again since, each with the LSN of the record that freed
    /// it. `None` unless [`Space::keep_freed`] was called.
    freed: RefCell<Option<BTreeMap<PageId, Lsn>>>,
    /// The largest number of freed pages that are noted. Others are not returned by [`Space::take_freed`].
    most_freed: Cell<usize>,
    /// The position of the search for a free page: the group, and the index of the page in the group.
    next: Cell<(usize, u32)>,
}

impl Space {
    /// Creates the space of the data pages from `first` up to `pages`. [`Space::set_free`] sets the number of
    /// free pages.
    pub(crate) fn new(first: PageId, pages: u64, page_bytes: u32) -> Space {
        let per_group = map::pages_per_group(page_bytes);
        let pages = pages - first.0;
        let groups = pages.div_ceil(per_group) as usize;
        Space {
            first,
            pages,
            per_group,
            free: RefCell::new(vec![0; groups]),
            all_free: Cell::new(0),
            picked: RefCell::default(),
            reserved: Cell::new(0),
            freed: RefCell::new(None),
            most_freed: Cell::new(usize::MAX),
            next: Cell::new((0, 0)),
        }
    }

    /// Iterates over the maps of all groups, with the number of pages of each group.
    pub(crate) fn maps(&self) -> impl Iterator<Item = (PageId, u32)> + use<> {
        let (first, pages, per_group) = (self.first.0, self.pages, self.per_group);
        (0..pages.div_ceil(per_group)).map(move |group| {
            let from = group * per_group;
            (PageId(first + from), per_group.min(pages - from) as u32)
        })
    }

    /// Returns the map of used pages that has the bit of a page, and the index of the bit.
    pub(crate) fn place(&self, page: PageId) -> (PageId, u32) {
        let index = page.0 - self.first.0;
        (PageId(self.first.0 + index / self.per_group * self.per_group), (index % self.per_group) as u32)
    }

    /// Whether a page is a data page and not a map.
    pub(crate) fn is_data(&self, page: PageId) -> bool {
        page >= self.first
            && page.0 < self.first.0 + self.pages
            && !(page.0 - self.first.0).is_multiple_of(self.per_group)
    }

    fn group(&self, map: PageId) -> usize {
        ((map.0 - self.first.0) / self.per_group) as usize
    }

    /// Sets the number of free pages in the group of `map`.
    pub(crate) fn set_free(&self, map: PageId, free: u32) {
        self.change_free(map, |_| free);
    }

    fn change_free(&self, map: PageId, change: impl FnOnce(u32) -> u32) {
        let free = &mut self.free.borrow_mut()[self.group(map)];
        let before = std::mem::replace(free, change(*free));
        self.all_free.set(self.all_free.get() - u64::from(before) + u64::from(*free));
    }

    /// Returns the number of data pages of the store, including maps.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// Returns the number of free pages without those that are picked or reserved.
    pub(crate) fn available(&self) -> u64 {
        let taken = self.picked.borrow().len() as u64 + self.reserved.get() + kept_for_recovery(self.pages);
        self.all_free.get().saturating_sub(taken)
    }

    pub(crate) fn used(&self) -> u64 {
        self.pages.saturating_sub(self.all_free.get())
    }

    /// Reserves pages for a commit. Fails if there are too few.
    pub(crate) fn reserve(&self, pages: u64) -> Result<(), Error> {
        let free = self.available();
        if pages > free {
            return Err(Error::Full { free, pages: self.pages, needed: pages });
        }
        self.reserved.set(self.reserved.get() + pages);
        Ok(())
    }

    /// Releases reserved pages.
    pub(crate) fn release(&self, pages: u64) {
        self.reserved.set(self.reserved.get() - pages);
    }

    /// Whether a page was picked and is not marked as used yet.
    pub(crate) fn is_picked(&self, page: PageId) -> bool {
        self.picked.borrow().contains(&page)
    }

    /// Gives back a picked page that was not used.
    pub(crate) fn put_back(&self, page: PageId) {
        self.picked.borrow_mut().remove(&page);
    }

    /// Makes [`Space::take_freed`] return freed pages from now on, including the pages `free`, which are free
    /// already.
    pub(crate) fn keep_freed(&self, free: impl Iterator<Item = PageId>, at: Lsn) {
        self.freed.borrow_mut().get_or_insert_default().extend(free.map(|page| (page, at)));
    }

    /// Makes [`Space::take_freed`] return pages that are freed from now on, but no more than `most` at a time.
    pub(crate) fn keep_some_freed(&self, most: usize) {
        self.most_freed.set(most);
        self.freed.borrow_mut().get_or_insert_default();
    }

    /// Picks free pages that follow each other, so that nobody allocates them for now. Does nothing and returns false
    /// if one of them is picked already, or if pages would be lacking for commits that have reserved some.
    pub(crate) fn pick_run(&self, pages: Range<u64>) -> bool {
        let is_picked = |page| self.is_picked(PageId(page));
        if self.available() < pages.end - pages.start || pages.clone().any(is_picked) {
            return false;
        }
        self.picked.borrow_mut().extend(pages.map(PageId));
        true
    }

    /// Takes the pages that were freed before `redo` and not allocated again since. Recovery does not read
    /// these pages.
    pub(crate) fn take_freed(&self, redo: Lsn) -> Vec<PageId> {
        let mut taken = Vec::new();
        if let Some(freed) = &mut *self.freed.borrow_mut() {
            freed.retain(|page, at| {
                let goes = *at <= redo && !self.is_picked(*page);
                if goes {
                    taken.push(*page);
                }
                !goes
            });
        }
        taken
    }

    /// Returns the number of pages that [`Space::take_freed`] may return later.
    pub(crate) fn freed(&self) -> usize {
        self.freed.borrow().as_ref().map_or(0, BTreeMap::len)
    }

    /// Applies a change of a group's map. The record of the change ends at `at`.
    pub(crate) fn changed(&self, map: PageId, from: u32, count: u32, used: bool, at: Lsn) {
        if let Some(freed) = &mut *self.freed.borrow_mut() {
            for page in (from..from + count).map(|index| PageId(map.0 + u64::from(index))) {
                if used {
                    freed.remove(&page);
                } else if freed.len() < self.most_freed.get() {
                    freed.insert(page, at);
                }
            }
        }
        if used {
            // A damaged map may lead to wrong counts, which must not overflow here. The check of the store
            // reports them.
            self.change_free(map, |free| free.saturating_sub(count));
            let mut picked = self.picked.borrow_mut();
            (from..from + count).for_each(|index| {
                picked.remove(&PageId(map.0 + u64::from(index)));
            });
        } else {
            self.change_free(map, |free| free + count);
        }
    }

    /// Returns the position of the search for a free page.
    pub(crate) fn cursor(&self) -> Cursor {
        let (group, from) = self.next.get();
        let map = PageId(self.first.0 + group as u64 * self.per_group);
        Cursor { group, from, map, has_free: self.free.borrow()[group] > 0 }
    }

    /// Returns the largest number of groups to search before giving up. The group in which the last search
    /// ended is searched twice, first from there on and finally from its beginning.
    pub(crate) fn most_moves(&self) -> usize {
        self.free.borrow().len() + 1
    }

    /// Picks a free page in the group of the cursor. `map_bytes` is the map of the group.
    pub(crate) fn pick(&self, cursor: &Cursor, map_bytes: &[u8]) -> Option<PageId> {
        let map = cursor.map;
        let pages = self.per_group.min(self.pages - (map.0 - self.first.0)) as u32;
        let mut picked = self.picked.borrow_mut();
        let mut at = cursor.from;
        loop {
            let index = map::first_free(map_bytes, at, pages)?;
            let page = PageId(map.0 + u64::from(index));
            if picked.insert(page) {
                self.next.set((cursor.group, index + 1));
                return Some(page);
            }
            at = index + 1;
        }
    }

    /// Moves the search to the next group, unless another search has moved it meanwhile.
    pub(crate) fn move_on(&self, cursor: &Cursor) {
        if self.next.get() == (cursor.group, cursor.from) {
            self.next.set(((cursor.group + 1) % self.free.borrow().len(), 0));
        }
    }
}

/// A position of the search for a free page.
pub(crate) struct Cursor {
    group: usize,
    from: u32,
    /// The page of the group's map.
    pub map: PageId,
    /// Whether the group has free pages.
    pub has_free: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_that_are_free_are_those_of_all_groups() {
        let per_group = map::pages_per_group(4096);
        let space = Space::new(PageId(100), 100 + 2 * per_group + 500, 4096);
        let maps: Vec<PageId> = space.maps().map(|(map, _)| map).collect();
        maps.iter().zip([70, 2000, 400]).for_each(|(map, free)| space.set_free(*map, free));
        let used = |free: u64| 2 * per_group + 500 - free;
        assert_eq!(space.used(), used(2470));
        assert_eq!(space.available(), 2470 - kept_for_recovery(space.pages()));
        space.keep_freed([PageId(maps[2].0 + 10)].into_iter(), Lsn(5));
        space.changed(maps[1], 7, 30, true, Lsn(6));
        space.changed(maps[2], 9, 1, false, Lsn(7));
        space.changed(maps[2], 12, 3, false, Lsn(8));
        space.changed(maps[2], 13, 1, true, Lsn(9));
        space.changed(maps[2], 13, 1, false, Lsn(10));
        assert_eq!(space.used(), used(2444));
        // The first group is counted again. In the next change, more pages become used than were free, as
        // with a damaged map.
        space.set_free(maps[1], 100);
        space.changed(maps[0], 1, 90, true, Lsn(11));
        assert_eq!(space.used(), used(504));
        let page = |index: u64| PageId(maps[2].0 + index);
        space.picked.borrow_mut().insert(page(9));
        assert_eq!(
            space.take_freed(Lsn(8)),
            [10, 12, 14].map(page),
            "not what is picked, nor what was freed later"
        );
        space.put_back(page(9));
        assert_eq!(space.take_freed(Lsn(10)), [9, 13].map(page));
        assert!(space.take_freed(Lsn(99)).is_empty());
    }
}
