//! A page as it lies in its units: as it is, or compressed where that saves a unit.
//!
//! A compressed page begins with its compressed length, 4 bytes; zeros follow it to the end of its last unit. It has fewer
//! units than a page, which is how the two are told apart.

use crate::memory;
use fulgurite_device::Buffer;

/// Compresses pages.
pub struct Packer {
    scratch: Vec<u8>,
}

impl Packer {
    /// For pages of `page_bytes`.
    pub fn new(page_bytes: usize) -> Packer {
        Packer { scratch: vec![0; lz4_flex::block::get_maximum_output_size(page_bytes)] }
    }

    /// Puts a page into `into`, which has as many bytes, compressed if that saves a unit. Returns the units that it takes.
    pub fn pack(&mut self, page: &[u8], into: &mut [u8], unit_bytes: usize) -> u32 {
        let units = page.len() / unit_bytes;
        let len = if units > 1 { lz4_flex::block::compress_into(page, &mut self.scratch).ok() } else { None };
        match len.map(|len| (len, (len + 4).div_ceil(unit_bytes))) {
            Some((len, packed)) if packed < units => {
                into[..4].copy_from_slice(&(len as u32).to_le_bytes());
                into[4..4 + len].copy_from_slice(&self.scratch[..len]);
                into[4 + len..packed * unit_bytes].fill(0);
                packed as u32
            }
            _ => {
                into.copy_from_slice(page);
                units as u32
            }
        }
    }
}

/// Brings a compressed page back; false where the bytes are none.
pub fn unpack(packed: &[u8], page: &Buffer) -> bool {
    let Some((len, rest)) = packed.split_first_chunk::<4>() else { return false };
    let Some(compressed) = rest.get(..u32::from_le_bytes(*len) as usize) else { return false };
    memory::change(page, |bytes| {
        lz4_flex::block::decompress_into(compressed, bytes).is_ok_and(|len| len == bytes.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_device::Arena;

    fn there_and_back(page: &[u8]) -> u32 {
        let mut into = vec![1; page.len()];
        let units = Packer::new(page.len()).pack(page, &mut into, 4096);
        let back = Arena::new(page.len()).buffer(0, page.len());
        let packed = &into[..units as usize * 4096];
        if packed.len() == page.len() {
            memory::fill(&back, packed);
        } else {
            assert!(unpack(packed, &back));
        }
        memory::look(&back, |bytes| assert!(bytes == page));
        units
    }

    #[test]
    fn a_page_takes_as_few_units_as_it_compresses_to() {
        let mut page = vec![0; 16_384];
        assert_eq!(there_and_back(&page), 1);
        let mut state = 1u32;
        for half in [8_192, 16_384] {
            page[..half].iter_mut().for_each(|byte| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *byte = (state >> 24) as u8;
            });
            let expected = if half == 8_192 { 3 } else { 4 };
            assert_eq!(there_and_back(&page), expected, "{half} random bytes");
        }
    }

    #[test]
    fn bytes_that_are_no_compressed_page_are_refused() {
        let page = Arena::new(8_192).buffer(0, 8_192);
        for packed in [&[][..], &[0; 4096], &[255; 4096], &[16, 0, 0, 0, 9, 9, 9, 9]] {
            assert!(!unpack(packed, &page));
        }
    }
}
