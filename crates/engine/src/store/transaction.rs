//! Transactions and snapshots, the two ways to access a store.

use crate::format::large_value::LargeValue;
use crate::format::page::node::longest_key;
use crate::format::tree::Tree;
use crate::memory::catalogue::{Index, Table, index_keys};
use crate::memory::locks::{Mode, TxnId};
use crate::shard::Shard;
use crate::shard::commit::across::Side;
use crate::shard::commit::{Size, Write};
use crate::store::read_view::{ReadView, Span};
use crate::store::scan::{Direction, IndexScan, Scan};
use crate::wait::together;
use crate::{Durability, Error, StoreFuture};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;

/// A pair of bounds that describes a range of keys.
pub type Range<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// A change of an index entry: the tree of the index, the entry, and whether it is put (or deleted).
pub(crate) type EntryChange = (Tree, Vec<u8>, bool);

/// The places of staged values, by tree and key.
type Staged = BTreeMap<(u32, Box<[u8]>), LargeValue>;

/// The number of keys that `get_many` looks up at once.
const LOOKED_FOR_TOGETHER: usize = 64;

async fn get_many(view: &ReadView, tree: Tree, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Error> {
    let mut values = Vec::with_capacity(keys.len());
    for part in keys.chunks(LOOKED_FOR_TOGETHER) {
        // Locks the keys one after the other, because a transaction can wait for only one lock at a time.
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

fn index_span(index: Index, range: Range<'_>) -> Span {
    let (low, high) = index.coding.entries(range);
    Span::new((low.as_ref().map(|key| &key[..]), high.as_ref().map(|key| &key[..])))
}

/// A snapshot: everything that was committed when it was taken, and nothing later. Its reads and transactions
/// do not wait for each other.
///
/// A read may fail with [`Error::SnapshotTooOld`] once the old values that the snapshot needs no longer fit
/// into memory.
pub struct Snapshot(ReadView);

impl Snapshot {
    pub(crate) fn new(shard: &Rc<Shard>) -> Snapshot {
        Snapshot(ReadView::now(shard))
    }

    /// Returns the value of a key; `None` if the key has none.
    pub fn get<'a>(&'a self, table: Table, key: &'a [u8]) -> StoreFuture<'a, Option<Vec<u8>>> {
        Box::pin(async move { self.0.get(table.0, key, Mode::Shared).await })
    }

    /// Returns the values of several keys. The leaves that are not in memory are read from the drive in
    /// parallel.
    pub fn get_many<'a>(
        &'a self,
        table: Table,
        keys: &'a [&'a [u8]],
    ) -> StoreFuture<'a, Vec<Option<Vec<u8>>>> {
        Box::pin(async move { get_many(&self.0, table.0, keys).await })
    }

    /// Scans the records of a range.
    pub fn scan(&self, table: Table, range: Range<'_>, direction: Direction) -> Scan<'_> {
        Scan::new(&self.0, table.0, Span::new(range), direction)
    }

    /// Scans the records that a range of an index refers to.
    pub fn index_scan(&self, index: Index, range: Range<'_>, direction: Direction) -> IndexScan<'_> {
        IndexScan::new(&self.0, index, index_span(index, range), direction)
    }

    /// Does the same for a range of the entries of the index.
    pub(crate) fn index_entries(
        &self,
        index: Index,
        range: Range<'_>,
        direction: Direction,
    ) -> IndexScan<'_> {
        IndexScan::new(&self.0, index, Span::new(range), direction)
    }
}

/// A transaction: its reads and writes of any number of tables take effect together or not at all, as if no
/// other transaction ran at the same time.
///
/// Everything that it reads and writes stays locked until it ends, and it waits for the locks of others.
/// [`Error::Deadlock`] from any method means that the transaction was aborted to resolve a deadlock: drop it
/// and begin again. Dropping a transaction without a commit undoes it. A transaction can execute only one
/// call at a time, so its methods must not be awaited concurrently.
pub struct Transaction {
    view: ReadView,
    txn: TxnId,
    /// Whether its commit is in the log, and releases the locks.
    pub(super) ended: Cell<bool>,
    /// Its writes, while it commits as one of several sides.
    pub(super) side: RefCell<Option<Box<Side>>>,
    /// The values that were stored before the commit (see `shard::staging`).
    staged: RefCell<Staged>,
    /// The bytes of the large values that were not staged.
    piece_bytes: Cell<u64>,
    size: Cell<Size>,
}

impl Transaction {
    pub(crate) fn new(shard: &Rc<Shard>) -> Transaction {
        Transaction::numbered(shard, shard.transactions.next_id())
    }

    /// Begins a transaction with a number that no other transaction in progress has.
    pub(super) fn numbered(shard: &Rc<Shard>, txn: TxnId) -> Transaction {
        shard.divide_memory();
        let view = ReadView::Locked {
            shard: Rc::clone(shard),
            txn,
            writes: RefCell::default(),
            dead: Cell::new(false),
            used: Cell::new(false),
        };
        Transaction {
            view,
            txn,
            ended: Cell::new(false),
            side: RefCell::default(),
            staged: RefCell::default(),
            piece_bytes: Cell::new(0),
            size: Cell::default(),
        }
    }

    pub(crate) fn number(&self) -> TxnId {
        self.txn
    }

    pub(crate) fn view(&self) -> &ReadView {
        &self.view
    }

    /// Returns the size of the writes so far.
    pub(crate) fn size(&self) -> Size {
        self.size.get()
    }

    pub(crate) fn set_size(&self, size: Size) {
        self.size.set(size);
    }

    /// Adds the deletion of a locked key to the transaction.
    pub(crate) fn note_deletion(&self, tree: Tree, key: Box<[u8]>) {
        self.unstage((tree.id, &key));
        self.note(tree, key, None);
    }

    /// Returns the value of a key, under a shared lock; `None` if the key has none.
    pub fn get<'a>(&'a self, table: Table, key: &'a [u8]) -> StoreFuture<'a, Option<Vec<u8>>> {
        Box::pin(async move { self.view.get(table.0, key, Mode::Shared).await })
    }

    /// Returns the value of a key that the transaction will change, under an exclusive lock. A later change
    /// then needs no lock upgrade, which could cause a deadlock.
    pub fn get_for_update<'a>(&'a self, table: Table, key: &'a [u8]) -> StoreFuture<'a, Option<Vec<u8>>> {
        Box::pin(async move { self.view.get(table.0, key, Mode::Exclusive).await })
    }

    /// Returns the values of several keys. The leaves that are not in memory are read from the drive in
    /// parallel.
    pub fn get_many<'a>(
        &'a self,
        table: Table,
        keys: &'a [&'a [u8]],
    ) -> StoreFuture<'a, Vec<Option<Vec<u8>>>> {
        Box::pin(async move { get_many(&self.view, table.0, keys).await })
    }

    /// Scans the records of a range. Other transactions can neither insert into the range nor delete from it
    /// before the transaction ends.
    pub fn scan(&self, table: Table, range: Range<'_>, direction: Direction) -> Scan<'_> {
        Scan::new(&self.view, table.0, Span::new(range), direction)
    }

    /// Scans the records that a range of an index refers to.
    pub fn index_scan(&self, index: Index, range: Range<'_>, direction: Direction) -> IndexScan<'_> {
        IndexScan::new(&self.view, index, index_span(index, range), direction)
    }

    /// Does the same for a range of the entries of the index.
    pub(crate) fn index_entries(
        &self,
        index: Index,
        range: Range<'_>,
        direction: Direction,
    ) -> IndexScan<'_> {
        IndexScan::new(&self.view, index, Span::new(range), direction)
    }

    /// Puts a value under a key.
    pub fn put<'a>(&'a self, table: Table, key: &'a [u8], value: &'a [u8]) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.write(table, key.into(), Some(value.into())).await })
    }

    /// Deletes a key, if it exists.
    pub fn delete<'a>(&'a self, table: Table, key: &'a [u8]) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.write(table, key.into(), None).await })
    }

    /// Puts a value under a key; `None` deletes the key.
    pub(crate) async fn write(
        &self,
        table: Table,
        key: Box<[u8]>,
        value: Option<Box<[u8]>>,
    ) -> Result<(), Error> {
        let shard = self.view.shard();
        shard.check_writable()?;
        self.check_key(&key)?;
        let indexed = self.is_indexed(table)?;
        let old = if indexed { self.get_for_update(table, &key).await? } else { None };
        self.view.lock(table.0, &key, Mode::Exclusive).await?;
        // A transaction has few pieces of large values itself. Others are staged.
        let length = value.as_ref().map_or(0, |value| value.len() as u64);
        let is_staged = shard.is_staged(length, self.piece_bytes.get());
        let size = match is_staged {
            true => Size::of_staged(&key),
            false => Size::of(table.0.id, &key, value.as_deref(), shard.page_bytes()),
        };
        let entries = match indexed {
            true => self.checked_entries(table, &key, old.as_deref(), value.as_deref())?,
            false => Vec::new(),
        };
        let size = self.check_size(size, &entries)?;
        let staged = match &value {
            Some(value) if is_staged => Some(shard.stage(value).await?),
            _ => None,
        };
        self.write_entries(entries).await.inspect_err(|_| {
            shard.unstage(staged.map(|place| place.number));
        })?;
        self.unstage((table.0.id, &key));
        match staged {
            Some(place) => drop(self.staged.borrow_mut().insert((table.0.id, key.clone()), place)),
            None if shard.is_large(length) => self.piece_bytes.set(self.piece_bytes.get() + length),
            None => {}
        }
        self.size.set(size);
        self.note(table.0, key, value);
        Ok(())
    }

    /// Returns the size of the transaction with a write of this size and these index entries. Fails if it would be too
    /// large for the log. Writes that replace each other count each.
    fn check_size(&self, write: Size, entries: &[EntryChange]) -> Result<Size, Error> {
        let shard = self.view.shard();
        let entries = entries.iter().map(|(tree, entry, present)| {
            Size::of(tree.id, entry, present.then_some(&[]), shard.page_bytes())
        });
        let size = entries.fold(self.size.get() + write, |size, entry| size + entry);
        shard.check_size(size).map(|()| size)
    }

    /// Gives up the value of a key that the transaction has staged, because another write replaces it.
    fn unstage(&self, (tree, key): (u32, &[u8])) {
        let mut staged = self.staged.borrow_mut();
        if !staged.is_empty() {
            let before = staged.remove(&(tree, Box::from(key)));
            self.view.shard().unstage(before.map(|place| place.number));
        }
    }

    fn check_key(&self, key: &[u8]) -> Result<(), Error> {
        let longest = longest_key(self.view.shard().page_bytes());
        if key.len() > longest {
            return Err(Error::KeyTooLong { bytes: key.len(), longest });
        }
        Ok(())
    }

    /// Whether a table has indexes. Fails if the extraction function of one of them was not given since the
    /// store was opened.
    pub(crate) fn is_indexed(&self, table: Table) -> Result<bool, Error> {
        let catalogue = self.view.shard().state.catalogue();
        let Some(info) = catalogue.table(table) else { return Ok(false) };
        match info.indexes.iter().find(|index| index.extract.is_none()) {
            Some(index) => Err(Error::IndexNotOpen { table: info.name.clone(), index: index.name.clone() }),
            None => Ok(!info.indexes.is_empty()),
        }
    }

    /// Locks all keys of a tree exclusively.
    pub(crate) async fn lock_all(&self, tree: Tree) -> Result<(), Error> {
        let all = Span { low: Vec::new(), high: None };
        self.view.lock_alone(tree, &all).await
    }

    /// Puts the index entries of a record that is in the table already.
    pub(crate) async fn index_record(&self, table: Table, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let entries = self.checked_entries(table, key, None, Some(value))?;
        self.size.set(self.check_size(Size::default(), &entries)?);
        self.write_entries(entries).await
    }

    /// Returns the index entries of a record that change with its value. Fails if one of them is too long.
    fn checked_entries(
        &self,
        table: Table,
        key: &[u8],
        old: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<Vec<EntryChange>, Error> {
        let mut changes = self.index_changes(table, key, old, new)?;
        // An entry that is too long cannot be in the index, so it need not be deleted. This lets a record be
        // deleted that is older than the index.
        changes.retain(|(_, entry, present)| *present || self.check_key(entry).is_ok());
        // Checks all entries before the first is written: if a record is refused, the transaction may go on
        // without it.
        changes.iter().try_for_each(|(_, entry, _)| self.check_key(entry))?;
        Ok(changes)
    }

    /// Locks index entries, and adds their changes to the transaction.
    pub(crate) async fn write_entries(&self, changes: Vec<EntryChange>) -> Result<(), Error> {
        for (tree, entry, present) in changes {
            match self.view.lock(tree, &entry, Mode::Exclusive).await {
                // The index was dropped during the wait for the lock; the table stays.
                Err(Error::NoTable(_)) => continue,
                outcome => outcome?,
            }
            self.note(tree, entry.into(), present.then(Box::default));
        }
        Ok(())
    }

    /// Returns the index entries that change.
    pub(crate) fn index_changes(
        &self,
        table: Table,
        key: &[u8],
        old: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<Vec<EntryChange>, Error> {
        let catalogue = self.view.shard().state.catalogue();
        let mut changes = Vec::new();
        for index in catalogue.table(table).map_or(&[][..], |info| &info.indexes) {
            let Some(extract) = &index.extract else { continue };
            let entries = |value: Option<&[u8]>| -> Result<Vec<Vec<u8>>, Error> {
                let keys = value.map(|value| index_keys(extract, &index.name, key, value)).transpose()?;
                let keys = keys.unwrap_or_default().into_iter();
                Ok(keys.map(|index_key| index.coding.entry(&index_key, key)).collect())
            };
            let (before, after) = (entries(old)?, entries(new)?);
            let gone = before.iter().filter(|entry| !after.contains(entry));
            changes.extend(gone.map(|entry| (index.tree, entry.clone(), false)));
            let come = after.iter().filter(|entry| !before.contains(entry));
            changes.extend(come.map(|entry| (index.tree, entry.clone(), true)));
        }
        Ok(changes)
    }

    /// Adds a write to the transaction. The key must be locked already, or need no lock.
    pub(crate) fn note(&self, tree: Tree, key: Box<[u8]>, value: Option<Box<[u8]>>) {
        if let ReadView::Locked { writes, .. } = &self.view {
            writes.borrow_mut().entry(tree.id).or_default().insert(key, value);
        }
    }

    /// Takes the writes out of the transaction, for its commit.
    pub(super) fn take_writes(&self) -> Vec<Write> {
        let ReadView::Locked { writes, .. } = &self.view else { return Vec::new() };
        let staged = self.staged.borrow();
        let of_tree = |(tree, writes): (u32, BTreeMap<Box<[u8]>, _>)| {
            let staged = &staged;
            writes.into_iter().map(move |(key, value)| {
                let staged = if staged.is_empty() { None } else { staged.get(&(tree, key.clone())).copied() };
                Write { tree, key, value, staged }
            })
        };
        writes.take().into_iter().flat_map(of_tree).collect()
    }

    /// Commits with the default durability of the store.
    pub fn commit(self) -> StoreFuture<'static, ()> {
        Box::pin(async move {
            let durability = self.view.shard().options.durability;
            self.commit_with(durability).await
        })
    }

    /// Commits with `durability`. After an error nothing was changed, with one exception: after
    /// [`Error::Fatal`] the transaction may or may not be committed, and opening the store again decides it.
    ///
    /// Once begun, a commit may complete even if the future is dropped.
    pub fn commit_with(self, durability: Durability) -> StoreFuture<'static, ()> {
        Box::pin(async move {
            self.view.check()?;
            let ReadView::Locked { shard, writes, used, .. } = &self.view else { return Ok(()) };
            if writes.borrow().is_empty() {
                let settled = if used.get() { shard.until_settled().await } else { Ok(()) };
                return settled.inspect(|()| shard.counters.count(|counts| counts.commits += 1));
            }
            let writes = self.take_writes();
            let outcome = shard.commit(self.txn, writes, durability, &self.ended).await;
            outcome.map(drop)
        })
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        // The locks of a transaction that was committed are not released here: its commit releases them when
        // it is applied.
        if !self.ended.get() {
            let shard = self.view.shard();
            drop(self.side.take());
            shard.release_locks(self.txn);
            shard.unstage(self.staged.borrow().values().map(|place| place.number));
            if let ReadView::Locked { writes, .. } = &self.view
                && !writes.borrow().is_empty()
            {
                shard.counters.count(|counts| counts.aborts += 1);
            }
        }
    }
}
