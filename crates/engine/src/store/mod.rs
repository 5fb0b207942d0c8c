//! The store: creating, opening, tables and indexes, statistics, closing.

pub(crate) mod read_view;
pub(crate) mod row_batch;
pub(crate) mod scan;
pub(crate) mod transaction;
pub(crate) mod load;

use crate::format::log_record::{Delta, Op};
use crate::format::page::node::{NodeMut, longest_key};
use crate::format::tree::{CATALOGUE, Tree};
use crate::media::write::out_of_place::OutOfPlace;
use crate::memory::catalogue::{self, Extract, Index, Named, SHARDS, Table};
use crate::memory::record_cache::RecordCounters;
use crate::shard::Shard;
use crate::shard::tree::Applied;
use crate::store::scan::{Direction, Record};
use crate::store::transaction::{Snapshot, Transaction};
use crate::wait::{insist, to_its_end};
use crate::{Durability, Error, Lsn, Options, TornPages};
use fulgurite_device::{Device, Handle};
use fulgurite_pool::PoolCounters;
use std::ops::Bound;
use std::rc::Rc;

/// Refuses the name of a table that the engine keeps for itself.
fn refuse_own(name: &str) -> Result<(), Error> {
    if name == SHARDS {
        return Err(Error::Options(format!("`{name}` is the engine's own; accepted: another name")));
    }
    Ok(())
}

/// Records per transaction while an index is filled.
const INDEXED_TOGETHER: usize = 64;

/// Statistics of a store since it was opened, and its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Transactions committed.
    pub commits: u64,
    /// Transactions that wrote and were not committed.
    pub aborts: u64,
    /// Transactions given up to end a deadlock.
    pub deadlocks: u64,
    /// Bytes of keys and values that commits have written.
    pub user_bytes_written: u64,
    /// Bytes written to the log.
    pub log_bytes_written: u64,
    /// Flushes of the log.
    pub log_flushes: u64,
    /// Bytes of log that recovery would read now.
    pub log_bytes_used: u64,
    /// Flushes of the drive.
    pub flushes: u64,
    /// Pages written, those written twice counted twice.
    pub pages_written: u64,
    /// Out of place: pages that collection has moved. A compressed page counts as the share that it takes.
    pub pages_moved: u64,
    /// Pages that differ from the drive.
    pub pages_changed: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Nodes split.
    pub splits: u64,
    /// Nodes merged.
    pub merges: u64,
    /// Pages in use.
    pub pages_used: u64,
    /// Pages of the store's data part.
    pub pages: u64,
    /// Bytes of the drive that the store uses: its pages, its log and the areas beside.
    pub space_bytes: u64,
    /// Bytes of old versions in memory.
    pub version_bytes: u64,
    /// Bytes of the record cache.
    pub record_bytes: u64,
    /// Bytes that the record cache may have now. The store gives the rest to pages if that spares the drive
    /// more.
    pub record_limit_bytes: u64,
    /// Records in the cache.
    pub records_kept: u64,
    /// Pending records: those in the cache that their pages lack.
    pub records_pending: u64,
    /// Counters of the record cache.
    pub records: RecordCounters,
    /// Locks held.
    pub locks: u64,
    /// Operations that recovery has redone.
    pub recovered_ops: u64,
    /// Torn pages that recovery has restored.
    pub restored_pages: u64,
    /// Frames of the pool.
    pub frames: u32,
    /// Counters of the pool.
    pub pool: PoolCounters,
}

/// A store on one drive, driven by one core. Clones share it.
///
/// The tasks of one executor use a store. It stops with [`Error::Fatal`] when it no longer knows what is
/// durable; opening it again recovers everything that was acknowledged.
pub struct Store<D: Device + 'static>(pub(crate) Rc<Shard<D>>);

impl<D: Device + 'static> Clone for Store<D> {
    fn clone(&self) -> Store<D> {
        Store(Rc::clone(&self.0))
    }
}

