//! The future writes that an oracle knows.

use super::policy::WriteContext;
use fulgurite_base::prefetch;

/// The future writes: 4 bytes a write and 4 a page.
#[derive(Clone, Debug)]
pub(super) struct Future {
    /// For each host write, the time when its page is written again.
    pub(super) next: Vec<u32>,
    /// For each page, the time when its current copy becomes invalid.
    dies_at: Vec<u32>,
}

impl Future {
    /// Creates the future of a drive with this many logical pages, without any writes yet.
    pub(super) fn new(logical_pages: u32) -> Future {
        Future { next: Vec::new(), dies_at: vec![u32::MAX; logical_pages as usize] }
    }

    /// Returns the number of page writes until the copy that is about to be written becomes invalid.
    #[inline]
    pub(super) fn left(&self, context: &WriteContext, now: u64) -> u64 {
        let dies_at =
            if context.copied { self.dies_at[context.lpn as usize] } else { self.next[now as usize] };
        u64::from(dies_at).saturating_sub(now)
    }

    /// Records that a page was written.
    #[inline]
    pub(super) fn written(&mut self, context: &WriteContext, now: u64) {
        if !context.copied {
            self.dies_at[context.lpn as usize] = self.next[now as usize];
        }
    }

    /// Prefetches the entry of a page.
    #[inline]
    pub(super) fn prefetch(&self, lpn: u32) {
        prefetch(&self.dies_at, lpn as usize);
    }

    /// Returns the memory held, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.next[..]) + size_of_val(&self.dies_at[..])
    }
}
