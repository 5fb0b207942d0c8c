//! Transactions through the handle for threads.

use super::db::{Db, Index, Table};
use super::index_rows::IndexRows;
use super::retries::Attempt;
use super::scan::{Page, Records, Source, borrowed, owned};
use crate::store::transaction::Range;
use crate::{Direction, Durability, Error, IndexRow, Transaction as Inner};
use std::future::Future;
use std::ops::Bound;
use std::rc::Rc;

/// A transaction: reads and writes of several tables that take effect together or not at all, isolated from
/// all others.
///
/// It is confined to the shard of the first key that it accesses. A key of another shard fails with
/// [`Error::CrossShard`], after which the transaction can continue. [`Error::Deadlock`] from any method means
/// that the transaction was aborted: drop it and retry, or use [`Db::transact`]. Dropping a transaction
/// without a commit undoes it.
///
/// Writes are buffered in the handle. They are sent to the shard, and lock their keys, with the next call
/// that reads, with the commit, or when the buffer is full. An error that only the shard can detect is
/// returned by the call that sends the write, and by all later ones. To lock a key before writing it, read it
/// with [`Transaction::get_for_update`].
///
/// A thread that waits for a lock which another transaction of the same thread holds waits for ever, unless
/// its calls can be cancelled ([`Db::asking`]).
pub struct Transaction {
    db: Db,
    /// The index of the shard; `None` until the transaction accesses a key.
    shard: Option<usize>,
    /// The number of the transaction in its shard; `None` until the shard knows it.
    number: Option<u64>,
    /// The attempt that the transaction is; `None` for the first one until the shard knows it.
    attempt: Option<Attempt>,
    gathered: Vec<Write>,
    gathered_bytes: usize,
    /// The error of an earlier batch of writes; `None` if there was none.
    failed: Option<Error>,
    /// Whether the transaction was aborted to resolve a deadlock.
    is_aborted: bool,
}

/// A buffered write.
struct Write {
    table: crate::Table,
    key: Box<[u8]>,
    value: Option<Box<[u8]>>,
}

/// The maximum number of buffered writes, and of their bytes. Writes are buffered because each call of the
/// shard takes its lock.
const MOST_GATHERED: (usize, usize) = (64, 64 << 10);

impl Db {
    /// Begins a transaction. It is confined to the shard of the first key that it accesses.
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
        let mut attempt = None;
        loop {
            let mut transaction = self.begin();
            transaction.attempt = attempt;
            let outcome = work(&mut transaction);
            let outcome = outcome.and_then(|value| transaction.end(None).map(|()| value).map_err(E::from));
            let (last, is_aborted) = (transaction.attempt.take(), transaction.is_aborted);
            drop(transaction);
            // An aborted transaction had no effect. It is repeated, whatever error its closure made of that.
            if outcome.is_ok() || !is_aborted {
                return outcome;
            }
            attempt = self.again(last)?;
        }
    }
}

impl Transaction {
    pub(super) fn new(db: &Db) -> Transaction {
        Transaction {
            db: db.clone(),
            shard: None,
            number: None,
            attempt: None,
            gathered: Vec::new(),
            gathered_bytes: 0,
            failed: None,
            is_aborted: false,
        }
    }

    /// Returns the value of a key, under a shared lock; `None` if the key has none.
    pub fn get(&mut self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let (shard, key) = (self.shard_for(key)?, Box::<[u8]>::from(key));
        let table = self.db.table_in(table, shard)?;
        self.run(shard, move |inner| async move { inner.get(table, &key).await })
    }

    /// Returns the value of a key that the transaction will write, under an exclusive lock. A later write
    /// then needs no lock upgrade, which could cause a deadlock.
    pub fn get_for_update(&mut self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let (shard, key) = (self.shard_for(key)?, Box::<[u8]>::from(key));
        let table = self.db.table_in(table, shard)?;
        self.run(shard, move |inner| async move { inner.get_for_update(table, &key).await })
    }

    /// Returns the values of several keys of one shard. Those that are not in memory are read in parallel.
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

    /// Writes a record.
    pub fn put(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.write(table, key, Some(value))
    }

    /// Deletes a record, if it exists.
    pub fn delete(&mut self, table: &Table, key: &[u8]) -> Result<(), Error> {
        self.write(table, key, None)
    }

    fn write(&mut self, table: &Table, key: &[u8], value: Option<&[u8]>) -> Result<(), Error> {
        let shard = self.shard_for(key)?;
        let (table, longest) = (self.db.table_in(table, shard)?, self.db.longest_key(shard));
        if key.len() > longest {
            return Err(Error::KeyTooLong { bytes: key.len(), longest });
        }
        self.check()?;
        self.shard = Some(shard);
        self.gathered_bytes += key.len() + value.map_or(0, <[u8]>::len);
        self.gathered.push(Write { table, key: key.into(), value: value.map(Box::from) });
        let (most, most_bytes) = MOST_GATHERED;
        if self.gathered.len() >= most || self.gathered_bytes >= most_bytes {
            self.send(shard)
        } else {
            Ok(())
        }
    }

    /// Fails if earlier writes failed: the transaction must not continue without them.
    fn check(&self) -> Result<(), Error> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Sends the buffered writes to the shard.
    fn send(&mut self, shard: usize) -> Result<(), Error> {
        let writes = self.take_gathered();
        if writes.is_empty() {
            return Ok(());
        }
        let sent = self.ask(shard, move |inner| async move { write_all(&inner, writes).await });
        self.failed = sent.clone().err();
        sent
    }

