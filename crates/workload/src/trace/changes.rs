//! Keeps the page writes and trims of a trace in memory for counting runs over long traces, at their original
//! addresses and in four bytes each.

use super::error::TraceError;
use super::reader::PageStream;
use crate::{Op, Request};
use fulgurite_base::PageId;

/// The writes and trims of single pages in a trace, in order.
#[derive(Clone, Debug, Default)]
pub struct PageChanges {
    pages: Vec<u32>,
    /// The positions of the trims in `pages`, ascending; all other entries are writes.
    trims: Vec<u64>,
}

impl PageChanges {
    /// Reads all changes of `stream`. Returns `None` if a change is beyond the first `pages` pages, or if
    /// there are several volumes, because the addresses of volumes are not comparable.
    pub fn read(stream: &mut PageStream, pages: u32) -> Result<Option<PageChanges>, TraceError> {
        let mut changes = PageChanges::default();
        let mut fits = true;
        while fits {
            let more = stream.for_some(1 << 12, |request| fits &= changes.push(&request, pages))?;
            // The check after each batch avoids reading the rest of a long trace in vain.
            fits &= stream.volumes().len() <= 1;
            if !more {
                break;
            }
        }
        Ok(fits.then_some(changes))
    }

    /// Adds the pages of a request, unless it is a read. Returns false if the request extends beyond `pages`.
    fn push(&mut self, request: &Request, pages: u32) -> bool {
        if request.op == Op::Read {
            return true;
        }
        let end = request.page + u64::from(request.pages);
        if end > u64::from(pages) {
            return false;
        }
        if request.op == Op::Trim {
            let first = self.pages.len() as u64;
            self.trims.extend(first..first + u64::from(request.pages));
        }
        // `end` is at most `pages`, so both bounds fit in 32 bits.
        self.pages.extend(request.page as u32..end as u32);
        true
    }

    /// The number of changes, which are writes and trims of single pages.
    pub fn len(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The number of writes of single pages.
    pub fn writes(&self) -> u64 {
        self.len() - self.trims.len() as u64
    }

    /// One more than the greatest page number that is written or trimmed; 0 without changes.
    pub fn end(&self) -> u64 {
        self.pages.iter().max().map_or(0, |last| u64::from(*last) + 1)
    }

    /// Returns a hash of all changes and their order.
    pub fn hash(&self) -> u64 {
        let mix = |hash: u64, word: u64| PageId(hash ^ word).mixed();
        // Four lanes are hashed independently, because in a single chain each step would wait for the
        // previous one.
        let mut lanes = [self.len(), 1, 2, 3];
        let fours = self.pages.chunks_exact(lanes.len());
        let rest = fours.remainder().iter().map(|page| u64::from(*page));
        for four in fours {
            for (lane, page) in lanes.iter_mut().zip(four) {
                *lane = mix(*lane, u64::from(*page));
            }
        }
        lanes.into_iter().chain(rest).chain(self.trims.iter().copied()).fold(0, mix)
    }

    /// Returns the changes from the change number `from` on, counted from zero.
    pub fn iter_from(&self, from: usize) -> impl Iterator<Item = Request> {
        let mut trims =
            self.trims[self.trims.partition_point(|at| *at < from as u64)..].iter().copied().peekable();
        (from..).zip(&self.pages[from..]).map(move |(at, page)| {
            let is_trim = trims.next_if_eq(&(at as u64)).is_some();
            Request::of_page(if is_trim { Op::Trim } else { Op::Write }, u64::from(*page))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Format, TraceOptions, TraceReader};
    use std::io::Cursor;

    fn read(text: &'static str, pages: u32) -> Option<PageChanges> {
        let reader =
            TraceReader::new("t", Cursor::new(text), Some(Format::MIDAS), TraceOptions::default()).unwrap();
        PageChanges::read(&mut reader.page_requests(4096).unwrap(), pages).unwrap()
    }

    const TEXT: &str = "0 1 5 8192\n0 0 90 4096\n0 3 6 8192\n0 1 2 4096\n";

    #[test]
    fn reads_are_skipped_and_longer_requests_are_split() {
        let changes = read(TEXT, 8).unwrap();
        let expected = [(Op::Write, 5), (Op::Write, 6), (Op::Trim, 6), (Op::Trim, 7), (Op::Write, 2)];
        for from in 0..=expected.len() {
            let found: Vec<_> = changes.iter_from(from).map(|request| (request.op, request.page)).collect();
            assert_eq!(found, expected[from..]);
        }
        assert_eq!((changes.len(), changes.writes(), changes.end()), (5, 3, 8));
    }

    #[test]
    fn changes_beyond_the_pages_are_refused() {
        assert!(read(TEXT, 7).is_none());
        assert!(read(TEXT, 8).is_some());
    }
}
