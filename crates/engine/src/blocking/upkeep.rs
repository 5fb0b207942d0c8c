//! The upkeep of a store through the handle for threads: checks, compaction and backups.

use super::db::Db;
use crate::{BackupReport, CheckReport, CompactReport, Error, Sink};
use fulgurite_device::Handle;

impl Db {
    /// Checks every page of each shard (see [`Store::check`](crate::Store::check)).
    pub fn check(&self) -> Result<Vec<CheckReport>, Error> {
        self.each(|shard| {
            self.shard(shard).run(|inside| {
                let store = inside.store.clone();
                Ok(async move { store.check().await })
            })
        })
    }

    /// Makes each shard smaller (see [`Store::compact`](crate::Store::compact)). Other threads go on meanwhile.
    pub fn compact(&self) -> Result<Vec<CompactReport>, Error> {
        self.each(|shard| {
            self.shard(shard).run(|inside| {
                let store = inside.store.clone();
                Ok(async move { store.compact().await })
            })
        })
    }

    /// Makes an image of each shard while the store is in use (see [`Store::backup`](crate::Store::backup)). `sink`
    /// returns the target of the shard with this number. The methods of a sink run under the lock of the shard, so
    /// they should not block; they may wait with the handle.
    ///
    /// The images of several shards are made one after the other, so they are not one state of the store: a transaction
    /// of several shards may be in some of them only.
    pub fn backup_into<S: Sink + 'static>(
        &self,
        mut sink: impl FnMut(usize, Handle) -> Result<S, Error> + Send,
    ) -> Result<Vec<BackupReport>, Error> {
        self.each(|shard| {
            let make = &mut sink;
            self.shard(shard).run(move |inside| {
                let (store, sink) = (inside.store.clone(), make(shard, inside.store.handle().clone())?);
                Ok(async move { store.backup(&sink).await })
            })
        })
    }
}
