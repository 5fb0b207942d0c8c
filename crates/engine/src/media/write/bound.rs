//! Bytes that are bound to their place.
//!
//! Several versions of a page may lie on the drive: out of place, older ones until their segments are written again; in place,
//! copies in the double-write area. Each of them is whole. So that a read which the drive answers from another address
//! never gives one for another, the first four bytes of each of them, the checksum of a page as it is, are changed by a number that no other
//! place has. A home in place has none: the page's own number says where it belongs.

use crate::bytes;
use fulgurite_device::Buffer;

/// Binds pieces of `piece` bytes that lie one behind the other in memory to the places from `first` on; done twice, it
/// frees them again. Nobody else uses the buffer meanwhile.
pub fn bind(bytes: &Buffer, piece: usize, first: u32) {
    bytes::change(bytes, |bytes| bind_bytes(bytes, piece, first));
}

/// The same for bytes that are in no buffer.
pub fn bind_bytes(bytes: &mut [u8], piece: usize, first: u32) {
    for (index, piece) in (0..).zip(bytes.chunks_exact_mut(piece)) {
        let number = number_of(first.wrapping_add(index)).to_le_bytes();
        std::iter::zip(&mut piece[..4], number).for_each(|(byte, number)| *byte ^= number);
    }
}

/// A number that no other place has. It is zero for none but the last one, and differs from others in most bits.
fn number_of(place: u32) -> u32 {
    // An odd factor maps numbers to numbers one to one.
    place.wrapping_add(1).wrapping_mul(0x9e37_79b1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_bound_is_free_at_its_own_place_only() {
        let bytes: Vec<u8> = (0..64).collect();
        for place in [0, 1, 77, u32::MAX - 2] {
            let mut bound = bytes.clone();
            bind_bytes(&mut bound, 16, place);
            let differs = |index: usize| bound[index * 16..][..16] != bytes[index * 16..][..16];
            assert!((0..2).all(differs), "{place}");
            for other in [0, 1, 2, 76, 77, 78, 1 << 16, u32::MAX - 2] {
                let mut free = bound.clone();
                bind_bytes(&mut free, 16, other);
                assert_eq!(free == bytes, place == other, "{place} and {other}");
            }
        }
    }
}
