//! The store of several shards: creates and opens it, manages its tables and indexes, and closes it.

use super::keys::shard_of;
use super::membership::{Membership, join};
use super::retries::Attempts;
use super::shards::{Index, Shards, Table};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::memory::catalogue::SHARDS;
use crate::{CheckReport, Error, Extract, Options, Record, Statistics, StoreFuture};
use fulgurite_base::Lpn;
use fulgurite_device::{Caps, Handle};
use std::rc::Rc;

/// A store of one or several shards on one executor. Clones of the value are handles of the same store.
///
/// With one shard it does what [`crate::Store`] does.
#[derive(Clone)]
pub struct Store(Rc<Shards>);

/// Divides a drive into equal parts, one for each shard of a store; see [`Caps::pages_of_parts`]. The shard `n` works
/// on the core `n` of the executor. One shard gets the whole drive, and no core of its own.
///
/// Fails if the drive has too few pages.
pub fn divide(handle: impl Into<Handle>, shards: u32) -> Result<Vec<Handle>, Error> {
    let handle: Handle = handle.into();
    if shards == 1 {
        return Ok(vec![handle]);
    }
    let pages = pages_of_shard(&handle.caps(), shards)?;
    let part = |shard: u32| {
        let part = handle.part(Lpn(pages * u64::from(shard)), pages);
        part.map(|part| part.on_core(shard)).ok_or_else(|| too_small(&handle.caps(), shards))
    };
    (0..shards).map(part).collect()
}

/// Returns the number of pages of each shard of a drive that is divided.
pub fn pages_of_shard(caps: &Caps, shards: u32) -> Result<u64, Error> {
    if shards == 1 {
        return Ok(caps.pages);
    }
    caps.pages_of_parts(shards).ok_or_else(|| too_small(caps, shards))
}

fn too_small(caps: &Caps, shards: u32) -> Error {
    let most = caps.most_parts();
    Error::Options(format!("the drive cannot be divided into {shards} shards; accepted: 1 to {most}"))
}

