//! The policy `single`: a miss on a dirty victim writes that one page and then reads.
//!
//! Database pools do this if no cleaner has written ahead ("single page flush"): a dirty victim frame is
//! written, the miss waits for the write, and the frame is evicted. O(1). It uses neither the drive's
//! concurrency nor its asymmetry, and is the baseline for the other policies.
//!
//! By default, the misses of several users write their victims concurrently. With `lock=yes`, every other
//! miss that must evict waits while one miss writes its victim frame, as in InnoDB up to 5.6, where a thread
//! searches for a victim and flushes it under one lock (Lee, *MyFlashSQL*, 2017, "single page flush"). So at
//! most one page is under write, for any number of users. *Difference.* InnoDB first looks for a clean page
//! among the last 100 of its list; here the replacement policy's victim is taken, clean or dirty.

use super::policy::{MeasuredDrive, WriteBack};
use fulgurite_base::option::YES_NO;
use fulgurite_base::{Declared, Opt, SpecError, opt};

/// The options of the policy `single`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SingleConfig {
    /// Whether no other miss evicts while a miss writes its victim frame.
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
