//! RAW: a read never waits for a write.
//!
//! "Reads not blocked by writes", from MyFlashSQL: the page of a dirty victim frame goes to a write buffer,
//! the read is issued at once, and the write completes behind it. Here nothing is copied: the frame itself
//! becomes the buffer and a spare frame takes the read. Until the write has ended the page is found where
//! it is, for reading at once, for changing after the write. `buffers` frames of the pool are spare, so
//! the memory is that of the other policies; with all of them under way, a miss waits for one. O(1).

use super::{MeasuredDrive, Number, TWICE_K_W, WriteBack};
use fulgurite_base::{Declared, Opt, SpecError, opt};

/// The options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RawConfig {
    /// Spare frames for pages whose write is under way; by default twice the drive's write concurrency.
    pub buffers: Number,
}

impl Declared for RawConfig {
    const OPTIONS: &'static [Opt<RawConfig>] = &[
        opt!("buffers", buffers, TWICE_K_W, Number::Is(1) => Number::Is(u32::MAX), "spare frames for pages whose write is under way"),
    ];
}

pub(super) fn resolve(config: &RawConfig, drive: &mut dyn MeasuredDrive) -> Result<WriteBack, SpecError> {
    let buffers = config.buffers.or_else(|| Ok(2 * drive.k_w()?))?;
    Ok(WriteBack { buffers, ..WriteBack::SINGLE })
}
