//! Keeps values that take long to make. Each is made once per description; values of different descriptions are made in
//! parallel.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Values by the text that describes them in full.
pub struct Memo<V>(Mutex<BTreeMap<String, Arc<OnceLock<V>>>>);

impl<V: Clone> Memo<V> {
    /// Nothing kept yet.
    pub const fn new() -> Memo<V> {
        Memo(Mutex::new(BTreeMap::new()))
    }

    /// The value that `key` describes, made now if it has not been. Another thread that asks for it meanwhile waits.
    pub fn get(&self, key: String, make: impl FnOnce() -> V) -> V {
        let cell = {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(kept.entry(key).or_default())
        };
        cell.get_or_init(make).clone()
    }
}
