//! Pages that have left the pool and are remembered for a while.

use crate::lists::{List, Lists};
use crate::page_table::PageTable;
use fulgurite_base::PageId;

/// A bounded set of pages in the order in which they entered.
#[derive(Clone, Debug)]
pub(crate) struct Ghosts {
    table: PageTable,
    pages: Vec<PageId>,
    order: Lists,
    free: Vec<u32>,
}

const ORDER: List = List(0);

impl Ghosts {
    /// Room for `capacity` pages; with none, nothing is remembered.
    pub fn new(capacity: u32) -> Ghosts {
        Ghosts {
            table: PageTable::new(capacity),
            pages: vec![PageId(0); capacity as usize],
            order: Lists::new(capacity, 1),
            free: (0..capacity).rev().collect(),
        }
    }

    /// How many pages are remembered.
    pub fn len(&self) -> usize {
        self.pages.len() - self.free.len()
    }

    /// Remembers `page`, which is not remembered yet; the page that came first makes room.
    pub fn push(&mut self, page: PageId) {
        if self.free.is_empty() {
            self.pop();
        }
        let Some(ghost) = self.free.pop() else { return };
        self.pages[ghost as usize] = page;
        self.table.insert(page, ghost);
        self.order.push_newest(ORDER, ghost);
    }

    /// Forgets the page that came first.
    pub fn pop(&mut self) {
        if let Some(ghost) = self.order.oldest(ORDER) {
            self.remove(self.pages[ghost as usize]);
        }
    }

    /// Forgets `page`; whether it was remembered.
    pub fn remove(&mut self, page: PageId) -> bool {
        let Some(ghost) = self.table.remove(page, |ghost| self.pages[ghost as usize]) else { return false };
        self.order.unlink(ghost);
        self.free.push(ghost);
        true
    }
}
