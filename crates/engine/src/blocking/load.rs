//! Bulk load through the handle for threads.

use super::db::{Db, Table};
use super::inside::LoadSlot;
use crate::memory::locks::TxnId;
use crate::{Error, Record};
use std::rc::Rc;

/// The number of bytes of records that are sent to a shard in one call.
const TOGETHER: usize = 64 << 10;

/// The part of a bulk load in one shard. If it is dropped before its end, the table stays empty in this
/// shard.
struct Part<'a> {
    db: &'a Db,
    shard: usize,
    number: u64,
    waiting: Vec<Record>,
    bytes: usize,
}

impl Db {
    /// Fills an empty table without indexes with records in ascending order of their keys. This is much
    /// faster than transactions. The records are durable when it returns. After an error the table is empty,
    /// unless the error occurred in the last step: this step finishes the shards one by one, so some may be
    /// filled. Returns the number of bytes of keys and values.
    pub fn bulk_load(&self, table: &Table, records: impl IntoIterator<Item = Record>) -> Result<u64, Error> {
        let txn = self.number_for_several();
        let mut parts = self.each(|shard| Part::begin(self, self.table_in(table, shard)?, shard, txn))?;
        for record in records {
            parts[self.shard_of(&record.0)].push(record)?;
        }
        for part in &mut parts {
            part.send()?;
        }
        parts.iter_mut().map(Part::finish).sum()
    }
}

impl<'a> Part<'a> {
    fn begin(db: &'a Db, table: crate::Table, shard: usize, txn: Option<TxnId>) -> Result<Part<'a>, Error> {
        let number = db.shard(shard).run(move |inside| {
            let (store, number, slot) = (inside.store.clone(), inside.draw(), LoadSlot::default());
            inside.loads.insert(number, Rc::clone(&slot));
            Ok(async move {
                slot.replace(Some(store.begin_load_as(table, txn).await?));
                Ok(number)
            })
        })?;
        Ok(Part { db, shard, number, waiting: Vec::new(), bytes: 0 })
    }

    fn push(&mut self, record: Record) -> Result<(), Error> {
        self.bytes += record.0.len() + record.1.len();
        self.waiting.push(record);
        if self.bytes >= TOGETHER { self.send() } else { Ok(()) }
    }

    fn send(&mut self) -> Result<(), Error> {
        self.bytes = 0;
        let (records, number) = (std::mem::take(&mut self.waiting), self.number);
        self.db.shard(self.shard).run(move |inside| {
            let slot = inside.loads.get(&number).cloned().ok_or(Error::Closed)?;
            Ok(async move {
                let mut load = slot.take().ok_or(Error::Closed)?;
                for (key, value) in records {
                    load.push(key, value).await?;
                }
                slot.replace(Some(load));
                Ok(())
            })
        })
    }

    fn finish(&mut self) -> Result<u64, Error> {
        let number = self.number;
        self.db.shard(self.shard).run(move |inside| {
            let slot = inside.loads.get(&number).cloned().ok_or(Error::Closed)?;
            let load = slot.take().ok_or(Error::Closed)?;
            Ok(async move { load.finish().await })
        })
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        let number = self.number;
        // An error is ignored, because a broken shard has nothing to undo.
        let _ = self.db.shard(self.shard).at_once(move |inside| drop(inside.loads.remove(&number)));
    }
}
