//! The shards of an open store, and what they share.

use super::cycles::is_victim;
use super::one_state::OneState;
use super::retries::RetryQueue;
use crate::memory::locks::{TxnId, WaitsFor};
use crate::{Error, Store};
use rustc_hash::FxHashSet;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A table, in every shard. It belongs to the [`Store`](super::Store) that returned it, and to the clones of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Table(pub(super) u32);

/// An index, in every shard. Like a [`Table`], it belongs to the store that returned it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Index(pub(super) u32);

/// The identifiers of each table or index in each shard, by its number in the handle.
pub(super) struct InShards<T>(RefCell<Vec<Box<[T]>>>);

impl<T: Copy + PartialEq> InShards<T> {
    fn new() -> InShards<T> {
        InShards(RefCell::default())
    }

    /// Returns the number for what has these identifiers.
    pub(super) fn number(&self, each: Vec<T>) -> u32 {
        let mut known = self.0.borrow_mut();
        let found = known.iter().position(|known| **known == *each);
        found.unwrap_or_else(|| {
            known.push(each.into());
            known.len() - 1
        }) as u32
    }

    /// Returns the identifier in a shard. Fails if another store returned the number.
    pub(super) fn get(&self, number: u32, shard: usize) -> Result<T, Error> {
        let known = self.0.borrow();
        known.get(number as usize).map(|each| each[shard]).ok_or(Error::OtherStore)
    }
}

/// The shards of a store.
pub(super) struct Shards {
    pub each: Vec<Store>,
    /// The counter of transactions, which all shards share.
    numbers: Arc<AtomicU64>,
    pub tables: InShards<crate::Table>,
    pub indexes: InShards<crate::Index>,
    pub states: OneState,
    /// The queue of aborted transactions of each shard.
    pub retries: Vec<Rc<RetryQueue>>,
    /// The number of transactions in progress that have several sides.
    across: Cell<u64>,
    /// The number of transactions that were committed in several shards.
    pub commits_across: Cell<u64>,
}

impl Shards {
    /// Joins shards, which must have no transaction in progress.
    pub(super) fn new(each: Vec<Store>) -> Rc<Shards> {
        let numbers = each[0].0.transactions.numbers();
        each[1..].iter().for_each(|shard| shard.0.transactions.share_numbers(Arc::clone(&numbers)));
        let shards = Rc::new(Shards {
            retries: each.iter().map(|_| Rc::default()).collect(),
            each,
            numbers,
            tables: InShards::new(),
            indexes: InShards::new(),
            states: OneState::default(),
            across: Cell::new(0),
            commits_across: Cell::new(0),
        });
        if shards.each.len() > 1 {
            for shard in &shards.each {
                let all = Rc::downgrade(&shards);
                shard.0.transactions.watch_waits(Rc::new(move |txn| {
                    all.upgrade().iter().for_each(|all| all.break_cycles(txn));
                }));
            }
        }
        shards
    }

    /// Returns the number of shards.
    pub(super) fn count(&self) -> usize {
        self.each.len()
    }

    /// Returns a number for work in several shards.
    pub(super) fn draw(&self) -> TxnId {
        TxnId(self.numbers.fetch_add(1, Relaxed))
    }

    /// Whether a transaction waits for itself, through others. Mostly nobody waits for one that begins to wait.
    fn is_in_cycle(&self, txn: TxnId) -> bool {
        let (mut seen, mut left) = (FxHashSet::default(), vec![txn]);
        while let Some(blocker) = left.pop() {
            for shard in &self.each {
                for waiter in shard.0.transactions.locks().waiters_of(blocker) {
                    if waiter == txn {
                        return true;
                    }
                    if seen.insert(waiter) {
                        left.push(waiter);
                    }
                }
            }
        }
        false
    }

    /// Aborts transactions until a transaction that has begun to wait is in no cycle over several shards. Every such
    /// cycle is closed by the beginning of a wait: a transaction that gets a lock does not wait at that moment.
    fn break_cycles(&self, txn: TxnId) {
        // A cycle over several shards has transactions with several sides.
        while self.across.get() > 0 && self.is_in_cycle(txn) {
            let edges = |(number, shard): (usize, &Store)| {
                let edges = shard.0.transactions.locks().edges();
                edges.into_iter().map(move |edge| (number, edge)).collect::<Vec<_>>()
            };
            let edges: Vec<(usize, WaitsFor)> = self.each.iter().enumerate().flat_map(edges).collect();
            let mut waiters = edges.iter().map(|(shard, edge)| (*shard, edge.waiter));
            let Some((shard, victim)) = waiters.find(|(_, waiter)| is_victim(*waiter, &edges)) else {
                return;
            };
            self.each[shard].0.abort(victim);
        }
    }
}

/// A transaction with several sides that is in progress.
pub(super) struct Across(Weak<Shards>);

impl Across {
    pub(super) fn begin(shards: &Rc<Shards>) -> Across {
        shards.across.set(shards.across.get() + 1);
        Across(Rc::downgrade(shards))
    }
}

impl Drop for Across {
    fn drop(&mut self) {
        if let Some(shards) = self.0.upgrade() {
            shards.across.set(shards.across.get() - 1);
        }
    }
}
