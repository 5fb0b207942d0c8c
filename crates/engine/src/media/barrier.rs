//! Flushes of the drive that many tasks share.
//!
//! A flush makes durable what had completed before it began. So a task needs a flush that begins after it asked. A few are
//! under way at once; all tasks that ask while there are so many share the next. Who need not be durable at once takes a
//! ticket, and often finds that others have flushed meanwhile. A failed flush stops the store: which writes it lost is unknown,
//! and a second flush would succeed without them. So a flush counts when those that began before it have ended too.

use crate::Error;
use crate::wait::{Health, Signal};
use fulgurite_device::{Device, Handle, Operation};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Flushes that are under way at once at most.
const AT_ONCE: usize = 2;

/// Flushes have numbers, from 1 on, in the order in which they begin.
struct State {
    begun: Cell<u64>,
    under_way: RefCell<BTreeSet<u64>>,
    changed: Signal,
}

impl State {
    /// Flushes that have ended.
    fn ended(&self) -> u64 {
        self.begun.get() - self.under_way.borrow().len() as u64
    }

    /// The last flush that has ended together with all before it.
    fn counting(&self) -> u64 {
        self.under_way.borrow().first().map_or(self.begun.get(), |first| first - 1)
    }
}

/// What had completed at some point in time: the number of the first flush that began later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u64);

/// The flushes of one drive.
pub struct Barrier<D> {
    handle: Handle<D>,
    state: Rc<State>,
    health: Health,
}

impl<D: Device + 'static> Barrier<D> {
    /// Flushes through `handle`; a failure stops `health`.
    pub fn new(handle: Handle<D>, health: Health) -> Barrier<D> {
        let state = State { begun: Cell::new(0), under_way: RefCell::default(), changed: Signal::default() };
        health.tell(&state.changed);
        Barrier { handle, state: Rc::new(state), health }
    }

    /// Flushes that have ended.
    pub fn flushes(&self) -> u64 {
        self.state.ended()
    }

    /// A ticket for what has completed before this call.
    pub fn ticket(&self) -> Ticket {
        Ticket(self.state.begun.get() + 1)
    }

    /// Waits until everything that has completed before this call is durable.
    pub async fn flush(&self) -> Result<(), Error> {
        self.flushed(self.ticket()).await
    }

    /// Waits until what a ticket stands for is durable; flushes where nobody has since.
    pub async fn flushed(&self, Ticket(needed): Ticket) -> Result<(), Error> {
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

    /// Begins a flush. A task of its own waits for it, so that nobody who gives up can leave it half done.
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

    /// The rule: a flush counts when those that began before it have ended too. One of them may have lost what both were for.
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
