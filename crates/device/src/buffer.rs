//! Memory for I/O: arenas that never move, and buffers, which are ranges of an arena.
//!
//! A [`Buffer`] is a range of bytes in an [`Arena`] and keeps the arena alive. So a device never loses a
//! buffer during an operation, even if the future that asked for the I/O is dropped. The compiler does not
//! check concurrent access to the bytes; a protocol excludes conflicts. While a read is in flight, only the
//! device may access the bytes of its buffer. While a write is in flight, no code may change the bytes of its
//! buffer. Access is therefore `unsafe`, and only devices and the buffer pool use it. The pool's latches
//! enforce the protocol.

use fulgurite_base::advise_huge_pages;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

/// The alignment of an arena, in bytes: direct I/O requires page-aligned memory.
const ALIGNMENT: usize = 4096;
/// The alignment that every allocator provides, in bytes.
const USUAL_ALIGNMENT: usize = 16;

/// Zeroed, page-aligned memory that never moves.
pub struct Arena {
    start: NonNull<u8>,
    len: usize,
    /// The start of the allocation, which is longer than the arena, so that it contains an aligned start.
    allocated: NonNull<u8>,
    layout: Layout,
}

impl Arena {
    /// Allocates an arena of `len` bytes, at least one.
    pub fn new(len: usize) -> Arc<Arena> {
        let len = len.max(1);
        // The allocation has the usual alignment, because the system then provides the memory as zeroed
        // pages, on first use. For a larger alignment, the allocator would write zeros over the whole range,
        // which takes a third of a second per GiB.
        let layout = len
            .checked_add(ALIGNMENT - 1)
            .and_then(|bytes| Layout::from_size_align(bytes, USUAL_ALIGNMENT).ok())
            .expect("an arena fits the address space");
        // SAFETY: the layout's size is not zero.
        let allocated = unsafe { alloc_zeroed(layout) };
        let Some(allocated) = NonNull::new(allocated) else { handle_alloc_error(layout) };
        // SAFETY: aligning the start skips fewer than `ALIGNMENT` bytes, and the allocation has `ALIGNMENT -
        // 1` bytes more than the arena.
        let start = unsafe { allocated.add(allocated.align_offset(ALIGNMENT)) };
        // SAFETY: the bytes from the start on were allocated, and no other code has their address yet.
        let unused = unsafe { std::slice::from_raw_parts_mut(start.as_ptr().cast::<MaybeUninit<u8>>(), len) };
        advise_huge_pages(unused);
        Arc::new(Arena { start, len, allocated, layout })
    }

    /// Returns the length of the arena in bytes.
    #[allow(clippy::len_without_is_empty)] // never empty
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the address of the first of the bytes `offset..offset + len`. Panics if these bytes are not
    /// inside the arena.
    #[inline]
    pub fn address(&self, offset: usize, len: usize) -> NonNull<u8> {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "bytes outside their arena");
        // SAFETY: the bytes lie inside the arena.
        unsafe { self.start.add(offset) }
    }

    /// Returns a buffer of the bytes `offset..offset + len`. Panics if these bytes are not inside the arena.
    pub fn buffer(self: &Arc<Arena>, offset: usize, len: usize) -> Buffer {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "buffer outside its arena");
        Buffer { arena: Arc::clone(self), offset, len }
    }
}

// SAFETY: an arena only returns addresses. All access to the bytes goes through the `unsafe` functions of
// `Buffer`, whose callers promise that no conflicting access happens at the same time, on any thread.
unsafe impl Send for Arena {}
// SAFETY: as for `Send` above.
unsafe impl Sync for Arena {}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated in `new` with this layout. No buffer is left, because each keeps
        // its arena alive.
        unsafe { dealloc(self.allocated.as_ptr(), self.layout) }
    }
}

/// A range of bytes in an [`Arena`].
#[derive(Clone)]
pub struct Buffer {
    arena: Arc<Arena>,
    offset: usize,
    len: usize,
}

impl Buffer {
    /// Returns the length of the buffer in bytes.
    #[allow(clippy::len_without_is_empty)] // no caller has a use for an empty buffer
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns a buffer of the bytes `offset..offset + len` of this buffer. Panics if they are not inside
    /// this buffer.
    pub fn part(&self, offset: usize, len: usize) -> Buffer {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "part outside its buffer");
        Buffer { arena: Arc::clone(&self.arena), offset: self.offset + offset, len }
    }

    /// Returns the address of the first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        // SAFETY: `offset` lies inside the arena.
        unsafe { self.arena.start.as_ptr().add(self.offset) }
    }

    /// Returns the bytes for reading.
    ///
    /// # Safety
    /// Neither the device nor other code may change the bytes while the reference exists.
    pub unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: the range is in bounds and initialised by `Arena::new`; the caller promises that nothing
        // changes it.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.len) }
    }

    /// Returns the bytes for writing.
    ///
    /// # Safety
    /// Neither the device nor other code may read or write the bytes while the reference exists.
    #[allow(clippy::mut_from_ref)] // the protocol in the module's head makes the access exclusive
    pub unsafe fn bytes_mut(&self) -> &mut [u8] {
        // SAFETY: the range is in bounds and initialised; the caller promises that no other code accesses it.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr(), self.len) }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({}+{})", self.offset, self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_buffer_has_its_bytes() {
        let arena = Arena::new(100);
        assert_eq!(arena.len(), 100);
        let whole = arena.buffer(0, 100);
        // SAFETY: no device has these bytes, and no other reference to them exists.
        let all = unsafe { whole.bytes_mut() };
        (0..100).for_each(|at| all[at as usize] = at);
        let part = arena.buffer(20, 50).part(7, 3);
        // SAFETY: no device has these bytes, and they are only read from here on.
        assert_eq!((part.len(), unsafe { part.bytes() }), (3, [27, 28, 29].as_slice()));
        let start = arena.address(0, 100).as_ptr() as usize;
        assert_eq!((start % ALIGNMENT, arena.address(20, 1).as_ptr() as usize), (0, start + 20));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn large_arenas_ask_for_huge_pages() {
        let arena = Arena::new(8 << 20);
        let at = arena.address(4 << 20, 1).as_ptr() as usize;
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let is_of = |line: &str| {
            let (from, to) = line.split(' ').next()?.split_once('-')?;
            let number = |digits| usize::from_str_radix(digits, 16).ok();
            Some((number(from)?..number(to)?).contains(&at))
        };
        let of_arena = maps.lines().skip_while(|line| is_of(line) != Some(true));
        let flags = of_arena.into_iter().find(|line| line.starts_with("VmFlags:")).unwrap();
        let has_huge_pages = std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
        assert_eq!(flags.split_whitespace().any(|flag| flag == "hg"), has_huge_pages, "{flags}");
    }

    #[test]
    fn bytes_outside_are_refused() {
        let arena = Arena::new(100);
        let refused = |act: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(act)).is_err();
        assert!(refused(&|| drop(arena.buffer(60, 41))) && !refused(&|| drop(arena.buffer(60, 40))));
        assert!(
            refused(&|| {
                let _ = arena.address(100, 1);
            }) && !refused(&|| {
                let _ = arena.address(99, 1);
            })
        );
        let buffer = arena.buffer(10, 20);
        assert!(refused(&|| drop(buffer.part(15, 6))) && !refused(&|| drop(buffer.part(15, 5))));
    }
}
