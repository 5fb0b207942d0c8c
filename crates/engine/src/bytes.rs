//! Bytes of buffers that drives read and write: the one place of the store with `unsafe`.
//!
//! A [`Buffer`] leaves it to a protocol who may touch its bytes and when. The functions here are called in these cases
//! only: on buffers of an arena that the calling task owns and that is not under I/O; on a page's buffer after its read
//! has completed and before the pool hands the page out; and on a page's buffer during a write, when the pool lets
//! everybody read the page and nobody change it.

#![allow(unsafe_code)]

use fulgurite_device::Buffer;

/// Copies bytes into a buffer that is not under I/O and that nobody else uses.
pub fn fill(buffer: &Buffer, bytes: &[u8]) {
    assert_eq!(buffer.len(), bytes.len(), "a buffer is filled whole");
    // SAFETY: see the module; the lengths are equal, and the bytes are not part of the buffer, which is not borrowed.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.as_ptr(), bytes.len()) }
}

/// Gives `look` the bytes of a buffer that nobody changes meanwhile.
pub fn look<T>(buffer: &Buffer, look: impl FnOnce(&[u8]) -> T) -> T {
    // SAFETY: see the module; the reference ends with this call.
    look(unsafe { buffer.bytes() })
}

/// Gives `change` the bytes of a buffer that nobody else uses.
pub fn change<T>(buffer: &Buffer, change: impl FnOnce(&mut [u8]) -> T) -> T {
    // SAFETY: see the module; the reference ends with this call.
    change(unsafe { buffer.bytes_mut() })
}
