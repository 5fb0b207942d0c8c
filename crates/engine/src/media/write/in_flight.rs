//! Tracks the writes in progress.

use crate::wait::{Health, Signal};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// The writes in progress, by their numbers.
pub(super) struct InFlight {
    numbers: RefCell<BTreeSet<u64>>,
    begun: Cell<u64>,
    ended: Signal,
    health: Health,
}

impl InFlight {
    /// Creates a tracker without writes. Waiting tasks are woken when the store stops.
    pub(super) fn new(health: &Health) -> InFlight {
        let ended = Signal::default();
        health.tell(&ended);
        InFlight { numbers: RefCell::default(), begun: Cell::new(0), ended, health: health.clone() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.numbers.borrow().is_empty()
    }

    /// Begins a write, and returns its number.
    pub(super) fn begin(&self) -> u64 {
        self.begun.set(self.begun.get() + 1);
        self.numbers.borrow_mut().insert(self.begun.get());
        self.begun.get()
    }

    /// Ends a write, whether it was successful or not.
    pub(super) fn end(&self, number: u64) {
        self.numbers.borrow_mut().remove(&number);
        self.ended.notify();
    }

    /// Waits until all writes that began before this call have ended, or the store has stopped.
    pub(super) async fn settled(&self) {
        let last = self.begun.get();
        let is_settled = || {
            self.health.check().is_err() || self.numbers.borrow().first().is_none_or(|first| *first > last)
        };
        self.ended.until(|| is_settled().then_some(())).await;
    }
}
