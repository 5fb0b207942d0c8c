//! ACE and RAW: batches of the drive's write concurrency that a read does not wait for while the drive keeps up.
//!
//! A miss on a dirty victim frame starts the write of the first n_w dirty frames of the eviction order, as
//! ACE does, and evicts the victim frame at once, as RAW does: its page is found until its write has ended.
//! The other frames of the batch stay in the pool and leave, when their turn comes, without a write of
//! their own; if it comes before the batch has ended, they too leave a spare frame behind. So the drive
//! gets ACE's batches. With more users than the drive can serve, `buffers` pages are always under way, and
//! then a miss does wait: a longer queue would make no write end sooner. O(1) but for reading the order, as in ACE.

use super::ace;
use super::number::{K_W, MOST_TOGETHER, N_W, Number, TWICE_N_W};
use super::policy::{MeasuredDrive, WriteBack};
use super::raw::{LEAST, check_buffers};
use fulgurite_base::option::COUNT;
use fulgurite_base::{Declared, Opt, SpecError, opt};

/// The options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AceRawConfig {
    /// Dirty frames written together; by default the drive's write concurrency.
    pub n_w: Number,
    /// Frames dropped together where pages are prefetched; by default n_w.
    pub n_e: Number,
    /// Pages whose write is under way at most, and spare frames for them; by default twice n_w.
    pub buffers: Number,
    /// Spare frames that are kept however little is under way.
    pub least: u32,
}

impl Default for AceRawConfig {
    fn default() -> AceRawConfig {
        let follows = Number::Follows;
        AceRawConfig { n_w: follows, n_e: follows, buffers: follows, least: LEAST }
    }
}

impl Declared for AceRawConfig {
    const OPTIONS: &'static [Opt<AceRawConfig>] = &[
        opt!("n_w", n_w, K_W, Number::Is(1) => Number::Is(MOST_TOGETHER), "dirty frames written together"),
        opt!("n_e", n_e, N_W, Number::Is(1) => Number::Is(MOST_TOGETHER), "frames dropped together, up to n_w, where pages are prefetched"),
        opt!("buffers", buffers, TWICE_N_W, Number::Is(1) => Number::Is(u32::MAX), "pages whose write is under way at most, and spare frames for them"),
        opt!("least", least, COUNT, 1 => u32::MAX, "spare frames that are kept however little is under way"),
    ];
}

pub(super) fn resolve(config: &AceRawConfig, drive: &mut dyn MeasuredDrive) -> Result<WriteBack, SpecError> {
    let policy = ace::batches(config.n_w, config.n_e, drive)?;
    let buffers = config.buffers.or_else(|| Ok(policy.n_w.saturating_mul(2)))?;
    check_buffers(buffers, config.least)?;
    // A page under way may need a spare frame, so more pages than frames would make a miss wait for one.
    let under_way = buffers.max(policy.n_w);
    Ok(WriteBack { buffers, buffers_least: config.least, under_way, ..policy })
}
