//! Describes the block device that a server exports, and the limits that the protocol sets to such a
//! description.

use crate::numbers::STRING_BYTES_AT_MOST;
use thiserror::Error;

/// The longest payload that a client may use if it did not ask for the block sizes, in bytes.
const DEFAULT_PAYLOAD: u32 = 1 << 25;
/// The longest payload that an export may allow, in bytes. The protocol allows 4 GiB, which no server should
/// hold in memory for one request.
const PAYLOAD_AT_MOST: u32 = 1 << 30;
/// The maximum length of an option's data, in bytes. Longer data are skipped.
pub(crate) const OPTION_BYTES_AT_MOST: usize = 16 << 10;
/// The length of an option without its data, in bytes.
pub(crate) const OPTION_HEADER_BYTES: usize = 16;
/// The length of a request without its data, in bytes.
pub(crate) const REQUEST_HEADER_BYTES: usize = 28;

/// The block sizes of an export, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// The unit of offsets and lengths: a power of two up to 65,536. A client that did not ask for the block
    /// sizes is served too; its unaligned requests are refused as invalid.
    pub minimum: u32,
    /// The unit in which requests are fast: a power of two, at least 512 and at least `minimum`.
    pub preferred: u32,
    /// The most data of one read or write: at least `preferred` and at most 1 GiB. A client that did not ask
    /// for the block sizes may use 32 MiB even if this is less.
    pub maximum: u32,
}

impl Default for BlockSizes {
    /// Returns the sizes that a client assumes if it did not ask: 1 byte, 4 KiB and 32 MiB.
    fn default() -> BlockSizes {
        BlockSizes { minimum: 1, preferred: 4096, maximum: DEFAULT_PAYLOAD }
    }
}

/// A block device that a server exports. [`Export::check`] says whether the protocol allows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The name by which a client asks for it. The empty name selects it too.
    pub name: String,
    /// A text for people. It may be empty.
    pub description: String,
    /// The size in bytes: a multiple of the minimum block size.
    pub bytes: u64,
    /// The block sizes.
    pub block: BlockSizes,
    /// Whether the session refuses all writes.
    pub read_only: bool,
    /// Whether several connections see each other's writes after a flush of any of them. The caller must
    /// keep this promise; the session only tells the client.
    pub multi_conn: bool,
}

/// The reason why an export is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ExportError {
    /// The name is too long for a string of the protocol, or has a NUL.
    #[error("the export's name must have at most 4096 bytes, and no NUL")]
    Name,
    /// The description is too long for a string of the protocol, or has a NUL.
    #[error("the export's description must have at most 4096 bytes, and no NUL")]
    Description,
    /// The minimum block size is not a power of two up to 65,536.
    #[error("the minimum block size must be a power of two from 1 to 65536 bytes")]
    Minimum,
    /// The preferred block size is not a power of two, or it is too small.
    #[error("the preferred block size must be a power of two, at least 512 bytes and the minimum block size")]
    Preferred,
    /// The maximum payload is less than a preferred block, or more than 1 GiB.
    #[error("the maximum payload must be from the preferred block size to 1 GiB")]
    Maximum,
    /// The size is not a multiple of the minimum block size.
    #[error("the export's size must be a multiple of the minimum block size")]
    Size,
}

impl Export {
    /// Checks the description against the protocol. A session of an export that fails does not panic, but
    /// its client may not understand it.
    pub fn check(&self) -> Result<(), ExportError> {
        let BlockSizes { minimum, preferred, maximum } = self.block;
        let is_string = |text: &str| text.len() <= STRING_BYTES_AT_MOST && !text.contains('\0');
        if !is_string(&self.name) {
            Err(ExportError::Name)
        } else if !is_string(&self.description) {
            Err(ExportError::Description)
        } else if !minimum.is_power_of_two() || minimum > 1 << 16 {
            Err(ExportError::Minimum)
        } else if !preferred.is_power_of_two() || preferred < minimum.max(512) {
            Err(ExportError::Preferred)
        } else if maximum < preferred || maximum > PAYLOAD_AT_MOST {
            Err(ExportError::Maximum)
        } else if !self.bytes.is_multiple_of(u64::from(minimum)) {
            Err(ExportError::Size)
        } else {
            Ok(())
        }
    }

    /// Returns the maximum number of bytes of input that a session ever waits for: those of the largest
    /// write, which are more than those of the longest option that is held.
    pub fn input_at_most(&self) -> usize {
        REQUEST_HEADER_BYTES + self.payload_at_most(false) as usize
    }

    /// Returns the most data of one read or write, in bytes. A client that was not told the block sizes may
    /// rely on the default.
    pub(crate) fn payload_at_most(&self, is_told: bool) -> u32 {
        let least = if is_told { 0 } else { DEFAULT_PAYLOAD };
        self.block.maximum.clamp(least, PAYLOAD_AT_MOST)
    }

    /// Whether a client that asks for this name means this export.
    pub(crate) fn has_name(&self, name: &[u8]) -> bool {
        name.is_empty() || name == self.name.as_bytes()
    }

    /// Returns the transmission flags. Features of writes are absent if the export is read-only.
    pub(crate) fn flags(&self, is_structured: bool) -> u16 {
        const HAS_FLAGS: u16 = 1 << 0;
        const READ_ONLY: u16 = 1 << 1;
        const SEND_FLUSH: u16 = 1 << 2;
        const SEND_FUA: u16 = 1 << 3;
        const SEND_TRIM: u16 = 1 << 5;
        const SEND_WRITE_ZEROES: u16 = 1 << 6;
        const SEND_DF: u16 = 1 << 7;
        const CAN_MULTI_CONN: u16 = 1 << 8;
        const SEND_CACHE: u16 = 1 << 10;
        const SEND_FAST_ZERO: u16 = 1 << 11;
        let writes = if self.read_only { READ_ONLY } else { SEND_TRIM | SEND_WRITE_ZEROES | SEND_FAST_ZERO };
        let several = if self.multi_conn { CAN_MULTI_CONN } else { 0 };
        let structured = if is_structured { SEND_DF } else { 0 };
        HAS_FLAGS | SEND_FLUSH | SEND_FUA | SEND_CACHE | writes | several | structured
    }
}
