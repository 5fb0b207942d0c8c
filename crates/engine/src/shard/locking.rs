//! Waits of transactions for locks.

use crate::Error;
use crate::memory::locks::{Mode, Outcome, TxnId};
use crate::shard::Shard;
use std::future::poll_fn;
use std::ops::Bound;
use std::task::Poll;

impl Shard {
    /// Locks a key for a transaction, and waits for the lock if necessary.
    pub(crate) async fn lock_key(&self, txn: TxnId, tree: u32, key: &[u8], mode: Mode) -> Result<(), Error> {
        let outcome = self.transactions.locks_mut().lock_key(txn, tree, key, mode);
        match outcome {
            Outcome::Granted => Ok(()),
            outcome => self.settle(txn, outcome).await,
        }
    }

    /// Locks a range for a transaction, and waits for the lock if necessary. Returns whether it had to wait.
    pub(crate) async fn lock_range(
        &self,
        txn: TxnId,
        tree: u32,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        mode: Mode,
    ) -> Result<bool, Error> {
        if planted!(self.options, RangesNotLocked) {
            return Ok(false);
        }
        let outcome = self.transactions.locks_mut().lock_range(txn, tree, range, mode);
        if outcome == Outcome::Granted {
            return Ok(false);
        }
        self.settle(txn, outcome).await.map(|()| true)
    }

    async fn settle(&self, txn: TxnId, outcome: Outcome) -> Result<(), Error> {
        if let Outcome::Deadlock { victims } = outcome {
            let is_victim = victims.contains(&txn);
            victims.into_iter().for_each(|victim| self.abort(victim));
            if is_victim {
                return Err(Error::Deadlock);
            }
            // Rolling the victims of the deadlock back may have granted the request already.
            if !self.transactions.locks().is_waiting(txn) {
                return Ok(());
            }
        }
        let wait = self.transactions.begin_wait(txn);
        let waiting = Waiting { shard: self, txn };
        // No other task runs between this check and the first poll below, so the store cannot stop unnoticed
        // in between.
        self.health.check()?;
        self.transactions.tell_of_wait(txn);
        let began = self.handle.now();
        let answer = poll_fn(|context| match wait.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => {
                *wait.waker.borrow_mut() = Some(context.waker().clone());
                Poll::Pending
            }
        })
        .await;
        drop(waiting);
        let waited = self.handle.now() - began;
        self.counters.count(|counts| {
            counts.lock_waits += 1;
            counts.lock_wait_ns += waited.0;
        });
        answer
    }

    /// Aborts a transaction to resolve a deadlock: releases its locks here, and ends its wait.
    pub(crate) fn abort(&self, victim: TxnId) {
        self.counters.count(|counts| counts.deadlocks += 1);
        self.release_locks(victim);
        self.answer(victim, Err(Error::Deadlock));
    }

    fn answer(&self, txn: TxnId, answer: Result<(), Error>) {
        if let Some(wait) = self.transactions.end_wait(txn) {
            wait.answer.set(Some(answer));
            if let Some(waker) = wait.waker.take() {
                waker.wake();
            }
        }
    }

    /// Ends all waits for locks with the error of a stopped store, because the holder of a lock may never
    /// release it.
    pub(crate) fn stop_waiting(&self) {
        let Err(error) = self.health.check() else { return };
        self.transactions.waiting().into_iter().for_each(|txn| self.answer(txn, Err(error.clone())));
    }

    /// Releases the locks of a transaction, and wakes the transactions that get them.
    pub(crate) fn release_locks(&self, txn: TxnId) {
        let mut granted = Vec::new();
        self.transactions.locks_mut().release(txn, &mut granted);
        granted.into_iter().for_each(|txn| self.answer(txn, Ok(())));
        self.transactions.end_turn(txn);
    }
}

/// A transaction that waits for a lock. Dropping the value withdraws the request.
struct Waiting<'a> {
    shard: &'a Shard,
    txn: TxnId,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.shard.transactions.end_wait(self.txn).is_some() {
            let mut granted = Vec::new();
            self.shard.transactions.locks_mut().cancel(self.txn, &mut granted);
            granted.into_iter().for_each(|txn| self.shard.answer(txn, Ok(())));
        }
    }
}
