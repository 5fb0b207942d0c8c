//! The store as any thread has it: shards, and what is asked of each.

use super::asking::GoesOn;
use super::inside::Inside;
use super::scan::{Page, borrowed, owned};
use super::set;
use super::shard::{Cell, Seat};
use crate::memory::catalogue::SHARDS;
use crate::store::transaction::Range;
use crate::{Direction, Durability, Error, Options, Statistics};
use fulgurite_base::fnv1a;
use fulgurite_device::Device;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Names the index keys of a record, given its key and its value: none, one or several. It runs inside the shard, so it
/// must not use the handle, and must not panic: the store would stop, as for any panic in a shard, until it is opened again.
pub type Extract = Arc<dyn Fn(&[u8], &[u8], &mut Vec<Vec<u8>>) + Send + Sync>;

/// What each shard calls a table or an index, and of which opening of which store it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InShards<T> {
    opening: u64,
    each: Arc<[T]>,
}

/// A table, in every shard. It is of the [`Db`] that gave it and of its clones; any other refuses it with
/// [`Error::OtherStore`], and so does the same store once it is opened again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table(InShards<crate::Table>);

/// An index over a table, in every shard. As a [`Table`], it is of the [`Db`] that gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index(InShards<crate::Index>);

/// A store that any thread may use. Clones share it; when the last one is dropped, what is under way comes to its end.
///
/// [`Db::close`] comes before that where the next opening shall be quick. All functions may wait for the drive, and those of
/// transactions for other transactions.
pub struct Db<D: Device + Send + 'static> {
    shards: Arc<Shards<D>>,
    goes_on: Option<GoesOn>,
}

struct Shards<D: Device + Send + 'static> {
    cells: Vec<Arc<Cell<D>>>,
    /// No other opening in this process has this number.
    opening: u64,
}

impl<D: Device + Send + 'static> Drop for Shards<D> {
    fn drop(&mut self) {
        for shard in &self.cells {
            shard.stop_keeper();
            shard.finish();
        }
    }
}

impl<D: Device + Send + 'static> Clone for Db<D> {
    fn clone(&self) -> Db<D> {
        Db { shards: Arc::clone(&self.shards), goes_on: self.goes_on.clone() }
    }
}

