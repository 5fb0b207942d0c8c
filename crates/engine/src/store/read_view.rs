//! Read views. A locking view, of a transaction, reads the newest committed state under locks, with the
//! transaction's own uncommitted writes over it. A view of the past, of a snapshot, reads the trees with the
//! old versions over them.

use crate::Error;
use crate::format::large_value::LargeValue;
use crate::format::page::node::leaf;
use crate::format::page::node::{Cell, Node};
use crate::format::tree::Tree;
use crate::memory::locks::{Mode, TxnId};
use crate::memory::versions::{Old, State};
use crate::shard::Shard;
use crate::shard::tree::{Asked, Seek};
use std::cell::{Cell as Flag, RefCell};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;

/// The uncommitted writes of a transaction: by tree and key, the new value, or `None` for a deletion. A tree
/// without writes is not listed.
pub(crate) type Writes = BTreeMap<u32, BTreeMap<Box<[u8]>, Option<Box<[u8]>>>>;

/// A range of keys, from `low` inclusive to `high` exclusive.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    /// The lower bound, which belongs to the range.
    pub low: Vec<u8>,
    /// The upper bound, which does not belong to the range; `None` if the range is unbounded.
    pub high: Option<Vec<u8>>,
}

impl Span {
    /// Creates the range between two bounds.
    pub(crate) fn new((low, high): (Bound<&[u8]>, Bound<&[u8]>)) -> Span {
        // The successor of a key is the key with a zero byte appended: no other key lies between the two.
        let after = |key: &[u8]| [key, &[0]].concat();
        let low = match low {
            Bound::Included(key) => key.to_vec(),
            Bound::Excluded(key) => after(key),
            Bound::Unbounded => Vec::new(),
        };
        let high = match high {
            Bound::Included(key) => Some(after(key)),
            Bound::Excluded(key) => Some(key.to_vec()),
            Bound::Unbounded => None,
        };
        Span { low, high }
    }

    /// Whether the range is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.high.as_ref().is_some_and(|high| *high <= self.low)
    }

    /// Whether the range contains a key.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        *self.low <= *key && self.high.as_ref().is_none_or(|high| *key < **high)
    }

    /// Returns the range as a pair of bounds.
    pub(crate) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let high = self.high.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        (Bound::Included(&self.low), high)
    }
}

/// A state of the store that can be read.
pub(crate) enum ReadView {
    /// Reads the newest committed state under locks, for a transaction.
    Locked {
        /// The store that is read.
        shard: Rc<Shard>,
        /// The number of the transaction.
        txn: TxnId,
        /// The uncommitted writes of the transaction.
        writes: RefCell<Writes>,
        /// Whether the transaction was aborted to resolve a deadlock.
        dead: Flag<bool>,
        /// Whether the transaction has read or locked anything.
        used: Flag<bool>,
    },
    /// Reads the state at one LSN without locks, for a snapshot.
    Past {
        /// The store that is read.
        shard: Rc<Shard>,
        /// The state, whose reader keeps the old versions that the view needs.
        state: State,
    },
}

impl ReadView {
    /// Creates a view of the newest visible state.
    pub(crate) fn now(shard: &Rc<Shard>) -> ReadView {
        shard.divide_memory();
        let lsn = shard.visible_lsn();
        let reader = shard.state.versions_mut().open(lsn);
        ReadView::Past { shard: Rc::clone(shard), state: State { lsn, reader } }
    }

    pub(crate) fn shard(&self) -> &Rc<Shard> {
        match self {
            ReadView::Locked { shard, .. } | ReadView::Past { shard, .. } => shard,
        }
    }

    /// Fails if nothing can be read through the view any more.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.shard().check_open()?;
        match self {
            ReadView::Locked { dead, .. } if dead.get() => Err(Error::Deadlock),
            ReadView::Locked { .. } => Ok(()),
            ReadView::Past { shard, state } => shard.state.versions().check(state.lsn),
        }
    }

    /// Fails with [`Error::NoTable`] if the view does not see a tree because it was dropped. A transaction sees a
    /// tree on which it has a lock, because a drop waits for the lock.
    #[inline]
    pub(crate) fn check_tree(&self, tree: Tree) -> Result<(), Error> {
        let (shard, reader) = match self {
            ReadView::Locked { shard, .. } => (shard, None),
            ReadView::Past { shard, state } => (shard, Some(state.reader)),
        };
        shard.state.catalogue().check_tree(tree.id, reader)
    }

    /// Locks a key, if this is a locking view.
    pub(crate) async fn lock(&self, tree: Tree, key: &[u8], mode: Mode) -> Result<(), Error> {
        self.check()?;
        let ReadView::Locked { shard, txn, dead, used, .. } = self else { return Ok(()) };
        self.check_tree(tree)?;
        used.set(true);
        let outcome = shard.lock_key(*txn, tree.id, key, mode).await;
        dead.set(dead.get() || outcome == Err(Error::Deadlock));
        // The table may have been dropped during the wait.
        outcome.and_then(|()| self.check_tree(tree))
    }

    /// Locks a range for reading, if this is a locking view. Returns whether it had to wait.
    pub(crate) async fn lock_span(&self, tree: Tree, span: &Span) -> Result<bool, Error> {
        self.lock_range(tree, span, Mode::Shared).await
    }

    /// Locks a range exclusively, if this is a locking view.
    pub(crate) async fn lock_alone(&self, tree: Tree, span: &Span) -> Result<(), Error> {
        self.lock_range(tree, span, Mode::Exclusive).await.map(drop)
    }

    async fn lock_range(&self, tree: Tree, span: &Span, mode: Mode) -> Result<bool, Error> {
        self.check()?;
        let ReadView::Locked { shard, txn, dead, used, .. } = self else { return Ok(false) };
        self.check_tree(tree)?;
        used.set(true);
        let outcome = shard.lock_range(*txn, tree.id, span.bounds(), mode).await;
        dead.set(dead.get() || outcome == Err(Error::Deadlock));
        outcome.and_then(|has_waited| self.check_tree(tree).map(|()| has_waited))
    }

    /// Returns the value of a key; `None` if the key has none. A locking view locks the key in `mode` first.
    pub(crate) async fn get(&self, tree: Tree, key: &[u8], mode: Mode) -> Result<Option<Vec<u8>>, Error> {
        match self {
            ReadView::Locked { shard, writes, .. } => {
                self.lock(tree, key, mode).await?;
                let own = writes.borrow().get(&tree.id).and_then(|writes| writes.get(key)).cloned();
                match own {
                    Some(value) => Ok(value.map(Vec::from)),
                    None => shard.current(tree, key).await,
                }
            }
            ReadView::Past { shard, state } => {
                self.check()?;
                self.check_tree(tree)?;
                shard.past(tree, key, *state).await
            }
        }
    }
}

