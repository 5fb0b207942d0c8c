//! CFLRU: a write costs more than a read, so clean pages are evicted first.
//!
//! "CFLRU: A Replacement Algorithm for Flash Memory" (Park et al., CASES 2006). The last `window` pages of
//! the LRU list are the clean-first region. The victim is the region's least recent clean page or, if it has
//! none, the least recent page. *Ambiguity.* The paper tunes the window statically or dynamically; here it is
//! a third of the frames by default, as in the published scripts of ACE.

use super::clean_first::{CleanFirst, CleanFirstConfig, DirtyChoice, clean_first_policy};
use fulgurite_base::SpecError;

/// See the module.
pub struct Cflru(CleanFirst);

impl Cflru {
    pub(super) fn new(config: &CleanFirstConfig, frames: u32) -> Result<Cflru, SpecError> {
        let window = config.window(frames)?;
        Ok(Cflru(CleanFirst::new(frames, DirtyChoice::LeastRecent, window, window)))
    }
}

clean_first_policy!(Cflru);