impl<D: Device + Send + 'static> Db<D> {
    /// Makes an empty store with a shard on each of the drives. What was on them is lost.
    pub fn create(drives: Vec<D>, options: Options) -> Result<Db<D>, Error> {
        Db::start(drives, options, true)
    }

    /// Opens the store on these drives, which are given in the same order as when it was made.
    pub fn open(drives: Vec<D>, options: Options) -> Result<Db<D>, Error> {
        Db::start(drives, options, false)
    }

    fn start(drives: Vec<D>, options: Options, create: bool) -> Result<Db<D>, Error> {
        let count = drives.len();
        if count == 0 {
            return Err(Error::Options("a store needs a drive for each shard, and at least one".to_owned()));
        }
        let mut shards = Vec::with_capacity(count);
        let mut set = None;
        for (index, drive) in drives.into_iter().enumerate() {
            // The first shard's identity names the whole set.
            let place = set::Place { index: index as u32, count: count as u32, set };
            let first = move |inside: &Inside<D>| inside.first(|store| set::join(store, place, create));
            let (shard, joined) = Cell::new(drive, options.clone(), create, first)?;
            set = Some(joined);
            shards.push(Arc::new(shard));
        }
        // Only that they differ matters. Identities of stores would not do: those on new simulated drives have the same one.
        static OPENINGS: AtomicU64 = AtomicU64::new(0);
        let shards = Arc::new(Shards { cells: shards, opening: OPENINGS.fetch_add(1, Relaxed) });
        Ok(Db { shards, goes_on: None })
    }

    /// A handle whose calls can be given up: where one waits for long, its thread is asked every 20 ms whether it goes on, and
    /// so are those of the transactions and snapshots that come of the handle. Where it does not, the call ends with
    /// [`Error::GivenUp`]: what it had not done it never does, only a commit may be made nevertheless.
    ///
    /// `goes_on` runs without the shard's lock. It must not use the transaction whose call waits.
    pub fn asking(&self, goes_on: impl Fn() -> bool + Send + Sync + 'static) -> Db<D> {
        Db { shards: Arc::clone(&self.shards), goes_on: Some(Arc::new(goes_on)) }
    }

    /// The number of shards.
    pub fn shards(&self) -> usize {
        self.shards.cells.len()
    }

    /// The shard that a key belongs to.
    pub fn shard_of(&self, key: &[u8]) -> usize {
        match self.shards() {
            1 => 0,
            shards => (fnv1a(key) % shards as u64) as usize,
        }
    }

    pub(super) fn shard(&self, index: usize) -> Seat<'_, D> {
        Seat { cell: &self.shards.cells[index], goes_on: self.goes_on.as_ref() }
    }

    /// Bytes of the longest key of a shard.
    pub(super) fn longest_key(&self, shard: usize) -> usize {
        self.shards.cells[shard].longest_key
    }

    /// What a shard calls this table.
    pub(super) fn table_in(&self, table: &Table, shard: usize) -> Result<crate::Table, Error> {
        self.in_shard(&table.0, shard)
    }

    /// What a shard calls this index.
    pub(super) fn index_in(&self, index: &Index, shard: usize) -> Result<crate::Index, Error> {
        self.in_shard(&index.0, shard)
    }

    fn in_shard<T: Copy>(&self, named: &InShards<T>, shard: usize) -> Result<T, Error> {
        if named.opening == self.shards.opening { Ok(named.each[shard]) } else { Err(Error::OtherStore) }
    }

    /// The same with what each shard gave.
    pub(super) fn of_all<T>(&self, each: Vec<T>) -> InShards<T> {
        InShards { opening: self.shards.opening, each: each.into() }
    }

    /// What `work` gives for each shard in turn.
    pub(super) fn each<T>(&self, work: impl FnMut(usize) -> Result<T, Error>) -> Result<Vec<T>, Error> {
        (0..self.shards()).map(work).collect()
    }

    /// The table of this name, made if there is none.
    pub fn create_table(&self, name: &str) -> Result<Table, Error> {
        let name: Arc<str> = name.into();
        let tables = self.each(|shard| {
            let name = Arc::clone(&name);
            self.shard(shard).run(move |inside| {
                let store = inside.store.clone();
                Ok(async move { store.create_table(&name).await })
            })
        })?;
        Ok(Table(self.of_all(tables)))
    }

    /// The table of this name.
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

    /// The names of all tables, in order.
    pub fn tables(&self) -> Result<Vec<String>, Error> {
        // Every shard has the same ones. The table by which the engine knows a shard is its own.
        let tables = self.shard(0).run(|inside| {
            let store = inside.store.clone();
            Ok(async move { store.tables().await })
        })?;
        let mut names: Vec<String> = tables.into_iter().map(|(name, _)| name).collect();
        names.retain(|name| name != SHARDS);
        names.sort_unstable();
        Ok(names)
    }

    /// The index of this name over a table, made if there is none, with the records that the table has. It is to be called
    /// after each opening, before the table is written: functions are not stored.
    pub fn create_index(&self, table: &Table, name: &str, extract: Extract) -> Result<Index, Error> {
        let name: Arc<str> = name.into();
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

    /// The committed value of a key.
    pub fn get(&self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let shard = self.shard_of(key);
        let (table, key) = (self.table_in(table, shard)?, Box::<[u8]>::from(key));
        self.shard(shard).run(move |inside| {
            let store = inside.store.clone();
            Ok(async move {
                loop {
                    let found = store.snapshot().get(table, &key).await;
                    // It became too old while it waited for the drive. A newer state is as good.
                    if found != Err(Error::SnapshotTooOld) {
                        return found;
                    }
                }
            })
        })
    }

    /// The first records of a range in one shard, of its newest state.
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
                    // As for one key.
                    if found != Err(Error::SnapshotTooOld) {
                        return found;
                    }
                }
            })
        })
    }

    /// Gives a key a value, in a transaction of its own.
    pub fn put(&self, table: &Table, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.write(table, key, Some(value), None)
    }

    /// The same with another durability than the store's.
    pub fn put_with(
        &self,
        table: &Table,
        key: &[u8],
        value: &[u8],
        durability: Durability,
    ) -> Result<(), Error> {
        self.write(table, key, Some(value), Some(durability))
    }

    /// Takes a key's value away, if it has one, in a transaction of its own.
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
        loop {
            let (key, value) = (Box::<[u8]>::from(key), value.map(Box::<[u8]>::from));
            let outcome = self.shard(shard).commit(move |inside| {
                let transaction = inside.store.begin();
                let durability = durability.unwrap_or_else(|| inside.store.durability());
                Ok(async move {
                    match value {
                        Some(value) => transaction.put(table, &key, &value).await?,
                        None => transaction.delete(table, &key).await?,
                    }
                    transaction.commit_with(durability).await
                })
            });
            // One record with its index entries can meet others in a deadlock. Nobody else has seen the attempt.
            if outcome != Err(Error::Deadlock) {
                return outcome;
            }
        }
    }

    /// Writes everything that differs from the drives, so that recovery would have nothing to do.
    pub fn checkpoint(&self) -> Result<(), Error> {
        self.each(|shard| {
            self.shard(shard).run(|inside| {
                let store = inside.store.clone();
                Ok(async move { store.checkpoint().await })
            })
        })
        .map(drop)
    }

    /// Waits for the commits under way, writes everything and marks the store as closed. Keepers end. What is asked of any
    /// handle afterwards fails with [`Error::Closed`].
    pub fn close(&self) -> Result<(), Error> {
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
        // A shard that cannot be closed keeps none of the others from it.
        closed.into_iter().collect()
    }

    /// What each shard has done and how large it is.
    pub fn statistics(&self) -> Result<Vec<Statistics>, Error> {
        self.each(|shard| self.shard(shard).at_once(|inside| inside.store.statistics()))
    }

    /// A keeper for each shard. They may be run by threads, and need not be.
    pub fn keepers(&self) -> Vec<Keeper<D>> {
        self.shards.cells.iter().map(|shard| Keeper(Arc::clone(shard))).collect()
    }
}

/// Carries the work of one shard that nobody waits for: relaxed commits, checkpoints.
///
/// It does not keep the store open: it ends with the last handle.
pub struct Keeper<D: Device + Send + 'static>(Arc<Cell<D>>);

impl<D: Device + Send + 'static> Keeper<D> {
    /// Works until the store is closed or its last handle is dropped. It sleeps where there is nothing to do, and keeps
    /// out of the way of threads that wait for the drive. A second keeper of the same shard returns at once.
    pub fn run(self) {
        self.0.keep();
    }
}
