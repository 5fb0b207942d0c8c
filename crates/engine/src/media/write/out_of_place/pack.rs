//! Compresses pages. A page is compressed if that saves a unit.
//!
//! A compressed page begins with a head of 4 bytes. The lower three bytes of the head are the compressed
//! length, and the highest byte is the compression method. The last unit of a compressed page is padded with
//! zeros. A page with fewer units than an uncompressed page has is compressed.

use crate::Compress;
use crate::bytes;
use fulgurite_device::Buffer;
use zstd::bulk::{Compressor, Decompressor};

/// The number of bytes before the compressed data.
const HEAD: usize = 4;
/// The number of bits of the compressed length in the head. The length needs no more, because a page has at
/// most 64 KiB.
const LENGTH_BITS: u32 = 24;
/// The compression level of zstd. Higher levels take longer, and save hardly anything on pages of this size.
const ZSTD_LEVEL: i32 = 1;

/// Compresses pages.
pub(super) struct Packer {
    compress: Compress,
    zstd: Option<Compressor<'static>>,
    scratch: Vec<u8>,
}

impl Packer {
    /// Creates a compressor for pages of `page_bytes`.
    pub(super) fn new(compress: Compress, page_bytes: usize) -> Packer {
        // If there is no memory for zstd's state, pages are stored uncompressed.
        let zstd = (compress == Compress::Zstd).then(|| Compressor::new(ZSTD_LEVEL).ok()).flatten();
        let most = lz4_flex::block::get_maximum_output_size(page_bytes);
        Packer { compress, zstd, scratch: vec![0; most.max(zstd::zstd_safe::compress_bound(page_bytes))] }
    }

    /// Writes a page to `into`, compressed if that saves a unit. `into` must have the size of a page. Returns
    /// the number of units.
    pub(super) fn pack(&mut self, page: &[u8], into: &mut [u8], unit_bytes: usize) -> u32 {
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

    /// Compresses a page into the scratch buffer, and returns the compressed length. `None` if the page is
    /// not compressed.
    fn compress(&mut self, page: &[u8]) -> Option<usize> {
        match self.compress {
            Compress::None => None,
            Compress::Lz4 => lz4_flex::block::compress_into(page, &mut self.scratch).ok(),
            Compress::Zstd => self.zstd.as_mut()?.compress_to_buffer(page, &mut self.scratch[..]).ok(),
        }
    }
}

/// Decompresses pages.
#[derive(Default)]
pub(super) struct Unpacker(Option<Decompressor<'static>>);

impl Unpacker {
    /// Decompresses a page. Returns false if the bytes are invalid.
    pub(super) fn unpack(&mut self, packed: &[u8], page: &Buffer) -> bool {
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

    /// Returns the decompressor of zstd, which is created at first use because it takes some memory.
    fn zstd(&mut self) -> Option<&mut Decompressor<'static>> {
        if self.0.is_none() {
            self.0 = Decompressor::new().ok();
        }
        self.0.as_mut()
    }
}

/// Returns the number of units of a compressed page, according to its head; `None` if the head is that of no
/// compressed page. The number is arbitrary if the bytes are none.
pub(super) fn packed_units(bytes: &[u8], unit_bytes: usize) -> Option<usize> {
    split_head(bytes).map(|(_, len, _)| (len + HEAD).div_ceil(unit_bytes))
}

/// Splits a compressed page into the compression method and the compressed data.
fn split(packed: &[u8]) -> Option<(Compress, &[u8])> {
    let (compress, len, rest) = split_head(packed)?;
    Some((compress, rest.get(..len)?))
}

fn split_head(packed: &[u8]) -> Option<(Compress, usize, &[u8])> {
    let (head, rest) = packed.split_first_chunk::<HEAD>()?;
    let (code, len) =
        (u32::from_le_bytes(*head) >> LENGTH_BITS, u32::from_le_bytes(*head) & ((1 << LENGTH_BITS) - 1));
    let compress = [Compress::Lz4, Compress::Zstd].into_iter().find(|compress| compress.code() == code)?;
    Some((compress, len as usize, rest))
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
            assert_eq!(packed_units(packed, unit), Some(units as usize), "as many units as it needs");
        }
        bytes::look(&back, |bytes| assert!(bytes == page));
        units
    }

    /// Creates a page whose first `random` bytes are random and whose other bytes are zeros.
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
        // Six of eight bits are random. Only an entropy code saves the other two bits, and LZ4 has none.
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
