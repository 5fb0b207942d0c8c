//! Snapshots through the handle for threads.

use super::db::{Db, Index, Table};
use super::index_rows::{IndexRows, merge};
use super::scan::{PAGE_RECORDS, Page, Records, Source, borrowed, owned};
use crate::store::transaction::Range;
use crate::{Direction, Error, IndexRow};
use std::rc::Rc;

/// A snapshot: everything that was committed when it was taken, and nothing later. It is one state of all shards.
///
/// A read may fail with [`Error::SnapshotTooOld`] once the old values that it needs were dropped to free
/// memory.
pub struct Snapshot {
    db: Db,
    /// The number of the snapshot in each shard; `None` for shards that are not read.
    numbers: Vec<Option<u64>>,
}

/// The state that a scan of a store reads, which is fixed with the first read.
struct Newest<'a> {
    db: &'a Db,
    snapshot: Option<Snapshot>,
}

impl Newest<'_> {
    /// Reads from the state. If its old values were dropped, the next read fixes another state.
    fn read<T>(&mut self, read: impl FnOnce(&Snapshot) -> Result<T, Error>) -> Result<T, Error> {
        let snapshot = match &mut self.snapshot {
            Some(snapshot) => snapshot,
            none => none.insert(self.db.snapshot()?),
        };
        let found = read(snapshot);
        if matches!(found, Err(Error::SnapshotTooOld)) {
            self.snapshot = None;
        }
        found
    }
}

impl Db {
    /// Returns the committed values of several keys. Those that are not in memory are read from each drive in
    /// parallel. All values belong to one state.
    pub fn get_many(&self, table: &Table, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        loop {
            let found = self.snapshot_of(keys)?.get_many(table, keys);
            if found != Err(Error::SnapshotTooOld) {
                return found;
            }
        }
    }

    /// Scans the committed records of a range, in order over all shards. All records belong to one state, which is
    /// fixed when the first record is returned. A scan of more than [`PAGE_RECORDS`] records may fail with
    /// [`Error::SnapshotTooOld`] later. With one shard and a limit below that number there is a single fetch, which
    /// keeps no snapshot open.
    pub fn scan(&self, table: &Table, range: Range<'_>, direction: Direction) -> Records<'_> {
        let (table, mut state) = (table.clone(), Newest { db: self, snapshot: None });
        let fetch = move |shard, range: Range<'_>, direction, most| {
            // A fetch with a smaller limit than a page is the only one from its shard. If there are no other shards, it
            // needs no snapshot.
            if self.shards() == 1 && most < PAGE_RECORDS && state.snapshot.is_none() {
                return self.page(&table, shard, range, direction, most);
            }
            state.read(|snapshot| snapshot.page(&table, shard, range, direction, most))
        };
        Records::new(self.shards(), range, direction, fetch).renewing()
    }

    /// Iterates over the committed rows of a range of an index, in the order of the index over all shards, and reads
    /// them in parts. All rows belong to one state, which is fixed when the first row is returned.
    pub fn index_rows(&self, index: &Index, range: Range<'_>, direction: Direction) -> IndexRows<'_> {
        let (codings, index, mut state) =
            (index.codings(), index.clone(), Newest { db: self, snapshot: None });
        let fetch = move |shard, range: Range<'_>, direction, most| {
            state.read(|snapshot| snapshot.index_page(&index, shard, range, direction, most))
        };
        IndexRows::new(codings, range, direction, fetch).renewing()
    }

    /// Takes a snapshot of the committed state. With several shards it waits for transactions of several shards that
    /// are about to become visible, which takes about as long as a flush of the log.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        Snapshot::new(self, |_| true)
    }

    fn snapshot_of(&self, keys: &[&[u8]]) -> Result<Snapshot, Error> {
        let mut wanted = vec![false; self.shards()];
        keys.iter().for_each(|key| wanted[self.shard_of(key)] = true);
        Snapshot::new(self, |shard| wanted[shard])
    }
}

impl Snapshot {
    pub(super) fn new(db: &Db, is_wanted: impl Fn(usize) -> bool) -> Result<Snapshot, Error> {
        let mut snapshot = Snapshot { db: db.clone(), numbers: vec![None; db.shards()] };
        let wanted: Vec<usize> = (0..db.shards()).filter(|shard| is_wanted(*shard)).collect();
        let _alone = (wanted.len() > 1).then(|| db.states().alone());
        take(db, &wanted, &mut snapshot.numbers)?;
        Ok(snapshot)
    }

    /// Returns the value of a key; `None` if the key has none.
    pub fn get(&self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let shard = self.db.shard_of(key);
        let (number, table, key) =
            (self.number(shard)?, self.db.table_in(table, shard)?, Box::<[u8]>::from(key));
        self.db.shard(shard).run(move |inside| {
            let snapshot = find(&inside.snapshots, number)?;
            Ok(async move { snapshot.get(table, &key).await })
        })
    }

