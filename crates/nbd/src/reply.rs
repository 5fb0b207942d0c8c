//! The replies of the transmission phase. Each is one message, so replies to several requests may be sent in
//! any order.

use crate::fields::{put_u16, put_u32, put_u64};
use crate::request::Errno;

/// The magic number of a simple reply.
const SIMPLE_MAGIC: u32 = 0x6744_6698;
/// The magic number of a chunk of a structured reply.
const CHUNK_MAGIC: u32 = 0x668e_33ef;
/// The flag of the last chunk of a reply.
const DONE: u16 = 1 << 0;

/// The type of a chunk with data.
const OFFSET_DATA: u16 = 1;
/// The type of a chunk with extents.
const BLOCK_STATUS: u16 = 5;
/// The type of a chunk with an error.
const ERROR: u16 = 1 << 15 | 1;

/// The number of the context `base:allocation` in replies.
pub(crate) const ALLOCATION_ID: u32 = 1;
/// The most extents of one reply, which the protocol recommends.
const EXTENTS_AT_MOST: usize = 1 << 20;

/// A part of the export with one state of allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The length in bytes, which must not be zero.
    pub bytes: u32,
    /// Whether it has no space, so that a write to it may fail for lack of space.
    pub hole: bool,
    /// Whether it reads as zeros.
    pub zero: bool,
}

/// Appends a simple reply without data.
#[inline]
pub(crate) fn put_simple(out: &mut Vec<u8>, cookie: u64, error: u32) {
    put_u32(out, SIMPLE_MAGIC);
    put_u32(out, error);
    put_u64(out, cookie);
}

/// Appends the header of a structured reply that consists of one chunk.
#[inline]
fn put_chunk(out: &mut Vec<u8>, kind: u16, cookie: u64, length: u32) {
    put_u32(out, CHUNK_MAGIC);
    put_u16(out, DONE);
    put_u16(out, kind);
    put_u64(out, cookie);
    put_u32(out, length);
}

/// Appends an error. A structured one has no message for people, because its number says it all.
pub(crate) fn put_error(out: &mut Vec<u8>, is_structured: bool, cookie: u64, errno: Errno) {
    if is_structured {
        put_chunk(out, ERROR, cookie, 6);
        put_u32(out, errno as u32);
        put_u16(out, 0);
    } else {
        put_simple(out, cookie, errno as u32);
    }
}

/// Appends the header of a read's data.
#[inline]
pub(crate) fn put_data_header(out: &mut Vec<u8>, cookie: u64, offset: u64, length: u32) {
    put_chunk(out, OFFSET_DATA, cookie, length.saturating_add(8));
    put_u64(out, offset);
}

/// Appends the extents of the context `base:allocation`, as many as one reply may have.
pub(crate) fn put_extents(out: &mut Vec<u8>, cookie: u64, extents: &[Extent]) {
    let extents = &extents[..extents.len().min(EXTENTS_AT_MOST)];
    put_chunk(out, BLOCK_STATUS, cookie, 4 + 8 * extents.len() as u32);
    put_u32(out, ALLOCATION_ID);
    for extent in extents {
        put_u32(out, extent.bytes);
        put_u32(out, u32::from(extent.hole) | u32::from(extent.zero) << 1);
    }
}
