//! Transactions through the handle for threads.

use super::across;
use super::db::{Db, Index, Table};
use super::index_rows::{IndexRows, merge};
use super::scan::{Page, Records, Source, borrowed, owned};
use super::side::{Common, Side, Write, write_all};
use crate::store::transaction::Range;
use crate::{Direction, Durability, Error, IndexRow, Transaction as Inner};
use std::future::Future;
use std::rc::Rc;

/// A transaction: reads and writes of several tables that take effect together or not at all, isolated from
/// all others.
///
/// [`Error::Deadlock`] from any method means that the transaction was aborted to resolve a deadlock: drop it and retry,
/// or use [`Db::transact`]. Dropping a transaction without a commit undoes it.
///
/// Writes are buffered in the handle, for each shard. They are sent to the shard, and lock their keys, with the next
/// call that reads there, with the commit, or when the buffer is full. An error that only the shard can detect is
/// returned by the call that sends the write, and by all later ones. To lock a key before writing it, read it
/// with [`Transaction::get_for_update`].
///
/// A commit in several shards takes two flushes, one after the other, and is durable when it returns, whatever its
/// durability is.
///
/// A thread that waits for a lock which another transaction of the same thread holds waits for ever, unless
/// its calls can be cancelled ([`Db::asking`]).
pub struct Transaction {
    /// The sides of the transaction, one for each shard that it has used.
    sides: Vec<Side>,
    common: Common,
}

impl Db {
    /// Begins a transaction.
    pub fn begin(&self) -> Transaction {
        Transaction::new(self)
    }

    /// Runs `work` in a transaction and commits it. Repeats it if it was aborted to resolve a deadlock. An error of
    /// `work` undoes the transaction and is returned as it is; it may be of any type that an [`Error`] can become.
    ///
    /// An aborted transaction first waits until no aborted transaction of the shard that began earlier is left, at
    /// most half a second each time. Meanwhile the thread holds no lock. So the transactions of many threads that
    /// change the same records get through in about the order in which they began.
    pub fn transact<T, E: From<Error>>(
        &self,
        mut work: impl FnMut(&mut Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut transaction = self.begin();
        loop {
            let outcome = work(&mut transaction);
            let outcome =
                outcome.and_then(|value| transaction.try_commit(None).map(|()| value).map_err(E::from));
            if outcome.is_ok() {
                return outcome;
            }
            // An aborted transaction had no effect. It is repeated, whatever error its closure made of that.
            match transaction.again()? {
                Some(next) => transaction = next,
                None => return outcome,
            }
        }
    }
}

impl Transaction {
    pub(super) fn new(db: &Db) -> Transaction {
        let common = Common {
            db: db.clone(),
            txn: None,
            is_across: false,
            attempt: None,
            failed: None,
            is_aborted: false,
        };
        Transaction { sides: Vec::new(), common }
    }

    /// Returns the value of a key, under a shared lock; `None` if the key has none.
    pub fn get(&mut self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let (shard, key) = (self.db().shard_of(key), Box::<[u8]>::from(key));
        let table = self.db().table_in(table, shard)?;
        self.run(shard, move |inner| async move { inner.get(table, &key).await })
    }

    /// Returns the value of a key that the transaction will write, under an exclusive lock. A later write
    /// then needs no lock upgrade, which could cause a deadlock.
    pub fn get_for_update(&mut self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let (shard, key) = (self.db().shard_of(key), Box::<[u8]>::from(key));
        let table = self.db().table_in(table, shard)?;
        self.run(shard, move |inner| async move { inner.get_for_update(table, &key).await })
    }

