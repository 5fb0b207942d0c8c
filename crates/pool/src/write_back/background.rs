//! The policy `background`: a cleaner keeps the head of the eviction order clean, so that a miss seldom has a
//! dirty victim.
//!
//! PostgreSQL's background writer and InnoDB's page cleaner do this, so it is the realistic baseline. When
//! fewer than half of the first `ahead` frames of the eviction order are known to be clean, the cleaner
//! writes the dirty frames among them, `n_w` at a time: one, as PostgreSQL does, or more, as InnoDB does with
//! asynchronous I/O. A frame that is being written cannot be evicted. A miss with a dirty victim writes that
//! victim alone and waits, as in both systems. *Difference.* PostgreSQL and InnoDB wake their cleaners by a
//! timer (200 ms, 1 s) and estimate the demand; here evictions wake the cleaner, which is at least as good.
//! O(1) amortised.

use super::number::MOST_TOGETHER;
use super::policy::{MeasuredDrive, WriteBack};
use fulgurite_base::option::COUNT;
use fulgurite_base::{Declared, Opt, SpecError, opt};

/// The options of the policy `background`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BackgroundConfig {
    /// The number of frames at the head of the eviction order that the cleaner keeps clean.
    pub ahead: u32,
    /// The number of frames that the cleaner writes together.
    pub n_w: u32,
}

impl Default for BackgroundConfig {
    /// Returns 64 frames ahead, one written at a time. InnoDB's default scan depth is 1,024, which is meant
    /// for large pools.
    fn default() -> BackgroundConfig {
        BackgroundConfig { ahead: 64, n_w: 1 }
    }
}

impl Declared for BackgroundConfig {
    const OPTIONS: &'static [Opt<BackgroundConfig>] = &[
        opt!("ahead", ahead, COUNT, 1 => u32::MAX, "frames of the eviction order that are kept clean"),
        opt!("n_w", n_w, COUNT, 1 => MOST_TOGETHER, "frames that the cleaner writes together"),
    ];
}

pub(super) fn resolve(config: &BackgroundConfig, _: &mut dyn MeasuredDrive) -> Result<WriteBack, SpecError> {
    Ok(WriteBack { ahead: config.ahead, cleaner_n_w: config.n_w, ..WriteBack::SINGLE })
}
