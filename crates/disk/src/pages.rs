//! The contents of a drive by logical page: only pages that were written take memory. The bytes of a page never
//! change, so snapshots and the history of unflushed writes share them.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The bytes of a page.
pub(crate) type Page = Arc<[u8]>;

/// The number of pages of a chunk, which is allocated when the first of its pages is written. It is small because
/// contents may be sparse, and large enough for a map of chunks to be much smaller than a map of pages.
const CHUNK_PAGES: u64 = 32;

#[derive(Clone)]
struct Chunk {
    pages: Box<[Option<Page>]>,
    written: u32,
}

/// The pages of a drive. A page that was never written, or was trimmed, reads as zeros.
#[derive(Clone)]
pub(crate) struct Pages {
    count: u64,
    page_bytes: usize,
    /// The chunks that have contents, by number.
    chunks: BTreeMap<u64, Chunk>,
    written: u64,
}

impl Pages {
    /// Creates `count` pages without contents.
    pub(crate) fn new(count: u64, page_bytes: u32) -> Pages {
        Pages { count, page_bytes: page_bytes as usize, chunks: BTreeMap::new(), written: 0 }
    }

    /// Whether these are as many pages of the same size.
    pub(crate) fn is_like(&self, other: &Pages) -> bool {
        (self.page_bytes, self.count) == (other.page_bytes, other.count)
    }

    /// Returns the number of pages with contents.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Returns the bytes of page `lpn`; `None` if it reads as zeros.
    #[inline]
    pub(crate) fn get(&self, lpn: u64) -> Option<&Page> {
        let chunk = self.chunks.get(&(lpn / CHUNK_PAGES))?;
        chunk.pages[(lpn % CHUNK_PAGES) as usize].as_ref()
    }

    /// Replaces the contents of page `lpn`, and returns the previous contents.
    pub(crate) fn replace(&mut self, lpn: u64, page: Option<Page>) -> Option<Page> {
        let number = lpn / CHUNK_PAGES;
        if page.is_none() && !self.chunks.contains_key(&number) {
            return None;
        }
        let chunk = self.chunks.entry(number).or_insert_with(|| Chunk {
            pages: vec![None; CHUNK_PAGES as usize].into_boxed_slice(),
            written: 0,
        });
        let (before, after) = (chunk.written, u32::from(page.is_some()));
        let old = std::mem::replace(&mut chunk.pages[(lpn % CHUNK_PAGES) as usize], page);
        chunk.written = before + after - u32::from(old.is_some());
        self.written = self.written + u64::from(chunk.written) - u64::from(before);
        if chunk.written == 0 {
            self.chunks.remove(&number);
        }
        old
    }

    /// Returns the first page with contents in `first..end`, without a look at empty chunks.
    pub(crate) fn next_written(&self, first: u64, end: u64) -> Option<u64> {
        let chunks = first / CHUNK_PAGES..end.max(first).div_ceil(CHUNK_PAGES);
        for (number, chunk) in self.chunks.range(chunks) {
            let start = number * CHUNK_PAGES;
            let mut lpns = first.max(start)..end.min(start + CHUNK_PAGES);
            if let Some(lpn) = lpns.find(|lpn| chunk.pages[(lpn - start) as usize].is_some()) {
                return Some(lpn);
            }
        }
        None
    }

    /// Appends the `length` bytes from `offset` on to `out`.
    pub(crate) fn read(&self, offset: u64, length: usize, out: &mut Vec<u8>) {
        out.reserve(length);
        let page_bytes = self.page_bytes as u64;
        let (mut at, end) = (offset, offset + length as u64);
        while at < end {
            let from = (at % page_bytes) as usize;
            let bytes = (self.page_bytes - from).min((end - at) as usize);
            match self.get(at / page_bytes) {
                Some(page) => out.extend_from_slice(&page[from..from + bytes]),
                None => out.resize(out.len() + bytes, 0),
            }
            at += bytes as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: pages hold what a map holds, count the pages that have contents, find the next of them, and
    /// give the memory of an empty chunk back.
    #[test]
    fn pages_hold_what_a_map_holds() {
        let mut pages = Pages::new(2_000, 16);
        let mut map: BTreeMap<u64, u8> = BTreeMap::new();
        let mut random = fulgurite_base::Prng::new(1, "pages");
        for _ in 0..20_000 {
            let lpn = random.below(2_000);
            let value = random.below(4) as u8;
            // Half of the drive is trimmed again and again, so that chunks become empty.
            let page = (value > 0 && (lpn < 700 || random.below(10) == 0)).then_some(value);
            let old = pages.replace(lpn, page.map(|value| vec![value; 16].into()));
            let expected = match page {
                Some(value) => map.insert(lpn, value),
                None => map.remove(&lpn),
            };
            assert_eq!(old.map(|page| page[3]), expected);
        }
        assert_eq!(pages.written(), map.len() as u64);
        for first in 0..2_000 {
            assert_eq!(
                pages.next_written(first, 1_900),
                map.range(first..1_900.max(first)).next().map(|(lpn, _)| *lpn)
            );
        }
        let mut read = Vec::new();
        pages.read(5, 31_990, &mut read);
        let expected: Vec<u8> =
            (5..31_995u64).map(|byte| map.get(&(byte / 16)).copied().unwrap_or(0)).collect();
        assert_eq!(read, expected);
        for lpn in 0..2_000 {
            pages.replace(lpn, None);
        }
        assert!(pages.chunks.is_empty());
    }
}