    /// Returns the values of several keys. Those that are not in memory are read from each drive in parallel.
    pub fn get_many(&mut self, table: &Table, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let mut values = vec![None; keys.len()];
        for (shard, places) in self.db().by_shard(keys) {
            let table = self.db().table_in(table, shard)?;
            let own: Vec<Box<[u8]>> = places.iter().map(|place| keys[*place].into()).collect();
            let found = self.run(shard, move |inner| async move {
                let keys: Vec<&[u8]> = own.iter().map(|key| &**key).collect();
                inner.get_many(table, &keys).await
            })?;
            std::iter::zip(places, found).for_each(|(place, value)| values[place] = value);
        }
        Ok(values)
    }

    /// Writes a record.
    pub fn put(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.write(table, key, Some(value))
    }

    /// Deletes a record, if it exists.
    pub fn delete(&mut self, table: &Table, key: &[u8]) -> Result<(), Error> {
        self.write(table, key, None)
    }

    fn write(&mut self, table: &Table, key: &[u8], value: Option<&[u8]>) -> Result<(), Error> {
        let shard = self.db().shard_of(key);
        let (table, longest) = (self.db().table_in(table, shard)?, self.db().longest_key(shard));
        if key.len() > longest {
            return Err(Error::KeyTooLong { bytes: key.len(), longest });
        }
        self.common.check()?;
        let (side, common) = self.side(shard);
        let is_full = side.gather(Write { table, key: key.into(), value: value.map(Box::from) });
        if is_full { side.send(common) } else { Ok(()) }
    }