impl Drop for ReadView {
    fn drop(&mut self) {
        match self {
            // The locks of a transaction are not released here, because its commit may still be in progress
            // and releases them itself.
            ReadView::Locked { .. } => {}
            ReadView::Past { shard, state } => {
                shard.state.versions_mut().close(state.reader);
                // The snapshot may have been the last to read a dropped table.
                shard.free_dropped_later();
            }
        }
    }
}

/// The outcome of a lookup.
enum Found {
    Value(Option<Vec<u8>>),
    Large(LargeValue),
    /// The value is not in memory: the leaf must be read.
    InLeaf,
}

impl Shard {
    /// Returns the newest value of a key; `None` if the key has none.
    pub(crate) async fn current(&self, tree: Tree, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.value(tree, key, None).await
    }

    /// Returns the value of a key in a state; `None` if the key has none.
    pub(crate) async fn past(&self, tree: Tree, key: &[u8], state: State) -> Result<Option<Vec<u8>>, Error> {
        self.value(tree, key, Some(state)).await
    }

    /// Returns the value of a key; `None` if the key has none. A large value is read from its pieces.
    async fn value(&self, tree: Tree, key: &[u8], state: Option<State>) -> Result<Option<Vec<u8>>, Error> {
        let mut missing = None;
        loop {
            let found = match self.in_memory(tree, key, state)? {
                (Found::InLeaf, _) => {
                    let (guard, asked) = self.search(tree, Seek::At(key), 0).await?;
                    let was_read = asked != Asked::Nothing;
                    let found = self.in_leaf(leaf(guard.bytes())?, was_read, tree, key, state)?;
                    // The record cache has the record now for which the leaf was read. So the pool may evict
                    // the leaf before the nodes above it, which lead to other leaves. This is for snapshots
                    // only: a transaction may change the leaf soon.
                    let is_snapshot = state.is_some();
                    if is_snapshot
                        && asked == Asked::Node
                        && self.state.records().peek(tree.id, key).is_some()
                    {
                        guard.leaves_next();
                    }
                    found
                }
                (found, _) => found,
            };
            let large = match found {
                Found::Value(value) => return Ok(value),
                Found::InLeaf => continue,
                Found::Large(place) => place,
            };
            if let Some(value) = self.read_large(large).await? {
                return Ok(Some(value));
            }
            // The large value was replaced during the read, so the search is repeated: the value is among the
            // old versions now, or the key has a newer one. The same reference a second time means that
            // pieces are missing.
            if missing.replace(large) == Some(large) {
                return Err(large.is_gone(tree));
            }
        }
    }

    /// Looks up a key without its leaf. Also returns whether the view sees the newest value of the key.
    #[inline]
    fn in_memory(&self, tree: Tree, key: &[u8], state: Option<State>) -> Result<(Found, bool), Error> {
        if let Some(state) = state {
            let versions = self.state.versions();
            versions.check(state.lsn)?;
            match versions.find(tree.id, key, state) {
                Some(Old::Here(old)) => return Ok((Found::Value(Some(old.to_vec())), false)),
                Some(Old::Absent) => return Ok((Found::Value(None), false)),
                Some(Old::InLeaf) => return Ok((Found::InLeaf, false)),
                None => {}
            }
        }
        let mut records = self.state.records_mut();
        let found = match records.get(tree.id, key) {
            Some(value) => Found::Value(value.map(<[u8]>::to_vec)),
            None => Found::InLeaf,
        };
        Ok((found, true))
    }

    /// Looks up a key in memory again and then in its leaf, without a wait in between.
    #[inline]
    fn in_leaf(
        &self,
        node: Node<'_>,
        was_read: bool,
        tree: Tree,
        key: &[u8],
        state: Option<State>,
    ) -> Result<Found, Error> {
        let is_newest = match self.in_memory(tree, key, state)? {
            (Found::InLeaf, is_newest) => is_newest,
            (found, _) => return Ok(found),
        };
        match node.search(key).map(|index| node.value(index)) {
            Err(_) => Ok(Found::Value(None)),
            Ok(Cell { bytes, large: false }) => {
                let mut records = self.state.records_mut();
                // The record is cached only if the pool is full. If all pages fit into the pool, a cached
                // record saves no read.
                if is_newest && records.wants(was_read) && self.durable.pool().is_full() {
                    records.keep(tree.id, key, bytes);
                }
                Ok(Found::Value(Some(bytes.to_vec())))
            }
            Ok(Cell { bytes, .. }) => Ok(Found::Large(LargeValue::read(bytes)?)),
        }
    }
}
