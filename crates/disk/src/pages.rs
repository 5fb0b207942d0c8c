//! The contents of a drive by logical page: only pages that were written take room, in memory or in a backing store.
//! The bytes of a page in memory never change, so snapshots and the history of unflushed writes share them.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// The bytes of a page.
pub(crate) type Page = Arc<[u8]>;

/// Pages that nobody holds any more, whose memory the next pages take. Freeing and allocating them would cost more than
/// the copy of their bytes. A clone has none.
#[derive(Default)]
pub(crate) struct Spare(Vec<Page>);

impl Spare {
    /// The most pages that are kept.
    const AT_MOST: usize = 128;

    /// Keeps a page, unless a snapshot or another version holds it too.
    pub(crate) fn keep(&mut self, page: Option<Page>) {
        if let Some(page) = page.filter(|page| self.0.len() < Spare::AT_MOST && Arc::strong_count(page) == 1)
        {
            self.0.push(page);
        }
    }

    /// Returns a page of these bytes, which are as many as those of all other pages.
    pub(crate) fn page(&mut self, bytes: &[u8]) -> Page {
        let Some(mut page) = self.0.pop() else { return bytes.into() };
        match Arc::get_mut(&mut page) {
            Some(old) => old.copy_from_slice(bytes),
            None => return bytes.into(),
        }
        page
    }
}

impl Clone for Spare {
    fn clone(&self) -> Spare {
        Spare::default()
    }
}

/// The number of pages of a chunk, which is created when the first of its pages is written. It is small because
/// contents may be sparse, and large enough for a map of chunks to be much smaller than a map of pages.
const CHUNK_PAGES: u64 = 32;

/// A place outside the memory of the process for the contents of a disk, such as a sparse file. The ranges of all calls
/// are whole pages of the disk, in bytes.
pub trait Backing: Send + Sync {
    /// Reads a page that was written before.
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;
    /// Writes a page.
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()>;
    /// Gives the room of a page back. It is not read again before it is written.
    fn clear(&self, offset: u64, length: u64) -> io::Result<()>;
}

/// The backing store of a disk, and its first failure.
#[derive(Clone)]
struct Backed {
    store: Arc<dyn Backing>,
    failure: Arc<OnceLock<io::Error>>,
}

impl Backed {
    fn read(&self, offset: u64, bytes: usize) -> Page {
        let mut page = vec![0; bytes];
        self.note(self.store.read(offset, &mut page));
        page.into()
    }

    /// Replaces the bytes at `offset`. `bytes` is the size of a page if it had contents.
    fn replace(&self, offset: u64, bytes: Option<usize>, page: Option<Page>) -> Option<Page> {
        let old = bytes.map(|bytes| self.read(offset, bytes));
        match (page, bytes) {
            (Some(page), _) => self.note(self.store.write(offset, &page)),
            (None, Some(bytes)) => self.note(self.store.clear(offset, bytes as u64)),
            (None, None) => {}
        }
        old
    }

    fn note(&self, result: io::Result<()>) {
        if let Err(error) = result {
            // The first failure explains those that follow it.
            let _ = self.failure.set(error);
        }
    }
}

#[derive(Clone, Default)]
struct Chunk {
    /// The pages in memory; empty if there is a backing store.
    pages: Box<[Option<Page>]>,
    /// The pages with contents, a bit each.
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
    backed: Option<Backed>,
}

impl Pages {
    /// Creates `count` pages in memory, without contents.
    pub(crate) fn new(count: u64, page_bytes: u32) -> Pages {
        Pages { count, page_bytes: page_bytes as usize, chunks: BTreeMap::new(), written: 0, backed: None }
    }

    /// Keeps the contents in `store` from now on, which has those of the pages `written`. No page was written before.
    pub(crate) fn back(&mut self, store: Arc<dyn Backing>, written: impl Iterator<Item = Range<u64>>) {
        for lpn in written.flatten() {
            self.chunks.entry(lpn / CHUNK_PAGES).or_default().written |= 1 << (lpn % CHUNK_PAGES);
        }
        self.written = self.chunks.values().map(|chunk| u64::from(chunk.written.count_ones())).sum();
        self.backed = Some(Backed { store, failure: Arc::default() });
    }

    /// Returns the first failure of the backing store. The contents are wrong from then on.
    pub(crate) fn failure(&self) -> Option<&io::Error> {
        self.backed.as_ref()?.failure.get()
    }

