//! CFLRU: a write costs more than a read, so clean pages leave first.
//!
//! "CFLRU: A Replacement Algorithm for Flash Memory" (Park et al., CASES 2006). The last `window` pages of
//! the LRU list are the clean-first region. Its least recent clean page leaves. If it has none, the least
//! recent page leaves. *Ambiguity.* The paper tunes the window, statically or not; here it is a third of
//! the frames, as in the published scripts of ACE.

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
