//! RAW: a read does not wait for a write.
//!
//! "Reads not blocked by writes", from MyFlashSQL: the page of a dirty victim frame goes to a write buffer,
//! the read is issued at once, and the write completes behind it. Here nothing is copied: the frame itself
//! becomes the buffer and a spare frame takes the read. Until the write has ended the page is found where
//! it is, for reading at once, for changing after the write. Up to `buffers` frames of the pool are spare, as
//! many as writes under way have needed lately, so the memory is that of the other policies; with all of
//! them under way, a miss waits for one. O(1).

use super::number::{Number, TWICE_K_W};
use super::policy::{MeasuredDrive, WriteBack};
use fulgurite_base::option::COUNT;
use fulgurite_base::{Declared, Opt, SpecError, opt};

/// Spare frames that are kept where nothing else is asked for: the next miss on a dirty victim needs one.
pub(super) const LEAST: u32 = 1;

/// The options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RawConfig {
    /// Spare frames at most for pages whose write is under way; by default twice the drive's write concurrency.
    pub buffers: Number,
    /// Spare frames that are kept however little is under way.
    pub least: u32,
}

impl Default for RawConfig {
    fn default() -> RawConfig {
        RawConfig { buffers: Number::Follows, least: LEAST }
    }
}

impl Declared for RawConfig {
    const OPTIONS: &'static [Opt<RawConfig>] = &[
        opt!("buffers", buffers, TWICE_K_W, Number::Is(1) => Number::Is(u32::MAX), "spare frames at most for pages whose write is under way"),
        opt!("least", least, COUNT, 1 => u32::MAX, "spare frames that are kept however little is under way"),
    ];
}

pub(super) fn resolve(config: &RawConfig, drive: &mut dyn MeasuredDrive) -> Result<WriteBack, SpecError> {
    let buffers = config.buffers.or_else(|| Ok(2 * drive.k_w()?))?;
    check_buffers(buffers, config.least)?;
    Ok(WriteBack { buffers, buffers_least: config.least, ..WriteBack::SINGLE })
}

/// Refuses more frames that are kept than there may be.
pub(super) fn check_buffers(buffers: u32, least: u32) -> Result<(), SpecError> {
    match least > buffers {
        true => Err(SpecError::new(format!(
            "least={least} is more than buffers={buffers}, of which it is a part; accepted: 1 to {buffers}"
        ))),
        false => Ok(()),
    }
}
