//! Transactions and snapshots.

use crate::format::index_entry;
use crate::format::page::node::longest_key;
use crate::format::tree::Tree;
use crate::memory::catalogue::{Index, Table};
use crate::memory::locks::{Mode, TxnId};
use crate::shard::Shard;
use crate::shard::commit::Write;
use crate::store::read_view::{ReadView, Span};
use crate::store::scan::{Direction, IndexScan, Scan};
use crate::wait::together;
use crate::{Durability, Error};
use fulgurite_device::Device;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;

/// The bounds of a range of keys.
pub type Range<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// Keys that `get_many` looks up at once.
const LOOKED_FOR_TOGETHER: usize = 64;

async fn get_many<D: Device + 'static>(
    view: &ReadView<D>,
    tree: Tree,
    keys: &[&[u8]],
) -> Result<Vec<Option<Vec<u8>>>, Error> {
    let mut values = Vec::with_capacity(keys.len());
    for part in keys.chunks(LOOKED_FOR_TOGETHER) {
        // A transaction waits for one lock at a time.
        for key in part {
            view.lock(tree, key, Mode::Shared).await?;
        }
        let gets: Vec<_> = part.iter().map(|key| view.get(tree, key, Mode::Shared)).collect();
        for value in together(gets).await {
            values.push(value?);
        }
    }
    Ok(values)
}

fn index_span(range: Range<'_>) -> Span {
    let (low, high) = index_entry::entries(range);
    Span::new((low.as_ref().map(|key| &key[..]), high.as_ref().map(|key| &key[..])))
}

/// A state of the store: everything that was committed when the snapshot was taken, and nothing later. Its
/// reads and transactions do not wait for each other.
///
/// Every read may fail with [`Error::SnapshotTooOld`] once the old values that it needs no longer fit into
/// memory.
pub struct Snapshot<D: Device + 'static>(ReadView<D>);

impl<D: Device + 'static> Snapshot<D> {
    pub(crate) fn new(shard: &Rc<Shard<D>>) -> Snapshot<D> {
        Snapshot(ReadView::now(shard))
    }

    /// The value of a key.
    pub async fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.0.get(table.0, key, Mode::Shared).await
    }

    /// The values of several keys, read from the drive at once if they are not in memory.
    pub async fn get_many(&self, table: Table, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        get_many(&self.0, table.0, keys).await
    }

    /// The records of a range.
    pub fn scan(&self, table: Table, range: Range<'_>, direction: Direction) -> Scan<'_, D> {
        Scan::new(&self.0, table.0, Span::new(range), direction)
    }

    /// The records that a range of an index leads to.
    pub fn index_scan(&self, index: Index, range: Range<'_>, direction: Direction) -> IndexScan<'_, D> {
        IndexScan::new(&self.0, index, index_span(range), direction)
    }
}

/// A transaction: reads and writes of several tables that take effect together or not at all, as if no other
/// transaction ran meanwhile.
///
/// Everything that it reads and writes stays locked until it ends, and it waits for the locks of others.
/// [`Error::Deadlock`] from any function means that it was given up: drop it and begin again. Dropping it
/// without a commit undoes it. It has one request under way at a time: its functions must not be awaited side
/// by side.
pub struct Transaction<D: Device + 'static> {
    view: ReadView<D>,
    txn: TxnId,
    ended: Cell<bool>,
}

