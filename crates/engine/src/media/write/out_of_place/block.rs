//! Blocks of the map as bytes. Numbers are little-endian.
//!
//! | bytes | field |
//! |---|---|
//! | 0–4 | CRC-32C of everything behind it, begun with the store's salt |
//! | 4–8 | kind: 1 head, 2 places, 3 changes |
//! | 8–16 | epoch: counts the snapshots; the half is its last bit |
//! | 16–24 | number of the commit; of a head and of places, the last one before the snapshot |
//! | 24–28 | which block of the snapshot or the commit this is, from 0 |
//! | 28–32 | how many blocks that has |
//! | 32–36 | entries |
//! | 36–40 | zeros |
//! | 40– | entries: of places, 4 bytes each: where a unit lies; of changes, 8 bytes each: a unit and where it lies; of a head,
//! the superblock as it was when the store was opened |
//!
//! A place counts the units from the first segment on; all ones mean that there is none.

use crate::format::layout::BLOCK_HEADER;
use crate::format::page::{Salt, get_u32, get_u64, set};

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    Head,
    Places,
    Changes,
}

impl BlockKind {
    const ALL: [BlockKind; 3] = [BlockKind::Head, BlockKind::Places, BlockKind::Changes];

    fn code(self) -> u32 {
        1 + BlockKind::ALL.iter().position(|kind| *kind == self).unwrap_or(0) as u32
    }
}

/// What a block says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    pub kind: BlockKind,
    pub epoch: u64,
    pub number: u64,
    pub index: u32,
    pub of: u32,
    pub entries: u32,
}

/// Makes a block whose entries are there already.
pub fn seal(bytes: &mut [u8], info: &BlockInfo, salt: Salt) {
    set(bytes, 4, &info.kind.code().to_le_bytes());
    set(bytes, 8, &info.epoch.to_le_bytes());
    set(bytes, 16, &info.number.to_le_bytes());
    for (at, number) in [(24, info.index), (28, info.of), (32, info.entries), (36, 0)] {
        set(bytes, at, &number.to_le_bytes());
    }
    let sum = salt.sum(bytes);
    set(bytes, 0, &sum.to_le_bytes());
}

/// What a block says; `None` where the bytes are none of this store.
pub fn open(bytes: &[u8], salt: Salt) -> Option<BlockInfo> {
    let kind = *BlockKind::ALL.iter().find(|kind| kind.code() == get_u32(bytes, 4))?;
    let size = if kind == BlockKind::Changes { 8 } else { 4 };
    let [index, of, entries] = [24, 28, 32].map(|at| get_u32(bytes, at));
    let fits = entries as usize <= (bytes.len() - BLOCK_HEADER) / size && index < of;
    let info = BlockInfo { kind, epoch: get_u64(bytes, 8), number: get_u64(bytes, 16), index, of, entries };
    (fits && get_u32(bytes, 0) == salt.sum(bytes)).then_some(info)
}

/// An entry of 4 bytes.
pub fn place(bytes: &[u8], index: usize) -> u32 {
    get_u32(bytes, BLOCK_HEADER + 4 * index)
}

/// Sets an entry of 4 bytes.
pub fn set_place(bytes: &mut [u8], index: usize, place: u32) {
    set(bytes, BLOCK_HEADER + 4 * index, &place.to_le_bytes());
}
