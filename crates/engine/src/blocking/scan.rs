//! Scans for threads: pages of records from each shard, merged in key order.

use crate::store::transaction::Range;
use crate::{Direction, Error, Record, Row, Rows};
use std::ops::Bound;

/// The most records that a scan fetches from a shard in one call.
pub const PAGE_RECORDS: usize = 256;

/// A borrowed range.
pub(super) type Source<'a> = Range<'a>;

/// Records from a part of a range.
pub(super) type Page = Result<Rows, Error>;

/// The bounds of a range of keys, owned.
pub(super) type Owned = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A copy of a range.
pub(super) fn owned((low, high): Range<'_>) -> Owned {
    (low.map(<[u8]>::to_vec), high.map(<[u8]>::to_vec))
}

/// The range of owned bounds.
pub(super) fn borrowed((low, high): &Owned) -> Range<'_> {
    (low.as_ref().map(|key| &key[..]), high.as_ref().map(|key| &key[..]))
}

/// Fetches up to so many first records of a shard's range.
type Fetch<'a> = Box<dyn FnMut(usize, Source<'_>, Direction, usize) -> Page + 'a>;

/// The state of a scan in one shard.
#[derive(Default)]
struct Part {
    found: Rows,
    /// How many of the fetched records were returned.
    given: usize,
    done: bool,
}

impl Part {
    /// The next key and value of the fetched ones.
    fn head(&self) -> Option<Row<'_>> {
        self.found.get(self.given)
    }
}

/// The records of a range in order. Between two records it holds only a page of records in memory.
///
/// It ends with the first error.
pub struct Records<'a> {
    range: Owned,
    direction: Direction,
    parts: Vec<Part>,
    fetch: Fetch<'a>,
    /// The number of records still to return.
    left: usize,
    failed: bool,
}

impl<'a> Records<'a> {
    pub(super) fn new(
        shards: usize,
        range: Range<'_>,
        direction: Direction,
        fetch: impl FnMut(usize, Source<'_>, Direction, usize) -> Page + 'a,
    ) -> Records<'a> {
        let parts = (0..shards).map(|_| Part::default()).collect();
        Records {
            range: owned(range),
            direction,
            parts,
            fetch: Box::new(fetch),
            left: usize::MAX,
            failed: false,
        }
    }

    /// Limits the number of records. This also avoids reading ahead, which leaving the iterator early does
    /// not.
    pub fn limit(mut self, records: usize) -> Self {
        self.left = records;
        self
    }

    /// Fetches a shard's next page if the last one is used up.
    fn fill(&mut self, shard: usize) -> Result<(), Error> {
        let part = &mut self.parts[shard];
        if part.done || part.head().is_some() {
            return Ok(());
        }
        let (mut low, mut high) = borrowed(&self.range);
        if let Some((last, _)) = part.given.checked_sub(1).and_then(|last| part.found.get(last)) {
            match self.direction {
                Direction::Forward => low = Bound::Excluded(last),
                Direction::Backward => high = Bound::Excluded(last),
            }
        }
        let most = PAGE_RECORDS.min(self.left);
        let found = (self.fetch)(shard, (low, high), self.direction, most)?;
        *part = Part { done: found.len() < most, found, given: 0 };
        Ok(())
    }

    /// The next record, like [`Iterator::next`], but without a copy.
    pub fn next_row(&mut self) -> Option<Result<Row<'_>, Error>> {
        if self.failed || self.left == 0 {
            return None;
        }
        for shard in 0..self.parts.len() {
            if let Err(error) = self.fill(shard) {
                self.failed = true;
                return Some(Err(error));
            }
        }
        let shard = self.first()?;
        self.left -= 1;
        let part = &mut self.parts[shard];
        part.given += 1;
        part.found.get(part.given - 1).map(Ok)
    }

    /// The shard with the smallest next key, in the direction of the scan.
    fn first(&self) -> Option<usize> {
        let heads = self.parts.iter().enumerate();
        let heads = heads.filter_map(|(shard, part)| Some((part.head()?.0, shard)));
        match self.direction {
            Direction::Forward => heads.min(),
            Direction::Backward => heads.max(),
        }
        .map(|(_, shard)| shard)
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Result<Record, Error>> {
        let record = self.next_row()?;
        Some(record.map(|(key, value)| (key.to_vec(), value.to_vec())))
    }
}
