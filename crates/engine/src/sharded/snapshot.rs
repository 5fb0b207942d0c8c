//! Snapshots of all shards.

use super::keys::{by_shard, shard_of};
use super::scan::{IndexScan, Scan};
use super::shards::{Index, Shards, Table};
use crate::store::transaction::Range;
use crate::wait::together;
use crate::{Direction, Error, Snapshot as Inner, StoreFuture};
use std::rc::Rc;

/// A snapshot: everything that was committed when it was taken, and nothing later. It is one state of all shards. See
/// [`crate::Snapshot`].
pub struct Snapshot {
    shards: Rc<Shards>,
    sides: Vec<Inner>,
}

impl Snapshot {
    pub(super) async fn take(shards: &Rc<Shards>) -> Snapshot {
        if shards.count() > 1 {
            shards.states.until_none_becomes().await;
        }
        Snapshot::of_each(shards)
    }

    /// Takes a snapshot of each shard. Nothing else runs between the first and the last one.
    pub(super) fn of_each(shards: &Rc<Shards>) -> Snapshot {
        let sides = shards.each.iter().map(crate::Store::snapshot).collect();
        Snapshot { shards: Rc::clone(shards), sides }
    }

    /// Returns the value of a key; `None` if the key has none.
    pub fn get<'a>(&'a self, table: Table, key: &'a [u8]) -> StoreFuture<'a, Option<Vec<u8>>> {
        let shard = shard_of(key, self.sides.len());
        match self.shards.tables.get(table.0, shard) {
            Ok(table) => self.sides[shard].get(table, key),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    /// Returns the values of several keys. The leaves that are not in memory are read from the drive in parallel.
    pub fn get_many<'a>(
        &'a self,
        table: Table,
        keys: &'a [&'a [u8]],
    ) -> StoreFuture<'a, Vec<Option<Vec<u8>>>> {
        Box::pin(async move {
            if let [side] = &self.sides[..] {
                return side.get_many(self.shards.tables.get(table.0, 0)?, keys).await;
            }
            let parts = by_shard(keys, self.sides.len());
            let gets = parts.iter().map(async |(shard, places)| {
                let own: Vec<&[u8]> = places.iter().map(|place| keys[*place]).collect();
                let table = self.shards.tables.get(table.0, *shard)?;
                self.sides[*shard].get_many(table, &own).await
            });
            let mut values = vec![None; keys.len()];
            for ((_, places), found) in std::iter::zip(&parts, together(gets.collect()).await) {
                std::iter::zip(places, found?).for_each(|(place, value)| values[*place] = value);
            }
            Ok(values)
        })
    }

    /// Scans the records of a range, in order over all shards.
    pub fn scan(&self, table: Table, range: Range<'_>, direction: Direction) -> Scan<'_> {
        let scan = |shard: usize| {
            Ok(self.sides[shard].scan(self.shards.tables.get(table.0, shard)?, range, direction))
        };
        let scans = (0..self.sides.len()).map(scan).collect::<Result<_, Error>>();
        Scan::new(scans, direction, None)
    }

    /// Scans the records that a range of an index refers to, in the order of the index over all shards.
    pub fn index_scan(&self, index: Index, range: Range<'_>, direction: Direction) -> IndexScan<'_> {
        let scan = |shard: usize| {
            Ok(self.sides[shard].index_scan(self.shards.indexes.get(index.0, shard)?, range, direction))
        };
        let scans = (0..self.sides.len()).map(scan).collect::<Result<_, Error>>();
        IndexScan::new(scans, direction, None)
    }
}
