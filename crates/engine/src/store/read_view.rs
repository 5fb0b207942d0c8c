//! What a reader sees: the trees as they are, under locks and with the transaction's own writes over them; or a state of
//! the past, with the old values over them.

use crate::format::large_value::LargeValue;
use crate::format::page::node::leaf;
use crate::format::page::node::{Cell, Node};
use crate::format::tree::Tree;
use crate::memory::locks::{Mode, TxnId};
use crate::memory::versions::{Old, ReaderId};
use crate::shard::Shard;
use crate::shard::tree::{Asked, Seek};
use crate::{Error, Lsn};
use fulgurite_device::Device;
use std::cell::{Cell as Flag, RefCell};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;

/// Writes that nobody else sees yet: trees, their keys, and the values. A tree is there only with a key.
pub type Writes = BTreeMap<u32, BTreeMap<Box<[u8]>, Option<Box<[u8]>>>>;

/// A range of keys: from the first key up to, and without, the second; to the end where there is none.
#[derive(Clone, Debug)]
pub struct Span {
    /// The least key.
    pub low: Vec<u8>,
    /// The first key behind.
    pub high: Option<Vec<u8>>,
}

impl Span {
    /// The same range as two bounds say.
    pub fn new((low, high): (Bound<&[u8]>, Bound<&[u8]>)) -> Span {
        // Nothing lies between a key and the same key with a zero behind it.
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

    /// Whether no key lies in it.
    pub fn is_empty(&self) -> bool {
        self.high.as_ref().is_some_and(|high| *high <= self.low)
    }

    /// Whether a key lies in it.
    pub fn contains(&self, key: &[u8]) -> bool {
        *self.low <= *key && self.high.as_ref().is_none_or(|high| *key < **high)
    }

    /// The range as bounds.
    pub fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let high = self.high.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        (Bound::Included(&self.low), high)
    }
}

/// How somebody reads.
pub enum ReadView<D: Device + 'static> {
    /// Under locks.
    Locked {
        /// The store.
        shard: Rc<Shard<D>>,
        /// The transaction.
        txn: TxnId,
        /// What it has written.
        writes: RefCell<Writes>,
        /// It was given up to end a deadlock.
        dead: Flag<bool>,
        /// It has read or locked something.
        used: Flag<bool>,
    },
    /// As it was.
    Past {
        /// The store.
        shard: Rc<Shard<D>>,
        /// The state.
        lsn: Lsn,
        /// Keeps the old values.
        reader: ReaderId,
    },
}

impl<D: Device + 'static> ReadView<D> {
    /// The newest visible state.
    pub fn now(shard: &Rc<Shard<D>>) -> ReadView<D> {
        shard.divide_memory();
        let lsn = shard.visible_lsn();
        let reader = shard.state.versions_mut().open(lsn);
        ReadView::Past { shard: Rc::clone(shard), lsn, reader }
    }

    pub fn shard(&self) -> &Rc<Shard<D>> {
        match self {
            ReadView::Locked { shard, .. } | ReadView::Past { shard, .. } => shard,
        }
    }

    /// Fails where nothing can be read any more.
    pub fn check(&self) -> Result<(), Error> {
        self.shard().check_open()?;
        match self {
            ReadView::Locked { dead, .. } if dead.get() => Err(Error::Deadlock),
            ReadView::Locked { .. } => Ok(()),
            ReadView::Past { shard, lsn, .. } => shard.state.versions().check(*lsn),
        }
    }

    /// Locks a key, where this view locks.
    pub async fn lock(&self, tree: Tree, key: &[u8], mode: Mode) -> Result<(), Error> {
        self.check()?;
        let ReadView::Locked { shard, txn, dead, used, .. } = self else { return Ok(()) };
        used.set(true);
        let outcome = shard.lock_key(*txn, tree.id, key, mode).await;
        dead.set(dead.get() || outcome == Err(Error::Deadlock));
        outcome
    }

    /// Locks a range for reading, where this view locks. Returns whether that took time.
    pub async fn lock_span(&self, tree: Tree, span: &Span) -> Result<bool, Error> {
        self.lock_range(tree, span, Mode::Shared).await
    }

    /// Locks a range for itself, where this view locks.
    pub async fn lock_alone(&self, tree: Tree, span: &Span) -> Result<(), Error> {
        self.lock_range(tree, span, Mode::Exclusive).await.map(drop)
    }

    async fn lock_range(&self, tree: Tree, span: &Span, mode: Mode) -> Result<bool, Error> {
        self.check()?;
        let ReadView::Locked { shard, txn, dead, used, .. } = self else { return Ok(false) };
        used.set(true);
        let outcome = shard.lock_range(*txn, tree.id, span.bounds(), mode).await;
        dead.set(dead.get() || outcome == Err(Error::Deadlock));
        outcome
    }

    /// The value of a key.
    pub async fn get(&self, tree: Tree, key: &[u8], mode: Mode) -> Result<Option<Vec<u8>>, Error> {
        match self {
            ReadView::Locked { shard, writes, .. } => {
                self.lock(tree, key, mode).await?;
                let own = writes.borrow().get(&tree.id).and_then(|writes| writes.get(key)).cloned();
                match own {
                    Some(value) => Ok(value.map(Vec::from)),
                    None => shard.current(tree, key).await,
                }
            }
            ReadView::Past { shard, lsn, .. } => {
                self.check()?;
                shard.past(tree, key, *lsn).await
            }
        }
    }
}

