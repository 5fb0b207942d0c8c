//! The store: creates and opens it, manages its tables and indexes, returns its statistics, and closes it.

pub(crate) mod read_view;
pub(crate) mod row_batch;
pub(crate) mod scan;
pub(crate) mod transaction;
pub(crate) mod across;
pub(crate) mod ranges;
pub(crate) mod load;
pub(crate) mod names;

use crate::format::index_entry::Coding;
use crate::media::write::out_of_place::OutOfPlace;
use crate::memory::catalogue::{Extract, Index, Named, Table, refuse_own};
use crate::memory::locks::TxnId;
use crate::memory::record_cache::RecordCounters;
use crate::shard::Shard;
use crate::store::scan::{Direction, Record};
use crate::store::transaction::{Snapshot, Transaction};
use crate::{Durability, Error, Lsn, Options, StoreFuture, TornPages};
use fulgurite_device::Handle;
use fulgurite_pool::PoolCounters;
use std::any::Any;
use std::ops::Bound;
use std::rc::Rc;

/// The number of records that one transaction indexes while an index is filled.
const INDEXED_TOGETHER: usize = 64;

/// Statistics of a store: counts since it was opened, and its current sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The number of committed transactions.
    pub commits: u64,
    /// The number of transactions that wrote and were not committed.
    pub aborts: u64,
    /// The number of transactions that were aborted to resolve a deadlock.
    pub deadlocks: u64,
    /// The number of waits for a lock of another transaction, and the time that they took in all, in nanoseconds.
    pub lock_waits: u64,
    /// See [`Statistics::lock_waits`].
    pub lock_wait_ns: u64,
    /// The number of commits that waited for space in the log, and the time that they took in all, in nanoseconds.
    pub log_waits: u64,
    /// See [`Statistics::log_waits`].
    pub log_wait_ns: u64,
    /// The number of bytes of keys and values that commits have written.
    pub user_bytes_written: u64,
    /// The number of bytes written to the log.
    pub log_bytes_written: u64,
    /// The number of flushes of the log.
    pub log_flushes: u64,
    /// The number of log bytes that recovery would have to read after a crash now.
    pub log_bytes_used: u64,
    /// The number of flushes of the drive.
    pub flushes: u64,
    /// The number of pages written; a page that is written twice counts twice.
    pub pages_written: u64,
    /// The number of pages that garbage collection has moved, for a store that writes out of place; otherwise
    /// 0. A compressed page counts as the fraction of a page that it takes.
    pub pages_moved: u64,
    /// The number of deltas that were written: units with records that were merged into their leaf without
    /// reading it.
    pub deltas_written: u64,
    /// The number of deltas that were read together with their pages.
    pub deltas_read: u64,
    /// The number of pages that were written as a whole and had deltas.
    pub pages_consolidated: u64,
    /// The number of dirty pages.
    pub pages_changed: u64,
    /// The number of completed checkpoints.
    pub checkpoints: u64,
    /// The number of node splits.
    pub splits: u64,
    /// The number of node merges.
    pub merges: u64,
    /// The number of data pages in use.
    pub pages_used: u64,
    /// The number of all data pages of the store.
    pub pages: u64,
    /// The number of bytes of the drive that are in use: data pages, the log, and the other areas of the
    /// store.
    pub space_bytes: u64,
    /// The number of bytes of memory that old versions take.
    pub version_bytes: u64,
    /// The number of bytes of memory that the record cache takes.
    pub record_bytes: u64,
    /// The number of bytes that the record cache may take now. The store gives the rest of the memory to
    /// pages if this saves the drive more work.
    pub record_limit_bytes: u64,
    /// The number of records in the record cache.
    pub records_kept: u64,
    /// The number of pending records: those in the record cache that are not merged into their leaves yet.
    pub records_pending: u64,
    /// The counters of the record cache.
    pub records: RecordCounters,
    /// The number of locks that transactions hold.
    pub locks: u64,
    /// The number of operations that recovery has redone.
    pub recovered_ops: u64,
    /// The number of torn pages that recovery has restored.
    pub restored_pages: u64,
    /// The number of frames of the buffer pool.
    pub frames: u32,
    /// The counters of the buffer pool.
    pub pool: PoolCounters,
}

