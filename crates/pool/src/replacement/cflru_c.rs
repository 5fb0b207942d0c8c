//! CFLRU/C: CFLRU that, without a clean page, gives up the dirty page used least often.
//!
//! "Page Replacement Algorithms for NAND Flash Memory Storages" (Yoo et al., ICCSA 2007). In the clean-first region the least recent clean page
//! leaves; where there is none, the dirty page of the region with the fewest uses since it came in.
//! *Ambiguities.* The first use is the arrival; of equals the least recently used leaves. O(window).

use super::clean_first::{CleanFirst, DirtyChoice, clean_first_policy, take_window};
use fulgurite_base::{Spec, SpecError};

/// See the module.
pub struct CflruC(CleanFirst);

impl CflruC {
    pub(super) fn from_spec(spec: &mut Spec, frames: u32) -> Result<CflruC, SpecError> {
        let window = take_window(spec, frames)?;
        Ok(CflruC(CleanFirst::new(frames, DirtyChoice::FewestUses, window, window)))
    }
}

clean_first_policy!(CflruC);
