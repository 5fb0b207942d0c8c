//! The future of a sequence of requests: for each request, the number of the next request for the same page.

use crate::page_numbers::PageNumbers;
use fulgurite_base::PageId;

/// The next request for the same page, for each request of a sequence. It takes four bytes for each request.
#[derive(Clone, Debug)]
pub struct NextUses {
    next: Vec<u32>,
    pages: PageNumbers,
    /// The number of the last request for each page.
    last: Vec<u32>,
}

impl Default for NextUses {
    fn default() -> NextUses {
        NextUses { next: Vec::new(), pages: PageNumbers::new(), last: Vec::new() }
    }
}

impl NextUses {
    /// The greatest number of requests.
    pub const REQUESTS_AT_MOST: u64 = NextUses::NEVER as u64;
    /// The mark of a request that is the last one for its page.
    const NEVER: u32 = u32::MAX;

    /// Adds requests to the end of the sequence, which has at most [`NextUses::REQUESTS_AT_MOST`].
    pub fn add(&mut self, pages: impl IntoIterator<Item = PageId>) {
        for page in pages {
            let at = self.next.len() as u32;
            let (number, is_new) = self.pages.number(page);
            if is_new {
                self.last.push(at);
            } else {
                let last = std::mem::replace(&mut self.last[number as usize], at);
                self.next[last as usize] = at;
            }
            self.next.push(NextUses::NEVER);
        }
    }

    /// Returns the number of the next request for the page of request `at`, counted from zero; `None` if there
    /// is none.
    #[inline]
    pub fn after(&self, at: usize) -> Option<u32> {
        self.next.get(at).copied().filter(|next| *next != NextUses::NEVER)
    }

    /// The bytes of memory that are in use.
    pub fn bytes(&self) -> u64 {
        (4 * (self.next.capacity() + self.last.capacity())) as u64 + self.pages.bytes()
    }
}
