//! Transactions of all shards.

use super::across::{self, Side};
use super::keys::{by_shard, shard_of};
use super::retries::{Attempts, RetryTurn};
use super::scan::{IndexScan, Scan};
use super::shards::{Across, Index, Shards, Table};
use crate::memory::locks::TxnId;
use crate::store::transaction::Range;
use crate::{Direction, Durability, Error, StoreFuture, Transaction as Inner};
use std::any::Any;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

/// A transaction: its reads and writes of any tables in any shards take effect together or not at all, as if no other
/// transaction ran at the same time. See [`crate::Transaction`].
///
/// It has a *side* in each shard that it uses. With one side it is a transaction of that shard. A commit of several
/// sides takes two flushes, one after the other, and is durable when it returns, whatever its durability is.
pub struct Transaction {
    shards: Rc<Shards>,
    sides: Box<[OnceCell<Inner>]>,
    /// The number of the transaction; `None` until it has a side.
    txn: Cell<Option<TxnId>>,
    /// Begun with the second side.
    across: OnceCell<Across>,
    /// The shard in which it was aborted to resolve a deadlock; `None` if it was not.
    aborted_in: Cell<Option<usize>>,
    attempts: Option<Rc<Attempts>>,
    /// The turn of the transaction, with its shard, until it has a side there.
    turn: Cell<Option<(usize, RetryTurn)>>,
}

impl Transaction {
    pub(super) fn new(shards: &Rc<Shards>, attempts: Option<Rc<Attempts>>) -> Transaction {
        let transaction = Transaction {
            shards: Rc::clone(shards),
            sides: (0..shards.count()).map(|_| OnceCell::new()).collect(),
            txn: Cell::new(None),
            across: OnceCell::new(),
            aborted_in: Cell::new(None),
            turn: Cell::new(attempts.as_ref().and_then(|attempts| attempts.turn.take())),
            attempts,
        };
        if shards.count() == 1 {
            transaction.side(0);
        }
        transaction
    }

    /// Returns the number of calls that the commit will make in each shard that the transaction has used, with the
    /// indexes of these shards. A transaction of one shard makes one. With several, a side makes two if it has written:
    /// one to be prepared, and one to be decided.
    pub fn commit_calls(&self) -> impl Iterator<Item = (usize, u64)> {
        let is_across = self.across.get().is_some();
        let sides = self.sides.iter().enumerate().filter_map(|(shard, side)| Some((shard, side.get()?)));
        sides.map(move |(shard, side)| (shard, 1 + u64::from(is_across && side.has_written())))
    }

    /// Whether the transaction was aborted to resolve a deadlock.
    fn check(&self) -> Result<(), Error> {
        self.aborted_in.get().map_or(Ok(()), |_| Err(Error::Deadlock))
    }

    /// Returns the side of the transaction in a shard, which begins with its first call.
    fn side(&self, shard: usize) -> &Inner {
        self.sides[shard].get_or_init(|| {
            if self.txn.get().is_some() {
                self.across.get_or_init(|| Across::begin(&self.shards));
            }
            let turn = match self.turn.take() {
                Some((of, turn)) if of == shard => Some(Box::new(turn) as Box<dyn Any>),
                other => {
                    self.turn.set(other);
                    None
                }
            };
            let store = &self.shards.each[shard];
            let first = self.attempts.as_ref().and_then(|attempts| attempts.first.get());
            let side = match (self.txn.get(), first) {
                (Some(txn), first) => store.begin_side(txn, first.unwrap_or(txn), turn),
                (None, Some(first)) => store.begin_again(first, turn),
                (None, None) => store.begin(),
            };
            self.txn.set(Some(side.number()));
            if let Some(attempts) = &self.attempts {
                attempts.first.set(attempts.first.get().or(self.txn.get()));
            }
            side
        })
    }

    /// Notes that the transaction was aborted, if this is the outcome of a call in a shard.
    fn note<T>(&self, shard: usize, outcome: &Result<T, Error>) {
        if matches!(outcome, Err(Error::Deadlock)) && self.aborted_in.get().is_none() {
            self.aborted_in.set(Some(shard));
        }
    }

