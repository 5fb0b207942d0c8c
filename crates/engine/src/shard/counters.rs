//! Counters of a store, all since it was opened.

use std::cell::Cell;

/// The values of all counters.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub commits: u64,
    pub aborts: u64,
    pub deadlocks: u64,
    /// The waits for locks, and for log space: their number, and their time in all in nanoseconds.
    pub lock_waits: u64,
    pub lock_wait_ns: u64,
    pub log_waits: u64,
    pub log_wait_ns: u64,
    pub user_bytes: u64,
    pub checkpoints: u64,
    pub splits: u64,
    pub merges: u64,
    pub recovered_ops: u64,
    pub restored_pages: u64,
}

/// The counters of an open store.
#[derive(Default)]
pub(crate) struct Counters(Cell<Counts>);

impl Counters {
    /// Returns the current values.
    pub(crate) fn get(&self) -> Counts {
        self.0.get()
    }

    /// Lets `count` change the counters.
    pub(crate) fn count(&self, count: impl FnOnce(&mut Counts)) {
        let mut counts = self.0.get();
        count(&mut counts);
        self.0.set(counts);
    }
}
