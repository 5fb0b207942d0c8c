//! The handle of a store for threads: opens the shards, and executes the calls that need no transaction.

use super::asking::GoesOn;
use super::inside::Inside;
use super::one_state::OneState;
use super::primitives::{Fair, Primitives};
use super::retries::{Attempt, RetryQueue};
use super::scan::{Page, borrowed, owned};
use super::shard::{Cell, Seat};
use crate::format::index_entry::Coding;
use crate::memory::catalogue::SHARDS;
use crate::memory::locks::TxnId;
use crate::sharded::{keys, membership};
use crate::store::transaction::Range;
use crate::{Direction, Durability, Error, Options, Statistics};
use fulgurite_device::Device;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A function that appends the index keys of a record to the vector, given the key and the value of the
/// record: none, one or several. It runs inside the shard, so it must not use the handle. If it panics, the call that
/// needs the index keys fails with [`Error::IndexPanicked`].
pub type Extract = Arc<dyn Fn(&[u8], &[u8], &mut Vec<Vec<u8>>) + Send + Sync>;

/// The identifiers of a table or an index in each shard, and the opening of the store that they belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InShards<T> {
    opening: u64,
    each: Arc<[T]>,
}

/// A table, in every shard. It belongs to the [`Db`] that returned it and to the clones of this `Db`. Any
/// other `Db` refuses it with [`Error::OtherStore`], even one that opens the same store again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table(InShards<crate::Table>);

/// An index over a table, in every shard. Like a [`Table`], it belongs to the [`Db`] that returned it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index(InShards<crate::Index>);

impl Index {
    /// Returns the code of the index entries in each shard.
    pub(super) fn codings(&self) -> Vec<Coding> {
        self.0.each.iter().map(|index| index.coding).collect()
    }
}

/// A store that any thread may use. Clones of the value are handles of the same store. When the last clone is
/// dropped, all work in progress is completed.
///
/// Call [`Db::close`] first if the next opening should be fast. All methods may wait for the drive, and those
/// of transactions may wait for other transactions.
pub struct Db {
    shards: Arc<Shards>,
    goes_on: Option<GoesOn>,
}

struct Shards {
    cells: Vec<Arc<Cell>>,
    /// The counter of transactions, which all shards share.
    transactions: Arc<AtomicU64>,
    states: OneState,
    /// The queue of aborted transactions of each shard.
    retries: Vec<Arc<RetryQueue>>,
    /// The number of this opening of the store, unique within the process.
    opening: u64,
    /// The mutex of those who change names. Its value says whether a change in several shards was interrupted.
    names: <Fair as Primitives>::Mutex<bool>,
}

impl Drop for Shards {
    fn drop(&mut self) {
        for shard in &self.cells {
            shard.stop_keeper();
            shard.finish();
        }
    }
}

impl Clone for Db {
    fn clone(&self) -> Db {
        Db { shards: Arc::clone(&self.shards), goes_on: self.goes_on.clone() }
    }
}

