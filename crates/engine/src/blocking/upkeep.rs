//! The upkeep of a store through the handle for threads: checks and compaction. Backups are in `backup`.

use super::db::Db;
use crate::{CheckReport, CompactReport, Error};

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
}
