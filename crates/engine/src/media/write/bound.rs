//! Binds the bytes of a page to their address on the drive.
//!
//! Several intact versions of a page may be on the drive. Out of place, old versions remain until their
//! segments are reused. In place, copies are in the double-write area. A drive that misdirects a read must
//! not return one version instead of another. So the first four bytes of each version, which are the checksum
//! of an uncompressed page, are combined with a number that is unique for the address. A page at its home
//! location is not bound, because its header contains its page number.

use crate::bytes;
use fulgurite_device::Buffer;

/// Binds consecutive pieces of `piece` bytes to the addresses from `first` on. A second call unbinds them.
/// Nobody else may use the buffer during the call.
pub(super) fn bind(bytes: &Buffer, piece: usize, first: u32) {
    bytes::change(bytes, |bytes| bind_bytes(bytes, piece, first));
}

/// Binds or unbinds the pieces of a slice, like [`bind`].
pub(super) fn bind_bytes(bytes: &mut [u8], piece: usize, first: u32) {
    for (index, piece) in (0..).zip(bytes.chunks_exact_mut(piece)) {
        let number = number_of(first.wrapping_add(index)).to_le_bytes();
        std::iter::zip(&mut piece[..4], number).for_each(|(byte, number)| *byte ^= number);
    }
}

/// Returns a number that is unique for the address. The number is zero only for the last address, and numbers
/// of different addresses differ in most bits.
fn number_of(address: u32) -> u32 {
    // Multiplication by an odd factor is a bijection, so the numbers are unique.
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
