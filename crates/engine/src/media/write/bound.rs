//! Binds data to its address.
//!
//! Several intact versions of a page may be on the drive: out of place, old ones until their segments are
//! reused; in place, the copies in the double-write area. A drive that misdirects a read must not return one
//! in place of another. So the first four bytes of each of them, which are the checksum of an uncompressed
//! page, are combined with a number that is unique for the address. Pages in place need none, because their
//! header contains their number.

use crate::bytes;
use fulgurite_device::Buffer;

/// Binds consecutive pieces of `piece` bytes to the addresses from `first` on. Doing it again unbinds them.
/// Nobody else may use the buffer meanwhile.
pub(super) fn bind(bytes: &Buffer, piece: usize, first: u32) {
    bytes::change(bytes, |bytes| bind_bytes(bytes, piece, first));
}

/// The same for a slice.
pub(super) fn bind_bytes(bytes: &mut [u8], piece: usize, first: u32) {
    for (index, piece) in (0..).zip(bytes.chunks_exact_mut(piece)) {
        let number = number_of(first.wrapping_add(index)).to_le_bytes();
        std::iter::zip(&mut piece[..4], number).for_each(|(byte, number)| *byte ^= number);
    }
}

/// A number that is unique for the address. It is zero only for the last address, and differs from others in
/// most bits.
fn number_of(address: u32) -> u32 {
    // Multiplication by an odd factor is a bijection.
    address.wrapping_add(1).wrapping_mul(0x9e37_79b1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_bytes_unbind_only_at_their_own_address() {
        let bytes: Vec<u8> = (0..64).collect();
        for address in [0, 1, 77, u32::MAX - 2] {
            let mut bound = bytes.clone();
            bind_bytes(&mut bound, 16, address);
            let differs = |index: usize| bound[index * 16..][..16] != bytes[index * 16..][..16];
            assert!((0..2).all(differs), "{address}");
            for other in [0, 1, 2, 76, 77, 78, 1 << 16, u32::MAX - 2] {
                let mut free = bound.clone();
                bind_bytes(&mut free, 16, other);
                assert_eq!(free == bytes, address == other, "{address} and {other}");
            }
        }
    }
}
