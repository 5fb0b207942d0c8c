//! The frame table: for each frame, the page that it holds, its latch, its dirty bit and the state of its
//! write.

use fulgurite_base::{FrameId, PageId};

/// The state of a frame. It has 16 bytes, so that four frames fill a cache line.
#[derive(Clone, Copy, Debug)]
struct Frame {
    page: PageId,
    /// The number of shared latches that are held, or [`EXCLUSIVE`].
    latches: u32,
    /// A set of the flags [`FrameTable::WRITING`] to [`FrameTable::CONTENDED`].
    flags: u32,
}

const EXCLUSIVE: u32 = u32::MAX;

/// Returns how often the erase block that holds a page was erased.
pub(crate) type EraseCounts = Box<dyn Fn(PageId) -> u64>;

/// The frames of a pool, as the policies see them.
pub struct FrameTable {
    frames: Vec<Frame>,
    /// One dirty bit for each frame, because policies examine 64 frames at once.
    dirty: Vec<u64>,
    erase_counts: Option<EraseCounts>,
}

impl FrameTable {
    /// The flag of a frame whose page is being written: the page may be read but not changed.
    pub(crate) const WRITING: u32 = 1;
    /// The flag of a frame that its write pins, so that it cannot be evicted before the write has ended.
    pub(crate) const HELD: u32 = 2;
    /// The flag of a frame whose page was evicted during its write. The page can still be found until the
    /// write has ended.
    pub(crate) const DETACHED: u32 = 4;
    /// The flag of a frame whose page was prefetched and not requested yet.
    pub(crate) const PREFETCHED: u32 = 8;
    /// The flag of a frame for whose latch a task waits. Waiting tasks get the latch in order, and the page
    /// is not evicted.
    pub(crate) const CONTENDED: u32 = 16;

    /// Creates a table of `frames` empty, clean frames.
    pub fn new(frames: u32) -> FrameTable {
        FrameTable {
            frames: vec![Frame { page: PageId(u64::MAX), latches: 0, flags: 0 }; frames as usize],
            dirty: vec![0; (frames as usize).div_ceil(64)],
            erase_counts: None,
        }
    }

    /// Returns the number of frames.
    pub fn len(&self) -> u32 {
        self.frames.len() as u32
    }

    /// Returns whether the table has no frames.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Returns the page in `frame`.
    #[inline]
    pub fn page(&self, frame: FrameId) -> PageId {
        self.frames[frame.index()].page
    }

    /// Returns whether `frame` is pinned, so that it cannot be evicted: it is latched, waited for, or held by
    /// its write.
    #[inline]
    pub fn is_pinned(&self, frame: FrameId) -> bool {
        let frame = &self.frames[frame.index()];
        frame.latches > 0 || frame.flags & (Self::HELD | Self::CONTENDED) != 0
    }

    /// Returns whether the page in `frame` differs from the drive's copy and is not being written.
    #[inline]
    pub fn is_dirty(&self, frame: FrameId) -> bool {
        self.dirty[frame.index() / 64] >> (frame.index() % 64) & 1 == 1
    }

    /// Returns [`FrameTable::is_dirty`] of the 64 frames from `64 * word` on, one bit each.
    #[inline]
    pub(crate) fn dirty_word(&self, word: usize) -> u64 {
        self.dirty[word]
    }

    /// Returns how often the erase block of the page in `frame` was erased; 0 if the drive does not report
    /// it. A pool over such a drive refuses policies that need erase counts.
    pub fn erases(&self, frame: FrameId) -> u64 {
        self.erase_counts.as_ref().map_or(0, |count| count(self.page(frame)))
    }

    pub(crate) fn set_erase_counts(&mut self, counts: EraseCounts) {
        self.erase_counts = Some(counts);
    }

    /// Puts `page` into `frame`, clean and unpinned.
    #[inline]
    pub fn load(&mut self, frame: FrameId, page: PageId) {
        self.frames[frame.index()] = Frame { page, latches: 0, flags: 0 };
        self.set_dirty(frame, false);
    }

    /// Marks the page in `frame` as dirty or clean.
    #[inline]
    pub fn set_dirty(&mut self, frame: FrameId, dirty: bool) {
        let (word, bit) = (&mut self.dirty[frame.index() / 64], frame.index() % 64);
        *word = *word & !(1 << bit) | u64::from(dirty) << bit;
    }

    #[inline]
    pub(crate) fn has(&self, frame: FrameId, flag: u32) -> bool {
        self.frames[frame.index()].flags & flag != 0
    }

    #[inline]
    pub(crate) fn set(&mut self, frame: FrameId, flag: u32) {
        self.frames[frame.index()].flags |= flag;
    }

    #[inline]
    pub(crate) fn clear(&mut self, frame: FrameId, flag: u32) {
        self.frames[frame.index()].flags &= !flag;
    }

    /// Begins to fetch the state of `frame` into the processor's cache.
    #[inline]
    pub(crate) fn prefetch(&self, frame: u32) {
        fulgurite_base::prefetch(&self.frames, frame as usize);
    }

    /// Takes the latch of `frame`, which pins it. Returns false and changes nothing if another task holds a
    /// conflicting latch, or if the latch is to be exclusive and the page is being written.
    #[inline]
    pub(crate) fn try_latch(&mut self, frame: FrameId, exclusive: bool) -> bool {
        let frame = &mut self.frames[frame.index()];
        frame.latches = match (frame.latches, exclusive) {
            (0, true) if frame.flags & Self::WRITING == 0 => EXCLUSIVE,
            // This arm also refuses an exclusive latch on a frame whose page is being written.
            (EXCLUSIVE, _) | (_, true) => return false,
            (shared, false) => shared + 1,
        };
        true
    }

    /// Returns whether a task holds the exclusive latch of `frame`, so that it may be changing the page.
    pub(crate) fn is_latched_exclusively(&self, frame: FrameId) -> bool {
        self.frames[frame.index()].latches == EXCLUSIVE
    }

    /// Undoes one [`FrameTable::try_latch`]. Returns whether a task waits for the latch, and whether the
    /// frame is now unlatched.
    #[inline]
    pub(crate) fn unlatch(&mut self, frame: FrameId) -> (bool, bool) {
        let frame = &mut self.frames[frame.index()];
        assert!(frame.latches > 0, "a latch is released once");
        frame.latches = if frame.latches == EXCLUSIVE { 0 } else { frame.latches - 1 };
        (frame.flags & Self::CONTENDED != 0, frame.latches == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: loading a page makes its frame clean and unpinned, whatever the frame's state was before.
    #[test]
    fn loading_a_page_makes_its_frame_clean_and_unused() {
        let mut frames = FrameTable::new(70);
        let frame = FrameId(65);
        frames.load(frame, PageId(1));
        frames.set_dirty(frame, true);
        frames.set(frame, FrameTable::CONTENDED);
        frames.load(frame, PageId(2));
        assert_eq!(
            (frames.page(frame), frames.is_dirty(frame), frames.is_pinned(frame)),
            (PageId(2), false, false)
        );
        assert!(!frames.is_empty() && FrameTable::new(0).is_empty());
    }
}