/// Calls a macro with the numbers of [`Statistics`]: of the store, of the record cache and of the pool.
macro_rules! with_numbers {
    ($with:ident) => {
        $with! {
            own: commits aborts deadlocks lock_waits lock_wait_ns log_waits log_wait_ns
                user_bytes_written log_bytes_written log_flushes log_bytes_used flushes
                pages_written pages_moved pages_changed checkpoints splits merges
                deltas_written deltas_read pages_consolidated
                pages_used pages space_bytes version_bytes locks recovered_ops restored_pages
                record_bytes record_limit_bytes records_kept records_pending;
            records: hits kept merged merges carried refused;
            pool: hits misses read_ios pages_read write_ios pages_written pages_flushed
                prefetched prefetch_hits prefetch_wasted rescued write_waits;
        }
    };
}

impl Statistics {
    /// Returns every number with its name, for reports and metrics. Names of the record cache's counters begin with
    /// `record_cache_`, those of the buffer pool with `pool_`.
    pub fn fields(&self) -> Vec<(&'static str, u64)> {
        macro_rules! list {
            (own: $($own:ident)*; records: $($record:ident)*; pool: $($pool:ident)*;) => {
                vec![
                    $((stringify!($own), self.$own),)*
                    $((concat!("record_cache_", stringify!($record)), self.records.$record),)*
                    $((concat!("pool_", stringify!($pool)), self.pool.$pool),)*
                    ("frames", u64::from(self.frames)),
                ]
            };
        }
        with_numbers!(list)
    }

    /// Returns the sums of these numbers and those of another shard.
    pub(crate) fn plus(&self, other: &Statistics) -> Statistics {
        macro_rules! sum {
            (own: $($own:ident)*; records: $($record:ident)*; pool: $($pool:ident)*;) => {
                Statistics {
                    $($own: self.$own + other.$own,)*
                    records: RecordCounters { $($record: self.records.$record + other.records.$record,)* },
                    pool: PoolCounters { $($pool: self.pool.$pool + other.pool.$pool,)* },
                    frames: self.frames + other.frames,
                }
            };
        }
        with_numbers!(sum)
    }
}

/// A store on one drive, used by one core. Clones of the value are handles of the same store.
///
/// All tasks that use a store run on one executor. The store stops with [`Error::Fatal`] when it no longer
/// knows what is durable. Opening it again recovers everything that was acknowledged.
pub struct Store(pub(crate) Rc<Shard>);

impl Clone for Store {
    fn clone(&self) -> Store {
        Store(Rc::clone(&self.0))
    }
}

