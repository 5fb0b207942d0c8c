//! DL-CFLRU/E: clean and dirty pages in two LRU lists; clean ones leave first, however recent.
//!
//! By the authors of CFLRU/C. Any clean page leaves before any dirty one, the least recent first. With no
//! clean page left, the `window` least recent dirty pages are compared, and the one leaves whose erase block
//! was erased least often. The drive must tell erase counts. *Ambiguity.* A page that was written back and stays takes
//! the place among the clean ones that its last use gives it. O(window) without clean pages.

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
