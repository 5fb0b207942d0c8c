//! Transactions in progress: their numbers, their locks, the order in which their commits become visible, and the
//! decisions about those of several shards.

use crate::memory::commits::Commits;
use crate::memory::decisions::Decisions;
use crate::memory::locks::{Locks, TxnId};
use crate::wait::Signal;
use crate::{Error, Lsn};
use rustc_hash::FxHashMap;
use std::any::Any;
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Waker;

/// A waiting request for a lock.
#[derive(Default)]
pub(crate) struct LockWait {
    /// The outcome: granted, or an error if the transaction was aborted to resolve a deadlock; `None` while
    /// it waits.
    pub answer: Cell<Option<Result<(), Error>>>,
    /// The waker of the task that waits.
    pub waker: RefCell<Option<Waker>>,
}

/// A function that is told of each transaction that begins to wait for a lock.
pub(crate) type WaitWatch = Rc<dyn Fn(TxnId)>;

/// The transactions in progress of a store.
pub(crate) struct Transactions {
    commits: RefCell<Commits>,
    /// Notified when more commits become visible, and when the store stops.
    visible: Signal,
    locks: RefCell<Locks>,
    lock_waits: RefCell<FxHashMap<TxnId, Rc<LockWait>>>,
    /// Told of each wait that begins; `None` if nobody looks for deadlocks over several shards.
    wait_watch: RefCell<Option<WaitWatch>>,
    decisions: RefCell<Decisions>,
    /// The next number of a transaction. The shards of a store have one counter, so that a transaction has the same
    /// number in each of its shards, and numbers tell which of two is older.
    next_id: RefCell<Arc<AtomicU64>>,
    /// The transaction that has the turn among the aborted ones, and the guard of the turn (`blocking::retries`).
    turn: RefCell<Option<(TxnId, Box<dyn Any>)>>,
    closed: Cell<bool>,
}

impl Transactions {
    /// Creates the state without transactions. Everything up to `visible_lsn` is visible.
    pub(crate) fn new(visible: Signal, visible_lsn: Lsn, decisions: Decisions) -> Transactions {
        Transactions {
            commits: RefCell::new(Commits::new(visible_lsn)),
            visible,
            locks: RefCell::new(Locks::new()),
            lock_waits: RefCell::default(),
            wait_watch: RefCell::default(),
            decisions: RefCell::new(decisions),
            next_id: RefCell::new(Arc::new(AtomicU64::new(1))),
            turn: RefCell::default(),
            closed: Cell::new(false),
        }
    }

    /// Returns the number for a new transaction.
    pub(crate) fn next_id(&self) -> TxnId {
        TxnId(self.next_id.borrow().fetch_add(1, Relaxed))
    }

    /// Returns the counter of transactions.
    pub(crate) fn numbers(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.next_id.borrow())
    }

    /// Takes the numbers of transactions from a counter that other shards use too. No transaction may be in progress.
    pub(crate) fn share_numbers(&self, numbers: Arc<AtomicU64>) {
        numbers.fetch_max(self.next_id.borrow().load(Relaxed), Relaxed);
        self.next_id.replace(numbers);
    }

    /// Borrows the decisions about transactions of several shards.
    pub(crate) fn decisions(&self) -> Ref<'_, Decisions> {
        self.decisions.borrow()
    }

    /// Borrows the decisions, to change them.
    pub(crate) fn decisions_mut(&self) -> RefMut<'_, Decisions> {
        self.decisions.borrow_mut()
    }

    /// Gives a new transaction the age of `first`, and holds `turn` until it ends.
    pub(crate) fn begin_again(&self, txn: TxnId, first: TxnId, turn: Option<Box<dyn Any>>) {
        self.locks_mut().begin_again(txn, first);
        if let Some(turn) = turn {
            self.turn.replace(Some((txn, turn)));
        }
    }

    /// Passes on the turn, if the transaction has it.
    pub(crate) fn end_turn(&self, txn: TxnId) {
        // The guard is taken out of the cell first, because dropping it runs code of its owner.
        let turn = self.turn.borrow_mut().take_if(|(of, _)| *of == txn);
        drop(turn);
    }

    /// Borrows the commits, which are in log order.
    pub(crate) fn commits(&self) -> Ref<'_, Commits> {
        self.commits.borrow()
    }

    /// Borrows the commits, to change them.
    pub(crate) fn commits_mut(&self) -> RefMut<'_, Commits> {
        self.commits.borrow_mut()
    }

    /// Wakes the tasks that wait for commits to become visible.
    pub(crate) fn notify_visible(&self) {
        self.visible.notify();
    }

    /// Waits until `ready` returns `Some`. It is called again whenever more commits are visible, and when the
    /// store stops.
    pub(crate) async fn until_visible<T>(&self, ready: impl FnMut() -> Option<T>) -> T {
        self.visible.until(ready).await
    }

    /// Borrows the lock table.
    pub(crate) fn locks(&self) -> Ref<'_, Locks> {
        self.locks.borrow()
    }

    /// Borrows the lock table, to change it.
    pub(crate) fn locks_mut(&self) -> RefMut<'_, Locks> {
        self.locks.borrow_mut()
    }

    /// Registers that a transaction waits for a lock.
    pub(crate) fn begin_wait(&self, txn: TxnId) -> Rc<LockWait> {
        let wait = Rc::new(LockWait::default());
        self.lock_waits.borrow_mut().insert(txn, Rc::clone(&wait));
        wait
    }

    /// Lets `watch` be told of each wait that begins. It may abort transactions.
    pub(crate) fn watch_waits(&self, watch: WaitWatch) {
        self.wait_watch.replace(Some(watch));
    }

    /// Tells of a wait that has begun.
    pub(crate) fn tell_of_wait(&self, txn: TxnId) {
        let watch = self.wait_watch.borrow().clone();
        if let Some(watch) = watch {
            watch(txn);
        }
    }

    /// Ends the wait of a transaction; returns `None` if it does not wait.
    pub(crate) fn end_wait(&self, txn: TxnId) -> Option<Rc<LockWait>> {
        self.lock_waits.borrow_mut().remove(&txn)
    }

    /// Returns the transactions that wait for locks, in the order of their numbers, so that simulations are
    /// reproducible.
    pub(crate) fn waiting(&self) -> Vec<TxnId> {
        let mut waiting: Vec<TxnId> = self.lock_waits.borrow().keys().copied().collect();
        waiting.sort_unstable();
        waiting
    }

    /// Refuses all further requests of transactions.
    pub(crate) fn close(&self) {
        self.closed.set(true);
    }

    /// Whether the store was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.get()
    }
}
