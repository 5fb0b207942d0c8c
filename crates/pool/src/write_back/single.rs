//! Single: one read is exchanged for one write.
//!
//! What database pools do when no cleaner has run ahead ("single page flush"): the victim frame is
//! written if it is dirty, the miss waits for that, and the frame is evicted. O(1). It uses neither the
//! drive's concurrency nor its asymmetry, and is the baseline of the others.
//!
//! Here misses of several users write their victims side by side. With `lock=yes` they do not: while one miss
//! writes its victim frame, every other miss that must evict waits its turn, as in InnoDB up to 5.6, where a thread
//! looks for a victim and flushes it under one lock (MyFlashSQL, "single page flush"). So at most one page is on its
//! way to the drive, however many users there are. *Difference.* InnoDB first looks for a clean page among the
//! last 100 of its list; here the replacement policy's victim is taken, clean or dirty.

use super::policy::{MeasuredDrive, WriteBack};
use fulgurite_base::option::YES_NO;
use fulgurite_base::{Declared, Opt, SpecError, opt};

/// The options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SingleConfig {
    /// Whether a miss that writes its victim frame keeps all other misses from evicting.
    pub lock: bool,
}

impl Declared for SingleConfig {
    const OPTIONS: &'static [Opt<SingleConfig>] = &[opt!(
        "lock",
        lock,
        YES_NO,
        "yes: while a miss writes its victim, every other miss that must evict waits, as in InnoDB's single page flush"
    )];
}

pub(super) fn resolve(config: &SingleConfig, _: &mut dyn MeasuredDrive) -> Result<WriteBack, SpecError> {
    Ok(WriteBack { lock: config.lock, ..WriteBack::SINGLE })
}
