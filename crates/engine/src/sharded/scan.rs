//! Scans of all shards: merges the scans of each shard in order.

use super::merge::first;
use crate::wait::together;
use crate::{Direction, Error, IndexRow, Record, StoreFuture};
use std::cell::Cell;

/// The scan of a shard, with its next item.
struct Part<S, T> {
    scan: S,
    head: Option<T>,
    ended: bool,
}

/// The scans of all shards.
struct Parts<'a, S, T> {
    direction: Direction,
    each: Vec<Part<S, T>>,
    /// The number of items that may still be returned.
    left: usize,
    /// The shard in which the transaction of the scan was aborted; `None` for the scan of a snapshot.
    aborted_in: Option<&'a Cell<Option<usize>>>,
    /// The error of a scan of no table of the store; then there are no parts.
    refused: Result<(), Error>,
}

impl<'a, S, T> Parts<'a, S, T> {
    fn new(
        scans: Result<Vec<S>, Error>,
        direction: Direction,
        aborted_in: Option<&'a Cell<Option<usize>>>,
    ) -> Self {
        let part = |scan| Part { scan, head: None, ended: false };
        let (scans, refused) = match scans {
            Ok(scans) => (scans, Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        Parts {
            direction,
            each: scans.into_iter().map(part).collect(),
            left: usize::MAX,
            aborted_in,
            refused,
        }
    }

    /// Changes the scan of each shard.
    fn map(mut self, change: impl Fn(S) -> S) -> Self {
        self.each = self.each.into_iter().map(|part| Part { scan: change(part.scan), ..part }).collect();
        self
    }

    /// Fetches the next item of each shard that has none. A snapshot fetches from all of them at the same time; a
    /// transaction does not, because it can wait for only one lock at a time.
    async fn fill(&mut self, next: impl AsyncFn(&mut S) -> Result<Option<T>, Error>) -> Result<(), Error> {
        let fill = async |part: &mut Part<S, T>| {
            part.head = next(&mut part.scan).await?;
            part.ended = part.head.is_none();
            Ok(())
        };
        let due = self.each.iter_mut().enumerate().filter(|(_, part)| part.head.is_none() && !part.ended);
        let Some(aborted_in) = self.aborted_in else {
            return together(due.map(|(_, part)| fill(part)).collect()).await.into_iter().collect();
        };
        for (shard, part) in due {
            if aborted_in.get().is_some() {
                return Err(Error::Deadlock);
            }
            let filled = fill(part).await;
            if filled == Err(Error::Deadlock) {
                aborted_in.set(Some(shard));
            }
            filled?;
        }
        Ok(())
    }

    /// Returns the shard whose next item comes first; `None` at the end of all scans.
    fn first<'k, K: Ord>(&'k self, key: impl Fn(&'k T) -> K) -> Option<usize> {
        let heads = self.each.iter().enumerate();
        first(heads.filter_map(|(shard, part)| Some((key(part.head.as_ref()?), shard))), self.direction)
    }

    fn take(&mut self, shard: usize) -> Option<T> {
        self.left -= 1;
        self.each[shard].head.take()
    }
}

/// A scan of a range of keys, in order over all shards. It holds no latch between two calls.
pub struct Scan<'a>(Parts<'a, crate::Scan<'a>, Record>);

impl<'a> Scan<'a> {
    pub(super) fn new(
        scans: Result<Vec<crate::Scan<'a>>, Error>,
        direction: Direction,
        aborted_in: Option<&'a Cell<Option<usize>>>,
    ) -> Scan<'a> {
        Scan(Parts::new(scans, direction, aborted_in))
    }

    /// Ends the scan after `records` records; see [`crate::Scan::limit`]. Call it before the first record is read.
    pub fn limit(self, records: usize) -> Self {
        let mut parts = self.0.map(|scan| scan.limit(records));
        parts.left = records;
        Scan(parts)
    }

    /// Sets the number of leaves that are read at once in each shard; see [`crate::Scan::degree`].
    pub fn degree(self, leaves: u32) -> Self {
        Scan(self.0.map(|scan| scan.degree(leaves)))
    }

    /// Returns the next record; `None` at the end of the scan.
    pub async fn next(&mut self) -> Result<Option<Record>, Error> {
        self.next_record().await
    }

    fn next_record(&mut self) -> StoreFuture<'_, Option<Record>> {
        Box::pin(async move {
            if let [only] = &mut self.0.each[..] {
                return only.scan.next().await;
            }
            self.0.refused.clone()?;
            if self.0.left == 0 {
                return Ok(None);
            }
            self.0.fill(async |scan: &mut crate::Scan<'a>| scan.next().await).await?;
            let first = self.0.first(|(key, _)| &key[..]);
            Ok(first.and_then(|shard| self.0.take(shard)))
        })
    }

    /// Returns all remaining records.
    pub fn all(mut self) -> StoreFuture<'a, Vec<Record>> {
        if self.0.each.len() == 1
            && let Some(only) = self.0.each.pop()
        {
            return only.scan.all();
        }
        Box::pin(async move {
            let mut records = Vec::new();
            while let Some(record) = self.next().await? {
                records.push(record);
            }
            Ok(records)
        })
    }
}

/// A scan of an index, in the order of the index over all shards. It returns the rows that the index entries refer to.
pub struct IndexScan<'a>(Parts<'a, crate::IndexScan<'a>, IndexRow>);

impl<'a> IndexScan<'a> {
    pub(super) fn new(
        scans: Result<Vec<crate::IndexScan<'a>>, Error>,
        direction: Direction,
        aborted_in: Option<&'a Cell<Option<usize>>>,
    ) -> IndexScan<'a> {
        IndexScan(Parts::new(scans, direction, aborted_in))
    }

    /// Ends the scan after `rows` rows; see [`crate::IndexScan::limit`]. Call it before the first row is read.
    pub fn limit(self, rows: usize) -> Self {
        let mut parts = self.0.map(|scan| scan.limit(rows));
        parts.left = rows;
        IndexScan(parts)
    }

    /// Sets the number of rows whose leaves are read at once, in all shards together; see
    /// [`crate::IndexScan::degree`].
    pub fn degree(self, rows: u32) -> Self {
        let each = rows.div_ceil((self.0.each.len() as u32).max(1));
        IndexScan(self.0.map(|scan| scan.degree(each)))
    }

    /// Returns the next row; `None` at the end of the scan.
    pub async fn next(&mut self) -> Result<Option<IndexRow>, Error> {
        self.next_row().await
    }

    fn next_row(&mut self) -> StoreFuture<'_, Option<IndexRow>> {
        Box::pin(async move {
            if let [only] = &mut self.0.each[..] {
                return only.scan.next().await;
            }
            self.0.refused.clone()?;
            if self.0.left == 0 {
                return Ok(None);
            }
            self.0.fill(async |scan: &mut crate::IndexScan<'a>| scan.next().await).await?;
            let first = self.0.first(|row| (&row.index_key[..], &row.key[..]));
            Ok(first.and_then(|shard| self.0.take(shard)))
        })
    }

    /// Returns all remaining rows.
    pub fn all(mut self) -> StoreFuture<'a, Vec<IndexRow>> {
        if self.0.each.len() == 1
            && let Some(only) = self.0.each.pop()
        {
            return only.scan.all();
        }
        Box::pin(async move {
            let mut rows = Vec::new();
            while let Some(row) = self.next().await? {
                rows.push(row);
            }
            Ok(rows)
        })
    }
}
