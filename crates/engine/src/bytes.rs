//! Access to the bytes of I/O buffers. This is the only file of the store with `unsafe`, apart from
//! `blocking/confined.rs`.
//!
//! A [`Buffer`] does not check which task accesses its bytes and when. The functions here are called in three
//! cases only: on a buffer of an arena that the calling task owns and that is not under I/O; on the buffer of
//! a page after its read has completed and before the pool hands the page out; and on the buffer of a page
//! during a write, while the pool allows only readers of the page.

#![allow(unsafe_code)]

use fulgurite_device::Buffer;

/// Copies `bytes` into a buffer of the same length that is not under I/O and that nobody else uses.
pub(crate) fn fill(buffer: &Buffer, bytes: &[u8]) {
    assert_eq!(buffer.len(), bytes.len(), "a buffer is filled whole");
    // SAFETY: the module head says why nobody else uses the buffer. The lengths are equal. `bytes` is not
    // part of the buffer, because the buffer is not borrowed.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.as_ptr(), bytes.len()) }
}

/// Calls `look` with the bytes of a buffer that nobody changes during the call.
pub(crate) fn look<T>(buffer: &Buffer, look: impl FnOnce(&[u8]) -> T) -> T {
    // SAFETY: the module head says why nobody changes the buffer. The reference ends with this call.
    look(unsafe { buffer.bytes() })
}

/// Calls `change` with the bytes of a buffer that nobody else uses.
pub(crate) fn change<T>(buffer: &Buffer, change: impl FnOnce(&mut [u8]) -> T) -> T {
    // SAFETY: the module head says why nobody else uses the buffer. The reference ends with this call.
    change(unsafe { buffer.bytes_mut() })
}