    /// Returns the values of several keys. Those that are not in memory are read from each drive in parallel.
    pub fn get_many(&self, table: &Table, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let mut values = vec![None; keys.len()];
        for (shard, places) in self.db.by_shard(keys) {
            let own: Vec<Box<[u8]>> = places.iter().map(|place| keys[*place].into()).collect();
            let (number, table) = (self.number(shard)?, self.db.table_in(table, shard)?);
            let found = self.db.shard(shard).run(move |inside| {
                let snapshot = find(&inside.snapshots, number)?;
                Ok(async move {
                    let keys: Vec<&[u8]> = own.iter().map(|key| &**key).collect();
                    snapshot.get_many(table, &keys).await
                })
            })?;
            std::iter::zip(places, found).for_each(|(place, value)| values[place] = value);
        }
        Ok(values)
    }

    /// Scans the records of a range, in order over all shards.
    pub fn scan(&self, table: &Table, range: Range<'_>, direction: Direction) -> Records<'_> {
        let table = table.clone();
        Records::new(self.db.shards(), range, direction, move |shard, range, direction, most| {
            self.page(&table, shard, range, direction, most)
        })
    }

    pub(super) fn page(
        &self,
        table: &Table,
        shard: usize,
        range: Source<'_>,
        direction: Direction,
        most: usize,
    ) -> Page {
        let (number, table, range) = (self.number(shard)?, self.db.table_in(table, shard)?, owned(range));
        self.db.shard(shard).run(move |inside| {
            let snapshot = find(&inside.snapshots, number)?;
            Ok(async move { snapshot.scan(table, borrowed(&range), direction).limit(most).rows().await })
        })
    }

    /// Iterates over the rows of a range of an index, in the order of the index over all shards, and reads them in
    /// parts.
    pub fn index_rows(&self, index: &Index, range: Range<'_>, direction: Direction) -> IndexRows<'_> {
        let index = index.clone();
        IndexRows::new(index.codings(), range, direction, move |shard, range, direction, most| {
            self.index_page(&index, shard, range, direction, most)
        })
    }

    /// Returns the first rows of a range of entries of an index of a shard.
    fn index_page(
        &self,
        index: &Index,
        shard: usize,
        range: Source<'_>,
        direction: Direction,
        most: usize,
    ) -> Result<Vec<IndexRow>, Error> {
        let (number, index, range) = (self.number(shard)?, self.db.index_in(index, shard)?, owned(range));
        self.db.shard(shard).run(move |inside| {
            let snapshot = find(&inside.snapshots, number)?;
            Ok(async move { snapshot.index_entries(index, borrowed(&range), direction).limit(most).all().await })
        })
    }

    /// Returns the first rows of a range of an index, at most `most`, in index order over all shards.
    pub fn index_scan(
        &self,
        index: &Index,
        range: Range<'_>,
        direction: Direction,
        most: usize,
    ) -> Result<Vec<IndexRow>, Error> {
        let mut rows = Vec::new();
        for shard in 0..self.db.shards() {
            let (number, index, range) = (self.number(shard)?, self.db.index_in(index, shard)?, owned(range));
            rows.push(
                self.db.shard(shard).run(move |inside| {
                    let snapshot = find(&inside.snapshots, number)?;
                    Ok(async move {
                        snapshot.index_scan(index, borrowed(&range), direction).limit(most).all().await
                    })
                })?,
            );
        }
        Ok(merge(rows, direction, most))
    }

    fn number(&self, shard: usize) -> Result<u64, Error> {
        self.numbers[shard].ok_or(Error::Closed)
    }
}

/// Takes a snapshot of each of these shards, which are in ascending order. All of them are locked together, so nothing
/// happens between the first and the last one.
fn take(db: &Db, shards: &[usize], numbers: &mut [Option<u64>]) -> Result<(), Error> {
    let Some((shard, others)) = shards.split_first() else { return Ok(()) };
    db.shard(*shard).at_once(|inside| {
        take(db, others, numbers)?;
        let number = inside.draw();
        inside.snapshots.insert(number, Rc::new(inside.store.snapshot()));
        numbers[*shard] = Some(number);
        Ok(())
    })?
}

fn find<T>(begun: &rustc_hash::FxHashMap<u64, Rc<T>>, number: u64) -> Result<Rc<T>, Error> {
    begun.get(&number).cloned().ok_or(Error::Closed)
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        for (shard, number) in self.numbers.iter().enumerate() {
            if let Some(number) = *number {
                // An error is ignored, because a broken shard has nothing to release.
                let _ = self.db.shard(shard).at_once(|inside| drop(inside.snapshots.remove(&number)));
            }
        }
    }
}
