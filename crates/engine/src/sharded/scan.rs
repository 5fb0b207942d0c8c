//! Scans of all shards: merges the scans of each shard in order.

use super::merge::first;
use crate::wait::together;
use crate::{Direction, Error, IndexRow, Record, StoreFuture};
use std::cell::Cell;

/// The scan of a shard, which returns its items in order.
trait Sorted<'a>: Sized + 'a {
    type Item: 'a;

    fn limit(self, items: usize) -> Self;

    async fn next(&mut self) -> Result<Option<Self::Item>, Error>;

    fn all(self) -> StoreFuture<'a, Vec<Self::Item>>;

    /// Returns the keys that items are ordered by.
    fn order(item: &Self::Item) -> (&[u8], &[u8]);
}

macro_rules! sorted {
    ($scan:ident, $item:ty, |$entry:ident| $order:expr) => {
        impl<'a> Sorted<'a> for crate::$scan<'a> {
            type Item = $item;

            fn limit(self, items: usize) -> Self {
                crate::$scan::limit(self, items)
            }

            async fn next(&mut self) -> Result<Option<$item>, Error> {
                crate::$scan::next(self).await
            }

            fn all(self) -> StoreFuture<'a, Vec<$item>> {
                crate::$scan::all(self)
            }

            fn order($entry: &$item) -> (&[u8], &[u8]) {
                $order
            }
        }
    };
}

sorted!(Scan, Record, |record| (&record.0, &[]));
sorted!(IndexScan, IndexRow, |row| (&row.index_key, &row.key));

/// The scan of a shard, with its next item.
struct Part<S, T> {
    scan: S,
    head: Option<T>,
    ended: bool,
}

/// The scans of all shards.
struct Parts<'a, S: Sorted<'a>> {
    direction: Direction,
    each: Vec<Part<S, S::Item>>,
    /// The number of items that may still be returned.
    left: usize,
    /// The shard in which the transaction of the scan was aborted; `None` for the scan of a snapshot.
    aborted_in: Option<&'a Cell<Option<usize>>>,
    /// The error of a scan of no table of the store; then there are no parts.
    refused: Result<(), Error>,
}

impl<'a, S: Sorted<'a>> Parts<'a, S> {
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

    fn limit(self, items: usize) -> Self {
        Parts { left: items, ..self.map(|scan| scan.limit(items)) }
    }

    /// Fetches the next item of each shard that has none. A snapshot fetches from all of them at the same time; a
    /// transaction does not, because it can wait for only one lock at a time.
    async fn fill(&mut self) -> Result<(), Error> {
        let fill = async |part: &mut Part<S, S::Item>| {
            part.head = part.scan.next().await?;
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

    /// Returns the next item; `None` at the end of all scans.
    fn next(&mut self) -> StoreFuture<'_, Option<S::Item>> {
        Box::pin(async move {
            if let [only] = &mut self.each[..] {
                return only.scan.next().await;
            }
            self.refused.clone()?;
            if self.left == 0 {
                return Ok(None);
            }
            self.fill().await?;
            let heads = self.each.iter().enumerate();
            let heads = heads.filter_map(|(shard, part)| Some((S::order(part.head.as_ref()?), shard)));
            let Some(shard) = first(heads, self.direction) else { return Ok(None) };
            self.left -= 1;
            Ok(self.each[shard].head.take())
        })
    }

    fn all(mut self) -> StoreFuture<'a, Vec<S::Item>> {
        if self.each.len() == 1
            && let Some(only) = self.each.pop()
        {
            return only.scan.all();
        }
        Box::pin(async move {
            let mut items = Vec::new();
            while let Some(item) = self.next().await? {
                items.push(item);
            }
            Ok(items)
        })
    }
}

/// A scan of a range of keys, in order over all shards. It holds no latch between two calls.
pub struct Scan<'a>(Parts<'a, crate::Scan<'a>>);

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
        Scan(self.0.limit(records))
    }

    /// Sets the number of leaves that are read at once in each shard; see [`crate::Scan::degree`].
    pub fn degree(self, leaves: u32) -> Self {
        Scan(self.0.map(|scan| scan.degree(leaves)))
    }

    /// Returns the next record; `None` at the end of the scan.
    pub async fn next(&mut self) -> Result<Option<Record>, Error> {
        self.0.next().await
    }

    /// Returns all remaining records.
    pub fn all(self) -> StoreFuture<'a, Vec<Record>> {
        self.0.all()
    }
}

/// A scan of an index, in the order of the index over all shards. It returns the rows that the index entries refer to.
pub struct IndexScan<'a>(Parts<'a, crate::IndexScan<'a>>);

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
        IndexScan(self.0.limit(rows))
    }

    /// Sets the number of rows whose leaves are read at once, in all shards together; see
    /// [`crate::IndexScan::degree`].
    pub fn degree(self, rows: u32) -> Self {
        let each = rows.div_ceil((self.0.each.len() as u32).max(1));
        IndexScan(self.0.map(|scan| scan.degree(each)))
    }

    /// Returns the next row; `None` at the end of the scan.
    pub async fn next(&mut self) -> Result<Option<IndexRow>, Error> {
        self.0.next().await
    }

    /// Returns all remaining rows.
    pub fn all(self) -> StoreFuture<'a, Vec<IndexRow>> {
        self.0.all()
    }
}