impl<D: Device + 'static> Drop for ReadView<D> {
    fn drop(&mut self) {
        match self {
            // Locks of a commit under way are released by it: it takes the view's place.
            ReadView::Locked { .. } => {}
            ReadView::Past { shard, reader, .. } => shard.state.versions_mut().close(*reader),
        }
    }
}

/// What is found under a key.
enum Found {
    Value(Option<Vec<u8>>),
    Large(LargeValue),
    /// Memory does not tell: the leaf must be looked at.
    InLeaf,
}

impl<D: Device + 'static> Shard<D> {
    /// The value of a key as it is now.
    pub async fn current(&self, tree: Tree, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.value(tree, key, None).await
    }

    /// The value of a key in the state at `lsn`.
    pub async fn past(&self, tree: Tree, key: &[u8], lsn: Lsn) -> Result<Option<Vec<u8>>, Error> {
        self.value(tree, key, Some(lsn)).await
    }

    /// The value of a key, a large one fetched from where it lies; `None` where there is none.
    async fn value(&self, tree: Tree, key: &[u8], state: Option<Lsn>) -> Result<Option<Vec<u8>>, Error> {
        let mut missing = None;
        loop {
            let found = match self.in_memory(tree, key, state)? {
                (Found::InLeaf, _) => {
                    let (guard, asked) = self.search(tree, Seek::At(key), 0).await?;
                    let was_read = asked != Asked::Nothing;
                    let found = self.in_leaf(leaf(guard.bytes())?, was_read, tree, key, state)?;
                    // What the leaf was read for is in memory by itself now. The nodes above lead to more. Who reads under locks may change
                    // the leaf soon.
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
            // A large value that has gone meanwhile is among the old values now, or another one has come.
            if missing.replace(large) == Some(large) {
                return Err(large.is_gone(tree));
            }
        }
    }

    /// What is found without the leaf, and whether it is the newest value that is asked for.
    #[inline]
    fn in_memory(&self, tree: Tree, key: &[u8], state: Option<Lsn>) -> Result<(Found, bool), Error> {
        if let Some(lsn) = state {
            let versions = self.state.versions();
            versions.check(lsn)?;
            match versions.find(tree.id, key, lsn) {
                Some(Old::Here(old)) => return Ok((Found::Value(Some(old.to_vec())), false)),
                Some(Old::Absent) => return Ok((Found::Value(None), false)),
                Some(Old::Beneath) => return Ok((Found::InLeaf, false)),
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

    /// What is found with the leaf in hand, in one step with what memory has.
    #[inline]
    fn in_leaf(
        &self,
        node: Node<'_>,
        was_read: bool,
        tree: Tree,
        key: &[u8],
        state: Option<Lsn>,
    ) -> Result<Found, Error> {
        let is_newest = match self.in_memory(tree, key, state)? {
            (Found::InLeaf, is_newest) => is_newest,
            (found, _) => return Ok(found),
        };
        match node.search(key).map(|index| node.value(index)) {
            Err(_) => Ok(Found::Value(None)),
            Ok(Cell { bytes, large: false }) => {
                let mut records = self.state.records_mut();
                // Where all pages fit into the pool, a copy of a record saves nothing.
                if is_newest && records.wants(was_read) && self.durable.pool().is_full() {
                    records.keep(tree.id, key, bytes);
                }
                Ok(Found::Value(Some(bytes.to_vec())))
            }
            Ok(Cell { bytes, .. }) => Ok(Found::Large(LargeValue::read(bytes)?)),
        }
    }
}
