//! Keeps values that take long to compute. Each value is computed once per key. Values of different keys are
//! computed in parallel.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Values by keys. A key must describe everything that its value depends on.
pub(crate) struct Memo<V>(Mutex<BTreeMap<String, Arc<OnceLock<V>>>>);

impl<V: Clone> Memo<V> {
    /// Creates an empty memo.
    pub(crate) const fn new() -> Memo<V> {
        Memo(Mutex::new(BTreeMap::new()))
    }

    /// Drops all values.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Returns the value of `key`, which `make` computes on the first call. Another thread that asks for the
    /// same key meanwhile waits.
    pub(crate) fn get(&self, key: String, make: impl FnOnce() -> V) -> V {
        let cell = {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(kept.entry(key).or_default())
        };
        cell.get_or_init(make).clone()
    }
}