    /// Makes a call of a table in a shard.
    fn call<'a, T: 'a>(
        &'a self,
        table: Table,
        shard: usize,
        call: impl FnOnce(&'a Inner, crate::Table) -> StoreFuture<'a, T> + 'a,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            self.check()?;
            let table = self.shards.tables.get(table.0, shard)?;
            let outcome = call(self.side(shard), table).await;
            self.note(shard, &outcome);
            outcome
        })
    }

    /// Returns the value of a key, under a shared lock; `None` if the key has none.
    pub fn get<'a>(&'a self, table: Table, key: &'a [u8]) -> StoreFuture<'a, Option<Vec<u8>>> {
        self.call(table, shard_of(key, self.sides.len()), move |side, table| side.get(table, key))
    }

    /// Returns the value of a key that the transaction will change, under an exclusive lock. A later change then needs
    /// no lock upgrade, which could cause a deadlock.
    pub fn get_for_update<'a>(&'a self, table: Table, key: &'a [u8]) -> StoreFuture<'a, Option<Vec<u8>>> {
        self.call(table, shard_of(key, self.sides.len()), move |side, table| side.get_for_update(table, key))
    }

    /// Returns the values of several keys. The leaves of a shard that are not in memory are read from the drive in
    /// parallel.
    pub fn get_many<'a>(
        &'a self,
        table: Table,
        keys: &'a [&'a [u8]],
    ) -> StoreFuture<'a, Vec<Option<Vec<u8>>>> {
        if self.sides.len() == 1 {
            return self.call(table, 0, move |side, table| side.get_many(table, keys));
        }
        Box::pin(async move {
            let mut values = vec![None; keys.len()];
            for (shard, places) in by_shard(keys, self.sides.len()) {
                self.check()?;
                let own: Vec<&[u8]> = places.iter().map(|place| keys[*place]).collect();
                let table = self.shards.tables.get(table.0, shard)?;
                let found = self.side(shard).get_many(table, &own).await;
                self.note(shard, &found);
                std::iter::zip(places, found?).for_each(|(place, value)| values[place] = value);
            }
            Ok(values)
        })
    }

    /// Scans the records of a range, in order over all shards. Other transactions can neither insert into the range nor
    /// delete from it before the transaction ends.
    pub fn scan(&self, table: Table, range: Range<'_>, direction: Direction) -> Scan<'_> {
        let scan =
            |shard| Ok(self.side(shard).scan(self.shards.tables.get(table.0, shard)?, range, direction));
        let scans = (0..self.sides.len()).map(scan).collect::<Result<_, Error>>();
        Scan::new(scans, direction, Some(&self.aborted_in))
    }

    /// Scans the records that a range of an index refers to, in the order of the index over all shards.
    pub fn index_scan(&self, index: Index, range: Range<'_>, direction: Direction) -> IndexScan<'_> {
        let scan = |shard| {
            Ok(self.side(shard).index_scan(self.shards.indexes.get(index.0, shard)?, range, direction))
        };
        let scans = (0..self.sides.len()).map(scan).collect::<Result<_, Error>>();
        IndexScan::new(scans, direction, Some(&self.aborted_in))
    }

    /// Puts a value under a key.
    pub fn put<'a>(&'a self, table: Table, key: &'a [u8], value: &'a [u8]) -> StoreFuture<'a, ()> {
        self.call(table, shard_of(key, self.sides.len()), move |side, table| side.put(table, key, value))
    }

    /// Deletes a key, if it exists.
    pub fn delete<'a>(&'a self, table: Table, key: &'a [u8]) -> StoreFuture<'a, ()> {
        self.call(table, shard_of(key, self.sides.len()), move |side, table| side.delete(table, key))
    }

    /// Commits with the default durability of the store.
    pub fn commit(self) -> StoreFuture<'static, ()> {
        self.end(None)
    }

    /// Commits with `durability`. After an error nothing was changed, with one exception: after [`Error::Fatal`] the
    /// transaction may or may not be committed, and opening the store again decides it.
    ///
    /// Once begun, a commit may complete even if the future is dropped.
    pub fn commit_with(self, durability: Durability) -> StoreFuture<'static, ()> {
        self.end(Some(durability))
    }

    fn end(mut self, durability: Option<Durability>) -> StoreFuture<'static, ()> {
        Box::pin(async move {
            self.check()?;
            let sides = std::mem::take(&mut self.sides).into_iter().enumerate();
            let mut sides: Vec<Side> =
                sides.filter_map(|(shard, side)| Some((shard, side.into_inner()?))).collect();
            if sides.len() > 1 {
                return across::commit(&self.shards, sides, durability).await;
            }
            let Some((shard, side)) = sides.pop() else { return Ok(()) };
            let durability = durability.unwrap_or_else(|| self.shards.each[shard].durability());
            let outcome = side.commit_with(durability).await;
            self.note(shard, &outcome);
            outcome
        })
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(attempts) = &self.attempts {
            attempts.aborted_in.set(self.aborted_in.get());
        }
    }
}
