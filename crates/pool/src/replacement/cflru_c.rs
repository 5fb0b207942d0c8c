//! CFLRU/C: CFLRU that, if there is no clean page, evicts the dirty page with the fewest uses.
//!
//! "Page Replacement Algorithms for NAND Flash Memory Storages" (Yoo et al., ICCSA 2007). The victim is the
//! least recent clean page of the clean-first region. If there is none, it is the dirty page of the region
//! with the fewest uses since it was read in. *Ambiguities.* Reading a page in counts as its first use; the
//! last use breaks ties. O(window).

use super::clean_first::{CleanFirst, CleanFirstConfig, DirtyChoice, clean_first_policy};

clean_first_policy!(CflruC, FewestUses, |window, frames| window);
