//! Shared flushes of the drive.
//!
//! A flush makes durable every write that completed before the flush began. So a task that needs durable
//! writes needs a flush that begins after its request. Up to [`AT_ONCE`] flushes are in progress at a time,
//! and requests that arrive meanwhile share the next flush. A task that does not need durability at once
//! takes a ticket. When it redeems the ticket, another task's flush has often covered its writes. A failed
//! flush stops the store: it is unknown which writes are lost, and a second flush would succeed without them.
//! For the same reason a flush counts only when all flushes that began before it have ended too.

use crate::Error;
use crate::wait::{Health, Signal};
use fulgurite_device::{Handle, Operation};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

/// The largest number of flushes in progress.
const AT_ONCE: usize = 2;

/// The state of the flushes, which are numbered from 1 in the order in which they begin.
struct State {
    begun: Cell<u64>,
    under_way: RefCell<BTreeSet<u64>>,
    changed: Signal,
}

impl State {
    /// Returns the number of flushes that have ended.
    fn ended(&self) -> u64 {
        self.begun.get() - self.under_way.borrow().len() as u64
    }

    /// Returns the number of the last flush that counts: this flush and all flushes before it have ended.
    fn counting(&self) -> u64 {
        self.under_way.borrow().first().map_or(self.begun.get(), |first| first - 1)
    }
}

/// A point in time, expressed as the number of the first flush that begins after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

/// Executes the flushes of one drive.
pub(crate) struct Barrier {
    handle: Handle,
    state: Rc<State>,
    health: Health,
}

impl Barrier {
    /// Creates a barrier whose flushes are executed by `handle`. A failed flush stops `health`.
    pub(crate) fn new(handle: Handle, health: Health) -> Barrier {
        let state = State { begun: Cell::new(0), under_way: RefCell::default(), changed: Signal::default() };
        health.tell(&state.changed);
        Barrier { handle, state: Rc::new(state), health }
    }

    /// Returns the number of flushes that have ended.
    pub(crate) fn flushes(&self) -> u64 {
        self.state.ended()
    }

    /// Returns a ticket for all writes that completed before this call.
    pub(crate) fn ticket(&self) -> Ticket {
        Ticket(self.state.begun.get() + 1)
    }

    /// Waits until all writes that completed before this call are durable.
    pub(crate) async fn flush(&self) -> Result<(), Error> {
        self.flushed(self.ticket()).await
    }

    /// Waits until the writes of a ticket are durable. Begins a flush if none that covers them has begun.
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

    /// Begins a flush. The flush runs in a task of its own, so that it ends even if all callers are dropped.
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

    /// A flush counts only when all flushes that began before it have ended too. One of the earlier flushes
    /// may have failed for writes that both flushes cover.
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
