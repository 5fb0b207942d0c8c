//! ACE: write as many dirty pages as the drive writes at once, evict one.
//!
//! "ACEing the Bufferpool Management Paradigm for Modern Storage Devices" (ICDE 2023). Where the victim
//! frame is clean it is evicted: exactly the replacement policy. Where it is dirty, the first n_w dirty
//! frames *of the virtual eviction order* are written concurrently, become clean and stay; the next misses
//! then find clean victims. Cost: the order is read until n_w dirty frames are found, which is long where
//! dirty pages are rare. Without prefetching, one frame is evicted, so hits and misses stay those of the
//! replacement policy wherever it ignores dirtiness. With prefetching, a miss that has written a batch
//! evicts the first n_e frames and reads as many pages, the missed one among them, concurrently.

use super::{K_W, MOST_TOGETHER, MeasuredDrive, N_W, Number, WriteBack};
use fulgurite_base::{Declared, Opt, SpecError, opt};

/// The options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AceConfig {
    /// Dirty frames written together; by default the drive's write concurrency.
    pub n_w: Number,
    /// Frames evicted together where there is something to prefetch; by default n_w.
    pub n_e: Number,
}

impl Declared for AceConfig {
    const OPTIONS: &'static [Opt<AceConfig>] = &[
        opt!("n_w", n_w, K_W, Number::Is(1) => Number::Is(MOST_TOGETHER), "dirty frames written together"),
        opt!("n_e", n_e, N_W, Number::Is(1) => Number::Is(MOST_TOGETHER), "frames evicted together, up to n_w, where pages are prefetched"),
    ];
}

pub(super) fn resolve(config: &AceConfig, drive: &mut dyn MeasuredDrive) -> Result<WriteBack, SpecError> {
    let n_w = config.n_w.or_else(|| drive.k_w())?;
    let n_e = config.n_e.or_else(|| Ok(n_w))?;
    if n_e > n_w {
        return Err(SpecError::new(format!(
            "n_e={n_e} is more than n_w={n_w}: a frame that was not written cannot be evicted; accepted: 1 to {n_w}"
        )));
    }
    Ok(WriteBack { n_w, n_e, ..WriteBack::SINGLE })
}
