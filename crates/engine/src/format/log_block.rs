//! Encodes and decodes the header of a log block. [`crate::media::log`] describes the log.

use crate::Lsn;
use crate::format::page::{Salt, get_u16, get_u32, get_u64, set};

/// The size of the header of a block, in bytes.
pub(crate) const HEADER: usize = 32;
const MAGIC: u32 = u32::from_le_bytes(*b"FLOG");

/// The header of a block of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The position of the block in the log.
    pub at: Lsn,
    /// The LSN up to which the log was durable when the block was written.
    pub durable: Lsn,
    /// The CRC of the previous block, which chains the blocks.
    pub previous: u32,
    /// The number of bytes of log records in the block.
    pub used: u16,
    /// Whether this is the first block of a flush. Such a block begins with a log record.
    pub first: bool,
}

impl Block {
    /// Writes the header of a block after its records are filled in, and adds the checksum. Returns the CRC.
    pub(crate) fn seal(&self, bytes: &mut [u8], salt: Salt) -> u32 {
        set(bytes, 4, &MAGIC.to_le_bytes());
        set(bytes, 8, &self.at.0.to_le_bytes());
        set(bytes, 16, &self.durable.0.to_le_bytes());
        set(bytes, 24, &self.previous.to_le_bytes());
        set(bytes, 28, &self.used.to_le_bytes());
        set(bytes, 30, &u16::from(self.first).to_le_bytes());
        let crc = salt.sum(bytes);
        set(bytes, 0, &crc.to_le_bytes());
        crc
    }

    /// Decodes the header of a block. Returns it with the CRC of the block, or `None` if the bytes are
    /// damaged or belong to another store. If `trusting` is true, the CRC is not verified.
    pub(crate) fn read(bytes: &[u8], trusting: bool, salt: Salt) -> Option<(Block, u32)> {
        let crc = get_u32(bytes, 0);
        let used = get_u16(bytes, 28);
        let is_whole = get_u32(bytes, 4) == MAGIC
            && usize::from(used) <= bytes.len() - HEADER
            && (trusting || crc == salt.sum(bytes));
        is_whole.then(|| {
            let block = Block {
                at: Lsn(get_u64(bytes, 8)),
                durable: Lsn(get_u64(bytes, 16)),
                previous: get_u32(bytes, 24),
                used,
                first: get_u16(bytes, 30) == 1,
            };
            (block, crc)
        })
    }
}
