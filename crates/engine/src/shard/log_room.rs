//! Reservations of log space, and the commits that wait for log space.

use crate::wait::Signal;
use std::cell::Cell;

/// The reserved log space of a shard.
pub(crate) struct LogRoom {
    reserved: Cell<u64>,
    /// The number of commits that have ended: applied, or given up with their reservations released.
    ended: Cell<u64>,
    changed: Signal,
}

impl LogRoom {
    /// Creates the state without reservations. `changed` is also notified when the store stops.
    pub(crate) fn new(changed: Signal) -> LogRoom {
        LogRoom { reserved: Cell::new(0), ended: Cell::new(0), changed }
    }

    /// Returns the number of reserved bytes.
    pub(crate) fn reserved(&self) -> u64 {
        self.reserved.get()
    }

    /// Reserves `bytes` of log space.
    pub(crate) fn reserve(&self, bytes: u64) {
        self.reserved.set(self.reserved.get() + bytes);
    }

    /// Releases a reservation of `bytes`.
    pub(crate) fn release(&self, bytes: u64) {
        self.reserved.set(self.reserved.get() - bytes);
        self.changed.notify();
    }

    /// Releases the reservation of a commit that has ended.
    pub(crate) fn end_commit(&self, bytes: u64) {
        self.ended.set(self.ended.get() + 1);
        self.release(bytes);
    }

    /// Returns the number of commits that have ended.
    pub(crate) fn ended(&self) -> u64 {
        self.ended.get()
    }

    /// Wakes the tasks that wait for log space, because there may be more.
    pub(crate) fn notify(&self) {
        self.changed.notify();
    }

    /// Waits until `ready` returns `Some`. It is called again whenever there may be more log space.
    pub(crate) async fn until<T>(&self, ready: impl FnMut() -> Option<T>) -> T {
        self.changed.until(ready).await
    }
}
