//! Memory for pages on their way, which is used again.
//!
//! A batch of pages has up to 256 KiB. To allocate that and fill it with zeros takes a third as long as to copy the
//! pages into it.

use fulgurite_device::{Arena, Buffer};
use std::cell::RefCell;
use std::sync::Arc;

/// Arenas that are used again when nobody has a buffer of them any more.
pub(crate) struct Scratch {
    arenas: RefCell<Vec<Arc<Arena>>>,
    most_bytes: usize,
}

impl Scratch {
    /// Keeps at most so many bytes.
    pub(crate) fn new(most_bytes: usize) -> Scratch {
        Scratch { arenas: RefCell::default(), most_bytes }
    }

    /// Returns a buffer of `len` bytes with any contents.
    pub(crate) fn buffer(&self, len: usize) -> Buffer {
        let mut arenas = self.arenas.borrow_mut();
        // `get_mut` succeeds only if neither a buffer nor a device has the arena.
        let is_free = |arena: &mut Arc<Arena>| arena.len() >= len && Arc::get_mut(arena).is_some();
        if let Some(arena) = arenas.iter_mut().find_map(|arena| is_free(arena).then_some(arena)) {
            return arena.buffer(0, len);
        }
        // A size with few values fits more of the later requests.
        let arena = Arena::new(len.next_power_of_two());
        let kept: usize = arenas.iter().map(|arena| arena.len()).sum();
        if kept + arena.len() <= self.most_bytes {
            arenas.push(Arc::clone(&arena));
        }
        arena.buffer(0, len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: memory is used again, but not while a buffer of it exists, and no more than the limit is kept.
    #[test]
    fn memory_without_buffers_is_used_again() {
        let scratch = Scratch::new(3 << 12);
        let (one, two) = (scratch.buffer(5_000), scratch.buffer(4_096));
        let (first, second) = (one.as_ptr(), two.as_ptr());
        assert_ne!(first, second);
        let part = one.part(4_000, 10);
        drop((one, two));
        assert_eq!(scratch.buffer(100).as_ptr(), second, "a part keeps the other");
        drop(part);
        assert_eq!(scratch.buffer(8_192).as_ptr(), first);
        let beyond = scratch.buffer(9_000);
        assert_eq!(scratch.arenas.borrow().len(), 2, "{beyond:?} is not kept");
    }
}