    /// Whether the contents are in memory.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.backed.is_none()
    }

    /// Whether these are as many pages of the same size.
    pub(crate) fn is_like(&self, other: &Pages) -> bool {
        (self.page_bytes, self.count) == (other.page_bytes, other.count)
    }

    /// Returns the number of pages with contents.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Whether page `lpn` has contents. A page without contents reads as zeros.
    #[inline]
    pub(crate) fn is_written(&self, lpn: u64) -> bool {
        let chunk = self.chunks.get(&(lpn / CHUNK_PAGES));
        chunk.is_some_and(|chunk| chunk.written >> (lpn % CHUNK_PAGES) & 1 == 1)
    }

    /// Returns the bytes of page `lpn`; `None` if it reads as zeros.
    pub(crate) fn get(&self, lpn: u64) -> Option<Page> {
        match &self.backed {
            None => self.chunks.get(&(lpn / CHUNK_PAGES))?.pages[(lpn % CHUNK_PAGES) as usize].clone(),
            Some(backed) => {
                self.is_written(lpn).then(|| backed.read(lpn * self.page_bytes as u64, self.page_bytes))
            }
        }
    }

    /// Replaces the contents of page `lpn`, and returns the previous contents.
    pub(crate) fn replace(&mut self, lpn: u64, page: Option<Page>) -> Option<Page> {
        let number = lpn / CHUNK_PAGES;
        if page.is_none() && !self.chunks.contains_key(&number) {
            return None;
        }
        let in_memory = if self.backed.is_none() { CHUNK_PAGES as usize } else { 0 };
        let chunk = self
            .chunks
            .entry(number)
            .or_insert_with(|| Chunk { pages: vec![None; in_memory].into_boxed_slice(), written: 0 });
        let bit = 1 << (lpn % CHUNK_PAGES);
        let was_written = chunk.written & bit != 0;
        chunk.written = if page.is_some() { chunk.written | bit } else { chunk.written & !bit };
        self.written = self.written + u64::from(page.is_some()) - u64::from(was_written);
        let is_empty = chunk.written == 0;
        let old = match &self.backed {
            None => std::mem::replace(&mut chunk.pages[(lpn % CHUNK_PAGES) as usize], page),
            Some(backed) => {
                let bytes = was_written.then_some(self.page_bytes);
                backed.replace(lpn * self.page_bytes as u64, bytes, page)
            }
        };
        if is_empty {
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
            if let Some(lpn) = lpns.find(|lpn| chunk.written >> (lpn - start) & 1 == 1) {
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
    use std::sync::Mutex;

    /// A store that holds what was written and not cleared.
    #[derive(Default)]
    struct Shelf(Mutex<BTreeMap<u64, Vec<u8>>>);

    impl Backing for Shelf {
        fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
            into.copy_from_slice(&self.0.lock().unwrap()[&offset]);
            Ok(())
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            self.0.lock().unwrap().insert(offset, data.to_vec());
            Ok(())
        }

        fn clear(&self, offset: u64, length: u64) -> io::Result<()> {
            let cleared = self.0.lock().unwrap().remove(&offset);
            assert_eq!(cleared.map(|bytes| bytes.len() as u64), Some(length));
            Ok(())
        }
    }

    /// The rule: pages hold what a map holds, count the pages that have contents, find the next of them, and
    /// give the memory of an empty chunk back. So do pages in a backing store, which holds exactly the pages with
    /// contents.
    #[test]
    fn pages_hold_what_a_map_holds() {
        check(Pages::new(2_000, 16));
        let shelf = Arc::new(Shelf::default());
        let mut pages = Pages::new(2_000, 16);
        pages.back(shelf.clone(), std::iter::empty());
        check(pages);
        assert!(shelf.0.lock().unwrap().is_empty());
    }

    /// The rule: a disk has the contents that its backing store had before.
    #[test]
    fn a_backing_store_has_contents_from_before() {
        let shelf = Arc::new(Shelf::default());
        (30..35u64).for_each(|lpn| shelf.write(lpn * 16, &[lpn as u8; 16]).unwrap());
        let mut pages = Pages::new(2_000, 16);
        pages.back(shelf, std::iter::once(30..35));
        assert_eq!((pages.written(), pages.next_written(0, 2_000)), (5, Some(30)));
        let of = |lpn| pages.get(lpn).map(|page| page[15]);
        assert_eq!(
            (29..36).map(of).collect::<Vec<_>>(),
            [None, Some(30), Some(31), Some(32), Some(33), Some(34), None]
        );
    }

    fn check(mut pages: Pages) {
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
