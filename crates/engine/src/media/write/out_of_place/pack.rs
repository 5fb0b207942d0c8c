//! A page as it lies in its units: as it is, or compressed where that saves a unit.
//!
//! A compressed page begins with 4 bytes: its compressed length, and in the highest byte how it was compressed; zeros follow it
//! to the end of its last unit. It has fewer units than a page, which is how the two are told apart.

use crate::Compress;
use crate::bytes;
use fulgurite_device::Buffer;
use zstd::bulk::{Compressor, Decompressor};

/// Bytes in front of a compressed page.
const HEAD: usize = 4;
/// The length is in the lower three bytes of them: a page has at most 64 KiB.
const LENGTH_BITS: u32 = 24;
/// What zstd calls level 1. Higher ones take longer, and save hardly more of pages as small as these.
const ZSTD_LEVEL: i32 = 1;

/// Compresses pages.
pub struct Packer {
    compress: Compress,
    zstd: Option<Compressor<'static>>,
    scratch: Vec<u8>,
}

impl Packer {
    /// For pages of `page_bytes`.
    pub fn new(compress: Compress, page_bytes: usize) -> Packer {
        // One that cannot be made for want of memory leaves pages as they are.
        let zstd = (compress == Compress::Zstd).then(|| Compressor::new(ZSTD_LEVEL).ok()).flatten();
        let most = lz4_flex::block::get_maximum_output_size(page_bytes);
        Packer { compress, zstd, scratch: vec![0; most.max(zstd::zstd_safe::compress_bound(page_bytes))] }
    }

    /// Puts a page into `into`, which has as many bytes, compressed if that saves a unit. Returns the units that it takes.
    pub fn pack(&mut self, page: &[u8], into: &mut [u8], unit_bytes: usize) -> u32 {
        let units = page.len() / unit_bytes;
        let len = if units > 1 { self.compress(page) } else { None };
        match len.map(|len| (len, (len + HEAD).div_ceil(unit_bytes))) {
            Some((len, packed)) if packed < units => {
                let head = len as u32 | self.compress.code() << LENGTH_BITS;
                into[..HEAD].copy_from_slice(&head.to_le_bytes());
                into[HEAD..HEAD + len].copy_from_slice(&self.scratch[..len]);
                into[HEAD + len..packed * unit_bytes].fill(0);
                packed as u32
            }
            _ => {
                into.copy_from_slice(page);
                units as u32
            }
        }
    }

    /// Compresses a page into the scratch memory; its length there.
    fn compress(&mut self, page: &[u8]) -> Option<usize> {
        match self.compress {
            Compress::None => None,
            Compress::Lz4 => lz4_flex::block::compress_into(page, &mut self.scratch).ok(),
            Compress::Zstd => self.zstd.as_mut()?.compress_to_buffer(page, &mut self.scratch[..]).ok(),
        }
    }
}

/// Brings compressed pages back.
#[derive(Default)]
pub struct Unpacker(Option<Decompressor<'static>>);

impl Unpacker {
    /// Brings a compressed page back; false where the bytes are none.
    pub fn unpack(&mut self, packed: &[u8], page: &Buffer) -> bool {
        let Some((compress, compressed)) = split(packed) else { return false };
        bytes::change(page, |bytes| {
            let len = match compress {
                Compress::None => None,
                Compress::Lz4 => lz4_flex::block::decompress_into(compressed, bytes).ok(),
                Compress::Zstd => {
                    self.zstd().and_then(|zstd| zstd.decompress_to_buffer(compressed, bytes).ok())
                }
            };
            len == Some(bytes.len())
        })
    }

    /// Made once it is needed: it takes some memory.
    fn zstd(&mut self) -> Option<&mut Decompressor<'static>> {
        if self.0.is_none() {
            self.0 = Decompressor::new().ok();
        }
        self.0.as_mut()
    }
}

/// How many bytes the head of a compressed page says that it takes; nonsense where the bytes are none.
pub fn packed_bytes(bytes: &[u8]) -> usize {
    split_head(bytes).map_or(0, |(_, len, _)| len + HEAD)
}

/// How the page in these bytes was compressed, and its compressed bytes.
fn split(packed: &[u8]) -> Option<(Compress, &[u8])> {
    let (code, len, rest) = split_head(packed)?;
    let compress = [Compress::Lz4, Compress::Zstd].into_iter().find(|compress| compress.code() == code)?;
    Some((compress, rest.get(..len)?))
}

fn split_head(packed: &[u8]) -> Option<(u32, usize, &[u8])> {
    let (head, rest) = packed.split_first_chunk::<HEAD>()?;
    let head = u32::from_le_bytes(*head);
    Some((head >> LENGTH_BITS, (head & ((1 << LENGTH_BITS) - 1)) as usize, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_base::Prng;
    use fulgurite_device::Arena;

    fn there_and_back(compress: Compress, page: &[u8], unit: usize) -> u32 {
        let mut into = vec![1; page.len()];
        let units = Packer::new(compress, page.len()).pack(page, &mut into, unit);
        let back = Arena::new(page.len()).buffer(0, page.len());
        let packed = &into[..units as usize * unit];
        if packed.len() == page.len() {
            bytes::fill(&back, packed);
        } else {
            assert!(Unpacker::default().unpack(packed, &back));
            let used = packed_bytes(packed);
            assert!(used <= packed.len() && used + unit > packed.len(), "as many units as it needs");
        }
        bytes::look(&back, |bytes| assert!(bytes == page));
        units
    }

    /// The first `random` bytes look random, the rest are zeros.
    fn page(random: usize, len: usize, mask: u8) -> Vec<u8> {
        let (mut prng, mut page) = (Prng::new(1, "page"), vec![0; len]);
        page[..random].fill_with(|| prng.below(256) as u8 & mask);
        page
    }

    #[test]
    fn a_page_takes_as_few_units_as_it_compresses_to() {
        for compress in [Compress::Lz4, Compress::Zstd] {
            for (random, units) in [(0, 1), (8_192, 3), (16_384, 4)] {
                let found = there_and_back(compress, &page(random, 16_384, 255), 4_096);
                assert_eq!(found, units, "{compress:?}, {random} random bytes");
            }
            assert_eq!(there_and_back(compress, &page(1_400, 4_096, 255), 512), 3, "{compress:?}");
        }
        // Six bits of eight are random: that takes a code for single bytes, which LZ4 has not.
        let letters = page(4_096, 4_096, 63);
        let units = |compress| there_and_back(compress, &letters, 512);
        assert_eq!([Compress::None, Compress::Lz4, Compress::Zstd].map(units), [8, 8, 7]);
        assert_eq!(there_and_back(Compress::None, &page(0, 16_384, 255), 4_096), 4);
    }

    #[test]
    fn bytes_that_are_no_compressed_page_are_refused() {
        let page = Arena::new(8_192).buffer(0, 8_192);
        let mut unknown = [0; 64];
        unknown[..4].copy_from_slice(&[16, 0, 0, 7]);
        for packed in
            [&[][..], &[0; 4096], &[255; 4096], &[16, 0, 0, 0, 9, 9, 9, 9], &[9, 0, 0, 1, 9, 9], &unknown]
        {
            assert!(!Unpacker::default().unpack(packed, &page));
        }
    }
}
