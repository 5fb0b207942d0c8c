//! Counts the page writes and trims of a trace for counting runs, and keeps them in memory, at their original
//! addresses and in four bytes each (a trim in twelve), unless they are too many.

use super::error::TraceError;
use super::reader::PageStream;
use crate::{Op, Request};
use fulgurite_base::PageId;

/// The number and the identity of the changes in a trace, which are writes and trims of single pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeCounts {
    /// The number of changes.
    pub changes: u64,
    /// The number of trims among them.
    pub trims: u64,
    /// One more than the greatest page number that is written or trimmed; 0 without changes.
    pub end: u64,
    /// Requests are hashed in four lanes, because in a single chain each step would wait for the previous one.
    lanes: [u64; 4],
}

impl ChangeCounts {
    /// The number of writes of single pages.
    pub fn writes(&self) -> u64 {
        self.changes - self.trims
    }

    /// Returns a hash of all changes and their order.
    pub fn hash(&self) -> u64 {
        self.lanes.into_iter().fold(self.changes, mix)
    }

    /// Counts a write or trim of the pages up to `end`.
    #[inline]
    fn add(&mut self, request: &Request, end: u64) {
        let pages = u64::from(request.pages);
        let (word, trims) = match request.op {
            Op::Trim => (!request.page, pages),
            _ => (request.page, 0),
        };
        let lane = &mut self.lanes[self.changes as usize % 4];
        *lane = mix(*lane, word ^ pages << 32);
        self.changes += pages;
        self.trims += trims;
        self.end = self.end.max(end);
    }
}

fn mix(hash: u64, word: u64) -> u64 {
    PageId(hash ^ word).mixed()
}

/// The writes and trims of single pages in a trace, in order.
#[derive(Clone, Debug, Default)]
pub struct PageChanges {
    pages: Vec<u32>,
    /// The positions of the trims in `pages`, ascending; all other entries are writes.
    trims: Vec<u64>,
}

impl PageChanges {
    /// Reads all changes of `stream`, and keeps them if they are at most `keep`; otherwise the second result is
    /// `None`, and memory stays bounded. Returns `None` if a change is beyond the first `pages` pages, or if there
    /// are several volumes, because the addresses of volumes are not comparable.
    pub fn read(
        stream: &mut PageStream,
        pages: u32,
        keep: u64,
    ) -> Result<Option<(ChangeCounts, Option<PageChanges>)>, TraceError> {
        let (mut counts, mut kept) = (ChangeCounts::default(), Some(PageChanges::default()));
        let mut fits = true;
        while fits {
            let more = stream.for_some(1 << 12, |request| {
                let end = request.page + u64::from(request.pages);
                if request.op == Op::Read || !fits {
                    return;
                }
                fits = end <= u64::from(pages);
                if fits {
                    counts.add(&request, end);
                    if counts.changes > keep {
                        kept = None;
                    }
                    if let Some(kept) = &mut kept {
                        kept.push(&request);
                    }
                }
            })?;
            // The check after each batch avoids reading the rest of a long trace in vain.
            fits &= stream.volumes().len() <= 1;
            if !more {
                break;
            }
        }
        Ok(fits.then_some((counts, kept)))
    }

    /// Adds the pages of a write or trim, whose numbers fit in 32 bits.
    fn push(&mut self, request: &Request) {
        if request.op == Op::Trim {
            let first = self.pages.len() as u64;
            self.trims.extend(first..first + u64::from(request.pages));
        }
        let first = request.page as u32;
        self.pages.extend(first..first + request.pages);
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

    fn read(text: &'static str, pages: u32, keep: u64) -> Option<(ChangeCounts, Option<PageChanges>)> {
        let reader =
            TraceReader::new("t", Cursor::new(text), Some(Format::MIDAS), TraceOptions::default()).unwrap();
        PageChanges::read(&mut reader.page_requests(4096).unwrap(), pages, keep).unwrap()
    }

    const TEXT: &str = "0 1 5 8192\n0 0 90 4096\n0 3 6 8192\n0 1 2 4096\n";

    #[test]
    fn reads_are_skipped_and_longer_requests_are_split() {
        let (counts, changes) = read(TEXT, 8, 5).unwrap();
        let changes = changes.unwrap();
        let expected = [(Op::Write, 5), (Op::Write, 6), (Op::Trim, 6), (Op::Trim, 7), (Op::Write, 2)];
        for from in 0..=expected.len() {
            let found: Vec<_> = changes.iter_from(from).map(|request| (request.op, request.page)).collect();
            assert_eq!(found, expected[from..]);
        }
        assert_eq!((counts.changes, counts.writes(), counts.end), (5, 3, 8));
    }

    /// The rule: changes are kept up to the given number. More are counted as if they were kept.
    #[test]
    fn too_many_changes_are_only_counted() {
        let (kept, counted) = (read(TEXT, 8, 5).unwrap(), read(TEXT, 8, 4).unwrap());
        assert!(kept.1.is_some() && counted.1.is_none());
        assert_eq!(kept.0, counted.0);
    }

    /// The rule: the hash depends on each change, on its operation and on the order.
    #[test]
    fn other_changes_have_another_hash() {
        let hash = |text| read(text, 8, 5).unwrap().0.hash();
        let texts = [
            TEXT,
            "0 1 6 8192\n0 3 6 8192\n0 1 2 4096\n",
            "0 1 5 4096\n0 3 6 8192\n0 1 2 4096\n",
            "0 1 5 8192\n0 1 6 8192\n0 1 2 4096\n",
            "0 1 2 4096\n0 1 5 8192\n0 3 6 8192\n",
            "0 1 5 8192\n0 3 6 8192\n0 1 2 4096\n0 1 2 4096\n",
            "0 1 0 4096\n0 1 1 20480\n",
            "0 1 0 20480\n0 1 1 4096\n",
        ];
        let mut hashes = texts.map(hash).to_vec();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), texts.len());
    }

    #[test]
    fn changes_beyond_the_pages_are_refused() {
        assert!(read(TEXT, 7, 5).is_none());
        assert!(read(TEXT, 8, 5).is_some());
    }
}