impl<D: Device + 'static> Store<D> {
    /// Makes an empty store that takes the whole drive. Its former contents are lost.
    pub async fn create(handle: Handle<D>, options: Options) -> Result<Store<D>, Error> {
        Shard::create(&handle, &options).await?;
        Store::open(handle, options).await
    }

    /// Opens the store on a drive. After a crash it recovers what was committed. The store's sizes of pages
    /// and log replace those in `options`.
    pub async fn open(handle: Handle<D>, options: Options) -> Result<Store<D>, Error> {
        Shard::open(handle, options).await.map(Store)
    }

    /// The executor's handle.
    pub fn handle(&self) -> &Handle<D> {
        &self.0.handle
    }

    /// The protection against torn pages.
    pub fn torn_pages(&self) -> TornPages {
        self.0.durable.pages().torn_pages()
    }

    /// Whether pages lie out of place.
    pub fn is_out_of_place(&self) -> bool {
        self.0.durable.pages().backend().out_of_place().is_some()
    }

    /// Default durability.
    pub fn durability(&self) -> Durability {
        self.0.options.durability
    }

    /// Bytes in a page.
    pub fn page_bytes(&self) -> u32 {
        self.0.page_bytes()
    }

    /// Bytes of the log's area on the drive.
    pub fn log_bytes(&self) -> u64 {
        self.0.options.log_bytes
    }

    /// The table of this name. Creates it if there is none.
    pub async fn create_table(&self, name: &str) -> Result<Table, Error> {
        refuse_own(name)?;
        self.create_own_table(name).await
    }

    /// The same for a table of the engine itself.
    pub(crate) async fn create_own_table(&self, name: &str) -> Result<Table, Error> {
        match self.named(name) {
            Some(Named::Table(table)) => Ok(table),
            Some(Named::Index(_)) => Err(Error::Options(format!("`{name}` is an index, not a table"))),
            None => {
                let make = |tree| Named::Table(Table(tree));
                match self.create_tree(name, make).await? {
                    Named::Table(table) => Ok(table),
                    Named::Index(_) => Err(Error::Options(format!("`{name}` is an index, not a table"))),
                }
            }
        }
    }

    /// The table of this name.
    pub async fn table(&self, name: &str) -> Result<Table, Error> {
        match self.named(name) {
            Some(Named::Table(table)) => Ok(table),
            _ => Err(Error::NoTable(name.to_owned())),
        }
    }

    /// Every table with its name.
    pub async fn tables(&self) -> Result<Vec<(String, Table)>, Error> {
        Ok(self.0.state.catalogue().tables())
    }

    fn named(&self, name: &str) -> Option<Named> {
        self.0.state.catalogue().get(name)
    }

    /// The index of this name over a table. If there is none, it is created with the records that the table
    /// has. `extract` names the index keys of a record. It is not stored, so this is called after each
    /// opening, before the table is written. It must give the same keys for the same record every time.
    pub async fn create_index(&self, table: Table, name: &str, extract: Extract) -> Result<Index, Error> {
        refuse_own(name)?;
        let known = self.named(name);
        let named = match known {
            Some(named) => named,
            None => {
                self.create_tree(name, move |tree| Named::Index(Index { tree, table, complete: false }))
                    .await?
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
            // An interrupted filling is repeated: existing entries are put again.
            self.fill_index(table).await?;
            index.complete = true;
            self.note_complete(name, index).await?;
        }
        Ok(index)
    }

    /// Notes in the catalogue that an index is complete.
    async fn note_complete(&self, name: &str, index: Index) -> Result<(), Error> {
        let value = catalogue::encode(Named::Index(index));
        let transaction = self.begin();
        let catalogue = self.0.tree(CATALOGUE)?;
        transaction.note(catalogue, name.as_bytes().into(), Some(value.clone().into()));
        transaction.commit_with(Durability::Flush).await?;
        self.0.state.catalogue_mut().add(name.as_bytes(), &value)
    }

    /// Indexes every record of a table.
    async fn fill_index(&self, table: Table) -> Result<(), Error> {
        let mut low: Bound<Vec<u8>> = Bound::Unbounded;
        let mut together = INDEXED_TOGETHER;
        loop {
            let transaction = self.begin();
            let range = (low.as_ref().map(|key| &key[..]), Bound::Unbounded);
            let scan = transaction.scan(table, range, Direction::Forward);
            let records: Vec<Record> = scan.limit(together).all().await?;
            let Some((last, _)) = records.last().cloned() else { return Ok(()) };
            for (key, value) in &records {
                transaction.index_record(table, key, value).await?;
            }
            match transaction.commit().await {
                Ok(()) => low = Bound::Excluded(last),
                // A small log does not take so many long entries at once.
                Err(Error::TransactionTooLarge { .. }) if records.len() > 1 => together = records.len() / 2,
                Err(error) => return Err(error),
            }
        }
    }

    /// Creates a tree, unless its name is refused.
    async fn create_tree(
        &self,
        name: &str,
        named: impl FnOnce(Tree) -> Named + 'static,
    ) -> Result<Named, Error> {
        self.0.check_open()?;
        let longest = longest_key(self.0.page_bytes());
        if name.is_empty() || name.len() > longest {
            return Err(Error::Options(format!("a name has 1 to {longest} bytes, not {}", name.len())));
        }
        let (store, name) = (self.clone(), name.to_owned());
        // An operation in the log must be applied.
        to_its_end(self.handle(), async move { store.add_tree(&name, named).await }).await
    }

    /// Creates a tree: its root and the catalogue's record are one record of the log.
    async fn add_tree(&self, name: &str, named: impl FnOnce(Tree) -> Named) -> Result<Named, Error> {
        let shard = &self.0;
        let root = shard.pick().await?;
        let turn = shard.jobs.structure_turn().await;
        if let Some(named) = self.named(name) {
            // Another task was faster.
            shard.state.space().put_back(root);
            return Ok(named);
        }
        let tree = Tree { id: shard.state.catalogue().next(), root };
        let named = named(tree);
        let (map, index) = shard.state.space().place(root);
        let held = shard.hold(&[map], &[root]).await.inspect_err(|_| shard.state.space().put_back(root))?;
        let mut bytes = vec![0; shard.page_bytes() as usize];
        NodeMut::init(&mut bytes, root, tree.id, 0, (b"", None));
        let value = catalogue::encode(named);
        let deltas = vec![Delta::image(&bytes), Delta::Map { page: map, from: index, count: 1, used: true }];
        let op = Op {
            tree: CATALOGUE,
            key: name.as_bytes().into(),
            value: Some(value.clone().into()),
            large: false,
        };
        let (since, lsn) = shard.restructure(held, deltas, vec![op.clone()])?;
        shard.transactions.commits_mut().append(since, lsn, true);
        shard.state.catalogue_mut().add(name.as_bytes(), &value)?;
        drop(turn);
        let at = Applied { since, lsn, keep_old: false };
        let applied = insist(async || shard.apply(shard.tree(CATALOGUE)?, &op, at).await);
        if let Err(error) = applied.await {
            return Err(shard.stop_unapplied(&error));
        }
        shard.transactions.commits_mut().applied(lsn);
        shard.durable.log().sync(lsn).await?;
        shard.advance();
        shard.until_visible(lsn).await?;
        Ok(named)
    }

    /// Begins a transaction.
    pub fn begin(&self) -> Transaction<D> {
        Transaction::new(&self.0)
    }

    /// Takes a snapshot of what is committed now.
    pub fn snapshot(&self) -> Snapshot<D> {
        Snapshot::new(&self.0)
    }

    /// Writes everything that differs from the drive, so that recovery has nothing to do.
    pub async fn checkpoint(&self) -> Result<(), Error> {
        self.0.check_open()?;
        self.0.checkpoint(Lsn(u64::MAX)).await
    }

    /// A checkpoint like those that the store makes by itself, as if half of the used log were too much.
    #[cfg(feature = "planted")]
    pub async fn checkpoint_older_half(&self) -> Result<(), Error> {
        self.0.check_open()?;
        let (redo, tail) = (self.0.durable.log().redo().0, self.0.durable.log().tail().0);
        self.0.checkpoint(Lsn(redo + (tail - redo) / 2)).await
    }

    /// Waits for the commits under way, writes everything and marks the store as closed: it opens without
    /// recovery. Later calls fail with [`Error::Closed`].
    pub async fn close(&self) -> Result<(), Error> {
        self.0.close().await
    }

    /// Statistics since the store was opened, and its size.
    pub fn statistics(&self) -> Statistics {
        let shard = &self.0;
        let counts = shard.counters.get();
        let (log_flushes, log_bytes_written) = shard.durable.log().counters();
        let (superblock, records) = (shard.durable.superblock(), shard.state.records());
        let beside = superblock.data_start().0;
        Statistics {
            commits: counts.commits,
            aborts: counts.aborts,
            deadlocks: counts.deadlocks,
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
            space_bytes: match shard.durable.pages().backend().out_of_place() {
                Some(place) => beside * u64::from(superblock.page_bytes) + place.bytes(),
                None => (beside + shard.state.space().used()) * u64::from(superblock.page_bytes),
            },
            pages_moved: shard.durable.pages().backend().out_of_place().map_or(0, OutOfPlace::pages_moved),
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

impl<D: Device + 'static> Transaction<D> {
    /// Adds the index entries of an existing record.
    pub(crate) async fn index_record(&self, table: Table, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.write_indexes(table, key, None, Some(value)).await
    }
}
