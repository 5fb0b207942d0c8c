//! Numbers pages in the order of their first request, from zero on. The table grows with the number of pages.

use crate::page_table::PageTable;
use fulgurite_base::PageId;

/// The numbers of all pages so far. It takes at most 40 bytes for each page.
#[derive(Clone, Debug)]
pub(crate) struct PageNumbers {
    table: PageTable,
    /// The pages by their numbers.
    pages: Vec<PageId>,
}

impl PageNumbers {
    pub(crate) fn new() -> PageNumbers {
        PageNumbers { table: PageTable::with_slots(1 << 12), pages: Vec::new() }
    }

    /// Returns the number of a page, and whether the page is new.
    #[inline]
    pub(crate) fn number(&mut self, page: PageId) -> (u32, bool) {
        if let Some(number) = self.table.get(page, |number| self.pages[number as usize]) {
            return (number, false);
        }
        // Up to half of the slots are in use, which costs half the memory of a pool's table.
        if 2 * self.pages.len() >= self.table.slots() {
            self.grow();
        }
        let number = self.pages.len() as u32;
        self.pages.push(page);
        self.table.insert(page, number);
        (number, true)
    }

    #[cold]
    fn grow(&mut self) {
        let mut larger = PageTable::with_slots(2 * self.table.slots() as u64);
        for (number, page) in (0..).zip(&self.pages) {
            larger.insert(*page, number);
        }
        self.table = larger;
    }

    /// The number of pages.
    pub(crate) fn len(&self) -> usize {
        self.pages.len()
    }

    /// The pages by their numbers.
    pub(crate) fn pages(&self) -> &[PageId] {
        &self.pages
    }

    /// Begins to fetch the memory for a look-up of `page` into the processor's cache.
    #[inline]
    pub(crate) fn prefetch(&self, page: PageId) {
        self.table.prefetch(page);
    }

    /// Returns the probable number of a page whose memory was fetched.
    #[inline]
    pub(crate) fn guess(&self, page: PageId) -> Option<u32> {
        self.table.guess(page)
    }

    /// The bytes of memory that are in use.
    pub(crate) fn bytes(&self) -> u64 {
        (8 * self.table.slots() + 8 * self.pages.capacity()) as u64
    }
}
