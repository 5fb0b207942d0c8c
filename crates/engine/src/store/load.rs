//! Bulk load of a table: records in ascending order become a tree without being logged.

use crate::format::log_record::Op;
use crate::format::page::node::longest_record;
use crate::format::tree::{LARGE, Tree};
use crate::memory::locks::TxnId;
use crate::shard::LoadNumbers;
use crate::shard::tree::Load;
use crate::wait::to_its_end;
use crate::{Error, Store, StoreFuture, Table, Transaction};
use fulgurite_base::PageId;
use std::rc::Rc;

/// The divisor of the log size that gives the maximum size of uncommitted pieces of large values. Any
/// transaction may take this share of the log.
const PIECES_SHARE: u64 = 64;

/// A bulk load of a table that is in progress. Dropping it before [`BulkLoad::finish`] leaves the table
/// empty. Pieces of large values that were already committed are then deleted in the background; after a crash,
/// the next opening begins with that. Until then [`Store::check`] counts them, and [`repair`](crate::repair())
/// leaves them out.
pub struct BulkLoad {
    store: Store,
    load: Load,
    /// The transaction that holds the lock on the whole table, so that no other transaction reads or writes
    /// it during the load.
    _lock: Transaction,
    /// The pieces of large values that are not committed yet.
    pieces: Vec<Op>,
    /// The number of log bytes that `pieces` takes.
    pieces_bytes: u64,
    bytes: u64,
    numbers: LoadNumbers,
}

impl Store {
    /// Fills an empty table without indexes with records in ascending order of their keys. This is much
    /// faster than transactions, and atomic. The records are durable when it returns. Returns the number of
    /// bytes of keys and values.
    pub async fn bulk_load(
        &self,
        table: Table,
        records: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<u64, Error> {
        let mut load = self.begin_load(table).await?;
        for (key, value) in records {
            load.push(key, value).await?;
        }
        load.finish().await
    }

    /// Begins a bulk load whose records are given one by one (see [`Store::bulk_load`]).
    pub fn begin_load(&self, table: Table) -> StoreFuture<'_, BulkLoad> {
        self.begin_load_as(table, None)
    }

    /// Does the same. `txn` is the number of the load if it fills several shards; then it is older than every
    /// transaction.
    pub(crate) fn begin_load_as(&self, table: Table, txn: Option<TxnId>) -> StoreFuture<'_, BulkLoad> {
        Box::pin(async move {
            let shard = &self.0;
            shard.check_open()?;
            shard.check_writable()?;
            if shard.state.catalogue().table(table).is_some_and(|info| !info.indexes.is_empty()) {
                return Err(Error::BulkLoad("the table has indexes; make them after the load"));
            }
            let lock = match txn {
                Some(txn) => self.begin_side(txn, TxnId::default(), None),
                None => self.begin(),
            };
            lock.lock_all(table.0).await?;
            // No transaction writes to the table now, but records of earlier writes may still be pending: they
            // must be in the pages before the load checks that the table is empty.
            shard.settle_tree(table.0).await?;
            let load = Load::new(shard.clone(), table.0).await?;
            Ok(BulkLoad {
                store: self.clone(),
                load,
                _lock: lock,
                pieces: Vec::new(),
                pieces_bytes: 0,
                bytes: 0,
                numbers: LoadNumbers::new(shard),
            })
        })
    }
}

impl BulkLoad {
    /// Adds the next record. Its key must be greater than the last one.
    pub fn push(&mut self, key: Vec<u8>, value: Vec<u8>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let shard = Rc::clone(&self.store.0);
            self.bytes += (key.len() + value.len()) as u64;
            if key.len() + value.len() <= longest_record(shard.page_bytes()) {
                return self.load.push(key, value, false).await;
            }
            let (number, mark) = self.numbers.take();
            let (place, mut pieces) = shard.put_large(number, &value);
            let bytes = pieces.iter().map(|piece| piece.bytes() as u64).sum::<u64>();
            let most = shard.durable.log().capacity() / PIECES_SHARE;
            // Commits the earlier pieces first: a value that fits into the log by itself must not become too
            // large because of them.
            if self.pieces_bytes + bytes > most {
                self.put_pieces().await?;
            }
            self.pieces_bytes += bytes;
            self.pieces.extend(mark);
            self.pieces.append(&mut pieces);
            self.load.push(key, place.write(), true).await?;
            if self.pieces_bytes > most { self.put_pieces().await } else { Ok(()) }
        })
    }

    /// Makes the records part of the table. They are durable when it returns. Returns the number of bytes of
    /// keys and values.
    pub fn finish(mut self) -> StoreFuture<'static, u64> {
        Box::pin(async move {
            self.put_pieces().await?;
            let handle = self.store.handle().clone();
            // Runs to completion even if the caller gives up: the lock must be held until the loaded pages are
            // the tree of the table.
            to_its_end(&handle, async move {
                self.load.finish(&self.numbers.unmark()).await?;
                let log = &self.store.0.durable.log();
                log.sync(log.tail()).await?;
                Ok(self.bytes)
            })
            .await
        })
    }

    /// Commits the pieces of large values. This happens before the records that refer to them become part of
    /// the table.
    async fn put_pieces(&mut self) -> Result<(), Error> {
        self.pieces_bytes = 0;
        let pieces = std::mem::take(&mut self.pieces);
        if pieces.is_empty() {
            return Ok(());
        }
        // A value may be larger than a transaction.
        let most = (self.store.0.durable.log().capacity() / PIECES_SHARE) as usize;
        let together = (most / longest_record(self.store.page_bytes())).max(1);
        let mut pieces = pieces.into_iter().peekable();
        while pieces.peek().is_some() {
            let transaction = self.store.begin();
            for piece in pieces.by_ref().take(together) {
                transaction.note(Tree { id: LARGE, root: PageId(0) }, piece.key, piece.value);
            }
            transaction.commit().await?;
        }
        Ok(())
    }
}
