//! Bytes with their versions: contents by page, and the writes that a power cut may lose. Writes and operations of a
//! caller share one sequence of numbers. A write stays losable until its caller makes it durable.

use crate::pages::{Backing, Page, Pages};
use crate::unflushed::{Loss, Piece, Unflushed, WriteId};
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Contents and the writes to them that are not durable. Clones share the bytes. Addresses and lengths are in bytes.
#[derive(Clone)]
pub struct Versions {
    page_bytes: u64,
    pages: Pages,
    unflushed: Unflushed,
}

impl Versions {
    /// Creates `pages` pages without contents, of which a power cut tears writes at multiples of `tear_bytes`.
    /// `cache_bytes` is the limit of [`Versions::overflow`].
    pub fn new(pages: u64, page_bytes: u32, tear_bytes: u64, cache_bytes: u64) -> Versions {
        Versions {
            page_bytes: u64::from(page_bytes),
            pages: Pages::new(pages, page_bytes),
            unflushed: Unflushed::new(page_bytes, tear_bytes, cache_bytes),
        }
    }

    /// Keeps the contents in `store` from now on, which has those of the pages `written`. No page was written before.
    pub(crate) fn back(&mut self, store: Arc<dyn Backing>, written: impl Iterator<Item = Range<u64>>) {
        self.pages.back(store, written);
    }

    /// Returns the first failure of the backing store. The contents are wrong from then on.
    pub(crate) fn failure(&self) -> Option<&io::Error> {
        self.pages.failure()
    }

    /// Returns the number of pages that hold bytes.
    pub fn pages_written(&self) -> u64 {
        self.pages.written()
    }

    /// Returns the number of pages with changes that a power cut may lose.
    pub fn pages_unflushed(&self) -> u64 {
        self.unflushed.pages()
    }

    /// Returns the number of pages of a range that hold no bytes.
    pub fn pages_missing(&self, range: Range<u64>) -> u64 {
        let pages = self.pages_of(range);
        pages.filter(|lpn| !self.pages.is_written(*lpn)).count() as u64
    }

    /// Appends the `length` bytes from `offset` on to `out`.
    pub fn read(&self, offset: u64, length: usize, out: &mut Vec<u8>) {
        self.pages.read(offset, length, out);
    }

    /// Returns the number of bytes from `offset` on, at most `length`, that are like the first in one respect: pages
    /// with contents if the second value is true, otherwise pages that read as zeros.
    pub fn extent(&self, offset: u64, length: u64) -> (u64, bool) {
        let Range { start: first, end } = self.pages_of(offset..offset + length);
        let is_written = self.pages.is_written(first);
        let next = if is_written {
            (first..end).find(|lpn| !self.pages.is_written(*lpn))
        } else {
            self.pages.next_written(first, end)
        };
        ((next.unwrap_or(end) * self.page_bytes).min(offset + length) - offset, is_written)
    }

    /// Writes `data`, or zeros, to a range that is not empty and lies in the contents. Returns the write's number.
    pub fn write(&mut self, range: Range<u64>, data: Option<&[u8]>) -> WriteId {
        let write = self.unflushed.begin(range.start, range.end - range.start);
        let pages = self.pages_of(range.clone());
        let pages: Vec<u64> = if data.is_some() { pages.collect() } else { self.not_zero(pages) };
        for lpn in pages {
            let start = lpn * self.page_bytes;
            let from = range.start.max(start) - start;
            let to = range.end.min(start + self.page_bytes) - start;
            let at = (start + from).saturating_sub(range.start) as usize;
            let data = data.map(|data| &data[at..at + (to - from) as usize]);
            let after = self.changed(lpn, from as usize..to as usize, data);
            let before = self.pages.replace(lpn, after.clone());
            self.unflushed.change(write, lpn, (from as u32, to as u32), before, after);
        }
        write
    }

    /// Returns a number between those of the writes before and after, for an operation of the caller.
    pub fn reserve(&mut self) -> WriteId {
        self.unflushed.reserve()
    }

    /// Records that `write` has completed, durable if `is_durable`.
    pub fn complete(&mut self, write: WriteId, is_durable: bool) {
        self.unflushed.complete(write, is_durable);
    }

