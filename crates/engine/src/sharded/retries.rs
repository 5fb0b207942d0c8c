//! The order in which aborted transactions are repeated; see `blocking::retries`, which does the same for threads.
//!
//! A repeated transaction keeps the age of its first attempt, and waits for its *turn*: one aborted transaction of a
//! shard runs at a time, the one that began first, until it releases its locks. The wait is bounded, because the holder
//! of the turn may wait for this task outside of the store.

use crate::memory::locks::TxnId;
use crate::wait::Signal;
use fulgurite_base::Nanos;
use fulgurite_device::Handle;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

/// The longest time that a transaction waits for its turn.
const LONGEST_WAIT: Nanos = Nanos(500_000_000);

/// The turn of a shard, and the transactions that wait for it.
#[derive(Default)]
pub(super) struct RetryQueue {
    is_taken: Cell<bool>,
    /// The waiting transactions, by their first attempts.
    waiting: RefCell<BTreeSet<TxnId>>,
    freed: Signal,
}

impl RetryQueue {
    /// Waits for the turn. Returns `None` if the wait takes too long.
    pub(super) async fn take(self: &Rc<Self>, first: TxnId, handle: &Handle) -> Option<RetryTurn> {
        if self.is_taken.get() || !self.waiting.borrow().is_empty() {
            self.waiting.borrow_mut().insert(first);
            let waiting = Waiting { queue: self, first };
            let is_next = || !self.is_taken.get() && self.waiting.borrow().first() == Some(&first);
            let turn = self.freed.until(|| is_next().then(|| self.is_taken.set(true)));
            let came = handle.within(LONGEST_WAIT, turn).await;
            drop(waiting);
            came?;
        }
        self.is_taken.set(true);
        Some(RetryTurn(Rc::clone(self)))
    }
}

/// A transaction that waits for its turn. Dropping the value removes it from the queue.
struct Waiting<'a> {
    queue: &'a RetryQueue,
    first: TxnId,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.queue.waiting.borrow_mut().remove(&self.first);
        self.queue.freed.notify();
    }
}

/// The guard of the turn. Dropping it passes the turn on.
pub(super) struct RetryTurn(Rc<RetryQueue>);

impl Drop for RetryTurn {
    fn drop(&mut self) {
        self.0.is_taken.set(false);
        self.0.freed.notify();
    }
}

/// The attempts to execute one transaction.
#[derive(Default)]
pub struct Attempts {
    /// The number of the first attempt; `None` if it has used no shard yet.
    pub(super) first: Cell<Option<TxnId>>,
    /// The shard in which the last attempt was aborted to resolve a deadlock; `None` if it was not.
    pub(super) aborted_in: Cell<Option<usize>>,
    /// The turn of the next attempt, with its shard.
    pub(super) turn: Cell<Option<(usize, RetryTurn)>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_device::{Executor, MemDevice};

    /// The rule: the turn goes to the transaction whose first attempt was earliest, whatever the order in which they
    /// came. One that no longer wants its turn leaves the queue, and the wait is bounded.
    #[test]
    fn the_longest_waiting_transaction_is_next() {
        let executor = Executor::new(MemDevice::new(8, 512, 4, Nanos(10)));
        let handle: Handle = executor.handle().into();
        let work = async move {
            let (queue, order) = (Rc::new(RetryQueue::default()), Rc::new(RefCell::new(Vec::new())));
            let turn = queue.take(TxnId(9), &handle).await.unwrap();
            for first in [4, 2, 7, 1] {
                let (queue, order, own) = (Rc::clone(&queue), Rc::clone(&order), handle.clone());
                handle.spawn(async move {
                    let turn = queue.take(TxnId(first), &own).await.unwrap();
                    order.borrow_mut().push(first);
                    own.sleep_until(own.now() + Nanos(5)).await;
                    drop(turn);
                });
            }
            assert!(handle.within(Nanos(5), queue.take(TxnId(3), &handle)).await.is_none());
            drop(turn);
            handle.sleep_until(handle.now() + Nanos(100)).await;
            assert_eq!(*order.borrow(), [1, 2, 4, 7]);
            let turn = queue.take(TxnId(5), &handle).await.unwrap();
            assert!(queue.take(TxnId(6), &handle).await.is_none());
            drop(turn);
            assert!(queue.take(TxnId(6), &handle).await.is_some());
        };
        executor.block_on(work).unwrap();
    }
}
