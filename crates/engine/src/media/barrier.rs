//! Shared flushes of the drive.
//!
//! A flush makes durable every write that completed before the flush began. So a task needs a flush that
//! begins after its request. Up to [`AT_ONCE`] flushes are in progress; further requests share the next one.
//! A task that does not need durability at once takes a ticket, and often finds later that another task's
//! flush has covered it. A failed flush stops the store: it is unknown which writes are lost, and a second
//! flush would succeed without them. For the same reason a flush counts only when all flushes that began
//! before it have ended too.

use crate::Error;
use crate::wait::{Health, Signal};
use fulgurite_device::{Device, Handle, Operation};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

/// The most flushes in progress.
const AT_ONCE: usize = 2;

/// Flushes are numbered from 1 in the order in which they begin.
struct State {
    begun: Cell<u64>,
    under_way: RefCell<BTreeSet<u64>>,
    changed: Signal,
}

impl State {
    /// The number of flushes that have ended.
    fn ended(&self) -> u64 {
        self.begun.get() - self.under_way.borrow().len() as u64
    }

    /// The last flush that counts: it and all flushes before it have ended.
    fn counting(&self) -> u64 {
        self.under_way.borrow().first().map_or(self.begun.get(), |first| first - 1)
    }
}

/// A point in time: the number of the first flush that began after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

/// The flushes of one drive.
pub(crate) struct Barrier<D> {
    handle: Handle<D>,
    state: Rc<State>,
    health: Health,
}

impl<D: Device + 'static> Barrier<D> {
    /// `handle` executes the flushes; a failure stops `health`.
    pub(crate) fn new(handle: Handle<D>, health: Health) -> Barrier<D> {
        let state = State { begun: Cell::new(0), under_way: RefCell::default(), changed: Signal::default() };
        health.tell(&state.changed);
        Barrier { handle, state: Rc::new(state), health }
    }

    /// The number of flushes that have ended.
    pub(crate) fn flushes(&self) -> u64 {
        self.state.ended()
    }

    /// A ticket for all writes that completed before this call.
    pub(crate) fn ticket(&self) -> Ticket {
        Ticket(self.state.begun.get() + 1)
    }

    /// Waits until all writes that completed before this call are durable.
    pub(crate) async fn flush(&self) -> Result<(), Error> {
        self.flushed(self.ticket()).await
    }

    /// Waits until the writes of a ticket are durable, and begins a flush if none has covered them.
    pub(crate) async fn flushed(&self, Ticket(needed): Ticket) -> Result<(), Error> {
        loop {
            self.health.check()?;
            if self.state.counting() >= needed {
                return Ok(());
            }
            if self.state.begun.get() < needed && self.state.under_way.borrow().len() < AT_ONCE {
                self.begin();
            }
            let seen = self.state.ended();
            self.state.changed.until(|| (self.state.ended() > seen).then_some(())).await;
        }
    }

    /// Begins a flush. It runs in a task of its own, so that it ends even if all callers are dropped.
    fn begin(&self) {
        let (state, health) = (Rc::clone(&self.state), self.health.clone());
        let number = state.begun.get() + 1;
        state.begun.set(number);
        state.under_way.borrow_mut().insert(number);
        let flush = self.handle.submit(Operation::Flush);
        self.handle.spawn(async move {
            if let Err(error) = flush.await {
                health.stop(format!("a flush failed: {error}"));
            }
            state.under_way.borrow_mut().remove(&number);
            state.changed.notify();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flush counts only when those that began before it have ended too: one of those may have failed for
    /// the writes of both.
    #[test]
    fn flushes_count_in_their_order() {
        let counting = |under_way: &[u64]| {
            let under_way = RefCell::new(under_way.iter().copied().collect());
            let state = State { begun: Cell::new(3), under_way, changed: Signal::default() };
            (state.counting(), state.ended())
        };
        assert_eq!([&[][..], &[3], &[2], &[2, 3]].map(counting), [(3, 3), (2, 2), (1, 2), (1, 1)]);
    }
}
