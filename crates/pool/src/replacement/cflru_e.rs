//! CFLRU/E: CFLRU that, if there is no clean page, evicts the dirty page whose erase block is least worn.
//!
//! From the paper of CFLRU/C (Yoo et al., ICCSA 2007). The victim is the least recent clean page of the
//! clean-first region. If there is none, it is the dirty page of the region whose erase block was erased
//! least often, so that the pool helps to even out wear. The drive must report erase counts. *Ambiguities.* A
//! page that was never written has no erase block and counts as 0; the last use breaks ties. O(window).

use super::clean_first::{CleanFirst, CleanFirstConfig, DirtyChoice, clean_first_policy};

clean_first_policy!(CflruE, FewestErases, |window, frames| window);
