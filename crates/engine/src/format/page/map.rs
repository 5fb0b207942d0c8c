//! The map of used pages of a group: one bit for each page, which is set if the page is used. The first page
//! of a group is its map.
//!
//! The bits begin at byte 64 of the map. Bit `i` of byte `b` after that offset is for page `8 · b + i` of the
//! group.

/// The offset of the bits in the page.
const BITS: usize = 64;

/// Returns the number of pages in a group, including the map.
pub(crate) fn pages_per_group(page_bytes: u32) -> u64 {
    (u64::from(page_bytes) - BITS as u64) * 8
}

/// Whether a map of this page size has bits for `pages` pages.
pub(crate) fn has(bytes: &[u8], pages: u32) -> bool {
    pages as usize <= (bytes.len() - BITS) * 8
}

/// Whether page `index` of the group is used.
pub(crate) fn is_used(bytes: &[u8], index: u32) -> bool {
    bytes[BITS + index as usize / 8] >> (index % 8) & 1 == 1
}

/// Marks page `index` of the group as used or free.
pub(crate) fn set_used(bytes: &mut [u8], index: u32, used: bool) {
    let byte = &mut bytes[BITS + index as usize / 8];
    *byte = *byte & !(1 << (index % 8)) | u8::from(used) << (index % 8);
}

/// Returns the index of the first free page of the group from `from` on and below `pages`.
pub(crate) fn first_free(bytes: &[u8], from: u32, pages: u32) -> Option<u32> {
    let mut index = from;
    while index < pages {
        // Skips eight used pages at once.
        if index.is_multiple_of(8) && bytes[BITS + index as usize / 8] == u8::MAX {
            index += 8;
        } else if is_used(bytes, index) {
            index += 1;
        } else {
            return Some(index);
        }
    }
    None
}

/// Counts the used pages among the first `pages` of the group.
pub(crate) fn count_used(bytes: &[u8], pages: u32) -> u32 {
    let whole = pages as usize / 8;
    let full: u32 = bytes[BITS..BITS + whole].iter().map(|byte| byte.count_ones()).sum();
    full + (pages / 8 * 8..pages).filter(|index| is_used(bytes, *index)).count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_found_counted_and_freed() {
        let mut page = vec![0; 4096];
        (0..100).for_each(|index| set_used(&mut page, index, true));
        assert_eq!((count_used(&page, 1000), count_used(&page, 61)), (100, 61));
        assert_eq!((first_free(&page, 0, 1000), first_free(&page, 0, 100)), (Some(100), None));
        set_used(&mut page, 43, false);
        assert_eq!((first_free(&page, 0, 1000), first_free(&page, 44, 1000)), (Some(43), Some(100)));
        assert_eq!(count_used(&page, 1000), 99);
        assert_eq!(pages_per_group(4096), 32256);
    }
}
