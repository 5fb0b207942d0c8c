//! Blocks of the log; see [`crate::media::log`].

use crate::Lsn;
use crate::format::page::{Salt, get_u16, get_u32, get_u64, set};

/// Bytes of a block's header.
pub(crate) const HEADER: usize = 32;
const MAGIC: u32 = u32::from_le_bytes(*b"FLOG");

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Its position in the log.
    pub at: Lsn,
    /// The log was durable up to here when the block was written.
    pub durable: Lsn,
    /// CRC of the previous block.
    pub previous: u32,
    /// Bytes of records.
    pub used: u16,
    /// Whether it is the first block of a flush, which begins with a record.
    pub first: bool,
}

impl Block {
    /// Writes the header of a block after its records are filled in. Returns its CRC.
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

    /// The header and the CRC of a block; `None` if the bytes are damaged or belong to another store. With
    /// `trusting` the CRC is not checked.
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