    /// Scans the records of a range, in order over all shards. Until the transaction ends, no other transaction can
    /// insert into the part that was read, or delete from it.
    pub fn scan(
        &mut self,
        table: &Table,
        range: Range<'_>,
        direction: Direction,
    ) -> Result<Records<'_>, Error> {
        let tables = self.db().each(|shard| self.db().table_in(table, shard))?;
        Ok(Records::new(tables.len(), range, direction, move |shard, range, direction, most| {
            self.page(tables[shard], shard, range, direction, most)
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

    /// Deletes the records of a range, and returns their number; see [`crate::Transaction::delete_range`]. After an
    /// error in one of several shards the transaction cannot continue.
    pub fn delete_range(&mut self, table: &Table, range: Range<'_>) -> Result<u64, Error> {
        let tables = self.db().each(|shard| self.db().table_in(table, shard))?;
        let mut count = 0;
        for (shard, table) in tables.into_iter().enumerate() {
            let range = owned(range);
            let deleted = self
                .run(shard, move |inner| async move { inner.delete_range(table, borrowed(&range)).await });
            if self.db().shards() > 1 {
                self.common.failed = self.common.failed.take().or(deleted.clone().err());
            }
            count += deleted?;
        }
        Ok(count)
    }

    /// Iterates over the rows of a range of an index, in the order of the index over all shards, and reads them in
    /// parts. Until the transaction ends, no other one can change which rows the part that was read has.
    pub fn index_rows(
        &mut self,
        index: &Index,
        range: Range<'_>,
        direction: Direction,
    ) -> Result<IndexRows<'_>, Error> {
        let indexes = self.db().each(|shard| self.db().index_in(index, shard))?;
        Ok(IndexRows::new(index.codings(), range, direction, move |shard, range, direction, most| {
            let (index, range) = (indexes[shard], owned(range));
            self.run(shard, move |inner| async move {
                inner.index_entries(index, borrowed(&range), direction).limit(most).all().await
            })
        }))
    }

    /// Returns the first rows of a range of an index, at most `most`, in the order of the index over all shards.
    pub fn index_scan(
        &mut self,
        index: &Index,
        range: Range<'_>,
        direction: Direction,
        most: usize,
    ) -> Result<Vec<IndexRow>, Error> {
        let indexes = self.db().each(|shard| self.db().index_in(index, shard))?;
        let mut rows = Vec::new();
        for (shard, index) in indexes.into_iter().enumerate() {
            let range = owned(range);
            rows.push(self.run(shard, move |inner| async move {
                inner.index_scan(index, borrowed(&range), direction).limit(most).all().await
            })?);
        }
        Ok(merge(rows, direction, most))
    }

    /// Commits with the default durability of the store.
    pub fn commit(mut self) -> Result<(), Error> {
        self.try_commit(None)
    }

    /// Commits with a durability that overrides the default; see [`crate::Transaction::commit_with`].
    pub fn commit_with(mut self, durability: Durability) -> Result<(), Error> {
        self.try_commit(Some(durability))
    }

    /// Commits with a durability that overrides the default, if there is one. After that the transaction has ended. If
    /// it was aborted to resolve a deadlock, [`Transaction::again`] begins it again.
    pub fn try_commit(&mut self, durability: Option<Durability>) -> Result<(), Error> {
        let outcome = self.common.check().and_then(|()| self.end(durability));
        self.common.failed.get_or_insert(Error::Closed);
        self.undo();
        outcome
    }

    /// Undoes the transaction, and begins it again as [`Db::transact`] does if it was aborted to resolve a deadlock:
    /// with the age of its first attempt, and when it is its turn. Returns `None` if it was not aborted.
    pub fn again(mut self) -> Result<Option<Transaction>, Error> {
        self.undo();
        if !self.common.is_aborted {
            return Ok(None);
        }
        let last = self.common.attempt.take();
        let mut next = self.db().begin();
        next.common.attempt = self.db().again(last)?;
        Ok(Some(next))
    }

    /// Drops the writes and the locks of a transaction that has not ended.
    fn undo(&mut self) {
        for side in self.sides.drain(..) {
            let Some(number) = side.number else { continue };
            // An error is ignored, because a broken shard has nothing to undo.
            let _ =
                self.common.db.shard(side.shard).at_once(|inside| drop(inside.transactions.remove(&number)));
        }
    }

    fn end(&mut self, durability: Option<Durability>) -> Result<(), Error> {
        match &mut self.sides[..] {
            [] => Ok(()),
            [side] => end_alone(side, &mut self.common, durability),
            sides => across::commit(sides, &mut self.common, durability),
        }
    }

    /// Runs `work` in the transaction, after sending its buffered writes to the shard.
    fn run<T, W, F>(&mut self, shard: usize, work: W) -> Result<T, Error>
    where
        T: Send + 'static,
        W: FnOnce(Rc<Inner>) -> F + Send,
        F: Future<Output = Result<T, Error>> + 'static,
    {
        self.common.check()?;
        let (side, common) = self.side(shard);
        side.send(common)?;
        side.ask(common, work)
    }

    /// Returns the side of the transaction in a shard, which begins with its first call.
    fn side(&mut self, shard: usize) -> (&mut Side, &mut Common) {
        let Transaction { sides, common } = self;
        let place = sides.iter().position(|side| side.shard == shard).unwrap_or_else(|| {
            if !sides.is_empty() {
                common.is_across = true;
                common.txn = common.txn.or_else(|| common.db.number_for_several());
            }
            sides.push(Side::new(shard));
            sides.len() - 1
        });
        (&mut sides[place], common)
    }

    fn db(&self) -> &Db {
        &self.common.db
    }
}

/// Commits a transaction with one side.
fn end_alone(side: &mut Side, common: &mut Common, durability: Option<Durability>) -> Result<(), Error> {
    let (shard, number, writes) = (side.shard, side.number.take(), side.take_gathered());
    let attempt = &mut common.attempt;
    let outcome = common.db.shard(shard).commit(move |inside| {
        let inner = match number {
            Some(number) => inside.take_transaction(number)?,
            None => inside.begin_transaction(shard, None, attempt),
        };
        let durability = durability.unwrap_or_else(|| inside.store.durability());
        Ok(async move {
            write_all(&inner, writes).await?;
            inner.commit_with(durability).await
        })
    });
    if outcome == Err(Error::Deadlock) {
        common.abort(shard);
    }
    outcome
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.undo();
    }
}