impl Store {
    /// Creates an empty store with a shard on each of the handles, which must be of one executor and of different
    /// drives or parts of drives. The options are those of each shard. The former contents are lost.
    pub fn create(handles: Vec<Handle>, options: Options) -> StoreFuture<'static, Store> {
        Box::pin(async move {
            let mut shards = Vec::with_capacity(handles.len());
            for handle in handles {
                shards.push(crate::Store::create(handle, options.clone()).await?);
            }
            Store::joined(shards, true).await
        })
    }

    /// Opens the store on these handles, in the order in which it was created. After a crash it recovers the committed
    /// data, and ends the transactions that the crash has left in doubt.
    pub fn open(handles: Vec<Handle>, options: Options) -> StoreFuture<'static, Store> {
        Box::pin(async move {
            let mut shards = Vec::with_capacity(handles.len());
            for handle in handles {
                shards.push(crate::Store::open_shard(handle, options.clone()).await?);
            }
            let store = Store::joined(shards, false).await?;
            store.end_doubt().await?;
            Ok(store)
        })
    }

    async fn joined(shards: Vec<crate::Store>, create: bool) -> Result<Store, Error> {
        if shards.is_empty() {
            return Err(Error::Options("a store needs a drive for each shard, and at least one".to_owned()));
        }
        let mut set = None;
        for (index, shard) in shards.iter().enumerate() {
            let membership = Membership { index: index as u32, count: shards.len() as u32, set };
            set = Some(join(shard.clone(), membership, create).await?);
        }
        Ok(Store(Shards::new(shards)))
    }

    /// Ends the transactions that a crash has left prepared in a shard; see `blocking::doubt`.
    async fn end_doubt(&self) -> Result<(), Error> {
        for shard in &self.0.each {
            let in_doubt = shard.0.transactions.decisions().in_doubt();
            for id in &in_doubt {
                let Some(coordinator) = self.0.each.get(id.coordinator as usize) else {
                    return Err(Error::InDoubt { transactions: in_doubt.len() });
                };
                if planted!(shard.0.options, DoubtForgotten) {
                    continue;
                }
                let committed = coordinator.0.transactions.decisions().is_decided(*id)
                    || planted!(shard.0.options, PresumedCommitted);
                shard.0.end_transaction(*id, committed).await?;
            }
        }
        self.0.each.iter().for_each(|shard| shard.0.transactions.decisions_mut().end_doubt());
        Ok(())
    }

    /// Returns the number of shards.
    pub fn shards(&self) -> usize {
        self.0.count()
    }

    /// Returns the index of the shard that holds a key.
    pub fn shard_of(&self, key: &[u8]) -> usize {
        shard_of(key, self.0.count())
    }

    /// Returns the store of the only shard; `None` if there are several.
    pub fn only(&self) -> Option<&crate::Store> {
        match &self.0.each[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Returns the handle of the executor that a shard works with.
    pub fn handle_of(&self, shard: usize) -> &Handle {
        self.0.each[shard].handle()
    }

    /// Returns the handle of the executor that the first shard works with.
    pub fn handle(&self) -> &Handle {
        self.handle_of(0)
    }

    /// Returns the first shard, whose settings are those of all.
    pub fn first(&self) -> &crate::Store {
        &self.0.each[0]
    }

    /// Returns the table with this name, and creates it if it does not exist. A crash may leave it in a part of the
    /// shards; then [`Store::tables`] does not list it, and the next call completes it.
    pub fn create_table<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Table> {
        Box::pin(async move {
            let mut tables = Vec::with_capacity(self.0.count());
            // The first shard is the one that is asked for the list, so it is the last one.
            for shard in self.0.each.iter().rev() {
                tables.push(shard.create_table(name).await?);
            }
            tables.reverse();
            Ok(Table(self.0.tables.number(tables)))
        })
    }

    /// Returns the table with this name. Fails if there is none.
    pub fn table<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Table> {
        Box::pin(async move {
            let mut tables = Vec::with_capacity(self.0.count());
            for shard in &self.0.each {
                tables.push(shard.table(name).await?);
            }
            Ok(Table(self.0.tables.number(tables)))
        })
    }

    /// Returns the names of all tables.
    pub fn tables(&self) -> StoreFuture<'_, Vec<String>> {
        Box::pin(async move {
            let tables = self.0.each[0].tables().await?;
            Ok(tables.into_iter().map(|(name, _)| name).filter(|name| name != SHARDS).collect())
        })
    }

    /// Returns the index with this name over a table; see [`crate::Store::create_index`].
    pub fn create_index<'a>(
        &'a self,
        table: Table,
        name: &'a str,
        extract: Extract,
    ) -> StoreFuture<'a, Index> {
        Box::pin(async move {
            let mut indexes = Vec::with_capacity(self.0.count());
            for (number, shard) in self.0.each.iter().enumerate() {
                let table = self.0.tables.get(table.0, number)?;
                indexes.push(shard.create_index(table, name, Rc::clone(&extract)).await?);
            }
            Ok(Index(self.0.indexes.number(indexes)))
        })
    }

    /// Fills an empty table without indexes with records in ascending order of their keys; see
    /// [`crate::Store::bulk_load`]. The last step finishes the shards one by one, so after an error in it, or a crash,
    /// some may be filled. Returns the number of bytes of keys and values.
    pub async fn bulk_load(
        &self,
        table: Table,
        records: impl IntoIterator<Item = Record>,
    ) -> Result<u64, Error> {
        let txn = (self.0.count() > 1).then(|| self.0.draw());
        let mut loads = Vec::with_capacity(self.0.count());
        for (number, shard) in self.0.each.iter().enumerate() {
            loads.push(shard.begin_load_as(self.0.tables.get(table.0, number)?, txn).await?);
        }
        for (key, value) in records {
            loads[self.shard_of(&key)].push(key, value).await?;
        }
        let mut bytes = 0;
        for load in loads {
            bytes += load.finish().await?;
        }
        Ok(bytes)
    }

    /// Begins a transaction.
    pub fn begin(&self) -> Transaction {
        Transaction::new(&self.0, None)
    }

    /// Begins an attempt of a transaction. It is as old as the first one, and has the turn that
    /// [`Store::wait_for_turn`] has waited for. The attempts of one transaction must not overlap.
    pub fn begin_attempt(&self, attempts: &Rc<Attempts>) -> Transaction {
        Transaction::new(&self.0, Some(Rc::clone(attempts)))
    }

    /// Waits until a transaction whose last attempt was aborted to resolve a deadlock may be repeated: one aborted
    /// transaction of a shard runs at a time, the one that began first, until it releases its locks there. Returns at
    /// once if the last attempt ended otherwise.
    pub async fn wait_for_turn(&self, attempts: &Attempts) {
        attempts.turn.take();
        if let (Some(shard), Some(first)) = (attempts.aborted_in.take(), attempts.first.get()) {
            let turn = self.0.retries[shard].take(first, self.handle()).await;
            attempts.turn.set(turn.map(|turn| (shard, turn)));
        }
    }

    /// Takes a snapshot of the committed state. With several shards it waits for transactions of several shards that
    /// are about to become visible, which takes about as long as a flush of the log.
    pub async fn snapshot(&self) -> Snapshot {
        Snapshot::take(&self.0).await
    }

    /// Takes a snapshot of each shard without a wait. It may see a transaction of several shards in a part of them, so
    /// it is for what such transactions do not change together.
    pub fn snapshot_of_each(&self) -> Snapshot {
        Snapshot::of_each(&self.0)
    }

    /// Returns the newest committed value of a key; `None` if the key has none. It needs no state of all shards. Fails
    /// like a read of a [`crate::Snapshot`].
    pub fn get<'a>(&'a self, table: Table, key: &'a [u8]) -> StoreFuture<'a, Option<Vec<u8>>> {
        let shard = self.shard_of(key);
        let snapshot = self.0.each[shard].snapshot();
        Box::pin(async move { snapshot.get(self.0.tables.get(table.0, shard)?, key).await })
    }

    /// Writes all dirty pages, so that recovery after a crash has nothing to redo; see [`crate::Store::checkpoint`].
    pub fn checkpoint(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            for shard in &self.0.each {
                shard.checkpoint().await?;
            }
            Ok(())
        })
    }

    /// Makes a checkpoint of each shard like the automatic ones, with the older half of the used log as its goal.
    #[cfg(feature = "planted")]
    pub fn checkpoint_older_half(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            for shard in &self.0.each {
                shard.checkpoint_older_half().await?;
            }
            Ok(())
        })
    }

    /// Checks every shard. Returns the findings of all.
    pub fn check(&self) -> StoreFuture<'_, CheckReport> {
        Box::pin(async move {
            let mut all = CheckReport::default();
            for shard in &self.0.each {
                all.add(shard.check().await?);
            }
            Ok(all)
        })
    }

    /// Waits for the commits in progress, writes everything and marks the store as cleanly closed; see
    /// [`crate::Store::close`]. All shards are closed, even if closing one of them fails; the first error is returned.
    pub fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            if self.0.count() > 1 {
                // No shard needs the decisions of another one then. An error comes back below.
                for shard in &self.0.each {
                    let log = shard.0.durable.log();
                    let _ = log.sync(log.tail()).await;
                }
            }
            let mut closed = Ok(());
            for shard in &self.0.each {
                closed = closed.and(shard.close().await);
            }
            closed
        })
    }

    /// Returns the statistics of all shards together.
    pub fn statistics(&self) -> Statistics {
        let mut each = self.0.each.iter().map(crate::Store::statistics);
        let first = each.next().unwrap_or_default();
        each.fold(first, |all, shard| all.plus(&shard))
    }

    /// Returns the number of transactions that were committed in several shards since the store was opened.
    pub fn commits_across(&self) -> u64 {
        self.0.commits_across.get()
    }
}
