//! Reads and writes the header that all pages have, and its checksum.

use crate::Lsn;
use fulgurite_base::PageId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A leaf of a tree, which contains records.
    Leaf,
    /// An inner node of a tree, which contains separators and children.
    Inner,
    /// A map of used pages: a bitmap with the used pages of a group.
    Map,
    /// A page that is not in use.
    Free,
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Kind::Leaf => 1,
            Kind::Inner => 2,
            Kind::Map => 3,
            Kind::Free => 4,
        }
    }
}

/// Reads `N` bytes from offset `at`.
#[inline]
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

/// Reads a little-endian number of 16 bits from offset `at`.
#[inline]
pub(crate) fn get_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

/// Reads a little-endian number of 32 bits from offset `at`.
#[inline]
pub(crate) fn get_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

/// Reads a little-endian number of 64 bits from offset `at`.
#[inline]
pub(crate) fn get_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

/// Writes bytes at offset `at`.
#[inline]
pub(crate) fn set(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// Makes `bytes` a page with this header and zeros after the header.
pub(crate) fn init(bytes: &mut [u8], kind: Kind, level: u8, page: PageId, tree: u32) {
    bytes.fill(0);
    bytes[4] = kind.code();
    bytes[5] = level;
    set(bytes, 8, &page.0.to_le_bytes());
    set(bytes, 32, &tree.to_le_bytes());
}

/// Returns the kind of a page; `None` if the bytes are no page of a store.
#[inline]
pub(crate) fn kind(bytes: &[u8]) -> Option<Kind> {
    match bytes[4] {
        1 => Some(Kind::Leaf),
        2 => Some(Kind::Inner),
        3 => Some(Kind::Map),
        4 => Some(Kind::Free),
        _ => None,
    }
}

/// Returns the level of a node; 0 for a leaf.
#[inline]
pub(crate) fn level(bytes: &[u8]) -> u8 {
    bytes[5]
}

/// Returns the number that the header gives as the page's own.
pub(crate) fn number(bytes: &[u8]) -> PageId {
    PageId(get_u64(bytes, 8))
}

/// Returns the LSN of the last structure change that the page contains.
pub(crate) fn structure_lsn(bytes: &[u8]) -> Lsn {
    Lsn(get_u64(bytes, 16))
}

/// Sets the LSN that [`structure_lsn`] returns.
pub(crate) fn set_structure_lsn(bytes: &mut [u8], lsn: Lsn) {
    set(bytes, 16, &lsn.0.to_le_bytes());
}

/// Returns the LSN of the page: the end of the log when the page was last changed.
pub(crate) fn lsn(bytes: &[u8]) -> Lsn {
    Lsn(get_u64(bytes, 24))
}

/// Sets the LSN that [`lsn`] returns.
pub(crate) fn set_lsn(bytes: &mut [u8], lsn: Lsn) {
    set(bytes, 24, &lsn.0.to_le_bytes());
}

/// Returns the number of the tree that the page belongs to.
#[inline]
pub(crate) fn tree(bytes: &[u8]) -> u32 {
    get_u32(bytes, 32)
}

/// The initial value of the checksums of a store. It distinguishes the pages and the log of the store from
/// those of an earlier store on the same drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Salt(pub u32);

impl Salt {
    /// Returns the checksum of a page or of a block of the log. The checksum covers all bytes after the first
    /// four, which store it.
    pub(crate) fn sum(self, bytes: &[u8]) -> u32 {
        crc32c::crc32c_append(self.0, &bytes[4..])
    }
}

/// Adds the checksum to a page. Every other byte must be written before.
pub(crate) fn seal(bytes: &mut [u8], salt: Salt) {
    let sum = salt.sum(bytes);
    set(bytes, 0, &sum.to_le_bytes());
}

/// Whether the bytes are an intact page with this number and salt.
pub(crate) fn is_whole(bytes: &[u8], page: PageId, salt: Salt) -> bool {
    kind(bytes).is_some() && number(bytes) == page && get_u32(bytes, 0) == salt.sum(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_bit_and_another_page_are_noticed() {
        let mut page = vec![0; 4096];
        init(&mut page, Kind::Leaf, 0, PageId(7), 3);
        let salt = Salt(5);
        seal(&mut page, salt);
        assert!(is_whole(&page, PageId(7), salt) && !is_whole(&page, PageId(8), salt));
        assert!(!is_whole(&page, PageId(7), Salt(6)), "a page of another store");
        for byte in 0..page.len() {
            page[byte] ^= 4;
            assert!(!is_whole(&page, PageId(7), salt), "byte {byte}");
            page[byte] ^= 4;
        }
        assert!(!is_whole(&[0; 4096], PageId(0), salt), "zeros are no page");
    }
}
