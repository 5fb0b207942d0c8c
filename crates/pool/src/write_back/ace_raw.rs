//! ACE and RAW combined: writes batches of the drive's write concurrency, and a read does not wait for them
//! while the drive keeps up.
//!
//! A miss on a dirty victim frame starts the write of the first n_w dirty frames of the eviction order (the
//! batch), as ACE does, and evicts the victim frame at once, as RAW does: its page can be found until its
//! write has ended. The other frames of the batch stay in the pool and are evicted later without a further
//! write. If one of them is evicted before the batch has ended, the miss uses a spare frame for it too. So
//! the drive gets ACE's batches. With more users than the drive can serve, `buffers` pages are always under
//! write, and then a miss does wait: a longer queue would not make any write end sooner. O(1) except for
//! reading the order, as in ACE.

use super::ace;
use super::number::{K_W, MOST_TOGETHER, N_W, Number, TWICE_N_W};
use super::policy::{MeasuredDrive, WriteBack};
use super::raw::{LEAST, check_buffers};
use fulgurite_base::option::COUNT;
use fulgurite_base::{Declared, Opt, SpecError, opt};

/// The options of the policy `ace-raw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AceRawConfig {
    /// The number of dirty frames that are written together; by default the drive's write concurrency.
    pub n_w: Number,
    /// The number of frames that are evicted together when pages are prefetched; by default n_w.
    pub n_e: Number,
    /// The most pages under write, and the most spare frames for them; by default twice n_w.
    pub buffers: Number,
    /// The least number of spare frames.
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
        opt!(
            "n_e", n_e, N_W, Number::Is(1) => Number::Is(MOST_TOGETHER),
            "frames evicted together, up to n_w, when pages are prefetched"
        ),
        opt!(
            "buffers", buffers, TWICE_N_W, Number::Is(1) => Number::Is(u32::MAX),
            "most pages under write, and most spare frames for them"
        ),
        opt!("least", least, COUNT, 1 => u32::MAX, "least number of spare frames"),
    ];
}

pub(super) fn resolve(config: &AceRawConfig, drive: &mut dyn MeasuredDrive) -> Result<WriteBack, SpecError> {
    let policy = ace::batches(config.n_w, config.n_e, drive)?;
    let buffers = config.buffers.or_else(|| Ok(policy.n_w.saturating_mul(2)))?;
    check_buffers(buffers, config.least)?;
    // Each page under write may need a spare frame, so at most `buffers` pages are under write. With more, a
    // miss would wait for a spare frame.
    let under_way = buffers.max(policy.n_w);
    Ok(WriteBack { buffers, buffers_least: config.least, under_way, ..policy })
}
