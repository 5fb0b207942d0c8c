//! Transactions for threads.

use super::scan::{Page, Records, Source, borrowed, owned};
use super::{Db, Index, Table};
use crate::transaction::Range;
use crate::{Direction, Durability, Error, IndexRow, Transaction as Inner};
use fulgurite_device::Device;
use std::future::Future;
use std::ops::Bound;
use std::rc::Rc;

/// A transaction: reads and writes of several tables that take effect together or not at all, as if no other transaction
/// ran meanwhile.
///
/// It lies within the shard of the first key that it touches; a key of another shard is [`Error::CrossShard`], and the
/// transaction may go on without it. [`Error::Deadlock`] from any function means that it was given up: drop it and begin
/// again, or use [`Db::transact`]. Dropping it without a commit undoes it.
///
/// A thread that waits for a lock in one transaction and holds it in another waits for ever, unless it is asked whether to go on
/// ([`Db::asking`]).
pub struct Transaction<D: Device + Send + 'static> {
    db: Db<D>,
    /// The shard and the transaction's number there, once it has touched a key.
    place: Option<(usize, u64)>,
}

impl<D: Device + Send + 'static> Transaction<D> {
    pub(super) fn new(db: &Db<D>) -> Transaction<D> {
        Transaction { db: db.clone(), place: None }
    }

    /// The value of a key, which others may read meanwhile.
    pub fn get(&mut self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let (shard, key) = (self.shard_for(key)?, Box::<[u8]>::from(key));
        let table = self.db.table_in(table, shard)?;
        self.run(shard, move |inner| async move { inner.get(table, &key).await })
    }

    /// The value of a key that will be changed: nobody else reads it meanwhile, which avoids deadlocks.
    pub fn get_for_update(&mut self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let (shard, key) = (self.shard_for(key)?, Box::<[u8]>::from(key));
        let table = self.db.table_in(table, shard)?;
        self.run(shard, move |inner| async move { inner.get_for_update(table, &key).await })
    }

    /// The values of several keys of one shard, read from the drive at once where they are not in memory.
    pub fn get_many(&mut self, table: &Table, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let Some(first) = keys.first() else { return Ok(Vec::new()) };
        let shard = self.shard_for(first)?;
        if let Some(other) = keys.iter().find(|key| self.db.shard_of(key) != shard) {
            return Err(self.cross_shard(other, shard));
        }
        let table = self.db.table_in(table, shard)?;
        let keys: Vec<Box<[u8]>> = keys.iter().map(|key| Box::from(*key)).collect();
        self.run(shard, move |inner| async move {
            let keys: Vec<&[u8]> = keys.iter().map(|key| &**key).collect();
            inner.get_many(table, &keys).await
        })
    }

    /// Gives a key a value.
    pub fn put(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let (shard, key, value) = (self.shard_for(key)?, Box::<[u8]>::from(key), Box::<[u8]>::from(value));
        let table = self.db.table_in(table, shard)?;
        self.run(shard, move |inner| async move { inner.put(table, &key, &value).await })
    }

    /// Takes a key's value away, if it has one.
    pub fn delete(&mut self, table: &Table, key: &[u8]) -> Result<(), Error> {
        let (shard, key) = (self.shard_for(key)?, Box::<[u8]>::from(key));
        let table = self.db.table_in(table, shard)?;
        self.run(shard, move |inner| async move { inner.delete(table, &key).await })
    }

    /// The records of a range. No record appears in what was seen of the range, or leaves it, before the transaction ends.
    /// Keys of a range are in every shard, so with several shards this is [`Error::CrossShard`].
    pub fn scan(
        &mut self,
        table: &Table,
        range: Range<'_>,
        direction: Direction,
    ) -> Result<Records<'_>, Error> {
        let shard = self.only_shard(range)?;
        let table = self.db.table_in(table, shard)?;
        Ok(Records::new(1, range, direction, move |_, range, direction, most| {
            self.page(table, shard, range, direction, most)
        }))
    }

    fn page(
        &mut self,
        table: crate::Table,
        shard: usize,
        range: Source<'_>,
        direction: Direction,
        most: usize,
    ) -> Page {
        let range = owned(range);
        self.run(shard, move |inner| async move {
            inner.scan(table, borrowed(&range), direction).limit(most).rows().await
        })
    }

    /// The first rows that a range of an index leads to, at most `most`. With several shards this is
    /// [`Error::CrossShard`].
    pub fn index_scan(
        &mut self,
        index: &Index,
        range: Range<'_>,
        direction: Direction,
        most: usize,
    ) -> Result<Vec<IndexRow>, Error> {
        let shard = self.only_shard(range)?;
        let (index, range) = (self.db.index_in(index, shard)?, owned(range));
        self.run(shard, move |inner| async move {
            inner.index_scan(index, borrowed(&range), direction).limit(most).all().await
        })
    }

    /// Commits with the store's durability.
    pub fn commit(self) -> Result<(), Error> {
        self.end(None)
    }

    /// Commits. What it promises when it returns, `durability` says; see [`crate::Transaction::commit_with`].
    pub fn commit_with(self, durability: Durability) -> Result<(), Error> {
        self.end(Some(durability))
    }

    fn end(mut self, durability: Option<Durability>) -> Result<(), Error> {
        let Some((shard, number)) = self.place.take() else { return Ok(()) };
        self.db.shard(shard).run(move |inside| {
            let inner = inside.transactions.remove(&number).and_then(|inner| Rc::try_unwrap(inner).ok());
            // Every call has run to its end, so nobody else has the transaction.
            let inner = inner.ok_or(Error::Closed)?;
            let durability = durability.unwrap_or_else(|| inside.store.durability());
            Ok(async move { inner.commit_with(durability).await })
        })
    }

    /// Runs a request in the transaction, which begins with its first one.
    fn run<T, W, F>(&mut self, shard: usize, work: W) -> Result<T, Error>
    where
        T: Send + 'static,
        W: FnOnce(Rc<Inner<D>>) -> F + Send,
        F: Future<Output = Result<T, Error>> + 'static,
    {
        let place = &mut self.place;
        self.db.shard(shard).run(move |inside| {
            let (_, number) = *place.get_or_insert_with(|| {
                let number = inside.draw();
                inside.transactions.insert(number, Rc::new(inside.store.begin()));
                (shard, number)
            });
            let inner = inside.transactions.get(&number).cloned().ok_or(Error::Closed)?;
            Ok(work(inner))
        })
    }

    /// The transaction's shard, if `key` belongs to it.
    fn shard_for(&self, key: &[u8]) -> Result<usize, Error> {
        let shard = self.db.shard_of(key);
        match self.place {
            Some((own, _)) if own != shard => Err(self.cross_shard(key, own)),
            _ => Ok(shard),
        }
    }

    /// The one shard that a range lies in, where there is only one.
    fn only_shard(&self, (low, _): Range<'_>) -> Result<usize, Error> {
        if self.db.shards() == 1 {
            return Ok(0);
        }
        let key = match low {
            Bound::Included(key) | Bound::Excluded(key) => String::from_utf8_lossy(key).into_owned(),
            Bound::Unbounded => String::new(),
        };
        let own = self.place.map_or(0, |(own, _)| own);
        // Any other shard has keys of the range as well.
        Err(Error::CrossShard {
            key: format!("of the range from `{key}`"),
            other: usize::from(own == 0),
            own,
        })
    }

    fn cross_shard(&self, key: &[u8], own: usize) -> Error {
        Error::CrossShard {
            key: String::from_utf8_lossy(key).into_owned(),
            other: self.db.shard_of(key),
            own,
        }
    }
}

impl<D: Device + Send + 'static> Drop for Transaction<D> {
    fn drop(&mut self) {
        if let Some((shard, number)) = self.place {
            // In a shard that is broken there is nothing to undo.
            let _ = self.db.shard(shard).at_once(|inside| drop(inside.transactions.remove(&number)));
        }
    }
}
