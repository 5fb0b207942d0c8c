//! Keeps values that take long to compute. Each is computed once per key; values of different keys are
//! computed in parallel.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Values by keys that describe them completely.
pub(crate) struct Memo<V>(Mutex<BTreeMap<String, Arc<OnceLock<V>>>>);

impl<V: Clone> Memo<V> {
    /// An empty memo.
    pub(crate) const fn new() -> Memo<V> {
        Memo(Mutex::new(BTreeMap::new()))
    }

    /// The value of `key`, which `make` computes on the first call. Another thread that asks for it meanwhile
    /// waits.
    pub(crate) fn get(&self, key: String, make: impl FnOnce() -> V) -> V {
        let cell = {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(kept.entry(key).or_default())
        };
        cell.get_or_init(make).clone()
    }
}
