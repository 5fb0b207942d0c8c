//! Lets snapshots of several shards see a transaction of several shards in all of them or in none.
//!
//! Such a transaction becomes visible in one shard after the other. From before its coordinator appends the record
//! until the end it is *becoming visible*, and no snapshot of several shards is taken. The order is that of
//! `blocking::one_state`, which says why: those who wait come before those who ask later.

use crate::wait::Signal;
use std::cell::Cell;

/// The transactions that become visible, and the snapshots that wait for them.
#[derive(Default)]
pub(super) struct OneState {
    becoming: Cell<u64>,
    /// The number of snapshots that wait.
    waiting: Cell<u64>,
    changed: Signal,
}

impl OneState {
    /// Waits until no snapshot waits. The transaction is becoming visible until the guard is dropped.
    pub(super) async fn become_visible(&self) -> Becoming<'_> {
        self.changed.until(|| (self.waiting.get() == 0).then_some(())).await;
        self.becoming.set(self.becoming.get() + 1);
        Becoming(self)
    }

    /// Waits until no transaction is becoming visible. A snapshot must be taken before the caller waits again.
    pub(super) async fn until_none_becomes(&self) {
        if self.becoming.get() > 0 {
            let _waiting = Waiting::of(self);
            self.changed.until(|| (self.becoming.get() == 0).then_some(())).await;
        }
    }
}

/// A transaction that is becoming visible.
pub(super) struct Becoming<'a>(&'a OneState);

impl Drop for Becoming<'_> {
    fn drop(&mut self) {
        self.0.becoming.set(self.0.becoming.get() - 1);
        self.0.changed.notify();
    }
}

/// A snapshot that waits.
struct Waiting<'a>(&'a OneState);

impl Waiting<'_> {
    fn of(states: &OneState) -> Waiting<'_> {
        states.waiting.set(states.waiting.get() + 1);
        Waiting(states)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.set(self.0.waiting.get() - 1);
        self.0.changed.notify();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    /// The rule: a snapshot comes before a transaction becomes visible or after it, and a stream of such transactions
    /// does not keep it away. One that no longer wants to come keeps nobody away.
    #[test]
    fn a_snapshot_and_a_transaction_take_turns() {
        let mut context = Context::from_waker(Waker::noop());
        let states = OneState::default();
        let Poll::Ready(first) = pin!(states.become_visible()).poll(&mut context) else { panic!() };
        let mut snapshot = pin!(states.until_none_becomes());
        assert!(snapshot.as_mut().poll(&mut context).is_pending());
        let mut next = pin!(states.become_visible());
        assert!(next.as_mut().poll(&mut context).is_pending());
        drop(first);
        assert!(next.as_mut().poll(&mut context).is_pending());
        assert!(snapshot.as_mut().poll(&mut context).is_ready());
        let Poll::Ready(next) = next.as_mut().poll(&mut context) else { panic!() };
        {
            let mut given_up = pin!(states.until_none_becomes());
            assert!(given_up.as_mut().poll(&mut context).is_pending());
            assert!(pin!(states.become_visible()).poll(&mut context).is_pending());
        }
        assert!(pin!(states.become_visible()).poll(&mut context).is_ready());
        drop(next);
        assert!(pin!(states.until_none_becomes()).poll(&mut context).is_ready());
    }
}