    /// Returns the number of completions so far. [`Versions::flush`] covers the writes that completed before this mark.
    pub fn mark(&self) -> u64 {
        self.unflushed.mark()
    }

    /// Makes all writes durable that completed before `mark`.
    pub fn flush(&mut self, mark: u64) {
        self.unflushed.flush(mark);
    }

    /// Makes one write durable.
    pub fn store(&mut self, write: WriteId) {
        self.unflushed.store(write);
    }

    /// Returns the write that completed first, if more bytes have completed than the cache holds. The caller makes it
    /// durable.
    pub fn overflow(&self) -> Option<WriteId> {
        self.unflushed.overflow()
    }

    /// Whether a power cut could lose a part of this write.
    pub fn is_losable(&self, write: WriteId) -> bool {
        self.unflushed.is_losable(write)
    }

    /// Returns the parts of writes that a power cut could lose now, in the order of submission.
    pub fn pieces(&self) -> Vec<Piece> {
        self.unflushed.pieces()
    }

    /// Returns the parts of one write that a power cut could lose now, by address.
    pub fn pieces_of(&self, write: WriteId) -> Vec<Piece> {
        self.unflushed.pieces_of(write)
    }

    /// Takes writes back, and forgets which writes were not durable. `is_lost` is asked for each unit of `tear_bytes`
    /// that a write has changed, with the number of the write and that of the unit (address / `tear_bytes`).
    pub fn lose(&mut self, is_lost: impl Fn(WriteId, u64) -> bool) -> Loss {
        self.unflushed.lose(&mut self.pages, &is_lost)
    }

    /// Returns the contents, with all writes; `None` if they are in a backing store.
    pub(crate) fn contents(&self) -> Option<Pages> {
        self.pages.is_in_memory().then(|| self.pages.clone())
    }

    /// Replaces the contents by `pages`. Nothing that was written before can be lost or come back. Returns
    /// false, and changes nothing, if the sizes differ.
    pub(crate) fn restore(&mut self, pages: &Pages) -> bool {
        if !pages.is_like(&self.pages) || !self.pages.is_in_memory() {
            return false;
        }
        self.lose(|_, _| false);
        self.pages = pages.clone();
        true
    }

    /// Inverts one bit of the byte at `offset`. Returns false if its page holds no bytes.
    pub(crate) fn rot(&mut self, offset: u64, bit: u8) -> bool {
        let lpn = offset / self.page_bytes;
        let Some(page) = self.pages.get(lpn) else { return false };
        let mut bytes = page.to_vec();
        bytes[(offset % self.page_bytes) as usize] ^= 1 << (bit % 8);
        self.pages.replace(lpn, Some(bytes.into()));
        true
    }

    /// Returns the pages that a range of bytes touches.
    fn pages_of(&self, range: Range<u64>) -> Range<u64> {
        range.start / self.page_bytes..range.end.div_ceil(self.page_bytes)
    }

    /// Returns the pages of a range that are not zero, or that a power cut could make so. The others need no change, so
    /// zeros over a large empty range take no time.
    fn not_zero(&self, range: Range<u64>) -> Vec<u64> {
        let mut pages = self.unflushed.pages_in(&range);
        let mut next = range.start;
        while let Some(lpn) = self.pages.next_written(next, range.end) {
            pages.push(lpn);
            next = lpn + 1;
        }
        pages.sort_unstable();
        pages.dedup();
        pages
    }

    /// Returns page `lpn` with other bytes in a range; `None` if it is all zeros from now on.
    fn changed(&mut self, lpn: u64, range: Range<usize>, data: Option<&[u8]>) -> Option<Page> {
        let page_bytes = self.page_bytes as usize;
        match data {
            Some(data) if data.len() == page_bytes => Some(self.unflushed.spare.page(data)),
            None if range.len() == page_bytes => None,
            None if !self.pages.is_written(lpn) => None,
            _ => {
                let mut bytes = self.pages.get(lpn).map_or_else(|| vec![0; page_bytes], |page| page.to_vec());
                match data {
                    Some(data) => bytes[range].copy_from_slice(data),
                    None => bytes[range].fill(0),
                }
                Some(bytes.into())
            }
        }
    }
}