impl Store {
    /// Creates an empty store that takes the whole drive. The former contents of the drive are lost.
    pub fn create(handle: impl Into<Handle>, options: Options) -> StoreFuture<'static, Store> {
        Store::create_on(handle.into(), options)
    }

    /// Opens the store on a drive. After a crash it recovers the committed data. The page size and the log
    /// size of the store replace those in `options`. Fails with [`Error::InDoubt`] on a shard of a store of several if
    /// a crash has left a transaction whose outcome only another shard knows.
    pub fn open(handle: impl Into<Handle>, options: Options) -> StoreFuture<'static, Store> {
        Store::open_on(handle.into(), options)
    }

    fn create_on(handle: Handle, options: Options) -> StoreFuture<'static, Store> {
        Box::pin(async move {
            Shard::create(&handle, &options).await?;
            Store::open_on(handle, options).await
        })
    }

    fn open_on(handle: Handle, options: Options) -> StoreFuture<'static, Store> {
        Box::pin(async move {
            let store = Store::open_shard(handle, options).await?;
            let transactions = store.0.transactions.decisions().in_doubt().len();
            if transactions == 0 { Ok(store) } else { Err(Error::InDoubt { transactions }) }
        })
    }

    /// Opens a shard of a store. It may have transactions in doubt, which the caller must end.
    pub(crate) async fn open_shard(handle: Handle, options: Options) -> Result<Store, Error> {
        Shard::open(handle, options).await.map(Store)
    }

    /// Returns the handle of the executor that the store runs on.
    pub fn handle(&self) -> &Handle {
        &self.0.handle
    }

    /// Returns the protection against torn pages that the store uses.
    pub fn torn_pages(&self) -> TornPages {
        self.0.durable.pages().torn_pages()
    }

    /// Whether the store writes pages out of place, each time to a new address.
    pub fn is_out_of_place(&self) -> bool {
        self.0.durable.pages().backend().out_of_place().is_some()
    }

    /// Returns the durability of commits that name none.
    pub fn durability(&self) -> Durability {
        self.0.options.durability
    }

    /// Returns the page size in bytes.
    pub fn page_bytes(&self) -> u32 {
        self.0.page_bytes()
    }

    /// Returns the size of the log area on the drive in bytes.
    pub fn log_bytes(&self) -> u64 {
        self.0.options.log_bytes
    }

    /// Returns the table with this name, and creates it if it does not exist.
    pub fn create_table<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Table> {
        Box::pin(async move {
            refuse_own(name)?;
            self.create_own_table(name).await
        })
    }

    /// Does the same for a table whose name is reserved for the engine.
    pub(crate) async fn create_own_table(&self, name: &str) -> Result<Table, Error> {
        match self.named(name) {
            Some(Named::Table(table)) => Ok(table),
            Some(Named::Index(_)) => Err(Error::Options(format!("`{name}` is an index, not a table"))),
            None => {
                let make = |tree| Named::Table(Table(tree));
                match self.create_tree(name, make, None).await? {
                    Named::Table(table) => Ok(table),
                    Named::Index(_) => Err(Error::Options(format!("`{name}` is an index, not a table"))),
                }
            }
        }
    }

    /// Returns the table with this name. Fails if there is none.
    pub fn table<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Table> {
        Box::pin(async move {
            match self.named(name) {
                Some(Named::Table(table)) => Ok(table),
                _ => Err(Error::NoTable(name.to_owned())),
            }
        })
    }

    /// Returns every table with its name.
    pub fn tables(&self) -> StoreFuture<'_, Vec<(String, Table)>> {
        Box::pin(async move { Ok(self.0.state.catalogue().tables()) })
    }

    /// Returns the index with this name over a table. If it does not exist, it is created and filled with the
    /// records of the table. `extract` returns the index keys of a record. The store does not save this
    /// function, so call `create_index` after each opening, before the table is written. It must return the
    /// same keys for the same record every time.
    ///
    /// Transactions may write to the table during the call: they write to the new index too.
    pub fn create_index<'a>(
        &'a self,
        table: Table,
        name: &'a str,
        extract: Extract,
    ) -> StoreFuture<'a, Index> {
        Box::pin(async move {
            refuse_own(name)?;
            let known = self.named(name);
            let named = match known {
                Some(named) => named,
                None => {
                    let make = move |tree| {
                        Named::Index(Index { tree, table, coding: Coding::Runs, complete: false })
                    };
                    self.create_tree(name, make, Some(Rc::clone(&extract))).await?
                }
            };
            let Named::Index(mut index) = named else {
                return Err(Error::Options(format!("`{name}` is a table, not an index")));
            };
            if index.table != table {
                return Err(Error::Options(format!("the index `{name}` belongs to another table")));
            }
            self.0.state.catalogue_mut().set_extract(index, extract);
            if !index.complete {
                // A crash may have interrupted an earlier filling, so the index is filled again: putting an
                // existing entry again changes nothing.
                self.fill_index(table).await?;
                let filled = self.0.visible_lsn();
                self.0.state.catalogue_mut().note_filled(index.tree.id, filled);
                index.complete = true;
                self.note_complete(index).await?;
            }
            Ok(index)
        })
    }

    /// Adds the index entries of every record of a table.
    async fn fill_index(&self, table: Table) -> Result<(), Error> {
        let mut low: Bound<Vec<u8>> = Bound::Unbounded;
        let (mut most, mut together) = (INDEXED_TOGETHER, INDEXED_TOGETHER);
        loop {
            match self.index_first(table, low.as_ref().map(|key| &key[..]), together).await {
                Ok(None) => return Ok(()),
                Ok(Some(last)) => {
                    low = Bound::Excluded(last);
                    together = (together * 2).min(most);
                }
                // A transaction with many long entries may be too large for a small log, so fewer records are
                // indexed at once.
                Err(Error::TransactionTooLarge { .. }) if together > 1 => {
                    most = together / 2;
                    together = most;
                }
                // Fewer records are locked at once, so that the writers of the table rarely get in the way again.
                Err(Error::Deadlock) => together = (together / 2).max(1),
                Err(error) => return Err(error),
            }
        }
    }

    /// Adds the index entries of the first records from `low` on, at most `most`, in one transaction. Returns the
    /// key of the last of them; `None` if there is none.
    async fn index_first(
        &self,
        table: Table,
        low: Bound<&[u8]>,
        most: usize,
    ) -> Result<Option<Vec<u8>>, Error> {
        let transaction = self.begin();
        let scan = transaction.scan(table, (low, Bound::Unbounded), Direction::Forward);
        let records: Vec<Record> = scan.limit(most).all().await?;
        for (key, value) in &records {
            transaction.index_record(table, key, value).await?;
        }
        transaction.commit().await?;
        Ok(records.into_iter().next_back().map(|(key, _)| key))
    }

    /// Begins a transaction.
    pub fn begin(&self) -> Transaction {
        Transaction::new(&self.0)
    }

    /// Begins a transaction that repeats the work of `first`, which was aborted to resolve a deadlock and has
    /// ended. It is as old as `first`, and a deadlock aborts the youngest transaction. `turn` is dropped when the
    /// transaction releases its locks.
    pub(crate) fn begin_again(&self, first: TxnId, turn: Option<Box<dyn Any>>) -> Transaction {
        let transaction = Transaction::new(&self.0);
        self.0.transactions.begin_again(transaction.number(), first, turn);
        transaction
    }

    /// Takes a snapshot of the committed state.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(&self.0)
    }

    /// Writes all dirty pages and merges the pending records, so that recovery after a crash has nothing to
    /// redo.
    pub fn checkpoint(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.0.check_open()?;
            self.0.checkpoint(Lsn(u64::MAX)).await?;
            // The checkpoint has made room in the log for merges of leaves. They make pages dirty again.
            while self.0.shrink_remembered().await? {
                self.0.checkpoint(Lsn(u64::MAX)).await?;
            }
            Ok(())
        })
    }

    /// Makes a checkpoint like the automatic ones, with the older half of the used log as its goal.
    #[cfg(feature = "planted")]
    pub fn checkpoint_older_half(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.0.check_open()?;
            let (redo, tail) = (self.0.durable.log().redo().0, self.0.durable.log().tail().0);
            self.0.checkpoint(Lsn(redo + (tail - redo) / 2)).await
        })
    }

    /// Waits for the commits in progress, writes everything and marks the store as cleanly closed, so that
    /// the next opening needs no recovery. Later calls fail with [`Error::Closed`], but closing again does nothing.
    pub fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            // A store that stopped says why; the error of closing is then that of a page or of the log.
            self.0.close().await.map_err(|error| self.0.health.check().err().unwrap_or(error))
        })
    }

    /// Returns the statistics of the store: counts since it was opened, and its current sizes.
    pub fn statistics(&self) -> Statistics {
        let shard = &self.0;
        let counts = shard.counters.get();
        let (log_flushes, log_bytes_written) = shard.durable.log().counters();
        let (superblock, records) = (shard.durable.superblock(), shard.state.records());
        let beside = superblock.data_start().0;
        let place = shard.durable.pages().backend().out_of_place();
        let deltas = place.map(OutOfPlace::delta_counters).unwrap_or_default();
        Statistics {
            commits: counts.commits,
            aborts: counts.aborts,
            deadlocks: counts.deadlocks,
            lock_waits: counts.lock_waits,
            lock_wait_ns: counts.lock_wait_ns,
            log_waits: counts.log_waits,
            log_wait_ns: counts.log_wait_ns,
            user_bytes_written: counts.user_bytes,
            log_bytes_written,
            log_flushes,
            log_bytes_used: shard.durable.log().used(),
            flushes: shard.durable.flushes(),
            pages_written: shard.durable.pages().pages_written(),
            pages_changed: shard.durable.pages().changed(|changed| changed.len() as u64),
            checkpoints: counts.checkpoints,
            splits: counts.splits,
            merges: counts.merges,
            pages_used: shard.state.space().used(),
            pages: shard.state.space().pages(),
            space_bytes: match place {
                Some(place) => beside * u64::from(superblock.page_bytes) + place.bytes(),
                None => (beside + shard.state.space().used()) * u64::from(superblock.page_bytes),
            },
            deltas_written: deltas.written,
            deltas_read: deltas.read,
            pages_consolidated: deltas.consolidated,
            pages_moved: place.map_or(0, OutOfPlace::pages_moved),
            version_bytes: shard.state.versions().bytes(),
            record_bytes: records.bytes(),
            record_limit_bytes: records.limit(),
            records_kept: records.len() as u64,
            records_pending: records.pending(),
            records: records.counters(),
            locks: shard.transactions.locks().held() as u64,
            recovered_ops: counts.recovered_ops,
            restored_pages: counts.restored_pages,
            frames: shard.state.frames(),
            pool: shard.durable.pool().counters(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Direction, Durability};
    use fulgurite_base::Nanos;
    use fulgurite_device::{Executor, MemDevice};

    /// The rule: an index that an older version has made keeps its code of zero bytes, also when it is written to and
    /// opened again. A new index beside it has the new code.
    #[test]
    fn an_index_of_an_older_format_keeps_its_code() {
        let executor = Executor::new(MemDevice::new(4096, 4096, 64, Nanos::from_micros(10)));
        let handle = executor.handle();
        let work = async move {
            let options = || Options { memory_bytes: 2 << 20, log_bytes: 1 << 20, ..Options::default() };
            let extract = || -> Extract { Rc::new(|_, value, keys| keys.push(value.to_vec())) };
            let values = [&b"\0"[..], b"\0\0", b"\0a", b"a\0b"];
            let put = async |store: &Store, table, numbers: std::ops::Range<usize>| {
                let transaction = store.begin();
                for number in numbers {
                    transaction.put(table, &[number as u8], values[number]).await.unwrap();
                }
                transaction.commit_with(Durability::Flush).await.unwrap();
            };
            let store = Store::create(handle.clone(), options()).await.unwrap();
            let table = store.create_table("t").await.unwrap();
            let make =
                move |tree| Named::Index(Index { tree, table, coding: Coding::Single, complete: false });
            store.create_tree("old", make, Some(extract())).await.unwrap();
            put(&store, table, 0..2).await;
            store.create_index(table, "old", extract()).await.unwrap();
            store.close().await.unwrap();
            let store = Store::open(handle, options()).await.unwrap();
            let table = store.table("t").await.unwrap();
            let old = store.create_index(table, "old", extract()).await.unwrap();
            let new = store.create_index(table, "new", extract()).await.unwrap();
            assert_eq!((old.coding, new.coding), (Coding::Single, Coding::Runs));
            put(&store, table, 2..4).await;
            let transaction = store.begin();
            for index in [old, new] {
                let range = (Bound::Included(&b"\0\0"[..]), Bound::Excluded(&b"b"[..]));
                let rows = transaction.index_scan(index, range, Direction::Forward).all().await.unwrap();
                let found: Vec<Vec<u8>> = rows.into_iter().map(|row| row.index_key).collect();
                assert_eq!(found, values[1..]);
            }
            assert!(store.check().await.unwrap().problems.is_empty());
        };
        executor.block_on(work).unwrap();
    }
}