impl Db {
    /// Creates an empty store with a shard on each of the drives. The former contents of the drives are lost.
    pub fn create<D: Device + Send + 'static>(drives: Vec<D>, options: Options) -> Result<Db, Error> {
        Db::start(drives, options, true)
    }

    /// Opens the store on these drives, which must be in the same order as when it was created.
    pub fn open<D: Device + Send + 'static>(drives: Vec<D>, options: Options) -> Result<Db, Error> {
        Db::start(drives, options, false)
    }

    fn start<D: Device + Send + 'static>(
        drives: Vec<D>,
        options: Options,
        create: bool,
    ) -> Result<Db, Error> {
        let count = drives.len();
        if count == 0 {
            return Err(Error::Options("a store needs a drive for each shard, and at least one".to_owned()));
        }
        let mut shards = Vec::with_capacity(count);
        let mut set = None;
        for (index, drive) in drives.into_iter().enumerate() {
            // The identity of the first shard identifies the set.
            let membership = membership::Membership { index: index as u32, count: count as u32, set };
            let first =
                move |inside: &Inside| inside.first(|store| membership::join(store, membership, create));
            let (shard, joined) = Cell::new(drive, options.clone(), create, first)?;
            set = Some(joined);
            shards.push(Arc::new(shard));
        }
        // Openings have numbers of their own, because identities of stores are not unique: stores on new
        // simulated drives have the same one.
        static OPENINGS: AtomicU64 = AtomicU64::new(0);
        let retries = shards.iter().map(|_| RetryQueue::new()).collect();
        let (opening, names) = (OPENINGS.fetch_add(1, Relaxed), Fair::mutex(false));
        let transactions = shards[0].at_once(|inside| inside.store.0.transactions.numbers())?;
        for shard in &shards[1..] {
            let numbers = Arc::clone(&transactions);
            shard.at_once(|inside| inside.store.0.transactions.share_numbers(numbers))?;
        }
        let states = OneState::default();
        let shards = Arc::new(Shards { cells: shards, transactions, states, retries, opening, names });
        let db = Db { shards, goes_on: None };
        if !create {
            db.end_doubt()?;
            db.complete_change()?;
        }
        Ok(db)
    }

    /// Returns a handle whose calls can be cancelled. While a call waits, its thread calls `goes_on` every 20
    /// ms. This also holds for calls of transactions and snapshots that are made from the handle. If
    /// `goes_on` returns false, the call ends with [`Error::GivenUp`]. The rest of the call is never
    /// executed, but a commit may still take effect.
    ///
    /// `goes_on` runs without the lock of the shard. It must not use the transaction whose call waits.
    pub fn asking(&self, goes_on: impl Fn() -> bool + Send + Sync + 'static) -> Db {
        Db { shards: Arc::clone(&self.shards), goes_on: Some(GoesOn::new(goes_on)) }
    }

    /// Returns the number of shards.
    pub fn shards(&self) -> usize {
        self.shards.cells.len()
    }

    /// Returns the index of the shard that holds a key.
    pub fn shard_of(&self, key: &[u8]) -> usize {
        keys::shard_of(key, self.shards())
    }

    /// Returns the shards that hold keys, each with the places of its keys.
    pub(super) fn by_shard(&self, keys: &[&[u8]]) -> Vec<(usize, Vec<usize>)> {
        keys::by_shard(keys, self.shards())
    }

    pub(super) fn shard(&self, index: usize) -> Seat<'_> {
        self.shard_asking(index, self.goes_on.as_ref())
    }

    /// Returns a shard whose calls ask another function than those of the handle.
    pub(super) fn shard_asking<'a>(&'a self, index: usize, goes_on: Option<&'a GoesOn>) -> Seat<'a> {
        Seat { cell: &self.shards.cells[index], goes_on }
    }

    /// Returns the function that the calls of the handle ask.
    pub(super) fn goes_on(&self) -> Option<&GoesOn> {
        self.goes_on.as_ref()
    }

    /// Returns the lock of those who look at several shards.
    pub(super) fn states(&self) -> &OneState {
        &self.shards.states
    }

    /// Returns a number for a transaction of several shards; `None` if there is only one shard.
    pub(super) fn number_for_several(&self) -> Option<TxnId> {
        (self.shards() > 1).then(|| TxnId(self.shards.transactions.fetch_add(1, Relaxed)))
    }

    /// Returns the mutex of those who change names.
    pub(super) fn names_mutex(&self) -> &<Fair as Primitives>::Mutex<bool> {
        &self.shards.names
    }

    /// Prepares the attempt that follows `last`, which was aborted and has ended. Waits until it may begin. `None`
    /// stands for an attempt that used no shard.
    pub(super) fn again(&self, last: Option<Attempt>) -> Result<Option<Attempt>, Error> {
        let Some(last) = last else { return Ok(None) };
        let queue = &self.shards.retries[last.shard];
        last.again(queue, self.goes_on.as_ref()).map(Some)
    }

    /// Returns the length of the longest key that a shard accepts, in bytes.
    pub(super) fn longest_key(&self, shard: usize) -> usize {
        self.shards.cells[shard].longest_key
    }

    /// Returns the identifier of the table in a shard.
    pub(super) fn table_in(&self, table: &Table, shard: usize) -> Result<crate::Table, Error> {
        self.in_shard(&table.0, shard)
    }

    /// Returns the identifier of the index in a shard.
    pub(super) fn index_in(&self, index: &Index, shard: usize) -> Result<crate::Index, Error> {
        self.in_shard(&index.0, shard)
    }

    fn in_shard<T: Copy>(&self, named: &InShards<T>, shard: usize) -> Result<T, Error> {
        if named.opening == self.shards.opening { Ok(named.each[shard]) } else { Err(Error::OtherStore) }
    }

    /// Combines the identifiers that each shard returned.
    pub(super) fn of_all<T>(&self, each: Vec<T>) -> InShards<T> {
        InShards { opening: self.shards.opening, each: each.into() }
    }

    /// Calls `work` for each shard in turn and returns the results.
    pub(super) fn each<T>(&self, work: impl FnMut(usize) -> Result<T, Error>) -> Result<Vec<T>, Error> {
        (0..self.shards()).map(work).collect()
    }

    /// Creates the table, or returns it if it exists.
    pub fn create_table(&self, name: &str) -> Result<Table, Error> {
        let name: Arc<str> = name.into();
        let _names = self.names()?;
        let tables = self.each(|shard| {
            let name = Arc::clone(&name);
            self.shard(shard).run(move |inside| {
                let store = inside.store.clone();
                Ok(async move { store.create_table(&name).await })
            })
        })?;
        Ok(Table(self.of_all(tables)))
    }

    /// Returns the table with this name. Fails if there is none.
    pub fn table(&self, name: &str) -> Result<Table, Error> {
        let name: Arc<str> = name.into();
        let tables = self.each(|shard| {
            let name = Arc::clone(&name);
            self.shard(shard).run(move |inside| {
                let store = inside.store.clone();
                Ok(async move { store.table(&name).await })
            })
        })?;
        Ok(Table(self.of_all(tables)))
    }

    /// Returns the names of all tables, in order.
    pub fn tables(&self) -> Result<Vec<String>, Error> {
        // Every shard has the same tables, so the first one is asked. The internal table that stores the
        // number of the shard is left out.
        let tables = self.shard(0).run(|inside| {
            let store = inside.store.clone();
            Ok(async move { store.tables().await })
        })?;
        let mut names: Vec<String> = tables.into_iter().map(|(name, _)| name).collect();
        names.retain(|name| name != SHARDS);
        names.sort_unstable();
        Ok(names)
    }

    /// Creates an index over a table, with entries for the records in it, or returns the index if it exists.
    /// Call it after each opening before writing to the table, because the store does not save the function.
    pub fn create_index(&self, table: &Table, name: &str, extract: Extract) -> Result<Index, Error> {
        let name: Arc<str> = name.into();
        drop(self.names()?);
        let indexes = self.each(|shard| {
            let (name, extract, table) =
                (Arc::clone(&name), Arc::clone(&extract), self.table_in(table, shard)?);
            self.shard(shard).run(move |inside| {
                let store = inside.store.clone();
                let extract: crate::Extract = Rc::new(move |key, value, keys| extract(key, value, keys));
                Ok(async move { store.create_index(table, &name, extract).await })
            })
        })?;
        Ok(Index(self.of_all(indexes)))
    }

    /// Returns the committed value of a key; `None` if the key has none.
    pub fn get(&self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let shard = self.shard_of(key);
        let (table, key) = (self.table_in(table, shard)?, Box::<[u8]>::from(key));
        self.shard(shard).run(move |inside| {
            let store = inside.store.clone();
            Ok(async move {
                loop {
                    let found = store.snapshot().get(table, &key).await;
                    // The old values of the snapshot were dropped during the wait for the drive, so the read
                    // is retried with a newer snapshot.
                    if found != Err(Error::SnapshotTooOld) {
                        return found;
                    }
                }
            })
        })
    }

    /// Returns the first records of a range in the newest state of one shard.
    pub(super) fn page(
        &self,
        table: &Table,
        shard: usize,
        range: Range<'_>,
        direction: Direction,
        most: usize,
    ) -> Page {
        let (table, range) = (self.table_in(table, shard)?, owned(range));
        self.shard(shard).run(move |inside| {
            let store = inside.store.clone();
            Ok(async move {
                loop {
                    let found =
                        store.snapshot().scan(table, borrowed(&range), direction).limit(most).rows().await;
                    // The read is retried with a newer snapshot, as in `get`.
                    if found != Err(Error::SnapshotTooOld) {
                        return found;
                    }
                }
            })
        })
    }

    /// Writes a record, in a transaction of its own.
    pub fn put(&self, table: &Table, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.write(table, key, Some(value), None)
    }

    /// Does the same with a durability that overrides the default of the store.
    pub fn put_with(
        &self,
        table: &Table,
        key: &[u8],
        value: &[u8],
        durability: Durability,
    ) -> Result<(), Error> {
        self.write(table, key, Some(value), Some(durability))
    }

    /// Deletes a record, if it exists, in a transaction of its own.
    pub fn delete(&self, table: &Table, key: &[u8]) -> Result<(), Error> {
        self.write(table, key, None, None)
    }

    fn write(
        &self,
        table: &Table,
        key: &[u8],
        value: Option<&[u8]>,
        durability: Option<Durability>,
    ) -> Result<(), Error> {
        let shard = self.shard_of(key);
        let table = self.table_in(table, shard)?;
        let mut attempt = None;
        loop {
            let (key, value) = (Box::<[u8]>::from(key), value.map(Box::<[u8]>::from));
            let attempted = &mut attempt;
            let outcome = self.shard(shard).commit(move |inside| {
                let transaction = inside.begin_transaction(shard, None, attempted);
                let durability = durability.unwrap_or_else(|| inside.store.durability());
                Ok(async move {
                    match value {
                        Some(value) => transaction.put(table, &key, &value).await?,
                        None => transaction.delete(table, &key).await?,
                    }
                    transaction.commit_with(durability).await
                })
            });
            // Even a single record can deadlock, because of its index entries. The caller has seen nothing of
            // the aborted attempt, so it can be retried.
            if outcome != Err(Error::Deadlock) {
                return outcome;
            }
            attempt = self.again(attempt)?;
        }
    }

    /// Writes all dirty pages, so that recovery after a crash would have nothing to redo.
    pub fn checkpoint(&self) -> Result<(), Error> {
        self.each(|shard| {
            self.shard(shard).run(|inside| {
                let store = inside.store.clone();
                Ok(async move { store.checkpoint().await })
            })
        })
        .map(drop)
    }

    /// Waits for commits in progress, writes all dirty pages and marks the store as cleanly closed. Its
    /// keepers return. Later calls on any handle fail with [`Error::Closed`], but closing again does nothing.
    pub fn close(&self) -> Result<(), Error> {
        if self.shards() > 1 {
            // An error comes back below, from the shard that has it.
            let _ = self.flush_logs();
        }
        let closed: Vec<Result<(), Error>> = (0..self.shards())
            .map(|shard| {
                let outcome = self.shard(shard).run(|inside| {
                    let store = inside.store.clone();
                    Ok(async move { store.close().await })
                });
                self.shards.cells[shard].stop_keeper();
                outcome
            })
            .collect();
        // All shards are closed, even if closing one of them fails; the first error is returned here.
        closed.into_iter().collect()
    }

    /// Returns the counters and sizes of each shard.
    pub fn statistics(&self) -> Result<Vec<Statistics>, Error> {
        self.each(|shard| self.shard(shard).at_once(|inside| inside.store.statistics()))
    }

    /// Returns a keeper for each shard. Running the keepers is optional.
    pub fn keepers(&self) -> Vec<Keeper> {
        self.shards.cells.iter().map(|shard| Keeper(Arc::clone(shard))).collect()
    }
}

/// A keeper performs the background work of one shard: it writes relaxed commits and makes checkpoints.
///
/// It does not keep the store open: it returns when the last handle is dropped.
pub struct Keeper(Arc<Cell>);

impl Keeper {
    /// Works until the store is closed or its last handle is dropped. It sleeps while there is no work, and
    /// leaves driving the shard to threads that wait for the drive. A second keeper of the same shard returns
    /// at once.
    pub fn run(self) {
        self.0.keep();
    }
}
