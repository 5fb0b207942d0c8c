//! How far runs have come.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far runs have come, to be looked at from another thread. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    done: AtomicU64,
    total: AtomicU64,
}

impl Progress {
    /// A run reports once in this number of requests: an atomic addition for each would show in its speed.
    const STEP: u64 = 1 << 14;

    /// Requests performed.
    pub fn done(&self) -> u64 {
        self.0.done.load(Ordering::Relaxed)
    }

    /// Requests to perform.
    pub fn total(&self) -> u64 {
        self.0.total.load(Ordering::Relaxed)
    }

    /// Sets the number of requests to perform.
    pub fn expect(&self, ops: u64) {
        self.0.total.store(ops, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, ops: u64) {
        self.0.done.fetch_add(ops, Ordering::Relaxed);
    }

    /// Reports that `left` requests remain of those that one run performs.
    #[inline]
    pub fn left(&self, left: u64) {
        if left.is_multiple_of(Progress::STEP) {
            self.add(Progress::STEP);
        }
    }
}
