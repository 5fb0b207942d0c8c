//! ACE (asymmetry- and concurrency-aware buffer management): writes as many dirty pages together as the drive
//! can write at once, and evicts one page.
//!
//! "ACEing the Bufferpool Management Paradigm for Modern Storage Devices" (Papon and Athanassoulis, ICDE
//! 2023). n_w is the number of dirty frames that are written together, and n_e the number of frames that are
//! evicted together. A clean victim frame is evicted as the replacement policy says. For a dirty victim, the
//! first n_w dirty frames *of the virtual eviction order* are written concurrently, become clean and stay in
//! the pool, so the next misses find clean victims. Cost: the order is read until n_w dirty frames are found,
//! which takes long if dirty pages are rare. Without prefetching, one frame is evicted, so hits and misses
//! are those of the replacement policy, unless that policy considers whether a page is dirty. With
//! prefetching, a miss that has written a batch evicts the first n_e frames, however many pages the
//! prefetcher names. The named pages are read together with the missed one, and the frames that are left over
//! are free for the next misses. With n_w = 1 only the victim is evicted, so nothing is prefetched.
//!
//! *Difference.* The paper has one request at a time. With many users, each miss would add n_w pages to a
//! queue that is already full. So all misses together have at most `under_way` pages under write. The default
//! is two batches: one that the drive writes, and one queued behind it.

use super::number::{K_W, MOST_TOGETHER, N_W, Number, TWICE_N_W};
use super::policy::{MeasuredDrive, WriteBack};
use fulgurite_base::{Declared, Opt, SpecError, opt};

/// The options of the policy `ace`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AceConfig {
    /// The number of dirty frames that are written together; by default the drive's write concurrency.
    pub n_w: Number,
    /// The number of frames that are evicted together when pages are prefetched; by default n_w.
    pub n_e: Number,
    /// The most pages that all misses together may have under write; by default twice n_w.
    pub under_way: Number,
}

impl Declared for AceConfig {
    const OPTIONS: &'static [Opt<AceConfig>] = &[
        opt!("n_w", n_w, K_W, Number::Is(1) => Number::Is(MOST_TOGETHER), "dirty frames written together"),
        opt!(
            "n_e", n_e, N_W, Number::Is(1) => Number::Is(MOST_TOGETHER),
            "frames evicted together, up to n_w, when pages are prefetched"
        ),
        opt!(
            "under_way", under_way, TWICE_N_W, Number::Is(1) => Number::Is(u32::MAX),
            "most pages under write, for all misses together"
        ),
    ];
}

pub(super) fn resolve(config: &AceConfig, drive: &mut dyn MeasuredDrive) -> Result<WriteBack, SpecError> {
    let policy = batches(config.n_w, config.n_e, drive)?;
    let under_way = config.under_way.or_else(|| Ok(policy.n_w.saturating_mul(2)))?;
    if under_way < policy.n_w {
        return Err(SpecError::new(format!(
            "under_way={under_way} is less than n_w={n_w}, so no batch could be written; accepted: {n_w} and more",
            n_w = policy.n_w
        )));
    }
    Ok(WriteBack { under_way, ..policy })
}

/// Returns ACE with batches of `n_w` frames and evictions of `n_e` frames, without a bound on the pages under
/// write.
pub(super) fn batches(
    n_w: Number,
    n_e: Number,
    drive: &mut dyn MeasuredDrive,
) -> Result<WriteBack, SpecError> {
    let n_w = n_w.or_else(|| drive.k_w())?;
    let n_e = n_e.or_else(|| Ok(n_w))?;
    if n_e > n_w {
        return Err(SpecError::new(format!(
            "n_e={n_e} is more than n_w={n_w}: a frame that was not written cannot be evicted; accepted: 1 to {n_w}"
        )));
    }
    Ok(WriteBack { n_e, ..WriteBack::ace(n_w) })
}
