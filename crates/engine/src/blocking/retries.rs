//! The order in which aborted transactions are repeated.
//!
//! A deadlock aborts the youngest of its transactions. A transaction that is repeated keeps the age of its first
//! attempt, so it becomes the oldest one after a while, which is never aborted. That alone is not enough: if n
//! threads read a key and then write it, each commit aborts the n - 1 others, which begin again together. So an
//! aborted transaction waits for its *turn*. One aborted transaction of a shard has the turn. It passes the turn
//! on when it releases its locks, to the transaction whose first attempt was earliest.
//!
//! A transaction of several shards waits for the turn of the shard in which it was aborted. It passes that turn on when
//! it releases its locks there, and its other locks at the same moment.
//!
//! - A transaction that is never aborted does not touch the queue.
//! - A thread that waits for its turn holds no lock of the store and has no job in the core. The turn is a
//!   guard, which is inside the transaction, so every end of the transaction passes it on.
//! - The wait is bounded ([`LONGEST_WAIT`]), because the holder of the turn may wait for this thread outside of
//!   the store, or be the same thread. A transaction whose wait is over is repeated without the turn.

use super::asking::{Asking, GoesOn};
use super::primitives::{Fair, Primitives};
use crate::Error;
use crate::locks::TxnId;
use fulgurite_base::Nanos;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The longest time that a thread waits for its turn.
const LONGEST_WAIT: Nanos = Nanos(500_000_000);

type Mutex<T> = <Fair as Primitives>::Mutex<T>;
type Bell = <Fair as Primitives>::Bell;

/// The turn of a shard, and the threads that wait for it.
pub(super) struct RetryQueue(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    is_taken: bool,
    /// The waiting threads, by the first attempt of their transactions.
    bells: BTreeMap<TxnId, Arc<Bell>>,
}

impl RetryQueue {
    pub(super) fn new() -> Arc<RetryQueue> {
        Arc::new(RetryQueue(Fair::mutex(Waiting::default())))
    }

    /// Waits for the turn. Returns `None` if the wait takes too long. Fails if `goes_on` returns false.
    fn take(self: &Arc<Self>, first: TxnId, goes_on: Option<&GoesOn>) -> Result<Option<RetryTurn>, Error> {
        let turn = || RetryTurn(Arc::clone(self));
        let bell = Arc::new(Bell::default());
        {
            let mut waiting = Fair::lock(&self.0);
            if !waiting.is_taken {
                waiting.is_taken = true;
                return Ok(Some(turn()));
            }
            waiting.bells.insert(first, Arc::clone(&bell));
        }
        let asking = Asking::new(goes_on, || Nanos::ZERO);
        let at_most = asking.patience().unwrap_or(LONGEST_WAIT);
        let mut left = LONGEST_WAIT;
        while Fair::sleep(&bell, Some(at_most)) {
            left = left.saturating_sub(at_most);
            let goes_on = asking.ask();
            if goes_on && left > Nanos::ZERO {
                continue;
            }
            // A thread that is no longer in the queue was given the turn in the meantime.
            let was_waiting = Fair::lock(&self.0).bells.remove(&first).is_some();
            let turn = (!was_waiting).then(turn);
            return if goes_on { Ok(turn) } else { Err(Error::GivenUp) };
        }
        Ok(Some(turn()))
    }
}

/// The guard of the turn. Dropping it passes the turn on.
pub(super) struct RetryTurn(Arc<RetryQueue>);

impl Drop for RetryTurn {
    fn drop(&mut self) {
        let mut waiting = Fair::lock(&self.0.0);
        match waiting.bells.pop_first() {
            Some((_, bell)) => Fair::ring(&bell),
            None => waiting.is_taken = false,
        }
    }
}

/// An attempt to run a transaction.
pub(super) struct Attempt {
    /// The index of the shard in which the transaction began, or in which it was aborted.
    pub shard: usize,
    /// The number of the first attempt.
    pub first: TxnId,
    /// The turn of the shard, until the transaction has begun there; `None` if it has none.
    pub turn: Option<RetryTurn>,
}

impl Attempt {
    /// Prepares the next attempt, after this one was aborted and has ended. Waits for the turn.
    pub(super) fn again(self, queue: &Arc<RetryQueue>, goes_on: Option<&GoesOn>) -> Result<Attempt, Error> {
        let Attempt { shard, first, turn } = self;
        drop(turn);
        let turn = queue.take(first, goes_on)?;
        Ok(Attempt { shard, first, turn })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    /// The rule: the turn goes to the transaction whose first attempt was earliest, whatever the order in which
    /// they came; and one that no longer wants its turn, or got it, leaves the queue.
    #[test]
    fn the_longest_waiting_transaction_is_next() {
        let queue = RetryQueue::new();
        let turn = queue.take(TxnId(9), None).unwrap();
        let (tell, told) = mpsc::channel();
        thread::scope(|scope| {
            for first in [4, 2, 7, 1] {
                let (own, tell) = (&queue, tell.clone());
                scope.spawn(move || {
                    let turn = own.take(TxnId(first), None).unwrap();
                    tell.send(first).unwrap();
                    drop(turn);
                });
                // The next thread comes after this one.
                while !Fair::lock(&queue.0).bells.contains_key(&TxnId(first)) {
                    thread::yield_now();
                }
            }
            let never = GoesOn::new(|| false);
            assert!(matches!(queue.take(TxnId(3), Some(&never)), Err(Error::GivenUp)));
            drop(turn);
        });
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [1, 2, 4, 7]);
        assert!(!Fair::lock(&queue.0).is_taken);
    }

    /// The rule: a transaction goes on without the turn if the holder does not pass it on, as one that waits for
    /// the other does.
    #[test]
    fn the_wait_for_the_turn_is_bounded() {
        let queue = RetryQueue::new();
        let turn = queue.take(TxnId(1), None).unwrap();
        assert!(queue.take(TxnId(2), None).unwrap().is_none());
        assert!(Fair::lock(&queue.0).bells.is_empty());
        drop(turn);
        assert!(queue.take(TxnId(2), None).unwrap().is_some());
    }
}
