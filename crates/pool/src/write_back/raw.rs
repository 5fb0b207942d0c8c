//! RAW (reads are not blocked by writes): a read does not wait for the write of the victim.
//!
//! "Reads not blocked by writes", from the slides *MyFlashSQL* (Lee, 2017): the page of a dirty victim frame
//! goes to a write buffer, the read is issued at once, and the write completes after it. Here nothing is
//! copied: the frame itself becomes the buffer, and a spare frame takes the read. Until the write has ended,
//! the page can be found in its frame: a reader gets it at once, a writer after the write. Up to `buffers`
//! frames of the pool are spare, as many as writes have needed recently, so the pool needs no additional
//! memory. If the pages of all spare frames are being written, a miss waits for one of these writes. O(1).

use super::number::{Number, TWICE_K_W};
use super::policy::{MeasuredDrive, WriteBack};
use fulgurite_base::option::COUNT;
use fulgurite_base::{Declared, Opt, SpecError, opt};

/// The default of the option `least`. The next miss on a dirty victim needs one spare frame.
pub(super) const LEAST: u32 = 1;

/// The options of the policy `raw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RawConfig {
    /// The most spare frames; by default twice the drive's write concurrency.
    pub buffers: Number,
    /// The least number of spare frames.
    pub least: u32,
}

impl Default for RawConfig {
    fn default() -> RawConfig {
        RawConfig { buffers: Number::Follows, least: LEAST }
    }
}

impl Declared for RawConfig {
    const OPTIONS: &'static [Opt<RawConfig>] = &[
        opt!(
            "buffers", buffers, TWICE_K_W, Number::Is(1) => Number::Is(u32::MAX),
            "most spare frames, for pages under write"
        ),
        opt!("least", least, COUNT, 1 => u32::MAX, "least number of spare frames"),
    ];
}

pub(super) fn resolve(config: &RawConfig, drive: &mut dyn MeasuredDrive) -> Result<WriteBack, SpecError> {
    let buffers = config.buffers.or_else(|| Ok(2 * drive.k_w()?))?;
    check_buffers(buffers, config.least)?;
    Ok(WriteBack { buffers, buffers_least: config.least, ..WriteBack::SINGLE })
}

/// Fails if the least number of spare frames exceeds the greatest number.
pub(super) fn check_buffers(buffers: u32, least: u32) -> Result<(), SpecError> {
    match least > buffers {
        true => Err(SpecError::new(format!(
            "least={least} is more than buffers={buffers}, the most spare frames; accepted: 1 to {buffers}"
        ))),
        false => Ok(()),
    }
}