impl<D: Device + 'static> Transaction<D> {
    pub(crate) fn new(shard: &Rc<Shard<D>>) -> Transaction<D> {
        shard.divide_memory();
        let txn = shard.transactions.next_id();
        let view = ReadView::Locked {
            shard: Rc::clone(shard),
            txn,
            writes: RefCell::default(),
            dead: Cell::new(false),
            used: Cell::new(false),
        };
        Transaction { view, txn, ended: Cell::new(false) }
    }

    /// The value of a key, under a shared lock.
    pub async fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.view.get(table.0, key, Mode::Shared).await
    }

    /// The value of a key that will be changed, under an exclusive lock. This avoids deadlocks.
    pub async fn get_for_update(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.view.get(table.0, key, Mode::Exclusive).await
    }

    /// The values of several keys, read from the drive at once if they are not in memory.
    pub async fn get_many(&self, table: Table, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        get_many(&self.view, table.0, keys).await
    }

    /// The records of a range. No record enters or leaves the range before the transaction ends.
    pub fn scan(&self, table: Table, range: Range<'_>, direction: Direction) -> Scan<'_, D> {
        Scan::new(&self.view, table.0, Span::new(range), direction)
    }

    /// The records that a range of an index leads to.
    pub fn index_scan(&self, index: Index, range: Range<'_>, direction: Direction) -> IndexScan<'_, D> {
        IndexScan::new(&self.view, index, index_span(range), direction)
    }

    /// Puts a value under a key.
    pub async fn put(&self, table: Table, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.write(table, key.into(), Some(value.into())).await
    }

    /// Deletes a key, if it is there.
    pub async fn delete(&self, table: Table, key: &[u8]) -> Result<(), Error> {
        self.write(table, key.into(), None).await
    }

    /// Puts a value under a key, or deletes the key.
    pub(crate) async fn write(
        &self,
        table: Table,
        key: Box<[u8]>,
        value: Option<Box<[u8]>>,
    ) -> Result<(), Error> {
        self.check_key(&key)?;
        let indexed = self.is_indexed(table)?;
        let old = if indexed { self.get_for_update(table, &key).await? } else { None };
        self.view.lock(table.0, &key, Mode::Exclusive).await?;
        if indexed {
            self.write_indexes(table, &key, old.as_deref(), value.as_deref()).await?;
        }
        self.note(table.0, key, value);
        Ok(())
    }

    fn check_key(&self, key: &[u8]) -> Result<(), Error> {
        let longest = longest_key(self.view.shard().page_bytes());
        if key.len() > longest {
            return Err(Error::KeyTooLong { bytes: key.len(), longest });
        }
        Ok(())
    }

    /// Whether a table has indexes. Fails if the function of one was not given.
    fn is_indexed(&self, table: Table) -> Result<bool, Error> {
        let catalogue = self.view.shard().state.catalogue();
        let Some(info) = catalogue.table(table) else { return Ok(false) };
        match info.indexes.iter().find(|(.., extract)| extract.is_none()) {
            Some((index, ..)) => Err(Error::IndexNotOpen { table: info.name.clone(), index: index.clone() }),
            None => Ok(!info.indexes.is_empty()),
        }
    }

    /// Locks all keys of a tree.
    pub(crate) async fn lock_all(&self, tree: Tree) -> Result<(), Error> {
        let all = Span { low: Vec::new(), high: None };
        self.view.lock_alone(tree, &all).await
    }

    /// Brings the index entries of a record in line with its new value.
    pub(crate) async fn write_indexes(
        &self,
        table: Table,
        key: &[u8],
        old: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<(), Error> {
        let mut changes = self.index_changes(table, key, old, new);
        // An entry that is too long is not in the index, so a record that is older than the index can be
        // deleted.
        changes.retain(|(_, entry, present)| *present || self.check_key(entry).is_ok());
        // All of them before the first is noted: the transaction may go on without a record that is refused.
        changes.iter().try_for_each(|(_, entry, _)| self.check_key(entry))?;
        for (tree, entry, present) in changes {
            self.view.lock(tree, &entry, Mode::Exclusive).await?;
            self.note(tree, entry.into(), present.then(Box::default));
        }
        Ok(())
    }

    /// The entries to delete and to put: the tree, the entry, whether it is put.
    fn index_changes(
        &self,
        table: Table,
        key: &[u8],
        old: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Vec<(Tree, Vec<u8>, bool)> {
        let catalogue = self.view.shard().state.catalogue();
        let mut changes = Vec::new();
        for (_, tree, extract) in catalogue.table(table).map_or(&[][..], |info| &info.indexes) {
            let Some(extract) = extract else { continue };
            let entries = |value: Option<&[u8]>| {
                let mut keys = Vec::new();
                if let Some(value) = value {
                    extract(key, value, &mut keys);
                }
                keys.into_iter().map(|index_key| index_entry::entry(&index_key, key)).collect::<Vec<_>>()
            };
            let (before, after) = (entries(old), entries(new));
            let gone = before.iter().filter(|entry| !after.contains(entry));
            changes.extend(gone.map(|entry| (*tree, entry.clone(), false)));
            let come = after.iter().filter(|entry| !before.contains(entry));
            changes.extend(come.map(|entry| (*tree, entry.clone(), true)));
        }
        changes
    }

    /// Adds a write that is locked already, or needs no lock.
    pub(crate) fn note(&self, tree: Tree, key: Box<[u8]>, value: Option<Box<[u8]>>) {
        if let ReadView::Locked { writes, .. } = &self.view {
            writes.borrow_mut().entry(tree.id).or_default().insert(key, value);
        }
    }

    /// Commits with the store's durability.
    pub async fn commit(self) -> Result<(), Error> {
        let durability = self.view.shard().options.durability;
        self.commit_with(durability).await
    }

    /// Commits, with `durability`. After an error nothing was done, with one exception: after
    /// [`Error::Fatal`] the transaction may or may not have been committed, which opening the store again
    /// decides.
    ///
    /// Once begun, a commit may come to its end even if the future is dropped.
    pub async fn commit_with(self, durability: Durability) -> Result<(), Error> {
        self.view.check()?;
        let ReadView::Locked { shard, writes, used, .. } = &self.view else { return Ok(()) };
        if writes.borrow().is_empty() {
            let settled = if used.get() { shard.until_settled().await } else { Ok(()) };
            return settled.inspect(|()| shard.counters.count(|counts| counts.commits += 1));
        }
        let of_tree = |(tree, writes): (u32, BTreeMap<_, _>)| {
            writes.into_iter().map(move |(key, value)| Write { tree, key, value })
        };
        let writes: Vec<Write> = writes.take().into_iter().flat_map(of_tree).collect();
        let outcome = shard.commit(self.txn, writes, durability, &self.ended).await;
        outcome.map(drop)
    }
}

impl<D: Device + 'static> Drop for Transaction<D> {
    fn drop(&mut self) {
        // The commit in the log releases the locks when it is applied.
        if !self.ended.get() {
            let shard = self.view.shard();
            shard.release_locks(self.txn);
            if let ReadView::Locked { writes, .. } = &self.view
                && !writes.borrow().is_empty()
            {
                shard.counters.count(|counts| counts.aborts += 1);
            }
        }
    }
}
