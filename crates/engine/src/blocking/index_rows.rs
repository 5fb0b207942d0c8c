//! Iteration over indexes through the handle for threads: fetches pages (batches) of rows from each shard, and merges
//! them in index order.

use super::scan::{Owned, borrowed, owned};
use crate::format::index_entry::Coding;
use crate::sharded::merge::first;
use crate::store::transaction::Range;
use crate::{Direction, Error, IndexRow};
use std::collections::VecDeque;
use std::ops::Bound;

/// The maximum number of rows that an iterator fetches from a shard in one call.
const PAGE_ROWS: usize = 256;

/// A function that fetches the first rows of a range of index entries of a shard, at most as many as the last argument
/// says.
type Fetch<'a> = Box<dyn FnMut(usize, Range<'_>, Direction, usize) -> Result<Vec<IndexRow>, Error> + 'a>;

/// Merges the first rows of each shard, which are in order, and returns the first ones of all.
pub(super) fn merge(rows: Vec<Vec<IndexRow>>, direction: Direction, most: usize) -> Vec<IndexRow> {
    let mut rows: Vec<IndexRow> = rows.into_iter().flatten().collect();
    // The sort is stable, so equal rows of a shard keep their order.
    rows.sort_by(|a, b| {
        let order = (&a.index_key, &a.key).cmp(&(&b.index_key, &b.key));
        if direction == Direction::Forward { order } else { order.reverse() }
    });
    rows.truncate(most);
    rows
}

/// The state of the iteration in one shard.
struct Part {
    /// The code of the index entries.
    coding: Coding,
    /// The index entries that were not fetched yet.
    left: Owned,
    found: VecDeque<IndexRow>,
    done: bool,
}

/// An iterator over the rows that a range of an index refers to, in the order of the index. Between two rows it holds
/// one page of rows per shard in memory.
///
/// It ends after the first error.
pub struct IndexRows<'a> {
    range: Owned,
    direction: Direction,
    parts: Vec<Part>,
    fetch: Fetch<'a>,
    /// The number of rows that may still be returned.
    left: usize,
    /// Whether the iteration may begin again with a newer state, because it has returned nothing yet.
    may_renew: bool,
}

impl Part {
    fn new(coding: Coding, range: Range<'_>) -> Part {
        Part { coding, left: coding.entries(range), found: VecDeque::new(), done: false }
    }
}

impl<'a> IndexRows<'a> {
    pub(super) fn new(
        codings: Vec<Coding>,
        range: Range<'_>,
        direction: Direction,
        fetch: impl FnMut(usize, Range<'_>, Direction, usize) -> Result<Vec<IndexRow>, Error> + 'a,
    ) -> IndexRows<'a> {
        let parts = codings.into_iter().map(|coding| Part::new(coding, range)).collect();
        let (range, fetch) = (owned(range), Box::new(fetch));
        IndexRows { range, direction, parts, fetch, left: usize::MAX, may_renew: false }
    }

    /// Lets the iteration begin again if [`Error::SnapshotTooOld`] comes before its first row, as
    /// [`Records::renewing`](super::Records) does.
    pub(super) fn renewing(mut self) -> Self {
        self.may_renew = true;
        self
    }

    /// Limits the number of rows. The iterator then does not read further ahead.
    pub fn limit(mut self, rows: usize) -> Self {
        self.left = rows;
        self
    }

    /// Fetches the next page of a shard if all rows of the last one were returned.
    fn fill(&mut self, shard: usize) -> Result<(), Error> {
        let part = &mut self.parts[shard];
        if part.done || !part.found.is_empty() {
            return Ok(());
        }
        let most = PAGE_ROWS.min(self.left);
        let found = (self.fetch)(shard, borrowed(&part.left), self.direction, most)?;
        part.done = found.len() < most;
        if let Some(last) = found.last() {
            // Several rows may have the same index key, so the next page begins behind the entry.
            let entry = part.coding.entry(&last.index_key, &last.key);
            match self.direction {
                Direction::Forward => part.left.0 = Bound::Excluded(entry),
                Direction::Backward => part.left.1 = Bound::Excluded(entry),
            }
        }
        part.found = found.into();
        Ok(())
    }

    /// Returns the shard whose next row comes first in the direction of the iteration; `None` if no shard has more.
    fn first(&self) -> Option<usize> {
        let heads = self.parts.iter().enumerate();
        let heads = heads.filter_map(|(shard, part)| {
            let row = part.found.front()?;
            Some(((&row.index_key, &row.key), shard))
        });
        first(heads, self.direction)
    }
}

impl Iterator for IndexRows<'_> {
    type Item = Result<IndexRow, Error>;

    fn next(&mut self) -> Option<Result<IndexRow, Error>> {
        if self.left == 0 {
            return None;
        }
        while let Err(error) = (0..self.parts.len()).try_for_each(|shard| self.fill(shard)) {
            if error == Error::SnapshotTooOld && self.may_renew {
                self.parts.iter_mut().for_each(|part| *part = Part::new(part.coding, borrowed(&self.range)));
                continue;
            }
            self.left = 0;
            return Some(Err(error));
        }
        self.may_renew = false;
        let shard = self.first()?;
        self.left -= 1;
        self.parts[shard].found.pop_front().map(Ok)
    }
}
