//! DL-CFLRU/E: clean and dirty pages in two LRU lists; every clean page is evicted before any dirty one.
//!
//! By the authors of CFLRU/C. The victim is the least recent clean page. If there is none, it is the one of
//! the `window` least recent dirty pages whose erase block was erased least often. The drive must report
//! erase counts. *Ambiguity.* A page that is written back and stays in the pool is inserted among the clean
//! ones by its last use. O(window) without clean pages.

use super::clean_first::{CleanFirst, CleanFirstConfig, DirtyChoice, clean_first_policy};
use fulgurite_base::SpecError;

/// See the module.
pub struct DlCflruE(CleanFirst);

impl DlCflruE {
    pub(super) fn new(config: &CleanFirstConfig, frames: u32) -> Result<DlCflruE, SpecError> {
        let window = config.window(frames)?;
        Ok(DlCflruE(CleanFirst::new(frames, DirtyChoice::FewestErases, frames, window)))
    }
}

clean_first_policy!(DlCflruE);
