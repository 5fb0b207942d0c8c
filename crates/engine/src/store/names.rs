//! Names of tables and indexes: creates their trees, renames them, and drops them.
//!
//! Each change is one log record, made while the task has the turn of names. So a crash leaves the names as they
//! were before or after it, and the operations on a name are applied in the order of the log.
//!
//! A drop first locks all keys of the table and of its indexes. So it waits for the transactions that use them, and
//! those that come later get [`Error::NoTable`]. Then it is made, and it is durable before the locks are released.
//! The pages are freed behind it in parts (see [`crate::shard::dropped`]).

use crate::format::log_record::{Delta, Op};
use crate::format::page::node::{NodeMut, longest_key};
use crate::format::tree::{CATALOGUE, Tree};
use crate::memory::catalogue::{self, Extract, Index, Named, Own, SHARDS, Table, refuse_own};
use crate::memory::locks::TxnId;
use crate::wait::to_its_end;
use crate::{Error, Store, StoreFuture, Transaction};

/// The kind of thing that a name denotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Table,
    Index,
}

/// A table or an index with all its keys locked, so that it can be dropped.
pub(crate) struct Locked {
    /// The trees of the table and of its indexes, or of the index.
    trees: Vec<Tree>,
    /// The transaction that has the locks.
    _lock: Transaction,
}

/// Returns an operation on an entry of the catalogue.
fn op(name: &[u8], value: Option<Vec<u8>>) -> Op {
    Op { tree: CATALOGUE, key: name.into(), value: value.map(Box::from), large: false }
}

