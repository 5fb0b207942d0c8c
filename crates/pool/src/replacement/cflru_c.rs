//! CFLRU/C: CFLRU that, without a clean page, gives up the dirty page used least often.
//!
//! "Page Replacement Algorithms for NAND Flash Memory Storages" (Yoo et al., ICCSA 2007). The least recent clean
//! page of the clean-first region leaves. If there is none, the dirty page of the region leaves that has the
//! fewest uses since it came in.
//! *Ambiguities.* The first use is the arrival; ties are broken by last use. O(window).

use super::clean_first::{CleanFirst, CleanFirstConfig, DirtyChoice, clean_first_policy};
use fulgurite_base::SpecError;

/// See the module.
pub struct CflruC(CleanFirst);

impl CflruC {
    pub(super) fn new(config: &CleanFirstConfig, frames: u32) -> Result<CflruC, SpecError> {
        let window = config.window(frames)?;
        Ok(CflruC(CleanFirst::new(frames, DirtyChoice::FewestUses, window, window)))
    }
}

clean_first_policy!(CflruC);
