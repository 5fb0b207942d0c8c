//! Names of tables and indexes through the handle for threads: lists, renames and drops them in all shards.
//!
//! A change is made in one shard after the other. With several shards the first one notes it before and forgets it
//! after, in its table [`SHARDS`]: `kind (1: 1 a table is dropped, 2 an index; 3 a table is renamed, 4 an index),
//! length of the name (4), name, new name`. So the next opening completes a change that a crash has interrupted, and
//! a call completes one that an error has interrupted. One thread at a time changes names.

use super::db::{Db, Table};
use super::inside::DropSlot;
use super::primitives::{Fair, Primitives};
use crate::format::page::get_u32;
use crate::memory::catalogue::SHARDS;
use crate::memory::locks::TxnId;
use crate::store::names::Kind;
use crate::{Durability, Error, Store};
use std::rc::Rc;
use std::sync::Arc;

const KEY: &[u8] = b"change";

/// A change of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    kind: Kind,
    name: String,
    /// The new name; `None` if the table or index is dropped.
    to: Option<String>,
}

impl Change {
    fn encode(&self) -> Vec<u8> {
        let kind = 1 + u8::from(self.kind == Kind::Index) + 2 * u8::from(self.to.is_some());
        let to = self.to.as_deref().unwrap_or_default();
        let len = (self.name.len() as u32).to_le_bytes();
        [&[kind][..], &len, self.name.as_bytes(), to.as_bytes()].concat()
    }

    fn decode(bytes: &[u8]) -> Option<Change> {
        let (kind, len) = (*bytes.first()?, bytes.get(1..5)?);
        let (name, to) = bytes[5..].split_at_checked(get_u32(len, 0) as usize)?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        let to = if kind > 2 { Some(text(to)?) } else { None };
        let kind = if kind.is_multiple_of(2) { Kind::Index } else { Kind::Table };
        Some(Change { kind, name: text(name)?, to })
    }

    /// Makes the change in a shard, unless it was made there.
    async fn make(&self, store: &Store) -> Result<(), Error> {
        let outcome = match &self.to {
            Some(to) => store.rename_named(&self.name, to, self.kind).await,
            None => store.drop_named(&self.name, self.kind).await,
        };
        if matches!(outcome, Err(Error::NoTable(_))) { Ok(()) } else { outcome }
    }
}

/// Notes in the first shard which change is under way; `None` if none is.
async fn note(store: Store, change: Option<Vec<u8>>) -> Result<(), Error> {
    let table = store.table(SHARDS).await?;
    let transaction = store.begin();
    match change {
        Some(change) => transaction.put(table, KEY, &change).await?,
        None => transaction.delete(table, KEY).await?,
    }
    transaction.commit_with(Durability::Flush).await
}

/// The locks of a shard for a drop. Dropping the value releases them.
struct Lock<'a> {
    db: &'a Db,
    shard: usize,
    number: u64,
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        let number = self.number;
        // An error is ignored, because a broken shard has nothing to release.
        let _ = self.db.shard(self.shard).at_once(move |inside| drop(inside.drops.remove(&number)));
    }
}

impl Db {
    /// Returns the names of the indexes of a table, in order.
    pub fn indexes(&self, table: &Table) -> Result<Vec<String>, Error> {
        // Every shard has the same indexes, so the first one is asked.
        let table = self.table_in(table, 0)?;
        let indexes = self.in_shard_run(0, move |store| async move { store.indexes(table).await })?;
        Ok(indexes.into_iter().map(|(name, _)| name).collect())
    }

    /// Drops a table and its indexes; see [`crate::Store::drop_table`]. A crash leaves it in all shards or in none.
    ///
    /// It waits for the transactions that use the table, also for one of the same thread, which would never end.
    pub fn drop_table(&self, name: &str) -> Result<(), Error> {
        self.drop_named(name, Kind::Table)
    }

    /// Drops an index, and leaves its table; see [`Db::drop_table`].
    pub fn drop_index(&self, name: &str) -> Result<(), Error> {
        self.drop_named(name, Kind::Index)
    }

    /// Gives a table another name. Its handles stay valid. A crash leaves the same name in all shards.
    pub fn rename_table(&self, from: &str, to: &str) -> Result<(), Error> {
        self.rename_named(from, to, Kind::Table)
    }

    /// Gives an index another name, like [`Db::rename_table`].
    pub fn rename_index(&self, from: &str, to: &str) -> Result<(), Error> {
        self.rename_named(from, to, Kind::Index)
    }