    fn take_gathered(&mut self) -> Vec<Write> {
        self.gathered_bytes = 0;
        std::mem::take(&mut self.gathered)
    }

    /// Scans the records of a range. Until the transaction ends, no other transaction can insert into the
    /// part that was read, or delete from it. Every shard has keys of the range, so with several shards this
    /// fails with [`Error::CrossShard`].
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

    /// Deletes the records of a range, and returns their number; see [`crate::Transaction::delete_range`]. With several
    /// shards this fails with [`Error::CrossShard`].
    pub fn delete_range(&mut self, table: &Table, range: Range<'_>) -> Result<u64, Error> {
        let shard = self.only_shard(range)?;
        let (table, range) = (self.db.table_in(table, shard)?, owned(range));
        self.run(shard, move |inner| async move { inner.delete_range(table, borrowed(&range)).await })
    }

    /// Iterates over the rows of a range of an index in order, and reads them in parts. Until the transaction ends, no
    /// other one can change which rows the part that was read has. With several shards this fails with
    /// [`Error::CrossShard`].
    pub fn index_rows(
        &mut self,
        index: &Index,
        range: Range<'_>,
        direction: Direction,
    ) -> Result<IndexRows<'_>, Error> {
        let shard = self.only_shard(range)?;
        let index = self.db.index_in(index, shard)?;
        Ok(IndexRows::new(1, range, direction, move |_, range, direction, most| {
            let range = owned(range);
            self.run(shard, move |inner| async move {
                inner.index_entries(index, borrowed(&range), direction).limit(most).all().await
            })
        }))
    }

    /// Returns the first rows of a range of an index, at most `most`. With several shards this fails with
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

    /// Commits with the default durability of the store.
    pub fn commit(mut self) -> Result<(), Error> {
        self.end(None)
    }

    /// Commits with a durability that overrides the default; see [`crate::Transaction::commit_with`].
    pub fn commit_with(mut self, durability: Durability) -> Result<(), Error> {
        self.end(Some(durability))
    }

    fn end(&mut self, durability: Option<Durability>) -> Result<(), Error> {
        self.check()?;
        let Some(shard) = self.shard else { return Ok(()) };
        let (number, writes) = (self.number.take(), self.take_gathered());
        let attempt = &mut self.attempt;
        let outcome = self.db.shard(shard).commit(move |inside| {
            // Every call has completed, so no other task uses the transaction.
            let inner = match number {
                Some(number) => {
                    inside.transactions.remove(&number).and_then(Rc::into_inner).ok_or(Error::Closed)?
                }
                None => inside.begin_transaction(shard, attempt),
            };
            let durability = durability.unwrap_or_else(|| inside.store.durability());
            Ok(async move {
                write_all(&inner, writes).await?;
                inner.commit_with(durability).await
            })
        });
        self.is_aborted |= outcome == Err(Error::Deadlock);
        outcome
    }

    /// Runs `work` in the transaction, after sending its buffered writes.
    fn run<T, W, F>(&mut self, shard: usize, work: W) -> Result<T, Error>
    where
        T: Send + 'static,
        W: FnOnce(Rc<Inner>) -> F + Send,
        F: Future<Output = Result<T, Error>> + 'static,
    {
        self.check()?;
        self.send(shard)?;
        self.ask(shard, work)
    }

    /// Runs `work` in the transaction. The first call begins the transaction in its shard.
    fn ask<T, W, F>(&mut self, shard: usize, work: W) -> Result<T, Error>
    where
        T: Send + 'static,
        W: FnOnce(Rc<Inner>) -> F + Send,
        F: Future<Output = Result<T, Error>> + 'static,
    {
        self.shard = Some(shard);
        let (number, attempt) = (&mut self.number, &mut self.attempt);
        let outcome = self.db.shard(shard).run(move |inside| {
            let number = *number.get_or_insert_with(|| {
                let number = inside.draw();
                let transaction = inside.begin_transaction(shard, attempt);
                inside.transactions.insert(number, Rc::new(transaction));
                number
            });
            let inner = inside.transactions.get(&number).cloned().ok_or(Error::Closed)?;
            Ok(work(inner))
        });
        self.is_aborted |= matches!(outcome, Err(Error::Deadlock));
        outcome
    }

    /// Returns the shard of `key`. Fails if it is not the shard of the transaction.
    fn shard_for(&self, key: &[u8]) -> Result<usize, Error> {
        let shard = self.db.shard_of(key);
        match self.shard {
            Some(own) if own != shard => Err(self.cross_shard(key, own)),
            _ => Ok(shard),
        }
    }

    /// Returns the only shard. Fails if there are several shards.
    fn only_shard(&self, (low, _): Range<'_>) -> Result<usize, Error> {
        if self.db.shards() == 1 {
            return Ok(0);
        }
        let key = match low {
            Bound::Included(key) | Bound::Excluded(key) => String::from_utf8_lossy(key).into_owned(),
            Bound::Unbounded => String::new(),
        };
        let own = self.shard.unwrap_or(0);
        // Any other shard has keys of the range too, so the scan would cross shards.
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

async fn write_all(inner: &Inner, writes: Vec<Write>) -> Result<(), Error> {
    for Write { table, key, value } in writes {
        inner.write(table, key, value).await?;
    }
    Ok(())
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let (Some(shard), Some(number)) = (self.shard, self.number) {
            // An error is ignored, because a broken shard has nothing to undo.
            let _ = self.db.shard(shard).at_once(|inside| drop(inside.transactions.remove(&number)));
        }
    }
}
