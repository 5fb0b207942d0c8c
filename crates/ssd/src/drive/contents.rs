//! Page contents by physical page, for drives that keep them. Garbage collection moves the contents with the
//! pages, so a wrong mapping shows as wrong bytes. The bytes are immutable, so copies share them.

use fulgurite_base::Ppn;
use rustc_hash::FxHashMap;
use std::sync::Arc;

#[derive(Clone, Default)]
pub(super) struct Contents(FxHashMap<u32, Arc<[u8]>>);

impl Contents {
    pub(super) fn get(&self, ppn: Ppn) -> Option<&[u8]> {
        self.0.get(&ppn.0).map(AsRef::as_ref)
    }

    pub(super) fn set(&mut self, ppn: Ppn, bytes: &[u8]) {
        self.0.insert(ppn.0, bytes.into());
    }

    pub(super) fn copy(&mut self, from: Ppn, to: Ppn) {
        if let Some(bytes) = self.0.get(&from.0).cloned() {
            self.0.insert(to.0, bytes);
        }
    }

    pub(super) fn remove(&mut self, ppn: Ppn) {
        self.0.remove(&ppn.0);
    }
}