    /// Waits until no other thread changes names, and completes a change that was interrupted.
    pub(super) fn names(&self) -> Result<<Fair as Primitives>::Guard<'_, bool>, Error> {
        let mut is_interrupted = Fair::lock(self.names_mutex());
        if *is_interrupted {
            self.complete_change()?;
            *is_interrupted = false;
        }
        Ok(is_interrupted)
    }

    /// Completes a change of a name that was interrupted.
    pub(super) fn complete_change(&self) -> Result<(), Error> {
        if self.shards() == 1 {
            return Ok(());
        }
        let noted = self.in_shard_run(0, |store| async move {
            let table = store.table(SHARDS).await?;
            store.snapshot().get(table, KEY).await
        })?;
        let Some(change) = noted.and_then(|bytes| Change::decode(&bytes)) else { return Ok(()) };
        self.each(|shard| {
            let change = change.clone();
            self.in_shard_run(shard, move |store| async move { change.make(&store).await })
        })?;
        self.in_shard_run(0, |store| note(store, None))
    }

    fn rename_named(&self, from: &str, to: &str, kind: Kind) -> Result<(), Error> {
        let change = Change { kind, name: from.to_owned(), to: Some(to.to_owned()) };
        // Looks first, so that a change that is refused is refused in all shards.
        let asked = change.clone();
        let mut names = self.names()?;
        self.in_shard_run(0, move |store| async move {
            store.check_rename(&asked.name, asked.to.as_deref().unwrap_or_default(), asked.kind)
        })?;
        self.change_all(&mut names, &change, |shard| {
            let change = change.clone();
            self.in_shard_run(shard, move |store| async move { change.make(&store).await })
        })
    }

    fn drop_named(&self, name: &str, kind: Kind) -> Result<(), Error> {
        // Locks wait for transactions, so the threads that change other names need not wait for them.
        let (mut locks, txn) = (Vec::with_capacity(self.shards()), self.number_for_several());
        for shard in 0..self.shards() {
            match self.lock_for_drop(shard, name, kind, txn) {
                // A crash may have come before the shard had the table.
                Err(Error::NoTable(_)) if shard > 0 => locks.push(None),
                lock => locks.push(Some(lock?)),
            }
        }
        let change = Change { kind, name: name.to_owned(), to: None };
        let mut names = self.names()?;
        self.change_all(&mut names, &change, |shard| {
            let (change, number) = (change.clone(), locks[shard].as_ref().map(|lock| lock.number));
            self.shard(shard).run(move |inside| {
                let slot = number.and_then(|number| inside.drops.get(&number).cloned());
                let store = inside.store.clone();
                Ok(async move {
                    let is_dropped = match slot.and_then(|slot| slot.take()) {
                        Some(locked) => store.drop_locked(&change.name, kind, locked).await?,
                        None => false,
                    };
                    if is_dropped { Ok(()) } else { change.make(&store).await }
                })
            })
        })?;
        drop((names, locks));
        self.each(|shard| self.in_shard_run(shard, |store| async move { store.free_dropped().await }))
            .map(drop)
    }

    fn lock_for_drop(
        &self,
        shard: usize,
        name: &str,
        kind: Kind,
        txn: Option<TxnId>,
    ) -> Result<Lock<'_>, Error> {
        let name: Arc<str> = name.into();
        let number = self.shard(shard).run(move |inside| {
            let (store, number, slot) = (inside.store.clone(), inside.draw(), DropSlot::default());
            inside.drops.insert(number, Rc::clone(&slot));
            Ok(async move {
                slot.replace(Some(store.lock_for_drop(&name, kind, txn).await?));
                Ok(number)
            })
        })?;
        Ok(Lock { db: self, shard, number })
    }

    /// Makes a change in all shards, and notes it meanwhile.
    fn change_all(
        &self,
        is_interrupted: &mut bool,
        change: &Change,
        make: impl FnMut(usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.shards() == 1 {
            return self.each(make).map(drop);
        }
        let noted = change.encode();
        self.in_shard_run(0, move |store| note(store, Some(noted)))?;
        *is_interrupted = true;
        self.each(make)?;
        self.in_shard_run(0, |store| note(store, None))?;
        *is_interrupted = false;
        Ok(())
    }

    /// Runs `work` with the store of a shard.
    fn in_shard_run<T, F>(&self, shard: usize, work: impl FnOnce(Store) -> F + Send) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + 'static,
    {
        self.shard(shard).run(move |inside| Ok(work(inside.store.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_reads_back() {
        for kind in [Kind::Table, Kind::Index] {
            for to in [None, Some("später".to_owned())] {
                let change = Change { kind, name: "früher".to_owned(), to };
                assert_eq!(Change::decode(&change.encode()), Some(change));
            }
        }
        assert_eq!(Change::decode(&[1, 9, 0, 0, 0, b'a']), None);
        assert_eq!(Change::decode(&[]), None);
    }
}
