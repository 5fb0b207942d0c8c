//! CFLRU (clean-first LRU): evicts clean pages first, because a write costs more than a read.
//!
//! "CFLRU: A Replacement Algorithm for Flash Memory" (Park et al., CASES 2006). The last `window` pages of
//! the LRU list are the clean-first region. The victim is the region's least recent clean page or, if it has
//! none, the least recent page. *Ambiguity.* The paper tunes the window statically or dynamically; here it is
//! a third of the frames by default, as in the published scripts of ACE.

use super::clean_first::{CleanFirst, CleanFirstConfig, DirtyChoice, clean_first_policy};

clean_first_policy!(Cflru, LeastRecent, |window, frames| window);
