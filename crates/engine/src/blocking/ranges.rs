//! Deletion of ranges through the handle for threads.

use super::db::{Db, Table};
use super::scan::{borrowed, owned};
use crate::Error;
use crate::store::transaction::Range;

impl Db {
    /// Deletes the records of a range in all shards, in many transactions, and returns their number; see
    /// [`crate::Store::delete_range`]. Use [`super::Transaction::delete_range`] to delete a range at once.
    pub fn delete_range(&self, table: &Table, range: Range<'_>) -> Result<u64, Error> {
        let counts = self.each(|shard| {
            let (table, range) = (self.table_in(table, shard)?, owned(range));
            self.shard(shard).commit(move |inside| {
                let store = inside.store.clone();
                Ok(async move { store.delete_range(table, borrowed(&range)).await })
            })
        })?;
        Ok(counts.into_iter().sum())
    }
}
