//! Room in the log that is promised, and those who wait for it.

use crate::wait::Signal;
use std::cell::Cell;

/// Promised room in the log.
pub(crate) struct LogRoom {
    promised: Cell<u64>,
    /// Commits that were applied, or given up with their promises.
    ended: Cell<u64>,
    changed: Signal,
}

impl LogRoom {
    /// Nothing is promised. `changed` is also notified when the store stops.
    pub(crate) fn new(changed: Signal) -> LogRoom {
        LogRoom { promised: Cell::new(0), ended: Cell::new(0), changed }
    }

    /// Bytes that are promised.
    pub(crate) fn promised(&self) -> u64 {
        self.promised.get()
    }

    /// Promises bytes.
    pub(crate) fn promise(&self, bytes: u64) {
        self.promised.set(self.promised.get() + bytes);
    }

    /// Takes a promise back.
    pub(crate) fn release(&self, bytes: u64) {
        self.promised.set(self.promised.get() - bytes);
        self.changed.notify();
    }

    /// Takes the promise of a commit back, which has ended.
    pub(crate) fn end_commit(&self, bytes: u64) {
        self.ended.set(self.ended.get() + 1);
        self.release(bytes);
    }

    /// Commits that have ended.
    pub(crate) fn ended(&self) -> u64 {
        self.ended.get()
    }

    /// Tells those who wait that there may be more room.
    pub(crate) fn notify(&self) {
        self.changed.notify();
    }

    /// Waits until `ready` gives something. It is asked again whenever there may be more room.
    pub(crate) async fn until<T>(&self, ready: impl FnMut() -> Option<T>) -> T {
        self.changed.until(ready).await
    }
}
