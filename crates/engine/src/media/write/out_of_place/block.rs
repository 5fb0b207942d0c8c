//! The format of blocks of the map, which is the map from pages to addresses. Numbers are little-endian.
//!
//! | bytes | field |
//! |---|---|
//! | 0–4 | CRC-32C of the rest of the block, started from the store's salt |
//! | 4–8 | kind: 1 head, 2 addresses, 3 changes |
//! | 8–16 | epoch: the number of the snapshot; its last bit selects the half |
//! | 16–24 | number of the commit; in a head and in addresses, the last one before the snapshot |
//! | 24–28 | index of the block in its snapshot or commit |
//! | 28–32 | number of blocks of the snapshot or commit |
//! | 32–36 | number of entries |
//! | 36–40 | zeros |
//! | 40– | entries: see below |
//!
//! Each entry of an address block has 4 bytes: the address of a unit. Each entry of a change block has 8
//! bytes: a unit and its address. The entries of a head are the superblock as it was when the store was
//! opened.
//!
//! An address counts units from the first segment on. An address of all ones means that the unit was never
//! written.

use crate::format::layout::BLOCK_HEADER;
use crate::format::page::{Salt, get_u32, get_u64, set};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    Head,
    AddressMap,
    Changes,
}

impl BlockKind {
    const ALL: [BlockKind; 3] = [BlockKind::Head, BlockKind::AddressMap, BlockKind::Changes];

    fn code(self) -> u32 {
        1 + BlockKind::ALL.iter().position(|kind| *kind == self).unwrap_or(0) as u32
    }
}

/// The header of a block of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockInfo {
    pub kind: BlockKind,
    pub epoch: u64,
    pub number: u64,
    pub index: u32,
    pub of: u32,
    pub entries: u32,
}

/// Writes the header of a block after its entries, and adds the checksum.
pub(super) fn seal(bytes: &mut [u8], info: &BlockInfo, salt: Salt) {
    set(bytes, 4, &info.kind.code().to_le_bytes());
    set(bytes, 8, &info.epoch.to_le_bytes());
    set(bytes, 16, &info.number.to_le_bytes());
    for (at, number) in [(24, info.index), (28, info.of), (32, info.entries), (36, 0)] {
        set(bytes, at, &number.to_le_bytes());
    }
    let sum = salt.sum(bytes);
    set(bytes, 0, &sum.to_le_bytes());
}

/// Decodes the header of a block. Returns `None` if the bytes are no block of this store.
pub(super) fn open(bytes: &[u8], salt: Salt) -> Option<BlockInfo> {
    let kind = *BlockKind::ALL.iter().find(|kind| kind.code() == get_u32(bytes, 4))?;
    let size = if kind == BlockKind::Changes { 8 } else { 4 };
    let [index, of, entries] = [24, 28, 32].map(|at| get_u32(bytes, at));
    let fits = entries as usize <= (bytes.len() - BLOCK_HEADER) / size && index < of;
    let info = BlockInfo { kind, epoch: get_u64(bytes, 8), number: get_u64(bytes, 16), index, of, entries };
    (fits && get_u32(bytes, 0) == salt.sum(bytes)).then_some(info)
}

/// Reads the entry of 4 bytes at an index.
pub(super) fn address(bytes: &[u8], index: usize) -> u32 {
    get_u32(bytes, BLOCK_HEADER + 4 * index)
}

/// Writes the entry of 4 bytes at an index.
pub(super) fn set_address(bytes: &mut [u8], index: usize, address: u32) {
    set(bytes, BLOCK_HEADER + 4 * index, &address.to_le_bytes());
}
