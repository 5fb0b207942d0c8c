//! Scans through the handle for threads: fetches pages (batches) of records from each shard, and merges them
//! in key order.

use crate::sharded::merge::first;
use crate::store::transaction::Range;
use crate::{Direction, Error, Record, Row, Rows};
use std::ops::Bound;

/// The maximum number of records that a scan fetches from a shard in one call.
pub const PAGE_RECORDS: usize = 256;

/// The borrowed bounds of the range that is still to be fetched.
pub(super) type Source<'a> = Range<'a>;

/// A page of a scan: the next records of a range, or an error.
pub(super) type Page = Result<Rows, Error>;

/// The bounds of a range of keys, owned.
pub(super) type Owned = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Copies the bounds of a range.
pub(super) fn owned((low, high): Range<'_>) -> Owned {
    (low.map(<[u8]>::to_vec), high.map(<[u8]>::to_vec))
}

/// Borrows owned bounds.
pub(super) fn borrowed((low, high): &Owned) -> Range<'_> {
    (low.as_ref().map(|key| &key[..]), high.as_ref().map(|key| &key[..]))
}

/// A function that fetches the first records of a range of a shard, at most as many as the last argument
/// says.
type Fetch<'a> = Box<dyn FnMut(usize, Source<'_>, Direction, usize) -> Page + 'a>;

/// The state of a scan in one shard.
#[derive(Default)]
struct Part {
    found: Rows,
    /// The number of fetched records that were returned.
    given: usize,
    done: bool,
}

impl Part {
    /// Returns the next fetched record; `None` if all were returned.
    fn head(&self) -> Option<Row<'_>> {
        self.found.get(self.given)
    }
}

/// An iterator over the records of a range in order. Between two records it holds one page of records per
/// shard in memory.
///
/// It ends after the first error.
pub struct Records<'a> {
    range: Owned,
    direction: Direction,
    parts: Vec<Part>,
    fetch: Fetch<'a>,
    /// The number of records that may still be returned.
    left: usize,
    failed: bool,
    /// Whether the scan may begin again with a newer state, because it has returned nothing yet.
    may_renew: bool,
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
            may_renew: false,
        }
    }

    /// Lets the scan begin again if [`Error::SnapshotTooOld`] comes before its first record: the first pages of the
    /// shards are read one after the other. The function that fetches must read a newer state then.
    pub(super) fn renewing(mut self) -> Self {
        self.may_renew = true;
        self
    }

    /// Limits the number of records. The scan then does not read further ahead; leaving the iterator early
    /// does not save this work.
    pub fn limit(mut self, records: usize) -> Self {
        self.left = records;
        self
    }

    /// Fetches the next page of a shard if all records of the last one were returned.
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

    /// Returns the next record like [`Iterator::next`], but without a copy.
    pub fn next_row(&mut self) -> Option<Result<Row<'_>, Error>> {
        if self.failed || self.left == 0 {
            return None;
        }
        while let Err(error) = (0..self.parts.len()).try_for_each(|shard| self.fill(shard)) {
            if error == Error::SnapshotTooOld && self.may_renew {
                self.parts.fill_with(Part::default);
                continue;
            }
            self.failed = true;
            return Some(Err(error));
        }
        self.may_renew = false;
        let shard = self.first()?;
        self.left -= 1;
        let part = &mut self.parts[shard];
        part.given += 1;
        part.found.get(part.given - 1).map(Ok)
    }

    /// Returns the shard whose next key comes first in the direction of the scan; `None` if no shard has more
    /// records.
    fn first(&self) -> Option<usize> {
        let heads = self.parts.iter().enumerate();
        first(heads.filter_map(|(shard, part)| Some((part.head()?.0, shard))), self.direction)
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Result<Record, Error>> {
        let record = self.next_row()?;
        Some(record.map(|(key, value)| (key.to_vec(), value.to_vec())))
    }
}
