//! ACE and RAW: batches of the drive's write concurrency that no read waits for.
//!
//! A miss on a dirty victim frame starts the write of the first n_w dirty frames of the eviction order, as
//! ACE does, and evicts the victim frame at once, as RAW does: its page is found until its write has ended.
//! The other frames of the batch stay in the pool and leave, when their turn comes, without a write of
//! their own; if it comes before the batch has ended, they too leave a spare frame behind. So the drive
//! gets ACE's batches and the misses wait for reads alone. O(1) but for reading the order, as in ACE.

use super::ace::{self, AceConfig};
use super::{K_W, MOST_TOGETHER, MeasuredDrive, N_W, Number, TWICE_N_W, WriteBack};
use fulgurite_base::{Declared, Opt, SpecError, opt};

/// The options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AceRawConfig {
    /// Those of ACE.
    pub ace: AceConfig,
    /// Spare frames for pages whose write is under way; by default twice n_w.
    pub buffers: Number,
}

impl Declared for AceRawConfig {
    const OPTIONS: &'static [Opt<AceRawConfig>] = &[
        opt!("n_w", ace.n_w, K_W, Number::Is(1) => Number::Is(MOST_TOGETHER), "dirty frames written together"),
        opt!("n_e", ace.n_e, N_W, Number::Is(1) => Number::Is(MOST_TOGETHER), "frames evicted together, up to n_w, where pages are prefetched"),
        opt!("buffers", buffers, TWICE_N_W, Number::Is(1) => Number::Is(u32::MAX), "spare frames for pages whose write is under way"),
    ];
}

pub(super) fn resolve(config: &AceRawConfig, drive: &mut dyn MeasuredDrive) -> Result<WriteBack, SpecError> {
    let ace = ace::resolve(&config.ace, drive)?;
    let buffers = config.buffers.or_else(|| Ok(2 * ace.n_w))?;
    Ok(WriteBack { buffers, ..ace })
}
