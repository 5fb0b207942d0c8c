//! Bulk load of a table: records in ascending order become a tree and are not logged.

use crate::format::log_record::Op;
use crate::format::page::node::longest_record;
use crate::format::tree::{LARGE, Tree};
use crate::shard::tree::Load;
use crate::wait::to_its_end;
use crate::{Error, Store, Table, Transaction};
use fulgurite_base::PageId;
use fulgurite_device::Device;
use std::rc::Rc;

/// Pieces of large values are committed when they take this share of the log, which any transaction may take.
const PIECES_SHARE: u64 = 64;

/// A table that is being filled. Dropped before [`BulkLoad::finish`], it leaves the table empty. Pieces of
/// large values that were committed by then stay and take room: [`Store::check`] names them, and
/// [`repair`](crate::repair()) leaves them out.
pub struct BulkLoad<D: Device + 'static> {
    store: Store<D>,
    load: Load<D>,
    /// Holds the lock on the whole table, so that nobody else reads or writes it meanwhile.
    _lock: Transaction<D>,
    /// Pieces of large values that are not committed yet.
    pieces: Vec<Op>,
    /// Bytes that they take in the log.
    pieces_bytes: u64,
    bytes: u64,
}

impl<D: Device + 'static> Store<D> {
    /// Fills an empty table without indexes with records in ascending order of their keys. Much faster than
    /// transactions, and all or nothing: durable when it returns. Returns the bytes of keys and values.
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
    pub async fn begin_load(&self, table: Table) -> Result<BulkLoad<D>, Error> {
        let shard = &self.0;
        shard.check_open()?;
        if shard.state.catalogue().table(table).is_some_and(|info| !info.indexes.is_empty()) {
            return Err(Error::BulkLoad("the table has indexes; make them after the load"));
        }
        let lock = self.begin();
        lock.lock_all(table.0).await?;
        // Nobody writes to the table now. Earlier writes must be in its pages.
        shard.settle_tree(table.0).await?;
        let load = Load::new(shard.clone(), table.0).await?;
        Ok(BulkLoad { store: self.clone(), load, _lock: lock, pieces: Vec::new(), pieces_bytes: 0, bytes: 0 })
    }
}

impl<D: Device + 'static> BulkLoad<D> {
    /// Adds the next record. Its key must be larger than the last, and its value one that a transaction can
    /// put.
    pub async fn push(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<(), Error> {
        let shard = Rc::clone(&self.store.0);
        self.bytes += (key.len() + value.len()) as u64;
        if key.len() + value.len() <= longest_record(shard.page_bytes()) {
            return self.load.push(key, value, false).await;
        }
        let (place, mut pieces) = shard.put_large(&value);
        let value = Some(place.write().into());
        let record = Op { tree: self.load.tree(), key: key.as_slice().into(), value, large: true };
        pieces.push(record);
        shard.check_large(&pieces)?;
        pieces.pop();
        let bytes = pieces.iter().map(|piece| piece.bytes() as u64).sum::<u64>();
        let most = shard.durable.log().capacity() / PIECES_SHARE;
        // Earlier pieces must not make a value too large that fits by itself.
        if self.pieces_bytes + bytes > most {
            self.put_pieces().await?;
        }
        self.pieces_bytes += bytes;
        self.pieces.append(&mut pieces);
        self.load.push(key, place.write(), true).await?;
        if self.pieces_bytes > most { self.put_pieces().await } else { Ok(()) }
    }

    /// Makes the records part of the table. Durable when it returns. Returns the bytes of keys and values.
    pub async fn finish(mut self) -> Result<u64, Error> {
        self.put_pieces().await?;
        let handle = self.store.handle().clone();
        // Nobody may write to the table while its pages become the tree, even if the caller gives up its
        // wait.
        to_its_end(&handle, async move {
            self.load.finish().await?;
            let log = &self.store.0.durable.log();
            log.sync(log.tail()).await?;
            Ok(self.bytes)
        })
        .await
    }

    /// Commits pieces of large values, before the records with the references to them.
    async fn put_pieces(&mut self) -> Result<(), Error> {
        self.pieces_bytes = 0;
        let pieces = std::mem::take(&mut self.pieces);
        if pieces.is_empty() {
            return Ok(());
        }
        let transaction = self.store.begin();
        for piece in pieces {
            transaction.note(Tree { id: LARGE, root: PageId(0) }, piece.key, piece.value);
        }
        transaction.commit().await
    }
}