impl Store {
    /// Returns the indexes of a table with their names, in the order of the names.
    pub fn indexes(&self, table: Table) -> StoreFuture<'_, Vec<(String, Index)>> {
        Box::pin(async move {
            self.0.state.catalogue().check_tree(table.0.id, None)?;
            Ok(self.0.state.catalogue().indexes(table))
        })
    }

    /// Drops a table and its indexes. It is durable when it returns, and the names can be used again. Fails with
    /// [`Error::NoTable`] if there is no such table.
    ///
    /// It waits for the transactions that use the table. Later ones get [`Error::NoTable`] for its handles. Snapshots
    /// that are older than the drop go on reading the table, and its pages are freed when the last of them has ended.
    /// Without such snapshots the pages are free when it returns, unless the drive failed. They are freed in parts,
    /// so others go on meanwhile. After a crash, or if the call is dropped, the next opening goes on with it.
    pub fn drop_table<'a>(&'a self, name: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(self.drop_named(name, Kind::Table))
    }

    /// Drops an index like [`Store::drop_table`] does. Its table stays.
    pub fn drop_index<'a>(&'a self, name: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(self.drop_named(name, Kind::Index))
    }

    pub(crate) async fn drop_named(&self, name: &str, kind: Kind) -> Result<(), Error> {
        loop {
            let locked = self.lock_for_drop(name, kind, None).await?;
            if self.drop_locked(name, kind, locked).await? {
                return self.0.free_dropped().await;
            }
        }
    }

    /// Gives a table another name. It is durable when it returns. Handles of the table and transactions that use it go
    /// on. Fails with [`Error::NoTable`] if there is no such table, and if the new name is taken.
    pub fn rename_table<'a>(&'a self, from: &'a str, to: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(self.rename_named(from, to, Kind::Table))
    }

    /// Gives an index another name, like [`Store::rename_table`]. Its function stays.
    pub fn rename_index<'a>(&'a self, from: &'a str, to: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(self.rename_named(from, to, Kind::Index))
    }

    /// Fails if a table or an index cannot get another name.
    pub(crate) fn check_rename(&self, from: &str, to: &str, kind: Kind) -> Result<(), Error> {
        self.0.check_open()?;
        self.0.check_writable()?;
        refuse_own(from)?;
        self.check_name(to)?;
        self.known(from, kind)?;
        if from != to && self.named(to).is_some() {
            let accepted = "accepted: a name that no table or index has";
            return Err(Error::Options(format!("the name `{to}` is taken; {accepted}")));
        }
        Ok(())
    }

    pub(crate) async fn rename_named(&self, from: &str, to: &str, kind: Kind) -> Result<(), Error> {
        self.check_rename(from, to, kind)?;
        let (store, from, to) = (self.clone(), from.to_owned(), to.to_owned());
        to_its_end(self.handle(), async move {
            let shard = &store.0;
            let _room = shard.room_when_free(shard.change_bytes()).await?;
            let _turn = shard.jobs.names_turn().await;
            store.check_rename(&from, &to, kind)?;
            let named = store.known(&from, kind)?;
            if from == to {
                return Ok(());
            }
            let ops = [op(from.as_bytes(), None), op(to.as_bytes(), Some(catalogue::encode(named)))];
            let at = shard.append_own(&ops, true);
            shard.state.catalogue_mut().rename(&from, &to);
            shard.apply_own(&ops, at).await?;
            shard.settle_own(at.1).await
        })
        .await
    }

    /// Locks all keys of a table and its indexes, or of an index, for a drop. `txn` is the number of the drop if it
    /// locks in several shards; then it is older than every transaction.
    pub(crate) async fn lock_for_drop(
        &self,
        name: &str,
        kind: Kind,
        txn: Option<TxnId>,
    ) -> Result<Locked, Error> {
        self.0.check_open()?;
        self.0.check_writable()?;
        refuse_own(name)?;
        let mut first: Option<TxnId> = None;
        loop {
            let trees = self.trees_of(name, kind)?;
            let lock = match (txn, first) {
                (Some(txn), _) => self.begin_side(txn, TxnId::default(), None),
                (None, None) => self.begin(),
                (None, Some(first)) => self.begin_again(first, None),
            };
            first.get_or_insert(lock.number());
            let mut outcome = Ok(());
            for tree in &trees {
                outcome = lock.lock_all(*tree).await;
                if outcome.is_err() {
                    break;
                }
            }
            match outcome {
                Ok(()) => return Ok(Locked { trees, _lock: lock }),
                // Another task has dropped the tree during the wait. The name may denote another one now.
                Err(Error::Deadlock | Error::NoTable(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Drops a table or an index that was locked. Returns false if the name denotes something else by now, or if the
    /// table has got another index.
    pub(crate) async fn drop_locked(&self, name: &str, kind: Kind, locked: Locked) -> Result<bool, Error> {
        let (store, name) = (self.clone(), name.to_owned());
        to_its_end(self.handle(), async move {
            let shard = &store.0;
            // The entry of each tree goes and another comes.
            let each = 2 * (longest_key(shard.page_bytes()) as u64 + 64);
            let bytes = shard.change_bytes() + locked.trees.len() as u64 * each;
            let _room = shard.room_when_free(bytes).await?;
            let _turn = shard.jobs.names_turn().await;
            shard.check_open()?;
            if store.trees_of(&name, kind).ok().as_ref() != Some(&locked.trees) {
                return Ok(false);
            }
            let names: Vec<String> =
                locked.trees.iter().map(|tree| shard.state.catalogue().name_of(tree.id)).collect();
            let highest = Own::Highest(shard.state.catalogue().next() - 1).entry();
            let mut ops = vec![op(&highest.0, Some(highest.1))];
            for (at, (name, tree)) in std::iter::zip(&names, &locked.trees).enumerate() {
                // An index has no large values.
                let is_bare = kind == Kind::Index || at > 0;
                let dropped = Own::Dropped { tree: *tree, is_bare }.entry();
                ops.extend([op(name.as_bytes(), None), op(&dropped.0, Some(dropped.1))]);
            }
            let at = shard.append_own(&ops, true);
            let before = shard.state.versions().newest_reader();
            names.iter().for_each(|name| shard.state.catalogue_mut().drop_name(name, before));
            shard.apply_own(&ops, at).await?;
            shard.settle_own(at.1).await?;
            Ok(true)
        })
        .await
    }

    /// Frees the pages of dropped tables that nobody reads.
    pub(crate) async fn free_dropped(&self) -> Result<(), Error> {
        self.0.free_dropped().await
    }

    pub(super) fn named(&self, name: &str) -> Option<Named> {
        self.0.state.catalogue().get(name)
    }

    /// Returns the table or index with this name. Fails if the name denotes nothing, or the other kind.
    fn known(&self, name: &str, kind: Kind) -> Result<Named, Error> {
        match (self.named(name), kind) {
            (None, _) => Err(Error::NoTable(name.to_owned())),
            (Some(Named::Index(_)), Kind::Table) => {
                Err(Error::Options(format!("`{name}` is an index, not a table")))
            }
            (Some(Named::Table(_)), Kind::Index) => {
                Err(Error::Options(format!("`{name}` is a table, not an index")))
            }
            (Some(named), _) => Ok(named),
        }
    }

    /// Returns the tree of an index, or the trees of a table and its indexes.
    fn trees_of(&self, name: &str, kind: Kind) -> Result<Vec<Tree>, Error> {
        Ok(match self.known(name, kind)? {
            Named::Index(index) => vec![index.tree],
            Named::Table(table) => {
                let indexes = self.0.state.catalogue().indexes(table);
                std::iter::once(table.0).chain(indexes.into_iter().map(|(_, index)| index.tree)).collect()
            }
        })
    }

    /// Marks an index as complete in the catalogue.
    pub(super) async fn note_complete(&self, index: Index) -> Result<(), Error> {
        let store = self.clone();
        to_its_end(self.handle(), async move {
            let shard = &store.0;
            let _room = shard.room_when_free(shard.change_bytes()).await?;
            let _turn = shard.jobs.names_turn().await;
            shard.check_open()?;
            // It may have been dropped or renamed meanwhile.
            shard.state.catalogue().check_tree(index.tree.id, None)?;
            let name = shard.state.catalogue().name_of(index.tree.id);
            let value = catalogue::encode(Named::Index(index));
            let ops = [op(name.as_bytes(), Some(value.clone()))];
            let at = shard.append_own(&ops, true);
            shard.state.catalogue_mut().add(name.as_bytes(), &value)?;
            shard.apply_own(&ops, at).await?;
            shard.settle_own(at.1).await
        })
        .await
    }

    /// Refuses a name that no table or index can have.
    fn check_name(&self, name: &str) -> Result<(), Error> {
        refuse_own(name)?;
        let longest = longest_key(self.0.page_bytes());
        if name.is_empty() || name.len() > longest {
            return Err(Error::Options(format!("a name has 1 to {longest} bytes, not {}", name.len())));
        }
        Ok(())
    }

    /// Creates a tree, unless its name is refused. `extract` is the function of an index.
    pub(super) async fn create_tree(
        &self,
        name: &str,
        named: impl FnOnce(Tree) -> Named + 'static,
        extract: Option<Extract>,
    ) -> Result<Named, Error> {
        self.0.check_open()?;
        self.0.check_writable()?;
        if name != SHARDS {
            self.check_name(name)?;
        }
        let (store, name) = (self.clone(), name.to_owned());
        // Runs to completion even if the caller gives up: a logged operation must be applied.
        to_its_end(self.handle(), async move { store.add_tree(&name, named, extract).await }).await
    }

    /// Creates a tree. One log record contains its root page and its record in the catalogue.
    async fn add_tree(
        &self,
        name: &str,
        named: impl FnOnce(Tree) -> Named,
        extract: Option<Extract>,
    ) -> Result<Named, Error> {
        let shard = &self.0;
        let _room = shard.room_when_free(shard.change_bytes()).await?;
        let _names = shard.jobs.names_turn().await;
        if let Some(named) = self.named(name) {
            // Another task has created the tree during the wait.
            return Ok(named);
        }
        let root = shard.pick().await?;
        let turn = shard.jobs.structure_turn().await;
        let tree = Tree { id: shard.state.catalogue().next(), root };
        let named = named(tree);
        if let Named::Index(index) = named
            && let Err(error) = shard.state.catalogue().check_tree(index.table.0.id, None)
        {
            shard.state.space().put_back(root);
            return Err(error);
        }
        let (map, index) = shard.state.space().place(root);
        let held = shard.hold(&[map], &[root]).await.inspect_err(|_| shard.state.space().put_back(root))?;
        let mut bytes = vec![0; shard.page_bytes() as usize];
        NodeMut::init(&mut bytes, root, tree.id, 0, (b"", None));
        let value = catalogue::encode(named);
        let deltas = vec![Delta::image(&bytes), Delta::Map { page: map, from: index, count: 1, used: true }];
        let ops = [op(name.as_bytes(), Some(value.clone()))];
        let at = shard.restructure(held, deltas, ops.to_vec())?;
        shard.transactions.commits_mut().append(at.0, at.1, true);
        shard.state.catalogue_mut().add(name.as_bytes(), &value)?;
        // Writers of the table may run at the next wait, and an index without its function would refuse them.
        if let (Named::Index(index), Some(extract)) = (named, extract) {
            shard.state.catalogue_mut().set_extract(index, extract);
        }
        drop(turn);
        shard.apply_own(&ops, at).await?;
        shard.settle_own(at.1).await?;
        Ok(named)
    }
}
