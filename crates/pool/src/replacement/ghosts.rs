//! Ghost lists: remember evicted pages for a while.

use super::lists::{List, Lists};
use crate::page_table::PageTable;
use fulgurite_base::PageId;

/// A bounded set of ghosts (evicted pages) in several lists, each in the order of insertion. A page is in at
/// most one list, so one look-up finds it.
#[derive(Clone, Debug)]
pub(crate) struct Ghosts {
    table: PageTable,
    /// The page and the list of each ghost.
    ghosts: Vec<(PageId, List)>,
    order: Lists,
    lens: Vec<usize>,
    free: Vec<u32>,
}

impl Ghosts {
    /// Creates lists for at most `capacity` pages in all lists together; with 0, no page is remembered.
    pub(crate) fn new(capacity: u32, lists: u32) -> Ghosts {
        Ghosts {
            table: PageTable::new(capacity),
            ghosts: vec![(PageId(0), List(0)); capacity as usize],
            order: Lists::new(capacity, lists),
            lens: vec![0; lists as usize],
            free: (0..capacity).rev().collect(),
        }
    }

    /// Returns the number of pages that are remembered in `list`.
    #[inline]
    pub(crate) fn len(&self, list: List) -> usize {
        self.lens[list.0 as usize]
    }

    /// Remembers `page`, which is not remembered yet. If the set is full, forgets the oldest page of the list
    /// first.
    pub(crate) fn push(&mut self, list: List, page: PageId) {
        if self.free.is_empty() {
            self.pop(list);
        }
        // No slot is free if the capacity is zero or other lists hold all pages; then the page is not
        // remembered.
        let Some(ghost) = self.free.pop() else { return };
        self.ghosts[ghost as usize] = (page, list);
        self.table.insert(page, ghost);
        self.order.push_newest(list, ghost);
        self.lens[list.0 as usize] += 1;
    }

    /// Forgets the oldest page of `list`.
    pub(crate) fn pop(&mut self, list: List) {
        if let Some(ghost) = self.order.oldest(list) {
            self.remove(self.ghosts[ghost as usize].0);
        }
    }

    /// Forgets `page`. Returns the list that had the page, if any.
    pub(crate) fn remove(&mut self, page: PageId) -> Option<List> {
        let ghost = self.table.remove(page, |ghost| self.ghosts[ghost as usize].0)?;
        let (_, list) = self.ghosts[ghost as usize];
        self.order.unlink(ghost);
        self.lens[list.0 as usize] -= 1;
        self.free.push(ghost);
        Some(list)
    }
}
